//! What came of a prompt.

use std::sync::Arc;

use harness_control::work::Deliverable;
use harness_control::{ControlReport, GateReport};
use harness_core::port::{TornTail, TranscriptRepair};
use harness_core::transcript::Prefix;
use harness_core::{End, Outcome, StopReason};
use harness_record::{Recorded, RunRecord};

/// The result of a prompt: how the run ended and why, what it used, and the transcript.
///
/// ```
/// use harness::prelude::*;
/// # struct Hosted;
/// # impl Model for Hosted {
/// #     async fn step(&self, _: ModelRequest, _: &dyn Deltas) -> Result<AssistantMessage, ModelFault> {
/// #         Ok(AssistantMessage::text("hi"))
/// #     }
/// # }
///
/// # tokio::runtime::Builder::new_current_thread().enable_all().build()?.block_on(async {
/// let report = Harness::new(Hosted).build()?.prompt("Hello").await?;
/// assert_eq!((report.answer(), report.reason().as_str()), ("hi", "answer_finalized"));
/// assert_eq!((report.end.usage.model_calls, report.transcript.len()), (1, 2));
/// # Ok::<(), harness::HarnessError>(())
/// # })?;
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Clone, Debug)]
#[non_exhaustive]
pub struct Report {
    /// How the run ended, exactly why, and what it used.
    pub end: Arc<End>,
    /// The whole conversation. Shared, not copied.
    pub transcript: Prefix,
    /// An unfinished last line that the session left out when it was read.
    pub torn_tail: Option<TornTail>,
    /// Calls and results of the session that were repaired when it was read.
    pub repairs: Vec<TranscriptRepair>,
    /// The record of the run, when the harness was built with [`Builder::record`](crate::Builder::record).
    pub record: Option<Arc<RunRecord>>,
    /// Why the record could not be kept by a sink; the run is what it is all the same.
    pub record_failed: Option<String>,
    control: Option<ControlReport>,
}

impl Report {
    pub(crate) fn new(
        end: Arc<End>,
        transcript: Prefix,
        torn_tail: Option<TornTail>,
        repairs: Vec<TranscriptRepair>,
        recorded: Recorded,
    ) -> Self {
        let Recorded { record, failed: record_failed } = recorded;
        let control = ControlReport::of(&end);
        Self { end, transcript, torn_tail, repairs, record, record_failed, control }
    }

    /// The text for the user: the answer, the question, the refusal, or what there was of an answer when
    /// the run ended early; empty when nothing was said.
    pub fn answer(&self) -> &str {
        self.end.answer.as_deref().unwrap_or_default()
    }

    /// How the run ended.
    pub fn outcome(&self) -> Outcome {
        self.end.outcome()
    }

    /// What the control of the run reports: gates, evidence, work items, what the model reported. `None` when
    /// the run was not controlled.
    pub fn control(&self) -> Option<&ControlReport> {
        self.control.as_ref()
    }

    /// What each gate said about the end, in order, and on which evidence; empty when there was no control.
    pub fn gates(&self) -> &[GateReport] {
        self.control().map(|control| &*control.gates).unwrap_or_default()
    }

    /// What is handed over: the artifacts of work items of that role, in the order of the items.
    pub fn deliverables(&self) -> &[Deliverable] {
        self.control().map(|control| &*control.deliverables).unwrap_or_default()
    }

    /// Exactly why it ended.
    pub fn reason(&self) -> StopReason {
        self.end.reason()
    }
}
