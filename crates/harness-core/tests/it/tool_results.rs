//! What a function may return as a tool.

use harness_core::message::{Block, ToolCall};
use harness_core::tool::{IntoToolOutcome, Structured, ToolError};
use harness_core::{Json, Time};
use serde::Serialize;

/// `status code? retryable?: content`, and the data below it.
#[track_caller]
fn check(result: impl IntoToolOutcome, expected: &str) {
    let outcome = result.into_tool_outcome();
    let message = outcome.to_message(&ToolCall::new("c", "t", Json::default()), None, Time(0));
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
