//! From a reply to the source's output.

use std::sync::Arc;

use harness_core::message::{AssistantMessage, Block, FinishReason, Invalid, Usage};
use harness_core::{Json, ModelName};
use serde::Serialize;

use super::model::Reply;
use super::reading::{Answer, Record};
use crate::chat::answer::PROTOCOL;

const NO_KEY: &str = "OpenRouter API key is not configured.";
const NO_JSON: &str = "OpenRouter response body was not valid JSON";
const BAD_ARGUMENTS: &str = "tool_call arguments are not valid JSON object";
const EMPTY: &str = "OpenRouter response did not include usable assistant content";
const NO_MESSAGE: &str = "OpenRouter response did not include a message choice";

const TRANSIENT: &str = "transient";
const PROVIDER_ERROR: &str = "provider_error";

/// What one attempt came to.
pub(super) struct Outcome {
    message: AssistantMessage,
    pub(super) invalid: Option<Invalid>,
}

/// The source's `metadata`.
#[derive(Default, Serialize)]
#[serde(rename_all = "camelCase")]
struct Metadata<'a> {
    model_id: &'a str,
    #[serde(skip_serializing_if = "Option::is_none")]
    response_id: Option<&'a str>,
    #[serde(skip_serializing_if = "Option::is_none")]
    finish_reason: Option<&'a str>,
    #[serde(skip_serializing_if = "Option::is_none")]
    reasoning: Option<String>,
    #[serde(skip_serializing_if = "<[Json]>::is_empty")]
    raw_reasoning_blocks: &'a [Json],
}

impl Outcome {
    fn invalid(message: AssistantMessage, kind: &str, code: &str, reason: impl Into<String>) -> Self {
        let mut invalid = Invalid::new(reason);
        invalid.kind = Some(kind.to_owned());
        invalid.code = Some(code.to_owned());
        Self { message, invalid: Some(invalid) }
    }

    fn with_raw(mut self, raw: Option<&Json>) -> Self {
        if let Some(invalid) = &mut self.invalid {
            invalid.raw = raw.cloned();
        }
        self
    }

    fn with_status(mut self, status: u16) -> Self {
        if let Some(invalid) = &mut self.invalid {
            invalid.http_status = Some(status);
        }
        self
    }

    /// Whether the source tries again.
    pub(super) fn is_transient(&self) -> bool {
        self.invalid.as_ref().is_some_and(|invalid| invalid.kind.as_deref() == Some(TRANSIENT))
    }

    pub(super) fn into_message(self) -> AssistantMessage {
        match self.invalid {
            Some(invalid) => self.message.marked_invalid(&invalid),
            None => self.message,
        }
    }
}

/// The outcome of a step for which there is no key.
pub(super) fn without_key(model: &str) -> Outcome {
    Outcome::invalid(bare(model), PROVIDER_ERROR, "auth_failed", NO_KEY)
}

/// The outcome of an attempt at `model`.
pub(super) fn of(reply: &Reply, model: &str) -> Outcome {
    match reply {
        Reply::TimedOut => Outcome::invalid(bare(model), TRANSIENT, "timeout", "timeout"),
        Reply::Broken(reason) => Outcome::invalid(bare(model), TRANSIENT, code(reason, None), reason.clone()),
        Reply::Answered { status, body } => match (Json::parse(body).ok(), status) {
            (Some(json), 200..300) if json.is_object() => of_answer(&json, model),
            (_, 200..300) => Outcome::invalid(bare(model), PROVIDER_ERROR, "unknown", NO_JSON),
            (json, status) => of_error(json.filter(Json::is_object).as_ref(), *status, model),
        },
    }
}

fn of_error(body: Option<&Json>, status: u16, model: &str) -> Outcome {
    let error = body.map(Record::of).and_then(|body| body.get("error").map(Record::of));
    let said = error.and_then(|error| error.text("message")).filter(|text| !text.is_empty());
    let passing = matches!(status, 408 | 409 | 425 | 429 | 500..);
    let kind = if passing { TRANSIENT } else { PROVIDER_ERROR };
    let code = code(said.as_deref().unwrap_or_default(), Some(status));
    let reason = said.unwrap_or_else(|| format!("HTTP {status}"));
    Outcome::invalid(bare(model), kind, code, reason).with_raw(body).with_status(status)
}

/// The source's code of a failure: its words decide before its status.
fn code(message: &str, status: Option<u16>) -> &'static str {
    let words = message.to_lowercase();
    let says = |any: &[&str]| any.iter().any(|word| words.contains(word));
    if says(&["credits", "afford", "insufficient"]) {
        return "credits_exhausted";
    }
    if says(&["context length", "maximum context", "token limit"]) {
        return "context_length_exceeded";
    }
    if message == "timeout" {
        return "timeout";
    }
    match status {
        Some(400) => "invalid_request",
        Some(401 | 403) => "auth_failed",
        Some(404) => "model_not_found",
        Some(408) => "timeout",
        Some(429) => "rate_limited",
        Some(_) | None => "unknown",
    }
}

fn of_answer(body: &Json, model: &str) -> Outcome {
    let answer = Answer::read(body);
    let mut message = base(
        model,
        &Metadata {
            model_id: model,
            response_id: answer.id.as_deref(),
            finish_reason: answer.finish_reason.as_deref(),
            reasoning: answer.reasoning(),
            raw_reasoning_blocks: &answer.raw_reasoning,
        },
    );
    message.rare.response_id.clone_from(&answer.id);
    message.usage = usage(&answer).map(Arc::new);
    let invalid = |message, kind, code, reason: &str| {
        Outcome::invalid(message, kind, code, reason).with_raw(Some(body))
    };
    if let Some(refusal) = &answer.refusal {
        return invalid(message, "model_refused", "unknown", refusal);
    }
    let Ok(calls) = answer.calls else {
        return invalid(message, "schema_mismatch", "invalid_request", BAD_ARGUMENTS);
    };
    if !calls.is_empty() {
        message.content = calls.into_iter().map(Block::from).collect();
        message.stop_reason = FinishReason::ToolUse;
        return Outcome { message, invalid: None };
    }
    match (answer.content.join("\n\n"), answer.has_message) {
        (text, _) if !text.is_empty() => {
            message.content = vec![Block::text(text)];
            Outcome { message, invalid: None }
        }
        (_, true) => invalid(message, "empty_response", "unknown", EMPTY),
        (_, false) => invalid(message, "missing_message", "unknown", NO_MESSAGE),
    }
}

/// The two counts that the source reads.
fn usage(answer: &Answer) -> Option<Usage> {
    let mut usage = Usage::default();
    usage.input = answer.prompt_tokens;
    usage.output = answer.completion_tokens;
    usage.input.or(usage.output).map(|_| usage)
}

fn bare(model: &str) -> AssistantMessage {
    base(model, &Metadata { model_id: model, ..Metadata::default() })
}

fn base(model: &str, metadata: &Metadata<'_>) -> AssistantMessage {
    let mut message = AssistantMessage::default();
    message.rare.protocol = Some(PROTOCOL.to_owned());
    message.rare.provider = Some("openrouter".to_owned());
    message.rare.model = Some(ModelName::from(model));
    message.rare.provider_metadata = Json::of(metadata).ok();
    message
}
