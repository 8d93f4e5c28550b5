//! Writes what passes between a run and its model.

use std::fmt;
use std::fs::File;
use std::io::{BufRead as _, BufReader, Read as _, Write as _};
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, PoisonError};

use harness_core::message::AssistantMessage;
use harness_core::port::{DeltaPart, Deltas, Model, ModelFault, ModelFaultCode, ModelRequest, Secret};

use super::canonical::{canonical, digest};
use super::format::{self, BOUNDS, Exchange};
use super::redaction::Redaction;
use crate::RecordError;

/// Wraps a model and writes each exchange to a recording as soon as it is complete.
///
/// Each line is written and synced before the answer is returned, so a recording holds what the run
/// has seen even after a crash. Exchanges are numbered in the order in which they complete; record one
/// run at a time. A call that is dropped half-way leaves no line. A recording that cannot be written
/// is a fault of the step (`recording`).
///
/// Put it outside whatever repeats a step, so that the recording holds what the run saw. Name the keys
/// that are in use with [`without`](Self::without): a prompt, a tool or an endpoint may repeat one. A key that
/// a request brings along is left out without being named.
pub struct Recorder<M> {
    inner: M,
    redaction: Redaction,
    output: Arc<Mutex<Output>>,
}

#[derive(Debug)]
struct Output {
    path: PathBuf,
    file: File,
    size: usize,
    steps: usize,
}

impl<M> Recorder<M> {
    /// Begins a new recording. A recording that is already there is replaced; a file that is none is
    /// left alone.
    ///
    /// # Errors
    /// [`RecordError::RecordingIo`], and [`RecordError::RecordingLine`] for a file that is no
    /// recording. Blocks on the file system.
    pub fn create(inner: M, path: impl Into<PathBuf>) -> Result<Self, RecordError> {
        let path = path.into();
        spare_foreign_files(&path)?;
        let fault = |source| RecordError::RecordingIo { path: path.clone(), action: "created", source };
        let file = File::create(&path).map_err(fault)?;
        let mut output = Output { path: path.clone(), file, size: 0, steps: 0 };
        let header = format::header().map_err(|error| fault(error.into()))?;
        output.append(&header)?;
        Ok(Self { inner, redaction: Redaction::default(), output: Arc::new(Mutex::new(output)) })
    }

    /// Writes `[key]` wherever one of these secrets would stand, if it has at least eight bytes. The run itself
    /// sees what the model said.
    #[must_use]
    pub fn without(mut self, secrets: impl IntoIterator<Item = impl Into<Secret>>) -> Self {
        self.redaction.add(secrets.into_iter().map(Into::into));
        self
    }
}

impl<M> fmt::Debug for Recorder<M> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Recorder").field("output", &self.output).finish_non_exhaustive()
    }
}

/// Refuses to overwrite a file that does not begin like a recording.
fn spare_foreign_files(path: &Path) -> Result<(), RecordError> {
    let Ok(file) = File::open(path) else { return Ok(()) };
    let mut first = String::new();
    let read = BufReader::new(file.take(1_024)).read_line(&mut first);
    match read {
        Ok(0) => Ok(()),
        Ok(_) => format::check_header(path, first.trim_end()),
        Err(source) => Err(RecordError::RecordingIo { path: path.to_owned(), action: "read", source }),
    }
}

impl Output {
    fn append(&mut self, line: &str) -> Result<(), RecordError> {
        let size = self.size.saturating_add(line.len());
        BOUNDS.check(&self.path, line.len(), size)?;
        let written = self.file.write_all(line.as_bytes()).and_then(|()| self.file.sync_data());
        written.map_err(|source| RecordError::RecordingIo {
            path: self.path.clone(),
            action: "written",
            source,
        })?;
        self.size = size;
        Ok(())
    }

    fn exchange(&mut self, mut exchange: Exchange, redaction: &Redaction) -> Result<(), RecordError> {
        exchange.step = self.steps.saturating_add(1);
        let line = format::line(&exchange).map_err(|error| RecordError::RecordingIo {
            path: self.path.clone(),
            action: "written",
            source: error.into(),
        })?;
        self.append(&redaction.text(line))?;
        self.steps = exchange.step;
        Ok(())
    }
}

/// Passes pieces on and keeps them.
struct Kept<'a> {
    inner: &'a dyn Deltas,
    parts: Mutex<Vec<DeltaPart>>,
}

impl Deltas for Kept<'_> {
    fn part(&self, part: DeltaPart) {
        self.parts.lock().unwrap_or_else(PoisonError::into_inner).push(part.clone());
        self.inner.part(part);
    }
}

impl<M: Model> Model for Recorder<M> {
    async fn step(&self, request: ModelRequest, deltas: &dyn Deltas) -> Result<AssistantMessage, ModelFault> {
        let fault = |text: String| ModelFault::new(ModelFaultCode::Recording, text);
        let canonical =
            canonical(&request).map_err(|error| fault(format!("the request has no JSON form: {error}")))?;
        let redaction = self.redaction.with(request.key.as_ref());
        let canonical = redaction.request(canonical);
        let kept = Kept { inner: deltas, parts: Mutex::default() };
        let result = self.inner.step(request, &kept).await;
        let exchange = Exchange {
            step: 0,
            digest: digest(&canonical),
            request: canonical,
            deltas: redaction.pieces(kept.parts.into_inner().unwrap_or_else(PoisonError::into_inner)),
            answer: result.as_ref().ok().cloned(),
            fault: result.as_ref().err().cloned(),
        };
        let output = Arc::clone(&self.output);
        let write =
            move || output.lock().unwrap_or_else(PoisonError::into_inner).exchange(exchange, &redaction);
        let written = tokio::task::spawn_blocking(write).await;
        let problem = match written {
            Ok(Ok(())) => return result,
            Ok(Err(error)) => format!("{error}; {}", error.hint()),
            Err(error) => format!("the recording could not be written: {error}"),
        };
        // What the model said is not lost with its recording.
        Err(match result {
            Ok(message) => fault(problem).with_partial(message),
            Err(_) => fault(problem),
        })
    }
}
