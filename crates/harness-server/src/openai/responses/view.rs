//! Responses.

use harness::core::Outcome;
use harness::runtime::Report;
use serde::Serialize;
use serde_json::{Map, Value, json};
use utoipa::ToSchema;

use super::super::described::{AnswerFormat, ConversationId, OutputItem};
use super::super::error::INSUFFICIENT_QUOTA;
use super::super::usage::Tokens;
use super::super::verdict::{RunDetail, Verdict};
use super::request::{Asked, Continued};
use super::target::Target;
use crate::app::App;

/// Response of an agent graph.
#[derive(Clone, Debug, Serialize, ToSchema)]
pub(crate) struct ResponseView {
    /// Id of the response, for `previous_response_id`.
    pub(super) id: String,
    /// `response`.
    object: &'static str,
    /// Time of the request in seconds since 1970.
    created_at: i64,
    /// `in_progress`, `completed`, `incomplete` or `failed`.
    pub(super) status: &'static str,
    /// Error of a failed run: `code` and `message`.
    pub(super) error: Option<Problem>,
    /// Reason of `incomplete`: `max_output_tokens` for any limit, `content_filter` for a guardrail or a policy.
    incomplete_details: Option<IncompleteDetails>,
    /// Instructions of the request.
    instructions: Option<String>,
    /// Requested model.
    model: String,
    /// Items: `reasoning`, `message`, `mcp_call` for the tools that the server ran, and `mcp_approval_request` for
    /// calls that require approval.
    #[schema(value_type = Vec<OutputItem>)]
    pub(super) output: Vec<Value>,
    /// Continued response.
    previous_response_id: Option<String>,
    /// Conversation.
    #[schema(value_type = Option<ConversationId>)]
    conversation: Option<Value>,
    /// Whether the response is stored.
    pub(super) store: bool,
    /// Data of the caller.
    #[schema(value_type = Object)]
    metadata: Map<String, Value>,
    /// User of the run.
    user: Option<String>,
    /// Always `true`.
    parallel_tool_calls: bool,
    /// Always `auto`.
    tool_choice: &'static str,
    /// Always empty: the tools are those of the agents.
    #[schema(value_type = Vec<Object>)]
    tools: [(); 0],
    /// Format of the answer.
    text: AnswerText,
    /// Tokens of all model calls of the run; `null` if no model reported any.
    usage: Option<ResponseUsage>,
    /// End of the run in the words of harness; absent before it.
    #[serde(skip_serializing_if = "Option::is_none")]
    harness: Option<RunDetail>,
}

/// Error of a failed run.
#[derive(Clone, Debug, Serialize, ToSchema)]
pub(super) struct Problem {
    /// `server_error` or `insufficient_quota`.
    code: &'static str,
    /// Human-readable message.
    message: String,
}

impl Problem {
    pub(super) fn new(message: String) -> Self {
        Self { code: "server_error", message }
    }

    fn of(verdict: Verdict, report: &Report) -> Self {
        let code = if verdict == Verdict::OverBudget { INSUFFICIENT_QUOTA } else { "server_error" };
        let message = report.problem().unwrap_or_else(|| Outcome::Failed.as_str().to_owned());
        Self { code, message }
    }
}

/// Why a response is incomplete.
#[derive(Clone, Debug, Serialize, ToSchema)]
struct IncompleteDetails {
    /// `max_output_tokens` or `content_filter`.
    reason: &'static str,
}

/// Text of a response.
#[derive(Clone, Debug, Serialize, ToSchema)]
struct AnswerText {
    /// Format of the answer.
    #[schema(value_type = AnswerFormat)]
    format: Value,
}

/// Input tokens of a kind.
#[derive(Clone, Debug, Serialize, ToSchema)]
struct InputDetails {
    /// Those from a cache.
    cached_tokens: u64,
}

/// Output tokens of a kind.
#[derive(Clone, Debug, Serialize, ToSchema)]
struct OutputDetails {
    /// Those of reasoning.
    reasoning_tokens: u64,
}

/// Tokens of a run.
#[derive(Clone, Debug, Serialize, ToSchema)]
struct ResponseUsage {
    /// Input tokens, including cached ones.
    input_tokens: u64,
    /// Parts of them.
    input_tokens_details: InputDetails,
    /// Output tokens, including reasoning.
    output_tokens: u64,
    /// Parts of them.
    output_tokens_details: OutputDetails,
    /// Sum of both.
    total_tokens: u64,
}

impl From<Tokens> for ResponseUsage {
    fn from(tokens: Tokens) -> Self {
        Self {
            input_tokens: tokens.input,
            input_tokens_details: InputDetails { cached_tokens: tokens.cached },
            output_tokens: tokens.output,
            output_tokens_details: OutputDetails { reasoning_tokens: tokens.reasoning },
            total_tokens: tokens.total(),
        }
    }
}

impl ResponseView {
    /// The response before its run.
    pub(super) fn new(app: &App, asked: &Asked, target: &Target) -> Self {
        let (previous_response_id, conversation) = match &asked.continued {
            Continued::New => (None, None),
            Continued::Response(id) => (Some(id.clone()), None),
            Continued::Conversation(id) => (None, Some(json!({ "id": id }))),
        };
        let options = &target.prompt.options;
        let format = match &options.output {
            Some(schema) => {
                json!({ "type": "json_schema", "name": "answer", "schema": schema, "strict": true })
            }
            None => json!({ "type": "text" }),
        };
        Self {
            id: app.new_id("resp"),
            object: "response",
            created_at: now(app),
            status: "in_progress",
            error: None,
            incomplete_details: None,
            instructions: asked.echoed_instructions.clone(),
            model: asked.model.clone(),
            output: Vec::new(),
            previous_response_id,
            conversation,
            store: asked.is_stored,
            metadata: asked.metadata.clone().unwrap_or_default(),
            user: options.user.as_deref().map(str::to_owned),
            parallel_tool_calls: true,
            tool_choice: "auto",
            tools: [],
            text: AnswerText { format },
            usage: None,
            harness: None,
        }
    }

    /// Adds the end of the run.
    pub(super) fn end(&mut self, report: &Report, pending: usize) {
        let verdict = Verdict::of(report, pending);
        let incomplete = |reason| Some(IncompleteDetails { reason });
        (self.status, self.incomplete_details) = match verdict {
            Verdict::Answered | Verdict::Refused | Verdict::Pending => ("completed", None),
            Verdict::Limited => ("incomplete", incomplete("max_output_tokens")),
            Verdict::Filtered => ("incomplete", incomplete("content_filter")),
            Verdict::OverBudget | Verdict::Cancelled | Verdict::Failed => ("failed", None),
        };
        if self.status == "failed" {
            self.error = Some(Problem::of(verdict, report));
        }
        self.usage = Tokens::of(report).map(ResponseUsage::from);
        self.harness = Some(RunDetail::of(report));
    }
}

/// Time in seconds since 1970.
pub(in crate::openai) fn now(app: &App) -> i64 {
    app.threads.service_time().0.div_euclid(1_000)
}
