//! What a model's message asks of the turn.

use serde::{Deserialize, Serialize};

use super::block::{Block, ToolCall};
use super::role::{AssistantMessage, FinishReason};
use crate::ids::CallId;
use crate::json::Json;

/// What a model's message asks of the turn. Derived from the message alone, so a stored transcript
/// reads the same as a live one.
///
/// ```
/// use harness_core::message::{ApprovalRequest, AssistantMessage, Invalid, ModelOutput};
///
/// assert!(matches!(AssistantMessage::text("It is 4.").output(), ModelOutput::FinalAnswer));
/// let request = ApprovalRequest::new("a1", "payment", "Pay 50 euros?");
/// let asks = AssistantMessage::approval_request(&request);
/// assert_eq!(asks.output(), ModelOutput::ApprovalRequest(request));
/// assert_eq!(AssistantMessage::invalid(&Invalid::new("no JSON")).output_type(), "invalid");
/// ```
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum ModelOutput<'a> {
    /// The answer; may be empty.
    FinalAnswer,
    /// Calls to execute: at least one tool call block.
    ToolRequest,
    /// A question to the user.
    Clarification {
        /// The question; may be empty.
        question: String,
    },
    /// The model wants something approved before it goes on.
    ApprovalRequest(ApprovalRequest),
    /// The model declines.
    Refusal {
        /// What it says.
        reason: &'a str,
    },
    /// Nothing the turn can use.
    Invalid(Invalid),
}

impl ModelOutput<'_> {
    /// The wire name of the kind.
    pub fn kind(&self) -> &'static str {
        match self {
            Self::FinalAnswer => "final_answer",
            Self::ToolRequest => "tool_request",
            Self::Clarification { .. } => "clarification",
            Self::ApprovalRequest(_) => "approval_request",
            Self::Refusal { .. } => "refusal",
            Self::Invalid(_) => "invalid",
        }
    }
}

/// What a model wants approved.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[non_exhaustive]
pub struct ApprovalRequest {
    /// The model's id of the request.
    pub id: String,
    /// What sort of action it is.
    pub kind: String,
    /// One line for the person who decides.
    pub summary: String,
    /// More, when one line is not enough.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub details: Option<String>,
    /// The caller's data.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub metadata: Option<Json>,
    /// The held call, when the request stands for one.
    #[serde(default, rename = "callId", skip_serializing_if = "Option::is_none")]
    pub call_id: Option<CallId>,
}

impl ApprovalRequest {
    /// A request with an id, a kind and one line for the person who decides.
    pub fn new(id: impl Into<String>, kind: impl Into<String>, summary: impl Into<String>) -> Self {
        Self {
            id: id.into(),
            kind: kind.into(),
            summary: summary.into(),
            details: None,
            metadata: None,
            call_id: None,
        }
    }

    /// A request about a held call: the details are its arguments.
    pub(crate) fn of_call(call: &ToolCall, reason: String) -> Self {
        let details = Some(call.arguments.text().to_owned());
        let call_id = Some(call.id.clone());
        Self { details, call_id, ..Self::new(call.id.as_str(), call.name.as_str(), reason) }
    }
}

/// Why a model's message is of no use.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
#[non_exhaustive]
pub struct Invalid {
    /// What is wrong, for people and for the model.
    pub reason: String,
    /// `transient`, `schema_mismatch`, `empty_response`, `missing_message`, `model_refused` or
    /// `provider_error`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub kind: Option<String>,
    /// `credits_exhausted`, `rate_limited`, `timeout`, `invalid_request`, `context_length_exceeded`,
    /// `model_not_found`, `auth_failed` or `unknown`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub code: Option<String>,
    /// What came instead, as the adapter kept it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub raw: Option<Json>,
    /// The HTTP status, when there was one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub http_status: Option<u16>,
    /// When the adapter tried again.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub retried_at: Option<String>,
}

impl Invalid {
    /// An invalid output with a reason.
    pub fn new(reason: impl Into<String>) -> Self {
        Self { reason: reason.into(), ..Self::default() }
    }
}

const CLARIFICATION: &str = "clarification";
const APPROVAL_REQUEST: &str = "approval_request";
const INVALID: &str = "invalid";

impl AssistantMessage {
    /// A question to the user. Stored as an extension block, beside its text.
    pub fn clarification(question: &str) -> Self {
        Self {
            content: vec![
                Block::text(question),
                Block::extension("harness", CLARIFICATION, Json::string(question)),
            ],
            ..Self::default()
        }
    }

    /// A wish for approval. Stored as an extension block, beside its summary.
    pub fn approval_request(request: &ApprovalRequest) -> Self {
        Self {
            content: vec![
                Block::text(request.summary.clone()),
                Block::extension("harness", APPROVAL_REQUEST, Json::of(request).unwrap_or_default()),
            ],
            ..Self::default()
        }
    }

    /// The model declines.
    pub fn refusal(reason: impl Into<String>) -> Self {
        Self { content: vec![Block::refusal(reason)], stop_reason: FinishReason::Refusal, ..Self::default() }
    }

    /// A response that is of no use. What did arrive may be put in `content` before the mark.
    pub fn invalid(invalid: &Invalid) -> Self {
        Self::default().marked_invalid(invalid)
    }

    /// This response, marked as of no use; its content stays for the record.
    #[must_use]
    pub fn marked_invalid(mut self, invalid: &Invalid) -> Self {
        self.content.push(Block::extension("harness", INVALID, Json::of(invalid).unwrap_or_default()));
        self.stop_reason = FinishReason::Error;
        self.error_message = Some(invalid.reason.clone());
        self.error_code.clone_from(&invalid.code);
        self
    }

    /// What this message asks of the turn.
    ///
    /// In this order: a failure (marked, or `stop_reason` `error`), a refusal, calls, a question, a wish
    /// for approval, and otherwise an answer. `toolUse` without a call is an answer if it has text, else invalid.
    pub fn output(&self) -> ModelOutput<'_> {
        if self.stop_reason == FinishReason::Error {
            return ModelOutput::Invalid(self.marked().unwrap_or_else(|| Invalid {
                reason: self.error_message.clone().unwrap_or_else(|| "the model reported an error".into()),
                code: self.error_code.clone(),
                ..Invalid::default()
            }));
        }
        if self.asks_for_tools() {
            return ModelOutput::ToolRequest;
        }
        for block in &self.content {
            if let Block::Refusal(refusal) = block {
                return ModelOutput::Refusal { reason: &refusal.text };
            }
            if let Some(question) = block.as_own(CLARIFICATION) {
                return ModelOutput::Clarification { question: question.to().unwrap_or_default() };
            }
            if let Some(request) = block.as_own(APPROVAL_REQUEST).and_then(|data| data.to().ok()) {
                return ModelOutput::ApprovalRequest(request);
            }
        }
        match self.stop_reason {
            FinishReason::ToolUse if self.joined_text().trim().is_empty() => ModelOutput::Invalid(Invalid {
                raw: Json::of(self).ok(),
                ..Invalid::new("Tool request contained zero calls")
            }),
            FinishReason::Refusal | FinishReason::ContentFilter => ModelOutput::Refusal { reason: "" },
            FinishReason::Stop
            | FinishReason::ToolUse
            | FinishReason::Length
            | FinishReason::Error
            | FinishReason::Aborted
            | FinishReason::Paused
            | FinishReason::Other(_) => ModelOutput::FinalAnswer,
        }
    }

    /// Whether [`AssistantMessage::output`] is [`ModelOutput::ToolRequest`].
    pub(crate) fn asks_for_tools(&self) -> bool {
        self.stop_reason != FinishReason::Error && self.tool_calls().next().is_some()
    }

    /// The wire name of what this message asks of the turn, as the model meant it: a request for tools
    /// that names none and says nothing is invalid, yet still a `tool_request`.
    pub fn output_type(&self) -> &'static str {
        let output = self.output();
        if matches!(output, ModelOutput::Invalid(_)) && self.stop_reason == FinishReason::ToolUse {
            return ModelOutput::ToolRequest.kind();
        }
        output.kind()
    }

    fn marked(&self) -> Option<Invalid> {
        self.content.iter().rev().find_map(|block| block.as_own(INVALID)).and_then(|data| data.to().ok())
    }
}
