//! Recording of runs.

use std::fmt;
use std::sync::Arc;

use harness_core::Json;
use parking_lot::Mutex;

use super::candidate::Candidate;
use super::fold::{RecordFold, RecordOptions, RunStart};
use super::recent::{RecentRuns, RecordSize};
use super::redact::Redaction;
use super::run_record::RunRecord;
use super::sink::{DynRecordSink, RecordSink};
use super::subagents::{SubagentRecorder, Subagents};

/// Configuration of recording: options and sinks. Each finished run yields one [`RunRecord`], for the caller and every
/// sink.
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
    /// Options of the records.
    pub options: RecordOptions,
    sinks: Vec<Arc<dyn DynRecordSink>>,
    recent: Option<RecentRuns>,
    subagents: Subagents,
}

impl fmt::Debug for Recording {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let sinks = self.sinks.len();
        f.debug_struct("Recording")
            .field("options", &self.options)
            .field("sinks", &sinks)
            .finish_non_exhaustive()
    }
}

impl Recording {
    /// Creates a configuration without sinks.
    pub fn new() -> Self {
        Self::default()
    }

    /// Adds a sink.
    #[must_use]
    pub fn sink(mut self, sink: impl RecordSink + 'static) -> Self {
        self.sinks.push(Arc::new(sink));
        self
    }

    /// Sets the memory of recent runs, which also shows runs in progress. Default none.
    #[must_use]
    pub fn recent(mut self, runs: RecentRuns) -> Self {
        self.recent = Some(runs);
        self
    }

    /// Creates an observer of sub-agents, which adds their runs to the records of their callers. `Harness` adds it to its
    /// sub-agents.
    pub fn subagents(&self) -> SubagentRecorder {
        SubagentRecorder::new(self.options.prompts, self.subagents.clone())
    }

    /// Sets the redaction. Default none.
    #[must_use]
    pub fn redact(mut self, redaction: Redaction) -> Self {
        self.options.redaction = redaction;
        self
    }

    /// Leaves out what the models received: instructions, tools and planned messages. Their hashes are recorded. Default
    /// with prompts.
    #[must_use]
    pub fn without_prompts(mut self) -> Self {
        self.options.prompts = false;
        self
    }

    /// Sets data of the caller. Default none.
    #[must_use]
    pub fn metadata(mut self, metadata: Json) -> Self {
        self.options.metadata = Some(metadata);
        self
    }

    /// Sets known fields of the candidate; the others are taken from events.
    #[must_use]
    pub fn candidate(mut self, candidate: Candidate) -> Self {
        self.options.candidate = candidate;
        self
    }

    /// Creates a recorder.
    pub fn recorder(self) -> RunRecorder {
        let fold = RecordFold::new(self.options).with_subagents(self.subagents);
        let fold = Arc::new(Mutex::new(fold));
        RunRecorder { fold, sinks: self.sinks, recent: self.recent }
    }
}

/// Recorder of consecutive runs: add [`fold`](Self::fold) to the hub of the driver's ports, then call
/// [`start`](Self::start) before and [`finish`](Self::finish) after each run.
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
/// recorder.start(RunStart::default());
/// // … a run …
/// assert!(recorder.finish().await.record.is_none(), "no run has ended yet");
/// # }
/// ```
pub struct RunRecorder {
    fold: Arc<Mutex<RecordFold>>,
    sinks: Vec<Arc<dyn DynRecordSink>>,
    recent: Option<RecentRuns>,
}

impl fmt::Debug for RunRecorder {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("RunRecorder").field("sinks", &self.sinks.len()).finish_non_exhaustive()
    }
}

impl Drop for RunRecorder {
    /// Forgets the sub-agents of the last run.
    fn drop(&mut self) {
        let fold = self.fold.lock();
        fold.run_id().into_iter().for_each(|run| fold.subagents().forget(run));
    }
}

/// Record of a run, with the first error of a sink.
#[derive(Debug, Default)]
pub struct Recorded {
    /// Record; `None` if no run has ended.
    pub record: Option<Arc<RunRecord>>,
    /// First error of a sink, with its hint.
    pub failed: Option<String>,
}

impl RunRecorder {
    /// Fold that makes the record.
    pub fn fold(&self) -> Arc<Mutex<RecordFold>> {
        Arc::clone(&self.fold)
    }

    /// Starts a run.
    pub fn start(&self, start: RunStart) {
        let known = self.recent.as_ref().and_then(|recent| recent.known(&start.history));
        self.fold.lock().start_after(start, known);
        if let Some(recent) = &self.recent {
            recent.started(&self.fold);
        }
    }

    /// The record of the run, added to the memory of recent runs.
    fn record(&self) -> Option<Arc<RunRecord>> {
        let fold = self.fold.lock();
        // Secrets that are added from here on are missing in the record, too.
        let secrets = fold.fixed_secrets();
        let mut record = fold.record();
        let Some(recent) = &self.recent else { return record.map(Arc::new) };
        let known = fold.known();
        let size = record.as_mut().map(|record| RecordSize::of(record, known.as_deref()));
        let shared = || fold.shared(record.as_ref()?, secrets?, size.as_ref()?.items);
        let shared = shared().map(Arc::new);
        drop(fold);
        let record = record.map(Arc::new);
        recent.finished(&self.fold, record.as_ref().zip(size), shared, known.as_ref());
        record
    }

    /// Finishes a run and passes its record to every sink.
    pub async fn finish(&self) -> Recorded {
        let record = self.record();
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
