//! A descriptor's agents through the facade.

use std::sync::Arc;

use harness::core::Json;
use harness::core::run::RunSpec;
use harness::core::tool::DynTool;
use harness::descriptor::{Map, Value, load_text};
use harness::prelude::*;
use harness::session::MemorySession;
use harness::{BoundGraph, HarnessError};

use crate::support::{Script, call};

const DESK: &str = "
runtime: { entry_agent: desk }
context:
  fields: { user.name: { default: nobody }, said: { default: '{{input.message}}' } }
  references: { user.name: true, said: true }
tools: { find: { target: orders.find } }
agent_defaults: { model: small }
agents:
  desk: { instructions: 'Desk of {{context.user.name}}.', handoffs: [expert] }
  expert: { instructions: 'Expert on {{context.said}}', tools: [find] }
";

#[derive(serde::Deserialize, schemars::JsonSchema)]
struct Order {
    id: u32,
}

fn find() -> Arc<dyn DynTool> {
    Arc::new(tool_fn("find_order", "Finds an order", |order: Order, _| async move {
        Ok::<_, std::io::Error>(format!("order {} is packed", order.id))
    }))
}

fn bound(yaml: &str, targets: &[&str]) -> Result<BoundGraph, HarnessError> {
    BoundGraph::bind(&load_text(yaml).unwrap(), targets.iter().map(|target| (*target, find())))
}

fn named(name: &str) -> Map {
    [("user".into(), Value::Map([("name".into(), Value::from(name))].into_iter().collect()))]
        .into_iter()
        .collect()
}

#[tokio::test]
async fn agents_hand_over_and_the_context_is_made_for_each_prompt() {
    let model = Script::new([
        call("h1", "handoff_to_expert", "{}"),
        call("c1", "find_order", r#"{"id":7}"#),
        AssistantMessage::text("packed"),
        AssistantMessage::text("welcome"),
    ]);
    let harness = Harness::new(model.clone())
        .graph(bound(DESK, &["orders.find", "unused"]).unwrap())
        .context(named("Ada"))
        .session(MemorySession::new())
        .build()
        .unwrap();
    let report = harness.prompt("order 7").await.unwrap();
    assert_eq!(report.answer(), "packed");
    let thanks = harness
        .prompt(Prompt::from("thanks").context(Json::of(&Value::Map(named("Bob"))).unwrap()))
        .await
        .unwrap();
    assert_eq!(thanks.end.agent, Some("expert".into()), "the active agent goes on");
    let heads: Vec<String> =
        model.seen().iter().map(|seen| seen.split(" | ").next().unwrap_or_default().to_owned()).collect();
    assert_eq!(
        heads,
        [
            "desk: Desk of Ada.",
            "expert: Expert on order 7",
            "expert: Expert on order 7",
            "expert: Expert on thanks"
        ]
    );
    assert!(model.seen()[2].ends_with("toolResult order 7 is packed"));
}

#[tokio::test]
async fn the_agent_to_begin_with_may_be_chosen() {
    let model = Script::new([AssistantMessage::text("hi")]);
    let harness = Harness::new(model).graph(bound(DESK, &["orders.find"]).unwrap()).build().unwrap();
    let report = harness.prompt(Prompt::from("hello").agent("expert")).await.unwrap();
    assert_eq!(report.end.agent, Some("expert".into()));
}

#[tokio::test]
async fn max_turns_of_the_descriptor_is_the_limit_of_model_calls() {
    #[track_caller]
    fn check(end: &harness::core::End, expected: (&str, u64)) {
        let harness::core::Evidence::Limit(reached) = &end.stop.evidence else { panic!("{:?}", end.stop) };
        assert_eq!((end.reason().as_str(), reached.ceiling), expected);
    }
    let yaml = DESK.replace("entry_agent: desk", "entry_agent: expert, max_turns: 1");
    let script = || Script::new(["c1", "c2"].map(|id| call(id, "find_order", r#"{"id":7}"#)));
    let limited = || Harness::new(script()).graph(bound(&yaml, &["orders.find"]).unwrap());
    let without_closing = |spec: &mut RunSpec| spec.turn.closing_step = false;

    let report = limited().spec(without_closing).build().unwrap().prompt("go").await.unwrap();
    check(&report.end, ("max_iterations_reached", 1));
    let harness = limited().max_iterations(2).spec(without_closing).build().unwrap();
    check(&harness.prompt("go").await.unwrap().end, ("max_iterations_reached", 2));
}

#[test]
fn a_target_without_a_tool_is_refused() {
    let error = bound(DESK, &[]).unwrap_err();
    assert_eq!(error.kind(), "descriptor.unbound_target");
}

#[test]
fn two_targets_with_one_tool_name_are_refused() {
    let yaml = DESK.replace("tools: { find:", "tools: { again: { target: orders.again }, find:");
    let yaml = yaml.replace("tools: [find]", "tools: [find, again]");
    let error = bound(&yaml, &["orders.find", "orders.again"]).unwrap_err();
    insta::assert_snapshot!(error, @r#"the targets `orders.find` and `orders.again` are both bound to a tool named `find_order`"#);
}

#[tokio::test]
async fn a_context_that_cannot_be_made_is_an_error_before_anything_runs() {
    let yaml = DESK.replace("user.name: { default: nobody }", "user.name: nobody");
    let model = Script::new([AssistantMessage::text("hi")]);
    let error = Harness::new(model).graph(bound(&yaml, &["orders.find"]).unwrap()).build().unwrap_err();
    assert!(matches!(error, HarnessError::Descriptor(_)), "{error}");
}

#[tokio::test]
async fn values_of_a_prompt_that_the_descriptor_does_not_declare_are_refused() {
    let model = Script::new([AssistantMessage::text("hi")]);
    let harness = Harness::new(model).graph(bound(DESK, &["orders.find"]).unwrap()).build().unwrap();
    for values in [r#"{"nothing":1}"#, "[]"] {
        let refused = harness.prompt(Prompt::from("hello").context(Json::parse(values).unwrap())).await;
        assert_eq!(refused.unwrap_err().kind(), "runtime.part");
    }
    assert_eq!(harness.prompt("hello").await.unwrap().answer(), "hi");
}

#[tokio::test]
async fn a_common_tool_is_offered_to_agents_that_list_others() {
    #[derive(serde::Deserialize, schemars::JsonSchema)]
    struct Nothing {}
    let note = tool_fn("note", "Notes it", |_: Nothing, _| async move { Ok::<_, std::io::Error>("noted") });
    let model = Script::new([call("c1", "note", "{}"), AssistantMessage::text("done")]);
    let harness = Harness::new(model.clone())
        .graph(bound(DESK, &["orders.find"]).unwrap())
        .common_tool(Arc::new(note.pure()))
        .build()
        .unwrap();
    let report = harness.prompt(Prompt::from("go").agent("expert")).await.unwrap();
    assert_eq!(report.answer(), "done");
    assert!(model.seen()[1].ends_with("toolResult noted"), "{:?}", model.seen());
}
