//! Records of runs.

use std::fmt;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use harness_core::Json;
use harness_core::message::Message;
use harness_core::run::RunSpec;
use harness_descriptor::{Graph, Value};
use harness_session::record::{
    Candidate, DynRecordSink, RecordFold, RecordOptions, RecordSink, Redaction, RunRecord, RunStart,
};
use serde::Serialize;

/// How the runs of a harness are recorded: what [`Builder::record`](crate::Builder::record) takes.
///
/// Each run that ends gives one [`RunRecord`], in its [`Report`](crate::Report) and to every sink. What the
/// descriptor's context fields mark with `redact: true` is taken out, together with what `redact` adds.
///
/// ```
/// use harness::Recording;
/// use harness::session::record::{FileSink, Redaction};
///
/// let recording = Recording::new()
///     .sink(FileSink::new("run.json"))
///     .redact(Redaction::none().paths(["customer.email"]));
/// # let _ = recording;
/// ```
#[derive(Clone, Default)]
pub struct Recording {
    options: RecordOptions,
    sinks: Vec<Arc<dyn DynRecordSink>>,
}

impl fmt::Debug for Recording {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let sinks = self.sinks.len();
        f.debug_struct("Recording").field("options", &self.options).field("sinks", &sinks).finish()
    }
}

impl Recording {
    /// Records that only the reports hold.
    pub fn new() -> Self {
        Self::default()
    }

    /// One more place where records go.
    #[must_use]
    pub fn sink(mut self, sink: impl RecordSink + 'static) -> Self {
        self.sinks.push(Arc::new(sink));
        self
    }

    /// What is taken out, beside what the descriptor marks.
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

    /// What is known of the candidate beside the descriptor's hash, the registry's version and the model of the
    /// first agent, which are filled in.
    #[must_use]
    pub fn candidate(mut self, candidate: Candidate) -> Self {
        self.options.candidate = candidate;
        self
    }

    /// A recorder for runs of this graph under these limits.
    pub(crate) fn start(mut self, graph: Option<&Graph>, spec: &RunSpec) -> Recorder {
        if let Some(graph) = graph {
            self.options.redaction = self.options.redaction.paths(marked_paths(graph));
            let known = &mut self.options.candidate.registry_version;
            *known = known.take().or_else(|| graph.metadata().registry_version.clone());
        }
        let package = &mut self.options.candidate.package_version;
        package.get_or_insert_with(|| concat!("harness ", env!("CARGO_PKG_VERSION")).to_owned());
        self.options.limits = Json::of(&InForce { turn: &spec.turn.limits, run: &spec.limits }).ok();
        Recorder { fold: Arc::new(Mutex::new(RecordFold::new(self.options))), sinks: self.sinks }
    }
}

#[derive(Serialize)]
struct InForce<'a> {
    turn: &'a harness_core::limits::Limits,
    run: &'a harness_core::run::RunLimits,
}

/// The paths of the context fields that are marked with `redact: true`.
fn marked_paths(graph: &Graph) -> Vec<String> {
    let descriptor = graph.descriptor().to_value();
    let fields = descriptor.get("context").and_then(|context| context.get("fields")).and_then(Value::as_map);
    let marked = |field: &Value| field.get("redact").and_then(Value::as_bool) == Some(true);
    fields
        .into_iter()
        .flat_map(harness_descriptor::Map::iter)
        .filter(|(_, field)| marked(field))
        .map(|(path, _)| path.to_owned())
        .collect()
}

/// Records the runs of one harness.
pub(crate) struct Recorder {
    fold: Arc<Mutex<RecordFold>>,
    sinks: Vec<Arc<dyn DynRecordSink>>,
}

/// The record of a run, and what went wrong when it was to be kept.
#[derive(Debug, Default)]
pub(crate) struct Recorded {
    pub(crate) record: Option<Arc<RunRecord>>,
    pub(crate) failed: Option<String>,
}

impl Recorder {
    /// The listener that makes the record.
    pub(crate) fn fold(&self) -> Arc<Mutex<RecordFold>> {
        Arc::clone(&self.fold)
    }

    fn lock(&self) -> MutexGuard<'_, RecordFold> {
        self.fold.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// A run begins.
    pub(crate) fn begin(&self, context: Option<&Value>, history: impl IntoIterator<Item = Arc<Message>>) {
        let context = context.and_then(|context| Json::of(context).ok());
        self.lock().begin(RunStart::new(context, history));
    }

    /// A run has ended: gives its record to every sink.
    pub(crate) async fn finish(&self) -> Recorded {
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
