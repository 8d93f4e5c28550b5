//! Replaying recordings.

use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicUsize, Ordering};

use harness_core::message::AssistantMessage;
use harness_core::port::{Deltas, Model, ModelFault, ModelFaultCode, ModelRequest, PreparedAgent, Secret};

use super::format::{self, BOUNDS, Exchange};
use super::redaction::Redaction;
use crate::difference::Difference;
use crate::error::{RecordError, RecordFile};
use crate::request::form;
use crate::sink::read_bounded;

/// Model that answers from a recording, in order and with deltas.
///
/// A request that differs from the recorded one fails the step (`recording`) with the first difference, without using
/// up the exchange. Call [`finish`](Self::finish) after the run to detect unused exchanges.
#[derive(Debug)]
pub struct Replay {
    path: PathBuf,
    exchanges: Vec<Exchange>,
    redaction: Redaction,
    used: AtomicUsize,
}

impl Replay {
    /// Reads a recording. Blocks on the file system.
    ///
    /// # Errors
    /// A file that is unreadable, invalid, too large, or of an unsupported version.
    pub fn open(path: impl Into<PathBuf>) -> Result<Self, RecordError> {
        let path = path.into();
        let text = read_bounded(&path, RecordFile::Recording, BOUNDS.file)?;
        Self::from_text(&path, &text)
    }

    /// Parses a recording; `name` replaces the path in messages.
    ///
    /// # Errors
    /// Those of [`open`](Self::open).
    pub fn from_text(name: impl AsRef<Path>, text: &str) -> Result<Self, RecordError> {
        let path = name.as_ref().to_owned();
        BOUNDS.check(&path, 0, text.len())?;
        let exchanges = format::read(&path, text, BOUNDS)?;
        Ok(Self { path, exchanges, redaction: Redaction::default(), used: AtomicUsize::new(0) })
    }

    /// Redacts secrets of requests before the comparison, like [`Recorder::without`](super::Recorder::without).
    #[must_use]
    pub fn without(mut self, secrets: impl IntoIterator<Item = impl Into<Secret>>) -> Self {
        self.redaction.add(secrets.into_iter().map(Into::into));
        self
    }

    /// Path of the recording.
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// Number of used exchanges.
    pub fn used(&self) -> usize {
        self.used.load(Ordering::Acquire)
    }

    /// Number of unused exchanges.
    pub fn unused(&self) -> usize {
        self.exchanges.len().saturating_sub(self.used())
    }

    /// Checks that the whole recording was used.
    ///
    /// # Errors
    /// [`RecordError::Unused`] with the number of unused exchanges.
    pub fn finish(&self) -> Result<(), RecordError> {
        let (unused, total) = (self.unused(), self.exchanges.len());
        if unused == 0 {
            return Ok(());
        }
        let first = total.saturating_sub(unused).saturating_add(1);
        Err(RecordError::Unused { path: self.path.clone(), unused, total, first })
    }

    fn next(&self, request: &ModelRequest) -> Result<&Exchange, ModelFault> {
        let fault = |text: String| ModelFault::new(ModelFaultCode::Recording, text);
        let got = form(request).map_err(|error| fault(format!("the request has no JSON form: {error}")))?;
        let got = self.redaction.with(request.key.as_ref()).request(got);
        let at = self.used.load(Ordering::Acquire);
        let (path, step) = (self.path.display(), at.saturating_add(1));
        let Some(exchange) = self.exchanges.get(at) else {
            let total = self.exchanges.len();
            return Err(fault(format!(
                "recording `{path}` ends after step {total}, but the run requested step {step}; \
                 record it again if the run has changed"
            )));
        };
        if exchange.request.text() != got.text() {
            let difference = Difference::first(&exchange.request, &got);
            let difference = difference.map_or_else(|| "the order of keys".to_owned(), |found| found.line());
            return Err(fault(format!(
                "step {step} of recording `{path}` does not match the request: {difference}; \
                 record it again if the change is intended"
            )));
        }
        let taken = self.used.compare_exchange(at, step, Ordering::AcqRel, Ordering::Acquire);
        taken.map(|_| exchange).map_err(|_| {
            fault(format!(
                "two concurrent requests for step {step} of recording `{path}`; replay one run at a time"
            ))
        })
    }
}

impl Model for Replay {
    async fn step(&self, request: ModelRequest, deltas: &dyn Deltas) -> Result<AssistantMessage, ModelFault> {
        let exchange = self.next(&request)?;
        for part in &exchange.deltas {
            deltas.part(part.clone());
        }
        match (&exchange.answer, &exchange.fault) {
            (Some(answer), _) => Ok(answer.clone()),
            (None, Some(fault)) => Err(fault.clone()),
            (None, None) => Err(ModelFault::new(ModelFaultCode::Recording, "the recorded exchange is empty")),
        }
    }

    fn has_structured_output(&self, _: &PreparedAgent) -> bool {
        let next = self.exchanges.get(self.used.load(Ordering::Acquire));
        let entries = next.and_then(|exchange| exchange.request.entries().ok()).unwrap_or_default();
        entries.iter().any(|(key, _)| key == "output")
    }
}
