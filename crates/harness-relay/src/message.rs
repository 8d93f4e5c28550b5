//! The bodies of requests and replies, version 1.

use std::borrow::Cow;

use harness_adapters::execution::{ExecutionRequest, ExecutionResult};
use harness_core::{Json, JsonObject};
use serde::Serialize;

/// The type of a request.
pub const REQUEST_TYPE: &str = "agent-assistant.execution-request.v1";

/// The type of a reply.
pub const RESULT_TYPE: &str = "agent-assistant.execution-result.v1";

/// An older type of replies, still understood.
const OLD_RESULT_TYPE: &str = "execution-result";

/// Key of a request: its turn and its thread.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub(super) struct Key {
    pub(super) turn: String,
    pub(super) thread: String,
}

#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
pub(super) struct ReplyTo<'a> {
    pub(super) agent_id: &'a str,
    pub(super) channel_id: &'a str,
}

/// A request as it is sent.
#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
pub(super) struct RequestBody<'a> {
    #[serde(rename = "type")]
    pub(super) kind: &'static str,
    pub(super) turn_id: &'a str,
    pub(super) thread_id: &'a str,
    pub(super) request: &'a ExecutionRequest,
    pub(super) reply_to: ReplyTo<'a>,
    pub(super) sent_at: String,
}

/// A reply as it is sent; ids that the request did not have are left out.
#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
pub(super) struct ResultBody<'a> {
    #[serde(rename = "type")]
    pub(super) kind: &'static str,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) turn_id: Option<&'a str>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) thread_id: Option<&'a str>,
    pub(super) execution_result: &'a ExecutionResult,
}

/// Kind of a message, from its body.
pub(super) enum Body {
    /// A request, whole.
    Request(JsonObject),
    /// A reply with its ids, and what it holds as a result, if anything.
    Reply { key: Key, result: Option<Json> },
    /// Something else.
    Other,
}

impl Body {
    /// Reads a body. A request must be the JSON itself; a reply may be in a fenced block, as models
    /// write it.
    pub(super) fn read(text: &str) -> Self {
        if let Some(body) = JsonObject::parse(text) {
            return if body.text("type").as_deref() == Some(REQUEST_TYPE) {
                Self::Request(body)
            } else {
                Self::reply(&body)
            };
        }
        match fenced(text).and_then(|inner| JsonObject::parse(&inner)) {
            Some(body) => Self::reply(&body),
            None => Self::Other,
        }
    }

    fn reply(body: &JsonObject) -> Self {
        if !matches!(body.text("type").as_deref(), Some(RESULT_TYPE | OLD_RESULT_TYPE)) {
            return Self::Other;
        }
        let id = |key| body.text(key).filter(|id| !id.is_empty());
        let (Some(turn), Some(thread)) = (id("turnId"), id("threadId")) else { return Self::Other };
        let result = body.present("executionResult").or_else(|| body.present("result")).cloned();
        Self::Reply { key: Key { turn, thread }, result }
    }
}

/// The content of the first fenced block.
fn fenced(text: &str) -> Option<Cow<'_, str>> {
    let (_, after) = text.split_once("```")?;
    let (language, block) = after.split_once('\n')?;
    let (inner, _) = block.split_once("```")?;
    let language = language.trim();
    (language.is_empty() || language.eq_ignore_ascii_case("json")).then(|| Cow::Borrowed(inner.trim()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[track_caller]
    fn check(text: &str, expected: &str) {
        let read = match Body::read(text) {
            Body::Request(body) => format!("request {}", body.json()),
            Body::Reply { key, result } => {
                format!("{} {} {}", key.turn, key.thread, result.map_or("-".to_owned(), |r| r.to_string()))
            }
            Body::Other => "other".to_owned(),
        };
        assert_eq!(read, expected);
    }

    #[test]
    fn w44_a_reply_may_stand_in_a_fenced_block() {
        let reply = r#"{"type":"execution-result","turnId":"t","threadId":"h","result":{"a":1}}"#;
        check(reply, r#"t h {"a":1}"#);
        check(&format!("Here you are:\n```json\n{reply}\n```\nDone."), r#"t h {"a":1}"#);
        check(&format!("```\n{reply}\n```"), r#"t h {"a":1}"#);
        check(&format!("```yaml\n{reply}\n```"), "other");
    }

    #[test]
    fn a_request_is_never_taken_out_of_a_block() {
        let request = format!(r#"{{"type":"{REQUEST_TYPE}"}}"#);
        check(&request, &format!("request {request}"));
        check(&format!("```json\n{request}\n```"), "other");
    }

    #[test]
    fn w48_what_is_no_object_is_nothing() {
        for text in ["null", "[]", "", "1", "```", "```json\nnull\n```", "{", "\"x\""] {
            check(text, "other");
        }
    }
}
