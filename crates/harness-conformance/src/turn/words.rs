//! Every word of vectors of kinds `turn` and `turn-ext`: what is not here is refused.

#![expect(clippy::struct_field_names, reason = "the names are those of the vectors")]

use std::collections::BTreeMap;

use harness_core::Json;
use harness_core::outcome::AskReason;
use serde::de::IgnoredAny as Any;
use serde::{Deserialize, Serialize};
use serde_json::{Map, Number, Value};

use crate::Done;
use crate::case::closed;

closed! {
    /// Content of a vector.
    #[expect(dead_code, reason = "what is for readers is named, so that all other words are refused")]
    Turns {
        kind: String, id: Any, description: Any, conformance: Any, category: Any, source: Any,
        also_observed: Option<Any>, clock: Clock, limits: Option<Limits>, tool_retry_config: Option<Retry>,
        runtime_policy: Option<Policies>, trace: Option<Trace>, tools: Option<Tools>, hooks: Option<Hooks>,
        turns: Vec<Turn>,
    }
    /// The configuration of a harness without its model.
    #[expect(dead_code, reason = "the product has none of its policies; an overlay lists them")]
    Config { limits: Option<Limits>, tool_retry_config: Option<Retry>, runtime_policy: Option<Policies> }
    Clock { start_ms: i64 }
    #[derive(Default)]
    Limits {
        max_iterations: Option<Value>, max_tool_calls: Option<Value>, max_elapsed_ms: Option<Value>,
        max_consecutive_invalid_model_outputs: Option<Value>, budget_limit: Option<Value>,
    }
    Retry { max_retries: Option<Value>, backoff_ms: Option<Value> }
    #[expect(dead_code, reason = "the product has none of them; an overlay lists them")]
    Policies {
        todo_rewrite_cap: Option<TodoRewriteCap>, reserve_floor: Option<ReserveFloor>,
        drill_or_stop: Option<DrillOrStop>, tool_result_cache: Option<Enabled>, output_sanitizer: Option<Enabled>,
    }
    #[expect(dead_code, reason = "as its policies")]
    TodoRewriteCap { tool_names: Vec<String>, max: u64 }
    #[expect(dead_code, reason = "as its policies")]
    ReserveFloor { floor: u64, blocked_categories: Vec<String> }
    #[expect(dead_code, reason = "as its policies")]
    DrillOrStop { broad_tools: Vec<String>, candidate_producing_tools: Vec<String> }
    #[expect(dead_code, reason = "as its policies")]
    Enabled { enabled: bool }
    #[derive(Clone, Default)]
    Trace { present: Option<bool>, throw_on: Option<Vec<ThrowOn>>, flush: Option<Flush> }
    #[derive(Clone)]
    #[expect(dead_code, reason = "a sink that fails fails alike whatever it throws")]
    ThrowOn { r#type: String, nth: Option<u64>, throw: Option<Thrown> }
    Tools {
        definitions: Vec<Definition>, honour_allowed: Option<bool>, list_throw: Option<Thrown>,
        idempotency_guard: Option<Guard>,
    }
    Definition {
        name: String, description: Option<String>, input_schema: Option<Json>, requires_approval: Option<bool>,
        execution_mode: Option<Mode>, metadata: Option<Json>,
    }
    Guard { max_turns: Option<usize> }
    #[derive(Clone, Default)]
    Hooks {
        clarify_on_tool_result: Option<Clarify>, on_invalid_model_output: Option<HookStep>,
        on_tool_error: Option<HookStep>, on_turn_finished: Option<HookStep>,
        transform_transcript: Option<Transform>,
    }
    #[derive(Clone)]
    Clarify { results: Option<Vec<ClarifyStep>>, evidence: Option<EvidenceOptions> }
    #[derive(Clone, Default)]
    ClarifyStep { duration_ms: Option<u64>, value: Option<Value>, throw: Option<Thrown> }
    #[derive(Clone, Default)]
    HookStep { duration_ms: Option<u64>, throw: Option<Thrown> }
    #[derive(Clone)]
    Transform { keep_last: Option<usize>, returns: Option<Value>, throw: Option<Thrown> }
    /// The options of the built-in hook that looks for evidence.
    #[derive(Clone, Default)]
    EvidenceOptions {
        empty_result_keys: Option<Vec<String>>, exclude_tool_names: Option<Vec<String>>,
        question_for_reason: Option<BTreeMap<AskReason, String>>,
    }
    Turn {
        input: Input, model: Vec<Step>, tool_results: Option<Vec<ToolStep>>, approvals: Option<Vec<Approval>>,
        abort: Option<Abort>, streaming: Option<bool>, hooks: Option<Hooks>, expect: Map<String, Value>,
    }
    Input {
        assistant_id: String, turn_id: String, session_id: String, thread_id: Option<String>,
        workspace_id: Option<String>, user_id: Option<String>, metadata: Option<Json>,
        allowed_tool_names: Option<Vec<String>>, instructions: Instructions, message: Message,
        continuation: Option<Json>,
    }
    Instructions { system_prompt: String }
    #[expect(dead_code, reason = "the product's message has the text alone")]
    Message { id: String, received_at: String, text: String }
    Step { duration_ms: Option<u64>, output: Option<Output>, throw: Option<Thrown>, deltas: Option<Vec<String>> }
    Output {
        r#type: OutputType, text: Option<String>, calls: Option<Vec<Call>>, question: Option<String>,
        request: Option<Request>, reason: Option<String>, kind: Option<String>, code: Option<String>,
        http_status: Option<u16>, retried_at: Option<String>, raw: Option<Json>, usage: Option<Usage>,
        metadata: Option<Value>,
    }
    Call { id: String, name: String, input: Json }
    #[derive(Serialize)]
    Request {
        id: String, kind: String, summary: String,
        #[serde(skip_serializing_if = "Option::is_none")] details: Option<Json>,
        #[serde(skip_serializing_if = "Option::is_none")] metadata: Option<Json>,
    }
    Usage {
        input_tokens: Option<u64>, output_tokens: Option<u64>, cost_units: Option<Number>, latency_ms: Option<u64>,
    }
    #[expect(dead_code, reason = "which call a result is of is for readers: results come in the order of the calls")]
    ToolStep {
        duration_ms: Option<u64>, result: Option<ToolResult>, throw: Option<Thrown>, r#yields: Option<u64>,
        call_id: Option<String>, tool_name: Option<String>,
    }
    /// The result of a tool call.
    ToolResult {
        call_id: Option<String>, tool_name: Option<String>, status: Status, output: Option<String>,
        structured_output: Option<Json>, error: Option<ResultError>, metadata: Option<Json>, usage: Option<Usage>,
        terminate: Option<bool>,
    }
    #[derive(Serialize)]
    ResultError {
        #[serde(skip_serializing_if = "Option::is_none")] code: Option<String>, message: String,
        #[serde(skip_serializing_if = "Option::is_none")] retryable: Option<bool>,
    }
    Approval { prepared: Option<Prepared>, throw: Option<Thrown> }
    Prepared { request: Request, continuation: Option<Continuation> }
    #[derive(Serialize)]
    Continuation {
        id: String, r#type: String, turn_id: String,
        #[serde(skip_serializing_if = "Option::is_none")] session_id: Option<String>,
        resume_token: String, state: Json, created_at: String,
    }
    Abort { r#where: Place, nth: Option<u64> }
    Fault { name: Option<String>, message: String }
    Bare { value: Value }
}

#[derive(Clone, Copy, Deserialize, PartialEq, Eq)]
#[serde(rename_all = "lowercase")]
pub(crate) enum Mode {
    Parallel,
    Sequential,
}

#[derive(Clone, Copy, Deserialize, PartialEq, Eq)]
#[serde(rename_all = "snake_case")]
pub(crate) enum OutputType {
    FinalAnswer,
    ToolRequest,
    Clarification,
    ApprovalRequest,
    Refusal,
    Invalid,
}

#[derive(Clone, Copy, Deserialize)]
#[serde(rename_all = "lowercase")]
pub(crate) enum Status {
    Success,
    Error,
}

#[derive(Clone, Copy, Deserialize, PartialEq, Eq)]
#[serde(rename_all = "lowercase")]
pub(crate) enum Place {
    Before,
    Model,
    Tool,
    Approval,
}

/// A text, a named error, or a value other than an error.
#[derive(Clone, Deserialize)]
#[serde(try_from = "Value")]
pub(crate) struct Thrown {
    pub(crate) name: Option<String>,
    pub(crate) message: String,
}

impl TryFrom<Value> for Thrown {
    type Error = String;

    fn try_from(value: Value) -> Done<Self> {
        let text = |value: Value| value.as_str().map_or_else(|| value.to_string(), str::to_owned);
        if value.is_string() {
            return Ok(Self { name: None, message: text(value) });
        }
        if value.get("value").is_some() {
            let Bare { value } = serde_json::from_value(value).map_err(|e| e.to_string())?;
            return Ok(Self { name: None, message: text(value) });
        }
        let Fault { name, message } = serde_json::from_value(value).map_err(|e| e.to_string())?;
        Ok(Self { name, message })
    }
}

/// A sink that can be flushed.
#[derive(Clone, Deserialize)]
#[serde(try_from = "Value")]
pub(crate) struct Flush {
    pub(crate) fails: bool,
}

impl TryFrom<Value> for Flush {
    type Error = String;

    fn try_from(value: Value) -> Done<Self> {
        if value == Value::Bool(true) {
            return Ok(Self { fails: false });
        }
        let step: HookStep = serde_json::from_value(value).map_err(|e| e.to_string())?;
        Ok(Self { fails: step.throw.is_some() })
    }
}
