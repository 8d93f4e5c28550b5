//! Outputs: how a turn reads the message of a model.

use serde::{Deserialize, Serialize};

use super::block::{Block, ToolCall};
use super::role::{AssistantMessage, FinishReason};
use crate::ids::CallId;
use crate::json::Json;

/// Output of a model. Derived from the message alone, so that stored and live messages read the same.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum ModelOutput<'a> {
    /// Answer; may be empty.
    FinalAnswer,
    /// At least one tool call.
    ToolRequest,
    /// Question to the user.
    Clarification {
        /// Question; may be empty.
        question: String,
    },
    /// Request for approval of an action that is not a tool call.
    ApprovalRequest(ApprovalRequest),
    /// Refusal.
    Refusal {
        /// Text of the refusal.
        reason: &'a str,
    },
    /// Unusable output.
    Invalid(Invalid),
}

impl ModelOutput<'_> {
    /// Returns the wire name of the kind.
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

/// Request for approval, of a model or for a held call.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, schemars::JsonSchema)]
#[non_exhaustive]
pub struct ApprovalRequest {
    /// Request id, chosen by the model; of a held call, the call's id.
    pub id: String,
    /// Kind of action; of a held call, the tool.
    pub kind: String,
    /// One line for the approver.
    pub summary: String,
    /// Details for the approver.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub details: Option<String>,
    /// Caller data.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub metadata: Option<Json>,
    /// Held call, if the request is about one.
    #[serde(default, rename = "callId", skip_serializing_if = "Option::is_none")]
    pub call_id: Option<CallId>,
}

impl ApprovalRequest {
    /// Creates a request with one line for the approver.
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

    /// Creates the request for a held call; the details are its arguments.
    pub(crate) fn of_call(call: &ToolCall, reason: String) -> Self {
        let details = Some(call.arguments.text().to_owned());
        let call_id = Some(call.id.clone());
        Self { details, call_id, ..Self::new(call.id.as_str(), call.name.as_str(), reason) }
    }
}

/// Description of an unusable output.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, schemars::JsonSchema)]
#[serde(rename_all = "camelCase")]
#[non_exhaustive]
pub struct Invalid {
    /// Problem, for the user and the model.
    pub reason: String,
    /// `transient`, `schema_mismatch`, `empty_response`, `missing_message`, `model_refused` or
    /// `provider_error`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub kind: Option<String>,
    /// `credits_exhausted`, `rate_limited`, `timeout`, `invalid_request`, `context_length_exceeded`,
    /// `model_not_found`, `auth_failed` or `unknown`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub code: Option<String>,
    /// Received data, as the adapter kept it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub raw: Option<Json>,
    /// HTTP status, if any.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub http_status: Option<u16>,
    /// Time of the adapter's retry.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub retried_at: Option<String>,
}

impl Invalid {
    /// Creates a description.
    pub fn new(reason: impl Into<String>) -> Self {
        Self { reason: reason.into(), ..Self::default() }
    }
}

const CLARIFICATION: &str = "clarification";
const APPROVAL_REQUEST: &str = "approval_request";
const INVALID: &str = "invalid";

impl AssistantMessage {
    /// Creates a question to the user: an extension block beside its text.
    pub fn clarification(question: &str) -> Self {
        let block = Block::extension("harness", CLARIFICATION, Json::string(question));
        Self { content: vec![Block::text(question), block], ..Self::default() }
    }

    /// Creates a request for approval: an extension block beside its summary.
    pub fn approval_request(request: &ApprovalRequest) -> Self {
        let block = Block::extension("harness", APPROVAL_REQUEST, Json::of(request).unwrap_or_default());
        Self { content: vec![Block::text(request.summary.clone()), block], ..Self::default() }
    }

    /// Creates a refusal.
    pub fn refusal(reason: impl Into<String>) -> Self {
        Self { content: vec![Block::refusal(reason)], stop_reason: FinishReason::Refusal, ..Self::default() }
    }

    /// Creates an unusable response.
    pub fn invalid(invalid: &Invalid) -> Self {
        Self::default().marked_invalid(invalid)
    }

    /// Marks this response as unusable. Its content is kept.
    #[must_use]
    pub fn marked_invalid(mut self, invalid: &Invalid) -> Self {
        self.content.push(Block::extension("harness", INVALID, Json::of(invalid).unwrap_or_default()));
        self.stop_reason = FinishReason::Error;
        self.error_message = Some(invalid.reason.clone());
        self.error_code.clone_from(&invalid.code);
        self
    }

    /// Returns the output of this message.
    ///
    /// In this order: an error (marked, or `stop_reason` `error`), calls, a refusal, a question, a request for approval,
    /// otherwise an answer. `toolUse` without a call is an answer if it has text, else invalid.
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
        if self.stop_reason == FinishReason::ToolUse && self.joined_text().trim().is_empty() {
            let invalid = Invalid::new("Tool request contained zero calls");
            return ModelOutput::Invalid(Invalid { raw: Json::of(self).ok(), ..invalid });
        }
        if matches!(self.stop_reason, FinishReason::Refusal | FinishReason::ContentFilter) {
            return ModelOutput::Refusal { reason: "" };
        }
        ModelOutput::FinalAnswer
    }

    /// Whether [`AssistantMessage::output`] is [`ModelOutput::ToolRequest`].
    pub(crate) fn asks_for_tools(&self) -> bool {
        self.stop_reason != FinishReason::Error && self.tool_calls().next().is_some()
    }

    /// Returns the wire name of the output as the model intended it: a tool request without calls and text is invalid,
    /// but still a `tool_request`.
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
