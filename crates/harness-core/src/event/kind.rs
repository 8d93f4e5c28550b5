//! Kinds of events.

use std::borrow::Cow;
use std::sync::Arc;

use schemars::{Schema, SchemaGenerator};
use serde::ser::SerializeMap;
use serde::{Deserialize, Serialize};

use crate::ids::{AgentId, ApprovalId, CallDigest, CallId, EntryId, GateName, ModelName};
use crate::json::Json;
use crate::limits::Reached;
use crate::message::{ApprovalRequest, Message, ToolCall, Usage};
use crate::origin::Origin;
use crate::outcome::{End, Fault, Purpose, PurposeUsage, StopReason, TotalUsage};
use crate::port::{CompactionNote, PreparedAgent};
use crate::schema::Properties;
use crate::time::Millis;
use crate::tool::{ToolError, ToolOutcome};
use crate::transcript::Plan;

/// Treatment of a call without a result when a transcript is resumed.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, schemars::JsonSchema)]
#[serde(rename_all = "snake_case")]
#[non_exhaustive]
pub enum RepairHow {
    /// Finished before; its stored result is used.
    Recovered,
    /// Run again, because its tool allows it.
    Rerun,
    /// Started before, with unknown effects; answered as interrupted.
    Interrupted,
    /// Never started; answered as not run.
    NotRun,
    /// Never started; run now.
    Run,
}

/// Note on a result.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, schemars::JsonSchema)]
#[serde(rename_all = "snake_case")]
#[non_exhaustive]
pub enum ResultNote {
    /// Received after the stop of the turn was decided. It is in the transcript and has no other effect.
    Late,
}

/// Field of an event.
pub(super) trait Field: Sized {
    /// Whether the field is omitted without a value.
    const IS_OPTIONAL: bool = false;

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
    i64, u32, u64, bool, String, Cow<'static, str>, Millis, AgentId, CallId, GateName, RepairHow, StopReason, Fault,
    Box<ApprovalRequest>, Arc<Message>, Arc<ToolCall>, Vec<Arc<ToolCall>>, Arc<ToolOutcome>, Arc<End>, Vec<EntryId>,
    Arc<PreparedAgent>, Plan, Json, Arc<CompactionNote>, Box<TotalUsage>, Box<PurposeUsage>, Purpose,
}

impl<T: Serialize + for<'de> Deserialize<'de>> Field for Option<T> {
    const IS_OPTIONAL: bool = true;

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
    ($( $(#[doc = $doc:literal])* $name:ident = $wire:literal {
        $( $(#[doc = $field_doc:literal])* $field:ident : $ty:ty = $key:literal ),* $(,)?
    } ),* $(,)?) => {
        /// Kind of an event, with its data.
        #[derive(Clone, Debug, PartialEq, Eq)]
        #[non_exhaustive]
        pub enum EventKind {
            $( $(#[doc = $doc])* $name { $( $(#[doc = $field_doc])* $field: $ty ),* }, )*
        }

        impl EventKind {
            /// Returns the wire name.
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

            /// Schemas of all kinds, each of a whole event.
            pub(super) fn schemas(generator: &mut SchemaGenerator) -> Vec<Schema> {
                vec![$({
                    let mut fields = Properties::default();
                    fields.add::<u64>(generator, "seq", &["Number of the event, starting at 0, without gaps."], true);
                    fields.add::<i64>(generator, "at", &["Time in milliseconds since 1970."], true);
                    fields.add_constant("type", $wire);
                    fields.add::<u32>(generator, "turn", &["Turn of the run, starting at 1."], true);
                    fields.add::<u32>(generator, "iteration", &["Iteration; 0 before the first."], true);
                    $( fields.add::<$ty>(generator, $key, &[$($field_doc),*], !<$ty as Field>::IS_OPTIONAL); )*
                    fields.add::<Origin>(generator, "origin", &["Origin of the work."], true);
                    fields.object(&[$($doc),*])
                }),*]
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
    /// A run started.
    RunStarted = "run_started" {
        /// Hash of the descriptor of its agents.
        descriptor_hash: Option<Arc<str>> = "descriptorHash",
    },
    /// A run from an earlier process was resumed. Messages stored after its checkpoint are emitted next.
    RunTakenUp = "run_taken_up" {
        /// Turn of the checkpoint, starting at 1.
        turn: u32 = "atTurn",
        /// Messages stored after the checkpoint.
        messages: u64 = "messages",
    },
    /// The agent of the next model requests: at the start of a turn, after a handoff, and after a change.
    AgentPrepared = "agent_prepared" {
        /// Agent with its instructions, tools, model and settings.
        prepared: Arc<PreparedAgent> = "offer",
    },
    /// A turn started.
    TurnStarted = "turn_started" {
        /// Agent.
        agent: AgentId = "agent",
        /// Whether it continues an earlier turn.
        resumed: bool = "resumed",
    },
    /// A call of an earlier process was settled.
    CallRepaired = "call_repaired" {
        /// Call.
        call: Arc<ToolCall> = "call",
        /// Treatment.
        how: RepairHow = "how",
    },
    /// A message was appended to the transcript and stored.
    MessageAppended = "message_appended" {
        /// Position in the transcript.
        index: u64 = "index",
        /// Message.
        message: Arc<Message> = "message",
    },
    /// A model call started.
    ModelStepStarted = "model_step_started" {
        /// Agent.
        agent: AgentId = "agent",
        /// Requested model.
        model: Option<ModelName> = "model",
        /// Whether the model cannot call tools, because the turn is about to end; absent otherwise.
        closing: Option<bool> = "closing",
        /// Message behind the view of the request that is not in the transcript, after an interrupted response.
        ending: Option<Arc<Message>> = "ending",
    },
    /// A model responded.
    ModelStepFinished = "model_step_finished" {
        /// Output type of the response.
        output_type: Cow<'static, str> = "outputType",
        /// Usage.
        usage: Option<Arc<Usage>> = "usage",
        /// Duration.
        duration: Millis = "durationMs",
        /// Time from the request to the first token of the response: text, reasoning or a call. Absent if nothing was
        /// streamed.
        first_token: Option<Millis> = "firstTokenMs",
    },
    /// A model call failed.
    ModelStepFailed = "model_step_failed" {
        /// Error.
        fault: Fault = "fault",
        /// Usage of the partial response, if any.
        usage: Option<Arc<Usage>> = "usage",
    },
    /// The turn continues after an interrupted response, or after too many rounds of tools: the next request ends with a
    /// message about it.
    ModelStepContinued = "model_step_continued" {
        /// Error code, or `incomplete_answer`, `empty_answer` or `tool_rounds`.
        reason: Cow<'static, str> = "reason",
        /// Consecutive attempts, starting at 1.
        attempt: u32 = "attempt",
        /// Maximum number of consecutive attempts.
        most: u32 = "most",
    },
    /// A model requested tools.
    ToolRequested = "tool_requested" {
        /// Calls, in order.
        calls: Vec<Arc<ToolCall>> = "calls",
        /// Whether they may run in parallel; absent in records of earlier versions.
        parallel: Option<bool> = "parallel",
    },
    /// A gate or a check decided.
    Decided = "decided" {
        /// Gate or check.
        by: GateName = "by",
        /// Subject: `prepare`, `call`, `handoff`, `prompt`, `answer`, `end`, `result` or `invalid`.
        point: Cow<'static, str> = "point",
        /// Call, if any.
        call: Option<CallId> = "callId",
        /// Of a gate `allow`, `rewrite`, `hold`, `deny` or `halt`; of a check `accept`, `amend`, `waive`, `continue`,
        /// `ask`, `refuse` or `unfounded`. An error has a verdict, too.
        verdict: Cow<'static, str> = "verdict",
        /// Reason.
        reason: Option<String> = "reason",
        /// Facts of the decision; of a policy its whole decision.
        facts: Option<Json> = "facts",
        /// Duration.
        duration: Millis = "durationMs",
        /// Error, panic or timeout.
        fault: Option<Box<Fault>> = "fault",
    },
    /// An approval is required.
    ApprovalRequested = "approval_requested" {
        /// Request.
        request: Box<ApprovalRequest> = "request",
        /// Approval id, of a call.
        approval: Option<ApprovalId> = "approvalId",
        /// Digest that binds a decision to the call.
        digest: Option<CallDigest> = "digest",
    },
    /// An approval request was granted, edited, denied or postponed.
    ApprovalDecided = "approval_decided" {
        /// Call.
        call: CallId = "callId",
        /// `granted`, `edited`, `denied` or `later`.
        decision: String = "decision",
        /// Reason.
        reason: Option<String> = "reason",
    },
    /// A call started.
    ToolStarted = "tool_started" {
        /// Call.
        call: Arc<ToolCall> = "call",
    },
    /// A call is retried.
    ToolRetried = "tool_retried" {
        /// Call.
        call: Arc<ToolCall> = "call",
        /// Next attempt; 2 is the first retry.
        attempt: u32 = "attempt",
        /// Maximum number of attempts.
        max_attempts: u32 = "maxAttempts",
        /// Wait before the attempt.
        backoff: Millis = "backoffMs",
        /// Error of the previous attempt.
        previous_error: Option<Box<ToolError>> = "previousError",
    },
    /// A call succeeded.
    ToolFinished = "tool_finished" {
        /// Call.
        call: Arc<ToolCall> = "call",
        /// Outcome of the call.
        outcome: Arc<ToolOutcome> = "outcome",
        /// Duration since the start of the first attempt.
        duration: Millis = "durationMs",
        /// Note on the result.
        note: Option<ResultNote> = "note",
    },
    /// A call failed.
    ToolFailed = "tool_failed" {
        /// Call.
        call: Arc<ToolCall> = "call",
        /// Outcome of the call.
        outcome: Arc<ToolOutcome> = "outcome",
        /// Duration; zero if it never ran.
        duration: Millis = "durationMs",
        /// Whether it ran.
        ran: bool = "ran",
        /// Panic of the tool, or error of its registry.
        fault: Option<Fault> = "fault",
        /// Note on the result.
        note: Option<ResultNote> = "note",
    },
    /// Another agent is active from the next iteration on.
    HandedOff = "handed_off" {
        /// Call of the handoff.
        call: CallId = "callId",
        /// Previous agent.
        from: AgentId = "from",
        /// Next agent.
        to: AgentId = "to",
    },
    /// The user is asked a question.
    ClarificationRequested = "clarification_requested" {
        /// Question.
        question: String = "question",
    },
    /// Steering messages were injected.
    SteeringInjected = "steering_injected" {
        /// Entries of the queue.
        entries: Vec<EntryId> = "entries",
    },
    /// The view was shortened.
    ViewPlanned = "view_planned" {
        /// `layers` or `compactor`.
        by: String = "by",
        /// Messages of the transcript.
        messages: u64 = "messages",
        /// Spans of the plan.
        spans: u64 = "spans",
        /// Plan of the view.
        plan: Plan = "plan",
    },
    /// The context window is filling up.
    ContextPressure = "context_pressure" {
        /// Tokens of the request.
        estimate: u64 = "estimate",
        /// Tokens from which on the view is shortened.
        soft: u64 = "soft",
        /// Tokens from which on a request is not sent before that.
        blocking: u64 = "blocking",
        /// Tokens of the context window.
        window: u64 = "window",
    },
    /// A compaction of the view or the transcript started. Before a request it is emitted together with its result.
    CompactionStarted = "compaction_started" {
        /// `request`, `overflow` or `requested`.
        trigger: Cow<'static, str> = "trigger",
    },
    /// A compaction is in effect.
    CompactionCompleted = "compaction_completed" {
        /// Description of the compaction.
        note: Arc<CompactionNote> = "note",
        /// Whether the transcript itself was replaced by what `plan` shows, so that positions restart.
        permanent: bool = "permanent",
        /// Plan from here on.
        plan: Plan = "plan",
        /// Usage of the compaction.
        usage: Box<TotalUsage> = "usage",
        /// Duration.
        duration: Millis = "durationMs",
    },
    /// A compaction failed; nothing changed.
    CompactionFailed = "compaction_failed" {
        /// Error.
        fault: Fault = "fault",
    },
    /// Model calls of a part (a layer, a check, a gate, a compaction) were charged to the run.
    ModelUsageCharged = "model_usage_charged" {
        /// Purpose of the calls.
        purpose: Purpose = "purpose",
        /// Usage.
        usage: Box<PurposeUsage> = "usage",
    },
    /// A part failed, and the turn continued without it.
    PartFailed = "part_failed" {
        /// Part and error.
        fault: Fault = "fault",
    },
    /// A store failed.
    PersistFailed = "persist_failed" {
        /// Error message.
        message: String = "message",
    },
    /// A limit was reached.
    LimitReached = "limit_reached" {
        /// Stop reason that follows.
        reason: StopReason = "stopReason",
        /// Evidence; absent for loop detection.
        reached: Option<Reached> = "reached",
    },
    /// A turn ended.
    TurnFinished = "turn_finished" {
        /// End of the turn.
        end: Arc<End> = "end",
    },
    /// The control of the run reported something.
    Control = "control" {
        /// Report of the control: an object with a `kind`.
        event: Json = "event",
    },
    /// A run ended.
    RunFinished = "run_finished" {
        /// End of the run.
        end: Arc<End> = "end",
    },
}
