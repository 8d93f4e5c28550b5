//! Answers of chat completions.

use harness::runtime::Report;
use serde::Serialize;
use utoipa::ToSchema;

use super::super::responses::now;
use super::super::usage::Tokens;
use super::super::verdict::{RunDetail, Verdict};
use crate::app::App;

/// Answer of an agent graph.
#[derive(Debug, Serialize, ToSchema)]
pub(crate) struct ChatCompletion {
    /// Id of the completion.
    id: String,
    /// `chat.completion`.
    object: &'static str,
    /// Time of the request in seconds since 1970.
    created: i64,
    /// Requested model.
    model: String,
    /// One choice.
    choices: Vec<Choice>,
    /// Tokens of all model calls of the run; absent if no model reported any.
    #[serde(skip_serializing_if = "Option::is_none")]
    usage: Option<ChatUsage>,
    /// End of the run in the words of harness.
    harness: RunDetail,
}

/// Answer of a run, as the only choice.
#[derive(Debug, Serialize, ToSchema)]
struct Choice {
    /// 0.
    index: u32,
    /// Message of the assistant.
    message: ChatAnswer,
    /// Always `null`.
    #[schema(value_type = Option<Object>)]
    logprobs: (),
    /// `stop`, `length` at a limit of the run or of the model, or `content_filter` for a guardrail or a policy.
    finish_reason: &'static str,
}

/// Message of the assistant.
#[derive(Debug, Serialize, ToSchema)]
struct ChatAnswer {
    /// `assistant`.
    role: &'static str,
    /// Answer or question; `null` for a refusal.
    content: Option<String>,
    /// Text of a refusal.
    refusal: Option<String>,
}

/// Tokens of a run.
#[derive(Debug, Serialize, ToSchema)]
pub(in crate::openai) struct ChatUsage {
    /// Input tokens, including cached ones.
    prompt_tokens: u64,
    /// Output tokens, including reasoning.
    completion_tokens: u64,
    /// Sum of both.
    total_tokens: u64,
    /// Parts of the input.
    prompt_tokens_details: PromptDetails,
    /// Parts of the output.
    completion_tokens_details: CompletionDetails,
}

/// Parts of the input tokens.
#[derive(Debug, Serialize, ToSchema)]
struct PromptDetails {
    /// Tokens from a cache.
    cached_tokens: u64,
}

/// Parts of the output tokens.
#[derive(Debug, Serialize, ToSchema)]
struct CompletionDetails {
    /// Tokens of reasoning.
    reasoning_tokens: u64,
}

impl From<Tokens> for ChatUsage {
    fn from(tokens: Tokens) -> Self {
        Self {
            prompt_tokens: tokens.input,
            completion_tokens: tokens.output,
            total_tokens: tokens.total(),
            prompt_tokens_details: PromptDetails { cached_tokens: tokens.cached },
            completion_tokens_details: CompletionDetails { reasoning_tokens: tokens.reasoning },
        }
    }
}

/// Common part of an answer and its chunks.
#[derive(Clone, Debug)]
pub(super) struct Head {
    pub(super) id: String,
    pub(super) created: i64,
    pub(super) model: String,
}

impl Head {
    pub(super) fn new(app: &App, model: String) -> Self {
        let created = now(app);
        Self { id: app.new_id("chatcmpl"), created, model }
    }

    pub(super) fn completion(self, verdict: Verdict, report: &Report) -> ChatCompletion {
        let answer = report.answer().to_owned();
        let (content, refusal) =
            if verdict == Verdict::Refused { (None, Some(answer)) } else { (Some(answer), None) };
        let message = ChatAnswer { role: "assistant", content, refusal };
        ChatCompletion {
            id: self.id,
            object: "chat.completion",
            created: self.created,
            model: self.model,
            choices: vec![Choice { index: 0, message, logprobs: (), finish_reason: finish_reason(verdict) }],
            usage: Tokens::of(report).map(ChatUsage::from),
            harness: RunDetail::of(report),
        }
    }
}

pub(super) fn finish_reason(verdict: Verdict) -> &'static str {
    match verdict {
        Verdict::Limited => "length",
        Verdict::Filtered => "content_filter",
        Verdict::Answered
        | Verdict::Refused
        | Verdict::Pending
        | Verdict::OverBudget
        | Verdict::Cancelled
        | Verdict::Failed => "stop",
    }
}
