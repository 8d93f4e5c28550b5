//! Answers from a recording instead of a model.

use std::fs::File;
use std::io::Read as _;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicUsize, Ordering};

use harness_core::message::AssistantMessage;
use harness_core::port::{Deltas, Model, ModelFault, ModelFaultCode, ModelRequest, Secret};

use super::canonical::{canonical, digest};
use super::difference::first_difference;
use super::format::{self, BOUNDS, Exchange};
use super::redaction::Redaction;
use crate::RecordError;

/// Answers each request with the recorded one's answer, in order, deltas included.
///
/// A request that is not the recorded one is a fault (`recording`) that names the step and the first
/// difference; the recording then stays where it is. Call [`finish`](Self::finish) after the run: a
/// recording of which something was not asked for is an error, too.
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
    /// The `Recording…` variants of [`RecordError`]: unreadable, not a recording, damaged, too large,
    /// or of a newer version.
    pub fn open(path: impl Into<PathBuf>) -> Result<Self, RecordError> {
        let path = path.into();
        let fault = |source| RecordError::RecordingIo { path: path.clone(), action: "read", source };
        let mut text = String::new();
        let bound = u64::try_from(BOUNDS.file).unwrap_or(u64::MAX);
        let file = File::open(&path).map_err(fault)?;
        file.take(bound.saturating_add(1)).read_to_string(&mut text).map_err(fault)?;
        Self::from_text(&path, &text)
    }

    /// Takes a recording that is already in memory; `name` stands for it in messages.
    ///
    /// # Errors
    /// As [`open`](Self::open).
    pub fn from_text(name: impl AsRef<Path>, text: &str) -> Result<Self, RecordError> {
        let path = name.as_ref().to_owned();
        BOUNDS.check(&path, 0, text.len())?;
        let exchanges = format::read(&path, text, BOUNDS)?;
        Ok(Self { path, exchanges, redaction: Redaction::default(), used: AtomicUsize::new(0) })
    }

    /// Takes these secrets out of a request before it is compared, as
    /// [`Recorder::without`](super::Recorder::without) did before it was written. Without the secrets at
    /// hand nothing needs to be named.
    #[must_use]
    pub fn without(mut self, secrets: impl IntoIterator<Item = impl Into<Secret>>) -> Self {
        self.redaction.add(secrets.into_iter().map(Into::into));
        self
    }

    /// The file.
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// Exchanges that were asked for.
    pub fn used(&self) -> usize {
        self.used.load(Ordering::Acquire)
    }

    /// Exchanges that nothing has asked for yet.
    pub fn unused(&self) -> usize {
        self.exchanges.len().saturating_sub(self.used())
    }

    /// Checks that the whole recording was used.
    ///
    /// # Errors
    /// [`RecordError::RecordingUnused`] with the number of exchanges that are left.
    pub fn finish(&self) -> Result<(), RecordError> {
        let (unused, total) = (self.unused(), self.exchanges.len());
        if unused == 0 {
            return Ok(());
        }
        let first = total.saturating_sub(unused).saturating_add(1);
        Err(RecordError::RecordingUnused { path: self.path.clone(), unused, total, first })
    }

    fn next(&self, request: &ModelRequest) -> Result<&Exchange, ModelFault> {
        let fault = |text: String| ModelFault::new(ModelFaultCode::Recording, text);
        let got =
            canonical(request).map_err(|error| fault(format!("the request has no JSON form: {error}")))?;
        let got = self.redaction.with(request.key.as_ref()).request(got);
        let at = self.used.load(Ordering::Acquire);
        let (path, step) = (self.path.display(), at.saturating_add(1));
        let Some(exchange) = self.exchanges.get(at) else {
            let total = self.exchanges.len();
            return Err(fault(format!(
                "the recording {path} ends after step {total}, but the run asked for step {step}; \
                 record it again if the run has changed"
            )));
        };
        if exchange.digest != digest(&got) {
            let difference = first_difference(&exchange.request, &got);
            return Err(fault(format!(
                "step {step} of the recording {path} does not fit the request, {difference}; \
                 record it again if the change is intended"
            )));
        }
        let taken = self.used.compare_exchange(at, step, Ordering::AcqRel, Ordering::Acquire);
        taken.map(|_| exchange).map_err(|_| {
            fault(format!(
                "two requests asked for step {step} of the recording {path} at once; replay one run at a time"
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
}
