//! Conversion of a function's result to a tool outcome.

use serde::Serialize;

use super::{ToolError, ToolOutcome, ToolStatus};
use crate::json::Json;
use crate::message::Block;

/// Result of a tool's function.
///
/// | type | text for the model | data |
/// |---|---|---|
/// | `String`, `&str` | the text | |
/// | [`Json`], [`serde_json::Value`], [`Structured`] | the JSON text | the value |
/// | [`Block`], `Vec<Block>` | the blocks: text, images, files | |
/// | `()` | `done` | |
/// | [`ToolOutcome`] | its content | its data |
/// | `Result<T, ToolError>` | `T`, or the error's message | the error's code and data |
/// | `Result<T, E>`, `E: Display` | `T`, or the error's text, with the code `tool_execution_failed` | |
#[diagnostic::on_unimplemented(
    message = "`{Self}` is not a tool result",
    note = "return a String, a Json, a Structured, blocks, a ToolOutcome, or a Result of one of these with a ToolError or \
            an error that implements Display"
)]
pub trait IntoToolOutcome {
    /// Converts the result.
    fn into_tool_outcome(self) -> ToolOutcome;
}

/// Result as data of any serializable type. A value without a JSON form is an error result (`tool_execution_failed`).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Structured<T>(pub T);

impl<T: Serialize> IntoToolOutcome for Structured<T> {
    fn into_tool_outcome(self) -> ToolOutcome {
        Json::of(&self.0).map(ToolOutcome::structured).into_tool_outcome()
    }
}

impl IntoToolOutcome for ToolOutcome {
    fn into_tool_outcome(self) -> ToolOutcome {
        self
    }
}

macro_rules! outcomes {
    ($($ty:ty: $value:pat_param => $outcome:expr),* $(,)?) => {$(
        impl IntoToolOutcome for $ty {
            fn into_tool_outcome(self) -> ToolOutcome {
                let $value = self;
                $outcome
            }
        }
    )*};
}

outcomes! {
    String: text => ToolOutcome::text(text),
    &str: text => ToolOutcome::text(text),
    (): () => ToolOutcome::text("done"),
    Json: value => ToolOutcome::structured(value),
    serde_json::Value: value => Structured(value).into_tool_outcome(),
    Block: block => ToolOutcome::blocks(vec![block]),
    Vec<Block>: blocks => ToolOutcome::blocks(blocks),
}

impl<T: IntoToolOutcome, E: Into<ToolError>> IntoToolOutcome for Result<T, E> {
    fn into_tool_outcome(self) -> ToolOutcome {
        match self {
            Ok(value) => value.into_tool_outcome(),
            Err(error) => ToolOutcome {
                status: ToolStatus::Failed,
                error: Some(Box::new(error.into())),
                ..ToolOutcome::default()
            },
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::message::ToolCall;

    /// `status code? retryable?: content`, and the data below it.
    #[track_caller]
    fn check(result: impl IntoToolOutcome, expected: &str) {
        let outcome = result.into_tool_outcome();
        let message = outcome.to_message(&ToolCall::new("c", "t", Json::default()), None, crate::Time(0));
        let mut line = outcome.status.as_str().to_owned();
        if let Some(error) = &outcome.error {
            line.extend([" ", &error.code, if outcome.is_retryable() { " retryable" } else { "" }]);
        }
        for block in &message.content {
            line.extend([": ", block.as_text().unwrap_or("(no text)")]);
        }
        let data = outcome.structured.or_else(|| outcome.error.and_then(|error| error.metadata));
        if let Some(data) = data {
            line.extend([" = ", data.text()]);
        }
        assert_eq!(line, expected);
    }

    #[derive(Serialize)]
    struct Point {
        x: u64,
    }

    #[test]
    fn every_form_of_result_becomes_an_outcome() {
        check("hello", "success: hello");
        check("hello".to_owned(), "success: hello");
        check((), "success: done");
        check(Json::parse("[1.10]").expect("JSON"), "success: [1.10] = [1.10]");
        check(serde_json::json!({ "a": 1 }), r#"success: {"a":1} = {"a":1}"#);
        check(
            Structured(Point { x: u64::MAX }),
            r#"success: {"x":18446744073709551615} = {"x":18446744073709551615}"#,
        );
        check(Block::image("aGk=", "image/png"), "success: (no text)");
        check(vec![Block::text("a"), Block::image("aGk=", "image/png")], "success: a: (no text)");
        check(Ok::<_, std::fmt::Error>("fine"), "success: fine");
    }

    #[test]
    fn errors_keep_their_codes() {
        check(Err::<(), _>("out of stock"), "failed tool_execution_failed: out of stock");
        let error = ToolError::new("sold_out", "none left").retryable();
        check(Err::<String, _>(error.clone()), "failed sold_out retryable: none left");
        let metadata = Json::parse(r#"{"until":"May"}"#).expect("JSON");
        check(
            Err::<(), _>(error.with_metadata(metadata)),
            r#"failed sold_out retryable: none left = {"until":"May"}"#,
        );
        let unprintable = Structured(std::collections::BTreeMap::from([(vec![1], 2)]));
        check(unprintable, "failed tool_execution_failed: key must be a string");
    }

    #[test]
    fn the_question_mark_works_in_a_function() {
        fn parse(text: &str) -> Result<String, ToolError> {
            let number: u8 = text.parse()?;
            if number == 0 { Err(ToolError::new("zero", "zero is not allowed")) } else { Ok(text.to_owned()) }
        }
        check(parse("7"), "success: 7");
        check(parse("0"), "failed zero: zero is not allowed");
        check(parse("x"), "failed tool_execution_failed: invalid digit found in string");
    }
}
