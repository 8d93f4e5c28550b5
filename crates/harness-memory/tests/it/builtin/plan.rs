//! Plan mode.

use std::sync::Arc;

use harness_core::port::BoxFuture;
use harness_core::tool::{RetryClass, ToolDef};
use harness_memory::MemoryError;
use harness_memory::builtin::LayerProbe;
use harness_memory::builtin::plan::{Plan, PlanHost, PlanOptions, PlanState};
use harness_memory::layer::{Decision, Ending, LayerCx};

use super::{json, probe, run, shown, state};

/// What a function says.
fn says(plan: &mut LayerProbe<Plan>, function: &str, arguments: &str) -> String {
    run(plan.call(function, json(arguments))).expect("an answer").to().expect("a text")
}

#[track_caller]
fn check(plan: &mut LayerProbe<Plan>, function: &str, arguments: &str, expected: &str) {
    assert_eq!(says(plan, function, arguments), expected);
}

/// A plan with text and steps.
fn complete_plan() -> LayerProbe<Plan> {
    let mut plan = probe(Plan::default());
    says(&mut plan, "enterPlanMode", r#"{"goal":"Ship </plan_prd>"}"#);
    says(
        &mut plan,
        "setPlanTree",
        r#"{"document":{"kind":"run","name":"main","children":[{"kind":"workflow","workflow":"build"}]}}"#,
    );
    says(&mut plan, "setWorkflow", r#"{"name":"build","document":"{\"kind\":\"tool\",\"name\":\"make\"}"}"#);
    plan
}

#[test]
fn a_plan_is_made_approved_carried_out_and_ends() {
    let mut plan = complete_plan();
    insta::assert_snapshot!(shown(&mut plan, 3_000), @r#"
    <plan_mode>
    Plan mode is on: change nothing, read, ask and plan only. Tools that may change something are denied, except: enterPlanMode, updatePrd, setPlanTree, setWorkflow, removeWorkflow, getWorkflow, exitPlanMode.
    Work in phases: first understand the request and the current state, then decide how to do it, then write the plan down.
    Write what is wanted with updatePrd, the steps with setPlanTree and setWorkflow, and then call exitPlanMode with action "execute", which asks for approval, or "cancel".
    </plan_mode>
    <plan_prd>
    # Goal

    Ship <\/plan_prd>
    </plan_prd>
    <plan_tree>
    {
      "kind": "run",
      "name": "main",
      "children": [
        {
          "kind": "workflow",
          "workflow": "build"
        }
      ]
    }
    </plan_tree>
    <plan_workflows>
    build: {"kind":"tool","name":"make"}
    </plan_workflows>
    "#);
    check(&mut plan, "exitPlanMode", r#"{"action":"execute"}"#, "Plan v1 approved. Carry it out.");
    assert!(shown(&mut plan, 3_000).starts_with("<plan>\nPlan v1 was approved."));
    check(
        &mut plan,
        "updatePrd",
        r#"{"content":"x"}"#,
        "Refused: the plan is executing, not in planning. Call enterPlanMode first.",
    );
    check(&mut plan, "getWorkflow", r#"{"name":"build"}"#, r#"{"kind":"tool","name":"make"}"#);

    run(plan.complete(Ending::Paused)).unwrap();
    assert!(shown(&mut plan, 3_000).starts_with("<plan>"), "a pause is no end");
    run(plan.complete(Ending::Aborted)).unwrap();
    assert_eq!(shown(&mut plan, 3_000), "<plan_outcome>Plan v1 failed.</plan_outcome>");
    check(&mut plan, "enterPlanMode", "{}", "Plan mode entered. Plan v2.");
    assert_eq!(
        state(&plan),
        r#"{"phase":"planning","prd":null,"planTree":null,"workflows":[],"executionLog":[],"version":2}"#
    );
    check(&mut plan, "exitPlanMode", r#"{"action":"cancel"}"#, "Plan cancelled.");
    assert_eq!(shown(&mut plan, 3_000), "");
}

#[test]
fn nothing_but_reading_and_planning_is_allowed_meanwhile() {
    let mut options = PlanOptions::default();
    options.additional_allowed_tools = vec!["comment".into()];
    options.sub_agent_tool = Some("task".into());
    let mut plan = probe(Plan::new(options));
    let allows = |plan: &mut LayerProbe<Plan>, tool: &str| {
        let (name, class) = match tool.strip_prefix("pure ") {
            Some(name) => (name, RetryClass::Pure),
            None => (tool, RetryClass::Unsafe),
        };
        run(plan.before_tool(ToolDef::new(name, "").with_class(class), json("{}"))).unwrap()
            == Decision::Allow
    };
    assert!(allows(&mut plan, "shell"));
    says(&mut plan, "enterPlanMode", "{}");
    for tool in ["pure read", "comment", "task"] {
        assert!(allows(&mut plan, tool), "{tool}");
    }
    for tool in ["shell", "read", "Read"] {
        assert!(!allows(&mut plan, tool), "{tool}");
    }
}

#[test]
fn execution_demands_text_tree_known_workflows_and_no_cycle_in_this_order() {
    let mut plan = probe(Plan::default());
    let execute = r#"{"action":"execute"}"#;
    check(
        &mut plan,
        "exitPlanMode",
        execute,
        "Refused: the plan is idle, not in planning. Call enterPlanMode first.",
    );
    says(&mut plan, "enterPlanMode", "{}");
    check(&mut plan, "enterPlanMode", "{}", "Refused: a plan is planning already.");
    check(&mut plan, "exitPlanMode", execute, "Cannot execute: the PRD is missing. Write it with updatePrd.");
    says(&mut plan, "updatePrd", r##"{"content":"# Ship"}"##);
    check(
        &mut plan,
        "exitPlanMode",
        execute,
        "Cannot execute: the plan tree is missing. Write it with setPlanTree.",
    );
    says(&mut plan, "setPlanTree", r#"{"document":{"kind":"workflow","workflow":"a"}}"#);
    let unknown =
        "Cannot execute: workflow \"a\" is referred to and not defined. Define it with setWorkflow.";
    check(&mut plan, "exitPlanMode", execute, unknown);
    says(&mut plan, "setWorkflow", r#"{"name":"a","document":{"kind":"workflow","workflow":"b"}}"#);
    says(
        &mut plan,
        "setWorkflow",
        r#"{"name":"b","document":{"steps":[{"kind":"workflow","workflow":"a"}]}}"#,
    );
    let cycle = "Cannot execute: workflow \"a\" refers to itself, directly or by others.";
    check(&mut plan, "exitPlanMode", execute, cycle);
    says(&mut plan, "setWorkflow", r#"{"name":"b","document":{"kind":"tool"}}"#);
    check(&mut plan, "exitPlanMode", execute, "Plan v1 approved. Carry it out.");
}

/// Names each plan, and approves those with a text that says so.
struct Host;

impl PlanHost for Host {
    fn enter<'a>(&'a self, _: &'a LayerCx) -> BoxFuture<'a, Result<Option<String>, MemoryError>> {
        Box::pin(async { Ok(Some("brave-otter".into())) })
    }

    fn approve<'a>(
        &'a self,
        plan: &'a PlanState,
        _: &'a LayerCx,
    ) -> BoxFuture<'a, Result<bool, MemoryError>> {
        Box::pin(async { Ok(plan.prd.as_ref().is_some_and(|prd| prd.contains("please"))) })
    }
}

#[test]
fn a_host_names_and_approves_plans() {
    let mut plan = probe(Plan::default().with_host(Arc::new(Host)));
    says(&mut plan, "enterPlanMode", r#"{"goal":"Ship"}"#);
    assert!(state(&plan).contains(r#""planSlug":"brave-otter""#));
    says(&mut plan, "setPlanTree", r#"{"document":{"kind":"run"}}"#);
    let refused = "The plan was not approved. Ask what to change, and continue planning.";
    check(&mut plan, "exitPlanMode", r#"{"action":"execute"}"#, refused);
    says(&mut plan, "updatePrd", r#"{"content":"Ship, please"}"#);
    check(&mut plan, "exitPlanMode", r#"{"action":"execute"}"#, "Plan v1 approved. Carry it out.");
}

#[test]
fn documents_are_checked_and_bounded() {
    let mut options = PlanOptions::default();
    options.max_workflows = 1;
    options.max_workflow_chars = 200;
    options.max_prd_length = 5;
    options.max_depth = 2;
    let mut plan = probe(Plan::new(options));
    says(&mut plan, "enterPlanMode", "{}");
    let mut refused = |function: &str, arguments: &str| {
        let before = state(&plan);
        let said = says(&mut plan, function, arguments);
        assert_eq!(state(&plan), before);
        said
    };
    assert_eq!(
        refused("updatePrd", r#"{"content":"123456"}"#),
        "Refused: the PRD has 6 characters; 5 are the most."
    );
    assert_eq!(refused("setPlanTree", r#"{"document":[1]}"#), "Refused: The document must be a JSON object.");
    assert!(refused("setPlanTree", r#"{"document":"{"}"#).starts_with("Refused: The document is not JSON: "));
    let deep = r#"{"document":{"kind":"run","x":{"kind":"run","y":[{"kind":"run"}]}}}"#;
    assert_eq!(refused("setPlanTree", deep), "Refused: Nodes are nested more than 2 deep.");
    assert_eq!(
        refused("setPlanTree", r#"{"document":{"kind":"magic"}}"#),
        "Refused: Node kind \"magic\" is not allowed. Allowed: run, model, tool, branch, parallel, loop, spawn, workflow.",
    );
    let long = format!(r#"{{"document":{{"kind":"run","text":"{}"}}}}"#, "x".repeat(200));
    assert_eq!(refused("setPlanTree", &long), "Refused: The document has 224 characters; 200 are the most.");
    for name in ["", "A", "-a", "a b", &"a".repeat(65)] {
        let arguments = format!(r#"{{"name":"{name}","document":{{}}}}"#);
        assert!(refused("setWorkflow", &arguments).contains("is not a name of a workflow"), "{name}");
    }
    assert_eq!(refused("removeWorkflow", r#"{"name":"a"}"#), "There is no workflow a.");
    check(&mut plan, "setWorkflow", r#"{"name":"a","document":{}}"#, "Workflow a set.");
    check(
        &mut plan,
        "setWorkflow",
        r#"{"name":"b","document":{}}"#,
        "Refused: a plan has 1 workflows at most.",
    );
    check(&mut plan, "removeWorkflow", r#"{"name":"a"}"#, "Workflow a removed.");
}

#[test]
fn a_plan_over_its_budget_loses_its_largest_part_first_and_its_rules_never() {
    let mut plan = complete_plan();
    says(&mut plan, "updatePrd", &format!(r#"{{"content":"{}"}}"#, "word ".repeat(1_000)));
    let whole = shown(&mut plan, 3_000);
    let cut = shown(&mut plan, 500);
    assert_eq!(cut.len(), 2_000);
    assert!(whole.len() > 5_000 && cut.contains("[cut off]\n</plan_prd>"), "{cut}");
    assert!(cut.contains("<plan_tree>") && cut.contains("<plan_workflows>"));

    let rules = shown(&mut plan, 220);
    assert!(rules.starts_with("<plan_mode>") && !rules.contains("<plan_prd>"), "{rules}");
    let short = "<plan_mode>Plan mode is on. Change nothing: read, ask and plan only. Leave it with exitPlanMode.</plan_mode>";
    assert_eq!(shown(&mut plan, 50), short);
    assert_eq!(shown(&mut plan, 5), "");
}
