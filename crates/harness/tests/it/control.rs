//! Runs that go on until the work is done, through the facade.

use std::sync::Arc;

use harness::control::contract::{CoverageStatus, PredicateKind, TaskContract, TextField};
use harness::control::{ControlSpec, GateJudgement, SignalSpec, StallSpec};
use harness::core::Outcome;
use harness::core::outcome::StopMode;
use harness::core::port::DynModel;
use harness::core::testing::ScriptedModel;
use harness::core::tool::DynTool;
use harness::descriptor::load_text;
use harness::host::{MemoryWorkspace, WorkspaceFile};
use harness::prelude::*;
use harness::{BoundGraph, Builder, HarnessError};

use crate::support::call;

#[derive(serde::Deserialize, schemars::JsonSchema)]
struct Nothing {}

fn tool(name: &str) -> Arc<dyn DynTool> {
    Arc::new(tool_fn(name, "A tool", |_: Nothing, _| async { Ok::<_, std::io::Error>("done") }))
}

fn model() -> ScriptedModel {
    ScriptedModel::new([AssistantMessage::text("hi")])
}

/// The names of the tools that the first request offers.
async fn offered(build: impl FnOnce(Builder) -> Builder) -> Vec<String> {
    let model = Arc::new(model());
    let mut builder = build(Harness::new(Arc::clone(&model) as Arc<dyn DynModel>));
    // One turn is enough to see them.
    builder = builder.spec(|spec| spec.limits.turns = 1);
    builder.build().unwrap().prompt("hello").await.unwrap();
    let requests = model.requests();
    let first = requests.first().into_iter();
    first.flat_map(|request| request.prepared.tools.iter()).map(|def| def.name.to_string()).collect()
}

const WORK: [&str; 6] = [
    "work_item_add",
    "work_item_update",
    "work_item_list",
    "work_item_get",
    "work_item_set_artifact",
    "work_item_flag_revision",
];

#[tokio::test]
async fn control_brings_the_tools_that_it_needs() {
    let without = offered(|builder| builder.shared_tool(tool("look"))).await;
    assert_eq!(without, ["look"]);
    let with = offered(|builder| builder.shared_tool(tool("look")).work_items()).await;
    assert_eq!(with.first().map(String::as_str), Some("look"));
    assert!(with.iter().any(|name| name == "work_complete"), "{with:?}");
    assert!(WORK.iter().all(|name| with.iter().any(|offered| offered == name)), "{with:?}");
}

#[tokio::test]
async fn a_tool_that_is_given_stays_the_only_one_of_its_name() {
    let offered = offered(|builder| builder.shared_tool(tool("work_item_add")).work_items()).await;
    assert_eq!(offered.iter().filter(|name| *name == "work_item_add").count(), 1);
}

#[tokio::test]
async fn agents_of_a_descriptor_get_them_beside_their_own() {
    let descriptor = load_text(
        "
runtime: { entry_agent: desk }
run: { work_items: true, limits: { turns: 1 } }
tools: { look: { target: look } }
agents: { desk: { model: small, tools: [look] } }
",
    );
    let bound = BoundGraph::bind(&descriptor.unwrap(), [("look", tool("look"))]).unwrap();
    let offered = offered(|builder| builder.graph(bound)).await;
    assert!(offered.iter().any(|name| name == "look"), "{offered:?}");
    assert!(WORK.iter().all(|name| offered.iter().any(|offered| offered == name)), "{offered:?}");
}

#[tokio::test]
async fn a_run_goes_on_until_its_contract_is_met() {
    let signal = |id: &str| call(id, "work_complete", r#"{"summary":"written"}"#);
    let model = Arc::new(ScriptedModel::new([
        signal("w1"),
        AssistantMessage::text("the summary is in /summary.md"),
        signal("w2"),
    ]));
    let contract = TaskContract::new("c", "a summary")
        .require(
            "R1",
            "the answer names it",
            PredicateKind::ContainsText { pattern: "summary".to_owned(), field: TextField::AnyResponse },
        )
        .require("R2", "it is there", PredicateKind::FileExists { path: "summary.md".to_owned() })
        .require("R3", "it was proofread", PredicateKind::Custom { check: Some("proof".to_owned()) });
    let files = MemoryWorkspace::new([WorkspaceFile::text("/summary.md", "# Summary")]);
    let harness = Harness::new(Arc::clone(&model) as Arc<dyn DynModel>)
        .contract(contract)
        .contract_files(Arc::new(files))
        .contract_check("proof", || async { Ok("read twice".to_owned()) })
        .build()
        .unwrap();
    let report = harness.prompt("write a summary").await.unwrap();
    assert_eq!((report.outcome(), report.end.turns), (Outcome::Completed, 3));
    let gates: Vec<_> = report.gates().iter().map(|gate| (gate.gate.as_str(), gate.judgement)).collect();
    assert!(gates.contains(&("contract", GateJudgement::Accepted)), "{gates:?}");
    let coverage = report.control().unwrap().coverage.as_ref().unwrap();
    assert!(["R1", "R2", "R3"].iter().all(|id| coverage.status(id) == CoverageStatus::Met), "{coverage:?}");
    assert!(report.deliverables().is_empty());
}

#[track_caller]
fn check_refused(build: impl FnOnce(Builder) -> Builder, expected: &[&str]) {
    let faults = match build(Harness::new(model())).build() {
        Err(HarnessError::Setup(faults)) => faults.iter().map(ToString::to_string).collect(),
        Err(other) => vec![other.to_string()],
        Ok(_) => Vec::new(),
    };
    assert_eq!(faults, expected);
}

#[test]
fn a_strict_run_needs_every_check_that_its_contract_names() {
    let contract = || {
        let custom = PredicateKind::Custom { check: Some("tests".to_owned()) };
        TaskContract::new("c", "a").require("R1", "b", custom)
    };
    let missing =
        "required output `R1` names the check `tests`, which was not given; give it with `contract_check`";
    let strict = |builder: Builder| builder.stop_mode(StopMode::StrictAutomation).contract(contract());
    check_refused(strict, &[missing]);
    check_refused(
        |builder| strict(builder).contract_check("tests", || async { Ok("all passed".to_owned()) }),
        &[],
    );
    check_refused(|builder| builder.contract(contract()), &[]);
}

#[test]
fn settings_of_control_are_checked() {
    check_refused(
        |builder| builder.control(ControlSpec::default().with_stall(StallSpec::after(1))),
        &["invalid `stall.threshold` 1: expected at least 2"],
    );
    let mut signal = SignalSpec::default();
    signal.tool = "finish".into();
    let control = ControlSpec::default().with_signal(signal);
    check_refused(
        |builder| builder.control(control.clone()),
        &["the completion signal is the tool `finish`, which was not given"],
    );
    check_refused(|builder| builder.control(control.clone()).shared_tool(tool("finish")), &[]);
}
