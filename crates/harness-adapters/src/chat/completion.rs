//! One answer of a chat-completions endpoint, put together, and what it amounts to.

use harness_core::Json;

use crate::http::fault::transient;
use crate::http::{ReportedError, ReportedUsage};

/// An answer as the endpoint gave it, streamed or whole.
///
/// A text field that never got a character is `None`.
#[derive(Debug, Clone, Default)]
#[non_exhaustive]
pub struct Completion {
    /// The id of the response, the first one seen.
    pub id: Option<String>,
    /// The model that answered, the last one seen; it may differ from the one asked for.
    pub model: Option<String>,
    /// The provider behind a router.
    pub provider: Option<String>,
    /// The answer's text.
    pub content: Option<String>,
    /// The reasoning's text.
    pub reasoning: Option<String>,
    /// The wire field that `reasoning` came in: `reasoning` or `reasoning_content`.
    pub reasoning_field: Option<&'static str>,
    /// Reasoning items to be sent back unchanged and in this order.
    pub reasoning_details: Vec<Json>,
    /// Refusal text of the model.
    pub refusal: Option<String>,
    /// The calls asked for, in the endpoint's order.
    pub tool_calls: Vec<CompletionCall>,
    /// `stop`, `length`, `tool_calls`, `content_filter`, `error` or another text.
    pub finish_reason: Option<String>,
    /// The finish reason in the provider's own words.
    pub native_finish_reason: Option<String>,
    /// Tokens and cost.
    pub usage: Option<ReportedUsage>,
    /// The first error that the endpoint reported inside the answer.
    pub error: Option<ReportedError>,
    /// Whether the end was announced: `[DONE]`, or a reply that is not a stream.
    pub saw_done: bool,
    /// Keep-alive comments of the stream.
    pub comments: u64,
    /// Number of events that were not JSON objects of the expected shape. They may have contained a
    /// part of the answer, so [`ChatModel`](super::ChatModel) fails the step.
    pub malformed_events: u64,
    /// The beginning of the first of them.
    pub malformed_event: Option<String>,
    /// The reply, where it came as one JSON document of at most 64 KiB.
    pub document: Option<String>,
}

/// A tool call as the endpoint wrote it.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct CompletionCall {
    /// The call's id; empty when the endpoint gave none.
    pub id: String,
    /// The tool's name; empty when the endpoint gave none.
    pub name: String,
    /// The argument text, which may be no JSON at all.
    pub arguments: String,
}

impl CompletionCall {
    /// The arguments, when they are a JSON object; no text at all means an empty object.
    pub fn input(&self) -> Option<Json> {
        if self.arguments.is_empty() {
            return Some(Json::empty_object());
        }
        Json::parse(&self.arguments).ok().filter(Json::is_object)
    }

    pub(crate) fn is_usable(&self) -> bool {
        !self.name.trim().is_empty() && self.input().is_some()
    }
}

/// Assessment of an answer.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub enum Verdict {
    /// Text for the user; `truncated` when the token limit cut it.
    FinalAnswer {
        /// Whether the finish reason was `length`.
        truncated: bool,
    },
    /// Tool calls, each with usable arguments.
    ToolRequest,
    /// Nothing that can be used as it is.
    Invalid(InvalidKind),
}

/// Reason why an answer cannot be used.
#[derive(Debug, Clone, Copy, PartialEq, Eq, strum::IntoStaticStr)]
#[strum(serialize_all = "snake_case")]
#[non_exhaustive]
pub enum InvalidKind {
    /// Error that a retry may avoid.
    Transient,
    /// Error that a retry would repeat.
    ProviderError,
    /// The model, or a filter before it, refused.
    ModelRefused,
    /// Tool call without a name, or with arguments that are not a JSON object.
    SchemaMismatch,
    /// Neither calls nor a text that is not blank.
    EmptyResponse,
}

impl InvalidKind {
    /// The stable code: `transient`, `provider_error`, `model_refused`, `schema_mismatch` or
    /// `empty_response`.
    pub fn code(self) -> &'static str {
        self.into()
    }
}

impl Completion {
    /// Judges the answer; the first rule that applies wins: error, cut stream, refusal, calls, text.
    pub fn verdict(&self) -> Verdict {
        if let Some(error) = &self.error {
            let kind = if transient(error) { InvalidKind::Transient } else { InvalidKind::ProviderError };
            return Verdict::Invalid(kind);
        }
        let finish = self.finish_reason.as_deref();
        if finish == Some("error") || (finish.is_none() && !self.saw_done) {
            return Verdict::Invalid(InvalidKind::Transient);
        }
        let refuses = self.refusal.as_ref().is_some_and(|text| !text.trim().is_empty());
        if refuses || finish == Some("content_filter") {
            return Verdict::Invalid(InvalidKind::ModelRefused);
        }
        if !self.tool_calls.is_empty() {
            let usable = self.tool_calls.iter().all(CompletionCall::is_usable);
            return if usable { Verdict::ToolRequest } else { Verdict::Invalid(InvalidKind::SchemaMismatch) };
        }
        if self.content.as_ref().is_some_and(|text| !text.trim().is_empty()) {
            return Verdict::FinalAnswer { truncated: finish == Some("length") };
        }
        Verdict::Invalid(InvalidKind::EmptyResponse)
    }
}
