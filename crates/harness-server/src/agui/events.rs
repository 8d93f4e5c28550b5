//! Shapes of AG-UI events, for the description of the route.
#![expect(dead_code, reason = "only their schemas are used")]

use serde::Serialize;
use serde_json::Value;
use utoipa::ToSchema;

use crate::openai::verdict::RunDetail;

/// Event of a run, tagged by `type`.
#[derive(Serialize, ToSchema)]
#[serde(tag = "type", rename_all = "SCREAMING_SNAKE_CASE")]
pub(super) enum AgUiEvent {
    #[serde(rename_all = "camelCase")]
    RunStarted { thread_id: String, run_id: String },
    /// An iteration of an agent starts.
    #[serde(rename_all = "camelCase")]
    StepStarted {
        /// Id of the agent.
        step_name: String,
    },
    #[serde(rename_all = "camelCase")]
    StepFinished {
        /// Id of the agent.
        step_name: String,
    },
    #[serde(rename_all = "camelCase")]
    TextMessageStart {
        message_id: String,
        /// `assistant`.
        role: String,
    },
    #[serde(rename_all = "camelCase")]
    TextMessageContent { message_id: String, delta: String },
    #[serde(rename_all = "camelCase")]
    TextMessageEnd { message_id: String },
    #[serde(rename_all = "camelCase")]
    ReasoningStart { message_id: String },
    #[serde(rename_all = "camelCase")]
    ReasoningMessageStart {
        message_id: String,
        /// `reasoning`.
        role: String,
    },
    #[serde(rename_all = "camelCase")]
    ReasoningMessageContent { message_id: String, delta: String },
    #[serde(rename_all = "camelCase")]
    ReasoningMessageEnd { message_id: String },
    #[serde(rename_all = "camelCase")]
    ReasoningEnd { message_id: String },
    #[serde(rename_all = "camelCase")]
    ToolCallStart { tool_call_id: String, tool_call_name: String, parent_message_id: String },
    #[serde(rename_all = "camelCase")]
    ToolCallArgs {
        tool_call_id: String,
        /// Arguments as JSON text, whole.
        delta: String,
    },
    #[serde(rename_all = "camelCase")]
    ToolCallEnd { tool_call_id: String },
    #[serde(rename_all = "camelCase")]
    ToolCallResult {
        message_id: String,
        tool_call_id: String,
        content: String,
        /// `tool`.
        role: String,
        /// `{"harness": {"isError": true}}` for an error.
        #[schema(value_type = Option<Object>)]
        metadata: Option<Value>,
    },
    #[serde(rename_all = "camelCase")]
    Custom {
        /// `harness.call_changed` or `harness.approval_requested`.
        name: String,
        #[schema(value_type = Object)]
        value: Value,
    },
    #[serde(rename_all = "camelCase")]
    RunFinished {
        thread_id: String,
        run_id: String,
        /// Tagged by `type`: `success`, `cancelled`, or `interrupt` with `interrupts`.
        #[schema(value_type = Object)]
        outcome: Value,
        result: RunDetail,
        /// Tokens of all model calls, as a list of at most one entry.
        #[schema(value_type = Vec<Object>)]
        usage: Vec<Value>,
    },
    #[serde(rename_all = "camelCase")]
    RunError {
        message: String,
        /// Stop reason of the run, or kind of the error.
        code: String,
        /// As in `RUN_FINISHED`; absent if there was no run.
        #[schema(value_type = Option<Vec<Object>>)]
        usage: Option<Vec<Value>>,
    },
}
