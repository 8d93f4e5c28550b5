//! Writing recordings.

use std::fmt;
use std::fs::File;
use std::io::{BufRead as _, BufReader, Read as _, Write as _};
use std::path::{Path, PathBuf};
use std::sync::Arc;

use harness_core::canonical;
use harness_core::message::AssistantMessage;
use harness_core::port::{
    DeltaPart, Deltas, Model, ModelFault, ModelFaultCode, ModelRequest, PreparedAgent, Secret,
};
use parking_lot::Mutex;

use super::format::{self, BOUNDS, Exchange};
use super::redaction::Redaction;
use crate::error::{RecordError, RecordFile};
use crate::request::form;

/// Model wrapper that records every exchange.
///
/// Each line is written and synced before the answer is returned, so a recording is complete even after a crash. Exchanges
/// are numbered in the order of completion: record one run at a time. A cancelled call is not recorded. A write error
/// fails the step (`recording`).
///
/// Wrap retries inside the recorder, so that the recording contains what the run saw. Pass keys in use to
/// [`without`](Self::without), because prompts, tools and endpoints may repeat them. The key of a request is always
/// redacted.
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
    /// Creates a recording, replacing an existing one. Blocks on the file system.
    ///
    /// # Errors
    /// An I/O error, or an existing file that is not a recording, which is not changed.
    pub fn create(inner: M, path: impl Into<PathBuf>) -> Result<Self, RecordError> {
        let path = path.into();
        spare_foreign_files(&path)?;
        let file = File::create(&path).map_err(|source| io_error(&path, "create", source))?;
        let mut output = Output { path: path.clone(), file, size: 0, steps: 0 };
        let header = format::header().map_err(|error| io_error(&path, "create", error.into()))?;
        output.append(&header)?;
        Ok(Self { inner, redaction: Redaction::default(), output: Arc::new(Mutex::new(output)) })
    }

    /// Redacts secrets of at least eight bytes as `[key]`. The run itself receives the unredacted answers.
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

fn io_error(path: &Path, action: &'static str, source: std::io::Error) -> RecordError {
    RecordError::Io { file: RecordFile::Recording, action, path: path.to_owned(), source }
}

/// Rejects overwriting a file that is not a recording of any version.
fn spare_foreign_files(path: &Path) -> Result<(), RecordError> {
    let Ok(file) = File::open(path) else { return Ok(()) };
    let mut first = String::new();
    let read = BufReader::new(file.take(1_024)).read_line(&mut first);
    match read.map(|length| (length, format::check_header(path, first.trim_end()))) {
        Ok((0, _) | (_, Ok(()) | Err(RecordError::Version { .. }))) => Ok(()),
        Ok((_, Err(error))) => Err(error),
        Err(source) => Err(io_error(path, "read", source)),
    }
}

impl Output {
    fn append(&mut self, line: &str) -> Result<(), RecordError> {
        let size = self.size.saturating_add(line.len());
        BOUNDS.check(&self.path, line.len(), size)?;
        let written = self.file.write_all(line.as_bytes()).and_then(|()| self.file.sync_data());
        written.map_err(|source| io_error(&self.path, "write", source))?;
        self.size = size;
        Ok(())
    }

    fn exchange(&mut self, mut exchange: Exchange, redaction: &Redaction) -> Result<(), RecordError> {
        exchange.step = self.steps.saturating_add(1);
        let line = format::line(&exchange).map_err(|error| io_error(&self.path, "write", error.into()))?;
        self.append(&redaction.text(&line))?;
        self.steps = exchange.step;
        Ok(())
    }
}

/// Sink that forwards deltas and collects them.
struct DeltaLog<'a> {
    inner: &'a dyn Deltas,
    parts: Mutex<Vec<DeltaPart>>,
}

impl Deltas for DeltaLog<'_> {
    fn part(&self, part: DeltaPart) {
        self.parts.lock().push(part.clone());
        self.inner.part(part);
    }
}

impl<M: Model> Model for Recorder<M> {
    async fn step(&self, request: ModelRequest, deltas: &dyn Deltas) -> Result<AssistantMessage, ModelFault> {
        let fault = |text: String| ModelFault::new(ModelFaultCode::Recording, text);
        let form = form(&request).map_err(|error| fault(format!("the request has no JSON form: {error}")))?;
        let redaction = self.redaction.with(request.key.as_ref());
        let form = redaction.request(form);
        let log = DeltaLog { inner: deltas, parts: Mutex::default() };
        let result = self.inner.step(request, &log).await;
        let exchange = Exchange {
            step: 0,
            digest: canonical::hash(&form),
            request: form,
            deltas: redaction.deltas(log.parts.into_inner()),
            answer: result.as_ref().ok().cloned(),
            fault: result.as_ref().err().cloned(),
        };
        let output = Arc::clone(&self.output);
        let write = move || output.lock().exchange(exchange, &redaction);
        let written = tokio::task::spawn_blocking(write).await;
        let problem = match written {
            Ok(Ok(())) => return result,
            Ok(Err(error)) => format!("{error}; {}", error.hint()),
            Err(error) => format!("cannot write the recording: {error}"),
        };
        // The answer is not lost with its recording.
        Err(match result {
            Ok(message) => fault(problem).with_partial(message),
            Err(_) => fault(problem),
        })
    }

    fn has_structured_output(&self, agent: &PreparedAgent) -> bool {
        self.inner.has_structured_output(agent)
    }
}
