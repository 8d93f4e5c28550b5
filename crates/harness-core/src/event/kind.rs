//! What can happen.

use std::borrow::Cow;
use std::sync::Arc;

use serde::ser::SerializeMap;
use serde::{Deserialize, Serialize};

use crate::ids::{AgentId, ApprovalId, CallDigest, CallId, EntryId, GateName, ModelName};
use crate::json::Json;
use crate::limits::Reached;
use crate::message::{ApprovalRequest, Message, ToolCall, Usage};
use crate::outcome::{End, Fault, Purpose, PurposeUsage, StopReason, TotalUsage};
use crate::port::{CompactionNote, PreparedAgent};
use crate::time::Millis;
use crate::tool::{ToolError, ToolOutcome};
use crate::transcript::Plan;

/// How a call without a result was settled when a transcript was taken up again.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
#[non_exhaustive]
pub enum RepairHow {
    /// It had finished; its stored result was used.
    Recovered,
    /// It is run again, because its tool declares that safe.
    Rerun,
    /// It had started and may have had effects; it was answered as interrupted.
    Interrupted,
    /// It had never started; it was answered as not run.
    NotRun,
    /// It had never started; it is run now.
    Run,
}

/// How a result differs from a plain one.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
#[non_exhaustive]
pub enum ResultNote {
    /// It came when the stop of the turn had been decided. It is in the transcript, and nothing followed
    /// from it.
    Late,
}

/// One field of an event: how it is written and read.
trait Field: Sized {
    fn write<M: SerializeMap>(&self, key: &'static str, map: &mut M) -> Result<(), M::Error>;
    fn read(key: &str, fields: &[(String, Json)]) -> Result<Self, String>;
}

fn find<'a>(key: &str, fields: &'a [(String, Json)]) -> Option<&'a Json> {
    fields.iter().find(|(k, _)| k == key).map(|(_, v)| v)
}

macro_rules! required {
    ($($ty:ty),* $(,)?) => {$(
        impl Field for $ty {
            fn write<M: SerializeMap>(&self, key: &'static str, map: &mut M) -> Result<(), M::Error> {
                map.serialize_entry(key, self)
            }

            fn read(key: &str, fields: &[(String, Json)]) -> Result<Self, String> {
                let value = find(key, fields).ok_or_else(|| format!("missing field `{key}`"))?;
                value.to().map_err(|e| format!("`{key}`: {e}"))
            }
        }
    )*};
}

required! {
    u32, u64, bool, String, Cow<'static, str>, Millis, AgentId, CallId, GateName, RepairHow, StopReason, Fault,
    Box<ApprovalRequest>, Arc<Message>, Arc<ToolCall>, Vec<Arc<ToolCall>>, Arc<ToolOutcome>, Arc<End>, Vec<EntryId>,
    Arc<PreparedAgent>, Plan, Json, Arc<CompactionNote>, Box<TotalUsage>, Box<PurposeUsage>, Purpose,
}

impl<T: Serialize + for<'de> Deserialize<'de>> Field for Option<T> {
    fn write<M: SerializeMap>(&self, key: &'static str, map: &mut M) -> Result<(), M::Error> {
        match self {
            Some(value) => map.serialize_entry(key, value),
            None => Ok(()),
        }
    }

    fn read(key: &str, fields: &[(String, Json)]) -> Result<Self, String> {
        find(key, fields).map(|value| value.to().map_err(|e| format!("`{key}`: {e}"))).transpose()
    }
}

macro_rules! events {
    ($( $(#[$doc:meta])* $name:ident = $wire:literal {
        $( $(#[$field_doc:meta])* $field:ident : $ty:ty = $key:literal ),* $(,)?
    } ),* $(,)?) => {
        /// What can happen.
        #[derive(Clone, Debug, PartialEq, Eq)]
        #[non_exhaustive]
        pub enum EventKind {
            $( $(#[$doc])* $name { $( $(#[$field_doc])* $field: $ty ),* }, )*
        }

        impl EventKind {
            /// The wire name.
            pub fn name(&self) -> &'static str {
                match self { $( Self::$name { .. } => $wire, )* }
            }

            pub(super) fn write_fields<M: SerializeMap>(&self, map: &mut M) -> Result<(), M::Error> {
                match self {
                    $( Self::$name { $($field),* } => {
                        $( Field::write($field, $key, map)?; )*
                    } )*
                }
                Ok(())
            }

            pub(super) fn read(name: &str, fields: &[(String, Json)]) -> Result<Self, String> {
                match name {
                    $( $wire => Ok(Self::$name { $( $field: Field::read($key, fields)? ),* }), )*
                    other => Err(format!("unknown event type `{other}`")),
                }
            }
        }
    };
}

events! {
    /// A run began.
    RunStarted = "run_started" {
        /// The descriptor that its agents come from.
        descriptor_hash: Option<Arc<str>> = "descriptorHash",
    },
    /// A run that an earlier process had begun goes on. The messages that were stored since its state was saved
    /// are told next.
    RunTakenUp = "run_taken_up" {
        /// The turn at its checkpoint, from 1.
        turn: u32 = "atTurn",
        /// Messages that were stored since.
        messages: u64 = "messages",
    },
    /// An agent is what the next model requests are made with: at the start of a turn, after a handoff, and
    /// when it was prepared again and has changed.
    AgentPrepared = "agent_prepared" {
        /// Its instructions, tools, model and settings.
        prepared: Arc<PreparedAgent> = "offer",
    },
    /// A turn began.
    TurnStarted = "turn_started" {
        /// The agent.
        agent: AgentId = "agent",
        /// Whether it continues an earlier turn.
        resumed: bool = "resumed",
    },
    /// A call of an earlier process was settled.
    CallRepaired = "call_repaired" {
        /// The call.
        call: Arc<ToolCall> = "call",
        /// How.
        how: RepairHow = "how",
    },
    /// A message is in the transcript, and stored.
    MessageAppended = "message_appended" {
        /// Its position.
        index: u64 = "index",
        /// The message.
        message: Arc<Message> = "message",
    },
    /// A model is asked.
    ModelStepStarted = "model_step_started" {
        /// The agent.
        agent: AgentId = "agent",
        /// The model that the agent wants.
        model: Option<ModelName> = "model",
    },
    /// A model answered.
    ModelStepFinished = "model_step_finished" {
        /// What the answer asks of the turn.
        output_type: Cow<'static, str> = "outputType",
        /// What it used.
        usage: Option<Arc<Usage>> = "usage",
        /// How long it took.
        duration: Millis = "durationMs",
    },
    /// A model gave no answer.
    ModelStepFailed = "model_step_failed" {
        /// Why.
        fault: Fault = "fault",
        /// What it used all the same; `None` when nothing came.
        usage: Option<Arc<Usage>> = "usage",
    },
    /// The turn goes on behind a step that broke off, or behind too many rounds of tools: the next request ends with a
    /// message that says so.
    ModelStepContinued = "model_step_continued" {
        /// The code of the fault, `incomplete_answer`, `empty_answer` or `tool_rounds`.
        reason: Cow<'static, str> = "reason",
        /// The how-manieth time in a row, from 1.
        attempt: u32 = "attempt",
        /// How often in a row at most.
        most: u32 = "most",
    },
    /// A model asked for tools.
    ToolRequested = "tool_requested" {
        /// The calls in order.
        calls: Vec<Arc<ToolCall>> = "calls",
        /// Whether they may run at once; absent in records of earlier versions.
        parallel: Option<bool> = "parallel",
    },
    /// A gate decided about a call or a handoff, or a check about a prompt, an answer, an end or a
    /// result.
    Decided = "decided" {
        /// The gate or the check.
        by: GateName = "by",
        /// About what: `prepare`, `call`, `handoff`, `prompt`, `answer`, `end`, `result` or `invalid`.
        point: Cow<'static, str> = "point",
        /// The call.
        call: Option<CallId> = "callId",
        /// Of a gate `allow`, `rewrite`, `hold`, `deny` or `halt`; of a check `accept`, `amend`, `waive`, `continue`,
        /// `ask`, `refuse` or `unfounded`. What a failure means is a verdict, too.
        verdict: Cow<'static, str> = "verdict",
        /// Why.
        reason: Option<String> = "reason",
        /// What it rests on, as the gate gave it: of a policy its whole decision.
        facts: Option<Json> = "facts",
        /// How long it took.
        duration: Millis = "durationMs",
        /// What went wrong, when it failed, panicked or took too long.
        fault: Option<Fault> = "fault",
    },
    /// Somebody must approve something.
    ApprovalRequested = "approval_requested" {
        /// What.
        request: Box<ApprovalRequest> = "request",
        /// Names the question, when it is about a call.
        approval: Option<ApprovalId> = "approvalId",
        /// Binds a decision to the call.
        digest: Option<CallDigest> = "digest",
    },
    /// Somebody decided.
    ApprovalDecided = "approval_decided" {
        /// The call.
        call: CallId = "callId",
        /// `granted`, `edited`, `denied` or `later`.
        decision: String = "decision",
        /// Why.
        reason: Option<String> = "reason",
    },
    /// A call begins.
    ToolStarted = "tool_started" {
        /// The call.
        call: Arc<ToolCall> = "call",
    },
    /// A call is tried again.
    ToolRetried = "tool_retried" {
        /// The call.
        call: Arc<ToolCall> = "call",
        /// The attempt about to begin; 2 is the first retry.
        attempt: u32 = "attempt",
        /// Attempts at most.
        max_attempts: u32 = "maxAttempts",
        /// The wait before it.
        backoff: Millis = "backoffMs",
        /// What went wrong.
        previous_error: Option<Box<ToolError>> = "previousError",
    },
    /// A call succeeded.
    ToolFinished = "tool_finished" {
        /// The call.
        call: Arc<ToolCall> = "call",
        /// What came of it.
        outcome: Arc<ToolOutcome> = "outcome",
        /// How long it took, from the start of its first attempt.
        duration: Millis = "durationMs",
        /// How it differs from a plain result.
        note: Option<ResultNote> = "note",
    },
    /// A call failed.
    ToolFailed = "tool_failed" {
        /// The call.
        call: Arc<ToolCall> = "call",
        /// What came of it.
        outcome: Arc<ToolOutcome> = "outcome",
        /// How long it took; zero when it never ran.
        duration: Millis = "durationMs",
        /// Whether it ever ran.
        ran: bool = "ran",
        /// The fault, when the tool panicked or its registry failed instead of answering.
        fault: Option<Fault> = "fault",
        /// How it differs from a plain result.
        note: Option<ResultNote> = "note",
    },
    /// Another agent is active from the next iteration on.
    HandedOff = "handed_off" {
        /// The call that asked for it.
        call: CallId = "callId",
        /// The agent so far.
        from: AgentId = "from",
        /// The agent from now on.
        to: AgentId = "to",
    },
    /// A question to the user.
    ClarificationRequested = "clarification_requested" {
        /// The question.
        question: String = "question",
    },
    /// Steering messages were injected.
    SteeringInjected = "steering_injected" {
        /// The queue's entries.
        entries: Vec<EntryId> = "entries",
    },
    /// The view was made shorter.
    ViewPlanned = "view_planned" {
        /// `layers` or `compactor`.
        by: String = "by",
        /// Messages of the transcript.
        messages: u64 = "messages",
        /// Spans of the plan.
        spans: u64 = "spans",
        /// Which messages those are.
        plan: Plan = "plan",
    },
    /// The window begins to fill.
    ContextPressure = "context_pressure" {
        /// Tokens of the request.
        estimate: u64 = "estimate",
        /// Tokens from which on the view is made shorter.
        soft: u64 = "soft",
        /// Tokens from which on a request is not sent before that is done.
        blocking: u64 = "blocking",
        /// Tokens of the window.
        window: u64 = "window",
    },
    /// The view, or the transcript, is made shorter. Before a request this is told when it is known, with
    /// what came of it.
    CompactionStarted = "compaction_started" {
        /// `request`, `overflow` or `requested`.
        trigger: Cow<'static, str> = "trigger",
    },
    /// It is shorter now, and stays so.
    CompactionCompleted = "compaction_completed" {
        /// What was done.
        note: Arc<CompactionNote> = "note",
        /// Whether the transcript itself is shorter: it is what `plan` shows of it, and positions begin anew.
        permanent: bool = "permanent",
        /// What is shown from here on.
        plan: Plan = "plan",
        /// What the compaction used.
        usage: Box<TotalUsage> = "usage",
        /// How long it took.
        duration: Millis = "durationMs",
    },
    /// An attempt to make it shorter failed; what was there before still counts.
    CompactionFailed = "compaction_failed" {
        /// Why.
        fault: Fault = "fault",
    },
    /// Model calls of a part (a layer, a guardrail, a gate, a compaction) were charged to the run.
    ModelUsageCharged = "model_usage_charged" {
        /// The purpose of the calls.
        purpose: Purpose = "purpose",
        /// What they used.
        usage: Box<PurposeUsage> = "usage",
    },
    /// A part failed and the turn went on without it.
    PartFailed = "part_failed" {
        /// Which, and why.
        fault: Fault = "fault",
    },
    /// Something could not be stored.
    PersistFailed = "persist_failed" {
        /// Why.
        message: String = "message",
    },
    /// A limit was reached.
    LimitReached = "limit_reached" {
        /// The stop reason that follows.
        reason: StopReason = "stopReason",
        /// The evidence; absent for loop detection.
        reached: Option<Reached> = "reached",
    },
    /// A turn ended.
    TurnFinished = "turn_finished" {
        /// How and why.
        end: Arc<End> = "end",
    },
    /// Something happened in the control of the run.
    Control = "control" {
        /// What, as the control tells it: an object with a `kind`.
        event: Json = "event",
    },
    /// A run ended.
    RunFinished = "run_finished" {
        /// How and why.
        end: Arc<End> = "end",
    },
}
