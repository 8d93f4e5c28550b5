//! Whether an answer is what was asked for.

use harness_core::Json;
use harness_core::message::{AssistantMessage, FinishReason, Invalid, ModelOutput};

/// Whether a `response_format` asks for JSON.
pub(crate) fn expects_json(response_format: &Json) -> bool {
    let entries = response_format.entries().unwrap_or_default();
    let kind = entries.iter().rfind(|(key, _)| key == "type").map(|(_, kind)| kind.text());
    matches!(kind, Some(r#""json_schema""# | r#""json_object""#))
}

/// Marks a message invalid if its answer is not JSON.
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
}
