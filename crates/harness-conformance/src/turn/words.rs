//! Every word of vectors of kinds `turn` and `turn-ext`: what is not here is refused.

#![expect(dead_code, reason = "which words there are is what counts; they are read where they are acted on")]
#![expect(clippy::struct_field_names, reason = "the names are those of the vectors")]

use std::collections::BTreeMap;

use harness_core::port::AskReason;
use serde::Deserialize;
use serde::de::IgnoredAny as Any;
use serde_json::Value;

use crate::Done;

macro_rules! closed {
    ($($(#[$doc:meta])* $name:ident { $($field:ident: $type:ty),* $(,)? })*) => {
        $(
            $(#[$doc])*
            #[derive(Deserialize)]
            #[serde(deny_unknown_fields, rename_all = "camelCase")]
            pub(crate) struct $name { $($field: $type),* }
        )*
    };
}

closed! {
    /// A vector.
    Turns {
        kind: Any, id: Any, description: Any, conformance: Any, category: Any, source: Any, also_observed: Option<Any>,
        clock: Clock, limits: Option<Limits>, tool_retry_config: Option<Retry>, runtime_policy: Option<Policies>,
        trace: Option<Trace>, tools: Option<Tools>, hooks: Option<Hooks>, turns: Vec<Turn>,
    }
    /// The configuration of a harness without its model.
    Config { limits: Option<Limits>, tool_retry_config: Option<Retry>, runtime_policy: Option<Policies> }
    Clock { start_ms: i64 }
    Limits {
        max_iterations: Option<Any>, max_tool_calls: Option<Any>, max_elapsed_ms: Option<Any>,
        max_consecutive_invalid_model_outputs: Option<Any>, budget_limit: Option<Any>,
    }
    Retry { max_retries: Option<Any>, backoff_ms: Option<Any> }
    Policies {
        todo_rewrite_cap: Option<TodoRewriteCap>, reserve_floor: Option<ReserveFloor>,
        drill_or_stop: Option<DrillOrStop>, tool_result_cache: Option<Enabled>, output_sanitizer: Option<Enabled>,
    }
    TodoRewriteCap { tool_names: Vec<String>, max: u64 }
    ReserveFloor { floor: u64, blocked_categories: Vec<String> }
    DrillOrStop { broad_tools: Vec<String>, candidate_producing_tools: Vec<String> }
    Enabled { enabled: bool }
    Trace { present: Option<bool>, throw_on: Option<Vec<ThrowOn>>, flush: Option<Flush> }
    ThrowOn { r#type: String, nth: Option<u64>, throw: Option<Thrown> }
    Tools {
        definitions: Vec<Definition>, honour_allowed: Option<bool>, list_throw: Option<Thrown>,
        idempotency_guard: Option<Guard>,
    }
    Definition {
        name: String, description: Option<String>, input_schema: Option<Any>, requires_approval: Option<bool>,
        execution_mode: Option<Mode>, metadata: Option<Any>,
    }
    Guard { max_turns: Option<u64> }
    Hooks {
        clarify_on_tool_result: Option<Clarify>, on_invalid_model_output: Option<HookStep>,
        on_tool_error: Option<HookStep>, on_turn_finished: Option<HookStep>,
        transform_transcript: Option<Transform>,
    }
    Clarify { results: Option<Vec<ClarifyStep>>, evidence: Option<EvidenceOptions> }
    ClarifyStep { duration_ms: Option<u64>, value: Option<Any>, throw: Option<Thrown> }
    HookStep { duration_ms: Option<u64>, throw: Option<Thrown> }
    Transform { keep_last: Option<u64>, returns: Option<Any>, throw: Option<Thrown> }
    /// The options of the built-in hook that looks for evidence.
    EvidenceOptions {
        empty_result_keys: Option<Vec<String>>, exclude_tool_names: Option<Vec<String>>,
        question_for_reason: Option<BTreeMap<AskReason, String>>,
    }
    Turn {
        input: Input, model: Vec<Step>, tool_results: Option<Vec<ToolStep>>, approvals: Option<Vec<Approval>>,
        abort: Option<Abort>, streaming: Option<bool>, hooks: Option<Hooks>, expect: Any,
    }
    Input {
        assistant_id: String, turn_id: String, session_id: String, thread_id: Option<String>,
        workspace_id: Option<String>, user_id: Option<String>, metadata: Option<Any>,
        allowed_tool_names: Option<Vec<String>>, instructions: Instructions, message: Message,
        continuation: Option<Any>,
    }
    Instructions { system_prompt: String }
    Message { id: String, received_at: String, text: String }
    Step { duration_ms: Option<u64>, output: Option<Output>, throw: Option<Thrown>, deltas: Option<Vec<String>> }
    Output {
        r#type: OutputType, text: Option<String>, calls: Option<Vec<Call>>, question: Option<String>,
        request: Option<Request>, reason: Option<String>, kind: Option<String>, code: Option<String>,
        http_status: Option<u64>, retried_at: Option<String>, raw: Option<Any>, usage: Option<Usage>,
        metadata: Option<Any>,
    }
    Call { id: String, name: String, input: Any }
    Request { id: String, kind: String, summary: String, details: Option<Any>, metadata: Option<Any> }
    Usage {
        input_tokens: Option<u64>, output_tokens: Option<u64>, cost_units: Option<f64>, latency_ms: Option<u64>,
    }
    ToolStep {
        duration_ms: Option<u64>, result: Option<ToolResult>, throw: Option<Thrown>, r#yields: Option<u64>,
        call_id: Option<String>, tool_name: Option<String>,
    }
    /// What a tool gave.
    ToolResult {
        call_id: Option<String>, tool_name: Option<String>, status: Status, output: Option<String>,
        structured_output: Option<Any>, error: Option<ResultError>, metadata: Option<Any>, usage: Option<Usage>,
        terminate: Option<bool>,
    }
    ResultError { code: Option<String>, message: String, retryable: Option<bool> }
    Approval { prepared: Option<Prepared>, throw: Option<Thrown> }
    Prepared { request: Request, continuation: Option<Continuation> }
    Continuation {
        id: String, r#type: String, turn_id: String, session_id: Option<String>, resume_token: String,
        state: Any, created_at: String,
    }
    Abort { r#where: Place, nth: Option<u64> }
    Fault { name: Option<String>, message: String }
    Bare { value: Any }
}

#[derive(Deserialize)]
#[serde(rename_all = "lowercase")]
enum Mode {
    Parallel,
    Sequential,
}

#[derive(Deserialize)]
#[serde(rename_all = "snake_case")]
enum OutputType {
    FinalAnswer,
    ToolRequest,
    Clarification,
    ApprovalRequest,
    Refusal,
    Invalid,
}

#[derive(Deserialize)]
#[serde(rename_all = "lowercase")]
enum Status {
    Success,
    Error,
}

#[derive(Deserialize)]
#[serde(rename_all = "lowercase")]
enum Place {
    Before,
    Model,
    Tool,
    Approval,
}

/// A text, a named error, or a value that is no error.
#[derive(Deserialize)]
#[serde(try_from = "Value")]
struct Thrown;

impl TryFrom<Value> for Thrown {
    type Error = String;

    fn try_from(value: Value) -> Done<Self> {
        if value.get("value").is_some() {
            serde_json::from_value::<Bare>(value).map_err(|e| e.to_string())?;
        } else if !value.is_string() {
            serde_json::from_value::<Fault>(value).map_err(|e| e.to_string())?;
        }
        Ok(Self)
    }
}

/// Whether the sink can be flushed, and what that throws.
#[derive(Deserialize)]
#[serde(try_from = "Value")]
struct Flush;

impl TryFrom<Value> for Flush {
    type Error = String;

    fn try_from(value: Value) -> Done<Self> {
        if value != Value::Bool(true) {
            serde_json::from_value::<HookStep>(value).map_err(|e| e.to_string())?;
        }
        Ok(Self)
    }
}
