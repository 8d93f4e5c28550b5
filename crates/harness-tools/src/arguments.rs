//! Reads and validates the arguments of the built-in tools.

use harness_core::Json;
use harness_core::tool::{ArgumentFault, ToolOutcome};
use serde_json::{Map, Value};

/// Code of invalid arguments.
pub(crate) const INVALID_INPUT: &str = "invalid_input";

/// Error in the arguments of a call.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Refused {
    /// Message.
    pub(crate) message: String,
    /// Path of the argument; empty for the whole.
    pub(crate) path: String,
}

impl Refused {
    pub(crate) fn new(path: impl Into<String>, message: impl Into<String>) -> Self {
        Self { message: message.into(), path: path.into() }
    }

    /// The error result. The content for the model also names the argument.
    pub(crate) fn outcome(self) -> ToolOutcome {
        let mut outcome = refusal(INVALID_INPUT, &self.message);
        if !self.message.contains(&*self.path) {
            let text = format!("argument `{}`: {}", self.path, self.message);
            outcome.content = vec![harness_core::message::Block::text(text)];
        }
        outcome
    }
}

impl From<Refused> for ArgumentFault {
    fn from(refused: Refused) -> Self {
        Self::new(refused.path, refused.message)
    }
}

/// An error result that is marked as not retryable.
pub(crate) fn refusal(code: &str, message: impl Into<String>) -> ToolOutcome {
    let mut outcome = ToolOutcome::error(code, message);
    if let Some(error) = &mut outcome.error {
        error.retryable = Some(false);
    }
    outcome
}

/// Result of a call of an unknown tool.
pub(crate) fn unknown_tool(name: &str) -> ToolOutcome {
    refusal("unknown_tool", format!("Unknown tool: {name}"))
}

/// Arguments of a call, which are an object.
#[derive(Debug)]
pub(crate) struct Arguments(Map<String, Value>);

impl Arguments {
    /// # Errors
    /// If they are not an object.
    pub(crate) fn of(arguments: &Json) -> Result<Self, Refused> {
        match arguments.to() {
            Ok(Value::Object(map)) => Ok(Self(map)),
            _ => Err(Refused::new("", "input must be an object")),
        }
    }

    pub(crate) fn get(&self, key: &str) -> Option<&Value> {
        self.0.get(key)
    }

    /// A string that is not blank.
    pub(crate) fn not_blank(&self, key: &str) -> Result<&str, Refused> {
        let text = self.0.get(key).and_then(Value::as_str).filter(|text| !text.trim().is_empty());
        text.ok_or_else(|| Refused::new(key, format!("input.{key} must be a non-empty string")))
    }

    /// A string that is not empty.
    pub(crate) fn not_empty(&self, key: &str) -> Result<&str, Refused> {
        let text = self.0.get(key).and_then(Value::as_str).filter(|text| !text.is_empty());
        text.ok_or_else(|| Refused::new(key, format!("input.{key} must be a non-empty string")))
    }

    /// A whole number within bounds; `None` if absent.
    pub(crate) fn whole(&self, key: &str, least: u64, most: u64) -> Result<Option<u64>, Refused> {
        let Some(value) = self.0.get(key) else { return Ok(None) };
        let number = whole(value).filter(|number| (least..=most).contains(number));
        let wrong =
            || Refused::new(key, format!("input.{key} must be an integer between {least} and {most}"));
        number.map(Some).ok_or_else(wrong)
    }

    /// One of some words; `None` if absent.
    pub(crate) fn one_of(&self, key: &str, words: &[String]) -> Result<Option<&str>, Refused> {
        let Some(value) = self.0.get(key) else { return Ok(None) };
        let word = value.as_str().filter(|word| words.iter().any(|known| known == word));
        let wrong = || Refused::new(key, format!("input.{key} must be one of: {}", words.join(", ")));
        word.map(Some).ok_or_else(wrong)
    }
}

/// A whole number from 0, even if written with a fraction of zero.
fn whole(value: &Value) -> Option<u64> {
    value.as_u64().or_else(|| {
        let number = value.as_f64().filter(|n| n.fract() == 0.0 && (0.0..9e15).contains(n))?;
        #[expect(
            clippy::cast_possible_truncation,
            clippy::cast_sign_loss,
            reason = "whole and within bounds"
        )]
        Some(number as u64)
    })
}

/// Checks of values at a path.
pub(crate) mod checked {
    use serde_json::Value;

    use super::Refused;

    const REQUIRED: &str = "Required";

    fn kind(value: &Value) -> &'static str {
        match value {
            Value::Null => "null",
            Value::Bool(_) => "boolean",
            Value::Number(_) => "number",
            Value::String(_) => "string",
            Value::Array(_) => "array",
            Value::Object(_) => "object",
        }
    }

    fn expected(path: &str, what: &str, value: &Value) -> Refused {
        Refused::new(path, format!("Expected {what}, received {}", kind(value)))
    }

    /// A required string.
    pub(crate) fn text<'v>(path: &str, value: Option<&'v Value>) -> Result<&'v str, Refused> {
        match value {
            None => Err(Refused::new(path, REQUIRED)),
            Some(Value::String(text)) => Ok(text),
            Some(other) => Err(expected(path, "string", other)),
        }
    }

    /// A required string that is not empty.
    pub(crate) fn filled<'v>(path: &str, value: Option<&'v Value>) -> Result<&'v str, Refused> {
        match text(path, value)? {
            "" => Err(Refused::new(path, "String must contain at least 1 character(s)")),
            text => Ok(text),
        }
    }

    /// A boolean; false if absent.
    pub(crate) fn flag(path: &str, value: Option<&Value>) -> Result<bool, Refused> {
        match value {
            None => Ok(false),
            Some(Value::Bool(flag)) => Ok(*flag),
            Some(other) => Err(expected(path, "boolean", other)),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[track_caller]
    fn check(arguments: &str, expected: Result<Option<u64>, &str>) {
        let arguments = Arguments::of(&Json::parse(arguments).unwrap());
        let read = arguments.and_then(|arguments| arguments.whole("limit", 1, 100));
        assert_eq!(read.map_err(|refused| refused.message), expected.map_err(str::to_owned));
    }

    #[test]
    fn whole_numbers_are_within_bounds() {
        const WRONG: &str = "input.limit must be an integer between 1 and 100";
        check("{}", Ok(None));
        check(r#"{"limit":1}"#, Ok(Some(1)));
        check(r#"{"limit":100.0}"#, Ok(Some(100)));
        for wrong in ["0", "101", "2.5", "-1", "null", "\"5\"", "1e300", "[1]"] {
            check(&format!(r#"{{"limit":{wrong}}}"#), Err(WRONG));
        }
        check("[]", Err("input must be an object"));
    }

    #[test]
    fn a_refusal_names_the_argument_to_the_model() {
        let outcome = Refused::new("todos[0].content", "Required").outcome();
        assert_eq!(outcome.error.as_ref().map(|e| &*e.message), Some("Required"));
        let text = outcome.content.first().and_then(|block| block.as_text());
        assert_eq!(text, Some("argument `todos[0].content`: Required"));
        assert!(Refused::new("path", "input.path must be a text").outcome().content.is_empty());
    }
}
