//! Item schemas of a conversation: calls, results and prompts.

use harness::core::message::CustomMessage;
use harness::core::{Json, StopReason};
use harness::memory::layer::{ItemCategory, ItemSchema, ItemSchemas};
use harness::prelude::*;
use harness::tools::Subagent;

use crate::support::{Script, call};

/// A tool with this result.
fn pay(result: &'static str) -> impl harness::core::tool::Tool {
    let schema = Json::parse(r#"{"type":"object"}"#).unwrap();
    harness::core::tool::FnTool::with_schema("pay", "Pays.", schema, move |_, _| async move {
        ToolOutcome::structured(Json::parse(result).unwrap())
    })
}

fn accepting(category: ItemCategory, part: &'static str) -> ItemSchemas {
    let schema = ItemSchema::new(part, move |item| item.text().contains(part));
    ItemSchemas::default().with(category, schema.of_tool("pay"))
}

/// Prompts with one call of `pay`; the next request has to show `shown`.
#[track_caller]
fn check(schemas: ItemSchemas, arguments: &str, result: &'static str, shown: &str) {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_time().build().unwrap();
    let model = Script::new([call("c1", "pay", arguments), AssistantMessage::text("Done.")]);
    let harness = Harness::new(model.clone()).tool(pay(result)).item_schemas(schemas).build().unwrap();
    let report = runtime.block_on(async { harness.prompt("pay").await }).unwrap();
    assert_eq!(report.reason(), StopReason::AnswerFinalized, "{report:?}");
    let seen = model.seen();
    assert!(seen.get(1).is_some_and(|request| request.contains(shown)), "{seen:?}");
}

#[test]
fn calls_and_results_need_an_accepting_schema() {
    let calls = || accepting(ItemCategory::ToolCalls, r#"{\"cents\":1}"#);
    let results = || accepting(ItemCategory::ToolResults, r#""data":{"receipt":1}"#);
    let receipt = r#"{"receipt":1}"#;
    check(calls(), r#"{"cents":1}"#, receipt, r#"| toolResult {"receipt":1}"#);
    check(
        calls(),
        r#"{"cents":2}"#,
        receipt,
        "Denied: none of the schemas registered for `toolCalls` accepts the item",
    );
    check(results(), "{}", receipt, r#"| toolResult {"receipt":1}"#);
    check(
        results(),
        "{}",
        r#"{"oops":1}"#,
        "the result of `pay` was discarded: none of the schemas registered for `toolResults`",
    );
}

#[tokio::test]
async fn results_of_sub_agents_need_one_too() {
    let task = call("c1", "task", r#"{"agent":"clerk","prompt":"pay it","description":"pay"}"#);
    let model = Script::new([
        task,
        call("c2", "pay", "{}"),
        AssistantMessage::text("Failed."),
        AssistantMessage::text("Sorry."),
    ]);
    let clerk = Subagent::new("clerk", "Pays.", "You pay.");
    let builder = Harness::new(model.clone()).tool(pay("{}")).subagents([clerk]);
    let schemas = accepting(ItemCategory::ToolResults, "receipt");
    builder.item_schemas(schemas).build().unwrap().prompt("pay").await.unwrap();
    let seen = model.seen();
    assert!(seen[2].contains("the result of `pay` was discarded"), "{seen:?}");
}

#[tokio::test]
async fn prompts_may_have_known_types_only() {
    let schemas = ItemSchemas::default().with(ItemCategory::Items, ItemSchema::of_type("shop:order"));
    let model = Script::new([AssistantMessage::text("Noted.")]);
    let harness = Harness::new(model).item_schemas(schemas).build().unwrap();
    let custom = |name: &str| Message::Custom(CustomMessage::new(name, None));
    let report = harness.prompt(Prompt::new([custom("shop:refund")])).await.unwrap();
    assert_eq!(report.reason(), StopReason::GuardrailTriggered, "{report:?}");
    let report = harness.prompt(Prompt::new([custom("shop:order"), Message::user("note it")])).await.unwrap();
    assert_eq!(report.reason(), StopReason::AnswerFinalized, "{report:?}");
}
