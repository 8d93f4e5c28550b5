//! Functions as tools.

use std::sync::Arc;

use harness_core::message::ToolCall;
use harness_core::tool::{FnTool, Tool, ToolCx, schema_of, tool_fn};
use harness_core::{Json, Time};
use schemars::JsonSchema;

#[derive(serde::Deserialize, JsonSchema)]
struct Order {
    /// The order's number.
    number: u32,
    #[serde(default)]
    #[expect(dead_code, reason = "only its schema matters here")]
    items: Vec<Item>,
}

#[derive(serde::Deserialize, JsonSchema)]
struct Item {
    #[expect(dead_code, reason = "only its schema matters here")]
    price: u64,
}

#[track_caller]
fn check(tool: &impl Tool, arguments: &str, expected: &str) {
    let call = ToolCall::new("c", "order", Json::parse(arguments).expect("JSON"));
    let outcome = futures_util::FutureExt::now_or_never(tool.call(ToolCx::for_call(Arc::new(call.clone()))))
        .expect("a result without waiting");
    let message = outcome.to_message(&call, None, Time(0));
    assert_eq!(message.content.first().and_then(|b| b.as_text()), Some(expected));
    assert_eq!(tool.check(&call.arguments).is_err(), outcome.is_error());
}

#[test]
fn typed_arguments_reach_the_function_or_name_the_invalid_field() {
    let tool = tool_fn("order", "", |order: Order, _| async move { order.number.to_string() });
    check(&tool, r#"{"number":7}"#, "7");
    check(
        &tool,
        r#"{"number":"7"}"#,
        r#"argument `number` is wrong: invalid type: string "7", expected u32"#,
    );
    check(
        &tool,
        r#"{"number":1,"items":[{"price":1},{"price":-2}]}"#,
        "argument `items[1].price` is wrong: invalid value: integer `-2`, expected u64",
    );
    check(&tool, "{}", "the arguments are wrong: missing field `number`");
    check(&tool, "7", "the arguments are wrong: invalid type: integer `7`, expected struct Order");
}

#[test]
fn arguments_of_a_given_schema_are_exact_objects() {
    let tool = FnTool::with_schema("echo", "", Json::empty_object(), |arguments: Json, _| async move {
        arguments.text().to_owned()
    });
    check(&tool, r#"{"n":9007199254740993,"x":1.10}"#, r#"{"n":9007199254740993,"x":1.10}"#);
    check(&tool, "[1]", "the arguments are wrong: expected an object");
}

#[test]
fn schema_is_inlined_without_titles() {
    insta::assert_snapshot!(schema_of::<Order>(), @r#"{"properties":{"items":{"items":{"properties":{"price":{"minimum":0,"type":"integer"}},"required":["price"],"type":"object"},"type":"array"},"number":{"description":"The order's number.","minimum":0,"type":"integer"}},"required":["number"],"type":"object"}"#);
}
