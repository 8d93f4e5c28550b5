//! Report of a run.

use std::fmt;
use std::sync::Arc;

use harness_control::work::Deliverable;
use harness_control::{ControlReport, GateReport};
use harness_core::message::Message;
use harness_core::outcome::{Continuation, PendingCall};
use harness_core::port::{Decision, TornTail, TranscriptRepair};
use harness_core::transcript::Prefix;
use harness_core::{End, Evidence, Outcome, RunId, StopReason};
use harness_record::RunRecord;
use serde::de::DeserializeOwned;

use crate::prompt::ResumeFrom;

/// Report of one run of a thread: its end and reason, its usage, and the transcript.
#[derive(Clone)]
#[non_exhaustive]
pub struct Report {
    /// Id of the run.
    pub run: RunId,
    /// How and why it ended.
    pub end: Arc<End>,
    /// The transcript at its end.
    pub transcript: Prefix,
    /// The position in it of the run's first message.
    pub from: usize,
    /// Reason of an abort by a caller; `interrupt` for an interrupting message.
    pub aborted: Option<Arc<str>>,
    /// How many messages wait.
    pub waiting: usize,
    /// An unfinished last line that the session left out when it was read for this run.
    pub torn_tail: Option<TornTail>,
    /// Calls and results of the session that were repaired when it was read for this run.
    pub repairs: Arc<[TranscriptRepair]>,
    /// The record of the run, when its thread [records](crate::ThreadConfig::record).
    pub record: Option<Arc<RunRecord>>,
    /// Error and hint of a sink that could not keep the record. The run is not affected.
    pub record_failed: Option<Arc<str>>,
    control: Option<Arc<ControlReport>>,
}

impl fmt::Debug for Report {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Report")
            .field("run", &self.run)
            .field("stop", &self.end.stop)
            .field("messages", &(self.from..self.transcript.len()))
            .field("aborted", &self.aborted)
            .field("waiting", &self.waiting)
            .finish_non_exhaustive()
    }
}

impl Report {
    /// Report of a run that ended with this transcript, whose first message is at position `from`. Nothing waits, and it
    /// was neither repaired nor recorded.
    pub fn new(run: RunId, end: Arc<End>, transcript: Prefix, from: usize) -> Self {
        let control = ControlReport::of(&end).map(Arc::new);
        Self {
            run,
            end,
            transcript,
            from,
            aborted: None,
            waiting: 0,
            torn_tail: None,
            repairs: Arc::default(),
            record: None,
            record_failed: None,
            control,
        }
    }

    /// The text for the user: the answer, the question, the refusal, or what there was of an answer when the run ended
    /// early; empty when nothing was said.
    pub fn answer(&self) -> &str {
        self.end.answer.as_deref().unwrap_or_default()
    }

    /// How the run ended.
    pub fn outcome(&self) -> Outcome {
        self.end.outcome()
    }

    /// Exactly why it ended.
    pub fn reason(&self) -> StopReason {
        self.end.reason()
    }

    /// Report of the control: gates, evidence, work items, the model's report. `None` for a run without control.
    pub fn control(&self) -> Option<&ControlReport> {
        self.control.as_deref()
    }

    /// Verdicts on the end, in order, with evidence; empty without control.
    pub fn gates(&self) -> &[GateReport] {
        self.control().map(|control| &*control.gates).unwrap_or_default()
    }

    /// Artifacts of work items of that role, in the order of the items.
    pub fn deliverables(&self) -> &[Deliverable] {
        self.control().map(|control| &*control.deliverables).unwrap_or_default()
    }

    /// Whether the work is done.
    pub fn is_completed(&self) -> bool {
        self.outcome() == Outcome::Completed
    }

    /// The problem, in words; `None` if the run completed.
    pub fn problem(&self) -> Option<String> {
        if self.is_completed() {
            return None;
        }
        if let Some(why) = &self.aborted {
            return Some(format!("Cancelled: {why}"));
        }
        let stop = &self.end.stop;
        if let Evidence::Fault(fault) = &stop.evidence {
            return Some(fault.message.clone());
        }
        if let Evidence::Invalid(invalid) = &stop.evidence {
            return Some(invalid.reason.clone());
        }
        Some(stop.evidence.message().unwrap_or_else(|| stop.reason.meaning().to_owned()))
    }

    /// Decides the pending calls of a run that awaits approval, for [`Thread::resume`](crate::Thread::resume). A
    /// decision holds for exactly the call that is shown. When nothing is pending, the transcript is resumed.
    /// [`ResumeFrom::decided`] does so with a stored continuation.
    pub fn decide(&self, decide: impl FnMut(&PendingCall) -> Decision) -> ResumeFrom {
        match &self.end.continuation {
            Some(left) if !left.pending.is_empty() => ResumeFrom::decided(Continuation::clone(left), decide),
            Some(_) | None => ResumeFrom::Transcript,
        }
    }

    /// The answer as a type, for prompts with an output schema.
    ///
    /// # Errors
    /// [`NoAnswer`] when the run did not complete, or the answer is not of the type.
    pub fn parse<T: DeserializeOwned>(&self) -> Result<T, NoAnswer> {
        let reason = self.reason();
        if let Some(problem) = self.problem() {
            return Err(NoAnswer { reason, problem });
        }
        let parsed = serde_json::from_str(self.answer());
        parsed
            .map_err(|error| NoAnswer { reason, problem: format!("the answer is not of the type: {error}") })
    }

    /// Messages that the run appended.
    pub fn messages(&self) -> impl DoubleEndedIterator<Item = &Arc<Message>> {
        self.transcript.range(self.from..self.transcript.len())
    }
}

/// Outcome of a prompt whose answer is a type ([`Response::typed`](crate::Response::typed)).
///
/// ```
/// use harness_runtime::{NoAnswer, Typed};
///
/// fn celsius(answer: Typed<f64>) -> Result<f64, NoAnswer> {
///     answer.value
/// }
/// # let _ = celsius;
/// ```
#[derive(Clone, Debug)]
#[non_exhaustive]
pub struct Typed<T> {
    /// The answer, or why there is none.
    pub value: Result<T, NoAnswer>,
    /// Everything else about the run.
    pub report: Report,
}

impl<T: DeserializeOwned> From<Report> for Typed<T> {
    fn from(report: Report) -> Self {
        Self { value: report.parse(), report }
    }
}

/// A run without a typed answer.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("no answer ({reason}): {problem}")]
#[non_exhaustive]
pub struct NoAnswer {
    /// Stop reason of the run.
    pub reason: StopReason,
    /// Problem in words.
    pub problem: String,
}
