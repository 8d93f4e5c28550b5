//! What comes back.

#[cfg(any(feature = "anthropic", feature = "openrouter", feature = "responses"))]
use harness_core::Json;
use harness_core::message::AssistantMessage;
#[cfg(any(feature = "anthropic", feature = "openrouter", feature = "responses"))]
use harness_core::message::{FinishReason, Invalid, ModelOutput};
use serde::de::DeserializeOwned;

use crate::AdapterError;

/// Reads an answer as a type. White space around the JSON does not matter.
///
/// # Errors
/// [`AdapterError::Answer`] when the answer's text is not JSON of this type; it names the line, the column
/// and what is wrong there.
pub fn read_answer<T: DeserializeOwned>(answer: &AssistantMessage) -> Result<T, AdapterError> {
    let read = serde_json::from_str(answer.joined_text().trim());
    read.map_err(|error| AdapterError::Answer { reason: error.to_string() })
}

/// Whether a `response_format` asks for JSON.
#[cfg(any(feature = "anthropic", feature = "openrouter", feature = "responses"))]
pub(crate) fn expects_json(response_format: &Json) -> bool {
    let entries = response_format.entries().unwrap_or_default();
    let kind = entries.iter().rfind(|(key, _)| key == "type").map(|(_, kind)| kind.text());
    matches!(kind, Some(r#""json_schema""# | r#""json_object""#))
}

/// The message, marked invalid when it is an answer that is no JSON.
#[cfg(any(feature = "anthropic", feature = "openrouter", feature = "responses"))]
pub(crate) fn checked(message: AssistantMessage) -> AssistantMessage {
    if message.output() != ModelOutput::FinalAnswer {
        return message;
    }
    let Err(error) = Json::parse(message.joined_text().trim()) else { return message };
    let cut = message.stop_reason == FinishReason::Length;
    let mut invalid = Invalid::new(if cut {
        "the answer was cut off by the token limit before its JSON was complete".to_owned()
    } else {
        format!("the answer is not JSON: {error}")
    });
    invalid.kind = Some("schema_mismatch".to_owned());
    invalid.code = Some("invalid_request".to_owned());
    message.marked_invalid(&invalid)
}

#[cfg(test)]
#[cfg(any(feature = "anthropic", feature = "openrouter", feature = "responses"))]
mod tests {
    use super::*;

    #[track_caller]
    fn check(message: AssistantMessage, expected: Option<&str>) {
        let looked_at = checked(message.clone());
        if let ModelOutput::Invalid(invalid) = looked_at.output() {
            assert_eq!(Some(invalid.reason.as_str()), expected);
        } else {
            assert_eq!((&looked_at, None), (&message, expected));
        }
    }

    #[test]
    fn an_answer_must_be_json_and_nothing_else_need_be() {
        check(AssistantMessage::text(" {\"a\":1}\n"), None);
        check(AssistantMessage::text("7"), None);
        check(
            AssistantMessage::text("Here: {}"),
            Some("the answer is not JSON: expected value at line 1 column 1"),
        );
        check(AssistantMessage::refusal("I will not"), None);
        let mut cut = AssistantMessage::text("{\"a\":");
        cut.stop_reason = FinishReason::Length;
        check(cut, Some("the answer was cut off by the token limit before its JSON was complete"));
    }

    #[test]
    fn only_formats_of_json_ask_for_it() {
        for (format, expected) in [
            (r#"{"type":"json_schema"}"#, true),
            (r#"{"type":"json_object"}"#, true),
            (r#"{"type":"text"}"#, false),
            ("null", false),
        ] {
            assert_eq!(expects_json(&Json::parse(format).unwrap()), expected, "{format}");
        }
    }

    #[test]
    fn an_answer_of_another_type_names_the_place() {
        let fault = read_answer::<Vec<u8>>(&AssistantMessage::text("[1,\n\"x\"]")).unwrap_err();
        assert_eq!(
            fault.to_string(),
            "the answer is not of the expected form: invalid type: string \"x\", expected u8 at line 2 column 3"
        );
    }
}
