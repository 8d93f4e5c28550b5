//! The end of a turn or a run.

use serde::{Deserialize, Serialize};

use super::stop::{Evidence, Outcome, Stop, StopReason};
use super::{Continuation, TotalUsage};
use crate::ids::{AgentId, GateName};
use crate::json::Json;
use crate::time::Millis;

/// A check of the end that let an end pass although its condition was not met.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[non_exhaustive]
pub struct Waiver {
    /// The gate.
    pub gate: GateName,
    /// Why it waived.
    pub why: String,
}

impl Waiver {
    /// A waiver of a gate and its reason.
    pub fn new(gate: GateName, why: impl Into<String>) -> Self {
        Self { gate, why: why.into() }
    }
}

/// The end of a turn or a run: one legal (outcome, stop reason) pair, its evidence, and what was used.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
#[non_exhaustive]
pub struct End {
    /// Why, with evidence.
    pub stop: Stop,
    /// The text for the user: the answer, the question, the refusal, or what there was of an answer when
    /// the end came early. Absent when nothing was said.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub answer: Option<String>,
    /// The agent that was active at the end.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub agent: Option<AgentId>,
    /// Iterations: those in which the model was called.
    pub iterations: u32,
    /// The iteration that was begun and ended before its model was called, where there is one: its number is in
    /// the events of the end.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub refused_iteration: Option<u32>,
    /// Turns, for a run; 1 for a turn.
    pub turns: u32,
    /// What was used.
    pub usage: TotalUsage,
    /// From start to end.
    pub elapsed: Millis,
    /// What resumes it, when it can be resumed.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub continuation: Option<Box<Continuation>>,
    /// Checks of the end that waived. Empty in strict mode.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub waived: Vec<Waiver>,
    /// The last failure to store something, when the session does not hold all that happened.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub persist_failed: Option<String>,
    /// Whether it continued an earlier turn.
    #[serde(default)]
    pub resumed: bool,
    /// What the control of a run reports, in its own form. Absent for turns, and for controls that report nothing.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub control: Option<Json>,
}

impl End {
    /// The outcome.
    pub fn outcome(&self) -> Outcome {
        self.stop.outcome()
    }

    /// The stop reason.
    pub fn reason(&self) -> StopReason {
        self.stop.reason
    }

    /// The end as the JSON object that `--json` prints last: the fields, plus `outcome` and `stopReason`.
    ///
    /// # Errors
    /// None in practice; the signature is that of serialization.
    pub fn to_json(&self) -> Result<Json, serde_json::Error> {
        #[derive(Serialize)]
        #[serde(rename_all = "camelCase")]
        struct Flat<'a> {
            outcome: Outcome,
            stop_reason: StopReason,
            evidence: &'a Evidence,
            #[serde(skip_serializing_if = "Option::is_none")]
            answer: Option<&'a str>,
            #[serde(skip_serializing_if = "Option::is_none")]
            agent: Option<&'a AgentId>,
            iterations: u32,
            turns: u32,
            usage: &'a TotalUsage,
            elapsed: Millis,
            #[serde(skip_serializing_if = "Option::is_none")]
            continuation: Option<&'a Continuation>,
            #[serde(skip_serializing_if = "<[Waiver]>::is_empty")]
            waived: &'a [Waiver],
            #[serde(skip_serializing_if = "Option::is_none")]
            persist_failed: Option<&'a str>,
            #[serde(skip_serializing_if = "Option::is_none")]
            control: Option<&'a Json>,
        }
        Json::of(&Flat {
            outcome: self.outcome(),
            stop_reason: self.reason(),
            evidence: &self.stop.evidence,
            answer: self.answer.as_deref(),
            agent: self.agent.as_ref(),
            iterations: self.iterations,
            turns: self.turns,
            usage: &self.usage,
            elapsed: self.elapsed,
            continuation: self.continuation.as_deref(),
            waived: &self.waived,
            persist_failed: self.persist_failed.as_deref(),
            control: self.control.as_ref(),
        })
    }
}
