//! How runs are recorded, one after the other.

use std::fmt;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use harness_core::Json;

use super::candidate::Candidate;
use super::fold::{RecordFold, RecordOptions, RunStart};
use super::redact::Redaction;
use super::run_record::RunRecord;
use super::sink::{DynRecordSink, RecordSink};

/// How runs are recorded: what a record holds, and where it goes.
///
/// Each run that ends gives one [`RunRecord`], to whoever ran it and to every sink.
///
/// ```
/// use harness_record::{FileSink, Recording, Redaction};
///
/// let recording = Recording::new()
///     .sink(FileSink::new("run.json"))
///     .redact(Redaction::none().paths(["customer.email"]));
/// # let _ = recording;
/// ```
#[derive(Clone, Default)]
pub struct Recording {
    /// What a record holds beyond what the events say.
    pub options: RecordOptions,
    sinks: Vec<Arc<dyn DynRecordSink>>,
}

impl fmt::Debug for Recording {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let sinks = self.sinks.len();
        f.debug_struct("Recording").field("options", &self.options).field("sinks", &sinks).finish()
    }
}

impl Recording {
    /// Records that go to no sink.
    pub fn new() -> Self {
        Self::default()
    }

    /// One more place where records go.
    #[must_use]
    pub fn sink(mut self, sink: impl RecordSink + 'static) -> Self {
        self.sinks.push(Arc::new(sink));
        self
    }

    /// What is taken out. Default nothing.
    #[must_use]
    pub fn redact(mut self, redaction: Redaction) -> Self {
        self.options.redaction = redaction;
        self
    }

    /// Records the text of instructions beside its hash. Default no.
    #[must_use]
    pub fn prompt_text(mut self) -> Self {
        self.options.prompt_text = true;
        self
    }

    /// Data of your own. Default none.
    #[must_use]
    pub fn metadata(mut self, metadata: Json) -> Self {
        self.options.metadata = Some(metadata);
        self
    }

    /// What is known of the candidate beside what the events tell.
    #[must_use]
    pub fn candidate(mut self, candidate: Candidate) -> Self {
        self.options.candidate = candidate;
        self
    }

    /// What records runs in this way.
    pub fn recorder(self) -> RunRecorder {
        RunRecorder { fold: Arc::new(Mutex::new(RecordFold::new(self.options))), sinks: self.sinks }
    }
}

/// Records runs, one after the other: give [`fold`](Self::fold) to the hub of the driver's ports, tell when a run
/// [begins](Self::begin), and take its record when it has [ended](Self::finish).
///
/// ```
/// use harness_core::event::Hub;
/// use harness_record::{Recording, RunStart};
///
/// # #[tokio::main(flavor = "current_thread")]
/// # async fn main() {
/// let recorder = Recording::new().recorder();
/// let mut hub = Hub::default();
/// hub.fold(recorder.fold());
/// recorder.begin(RunStart::default());
/// // … a run …
/// assert!(recorder.finish().await.record.is_none(), "no run has ended yet");
/// # }
/// ```
pub struct RunRecorder {
    fold: Arc<Mutex<RecordFold>>,
    sinks: Vec<Arc<dyn DynRecordSink>>,
}

impl fmt::Debug for RunRecorder {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("RunRecorder").field("sinks", &self.sinks.len()).finish_non_exhaustive()
    }
}

/// The record of a run, and what went wrong when it was to be kept.
#[derive(Debug, Default)]
pub struct Recorded {
    /// The record; none when no run has ended.
    pub record: Option<Arc<RunRecord>>,
    /// Why the first sink that failed could not keep it, with what to do about it.
    pub failed: Option<String>,
}

impl RunRecorder {
    /// The listener that makes the record.
    pub fn fold(&self) -> Arc<Mutex<RecordFold>> {
        Arc::clone(&self.fold)
    }

    fn lock(&self) -> MutexGuard<'_, RecordFold> {
        self.fold.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// A run begins.
    pub fn begin(&self, start: RunStart) {
        self.lock().begin(start);
    }

    /// A run has ended: gives its record to every sink.
    pub async fn finish(&self) -> Recorded {
        let record = self.lock().record().map(Arc::new);
        let mut recorded = Recorded { record, failed: None };
        let Some(record) = &recorded.record else { return recorded };
        for sink in &self.sinks {
            if let Err(error) = sink.write_boxed(Arc::clone(record)).await {
                recorded.failed.get_or_insert_with(|| format!("{error}; {}", error.hint()));
            }
        }
        recorded
    }
}
