//! What came of a run.

use std::fmt;
use std::sync::Arc;

use harness_control::work::Deliverable;
use harness_control::{ControlReport, GateReport};
use harness_core::message::Message;
use harness_core::port::{TornTail, TranscriptRepair};
use harness_core::transcript::Prefix;
use harness_core::{End, Evidence, Outcome, RunId, StopReason};
use harness_record::RunRecord;

/// What came of one run of a thread: how it ended and why, what it used, and the transcript.
#[derive(Clone)]
#[non_exhaustive]
pub struct Report {
    /// The run.
    pub run: RunId,
    /// How and why it ended.
    pub end: Arc<End>,
    /// The transcript at its end.
    pub transcript: Prefix,
    /// The position in it of the run's first message.
    pub from: usize,
    /// Why it was aborted, when a caller said so; `interrupt` when a message was.
    pub aborted: Option<Arc<str>>,
    /// How many messages wait.
    pub waiting: usize,
    /// An unfinished last line that the session left out when it was read for this run.
    pub torn_tail: Option<TornTail>,
    /// Calls and results of the session that were repaired when it was read for this run.
    pub repairs: Arc<[TranscriptRepair]>,
    /// The record of the run, when its thread [records](crate::ThreadConfig::record).
    pub record: Option<Arc<RunRecord>>,
    /// Why a sink could not keep the record, with what to do about it; the run is what it is all the same.
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
    pub(crate) fn new(run: RunId, end: Arc<End>, transcript: Prefix, from: usize) -> Self {
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

    /// What the control of the run reports: gates, evidence, work items, what the model reported. `None` when the run
    /// was not controlled.
    pub fn control(&self) -> Option<&ControlReport> {
        self.control.as_deref()
    }

    /// What each gate said about the end, in order, and on which evidence; empty when there was no control.
    pub fn gates(&self) -> &[GateReport] {
        self.control().map(|control| &*control.gates).unwrap_or_default()
    }

    /// What is handed over: the artifacts of work items of that role, in the order of the items.
    pub fn deliverables(&self) -> &[Deliverable] {
        self.control().map(|control| &*control.deliverables).unwrap_or_default()
    }

    /// Whether the work is done.
    pub fn is_completed(&self) -> bool {
        self.outcome() == Outcome::Completed
    }

    /// What stood in the way, in words; `None` when the work is done.
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

    /// What the run appended.
    pub fn messages(&self) -> impl DoubleEndedIterator<Item = &Arc<Message>> {
        self.transcript.range(self.from..self.transcript.len())
    }
}
