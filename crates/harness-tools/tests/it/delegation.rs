//! Calls that hand their work to a child elsewhere.

use std::sync::Arc;

use harness_core::driver::{ChildRun, Ports};
use harness_core::limits::{Amount, Grant};
use harness_core::message::ToolCall;
use harness_core::testing::{ModelStep, ScriptedModel, VirtualClock};
use harness_core::tool::{Child, ChildFuture, Children, DynTool, DynToolRegistry, Timed, Tool as _, Toolbox};
use harness_core::{Json, Millis, Origin, ParentCall, Time};
use harness_tools::{
    Combined, DuplicateGuard, DuplicateOptions, RunnerSlot, Source, Subagent, SubagentTool, ToolSet,
    TurnRunner, Validated,
};
use parking_lot::Mutex;

use crate::support::{block_on, cx, told};

const ASK: &str = r#"{"description":"go","subagent_type":"scout"}"#;

fn runner() -> TurnRunner {
    let clock = VirtualClock::frozen(Time(70_000));
    TurnRunner::new(&Ports::new(Arc::new(ScriptedModel::new(Vec::<ModelStep>::new())), Arc::new(clock)))
}

fn tool() -> SubagentTool {
    let scout = Subagent::new("scout", "looks", "You look around.");
    SubagentTool::new([scout], Arc::new(runner())).unwrap()
}

fn call(arguments: &str) -> ToolCall {
    ToolCall::new("c1", "task", Json::parse(arguments).unwrap())
}

#[track_caller]
fn check(arguments: &str, origin: &Origin, expected: bool) {
    assert_eq!(tool().delegates(&call(arguments), origin), expected);
}

#[test]
fn a_call_delegates_if_a_sub_agent_would_run() {
    let origin = Origin::default();
    check(ASK, &origin, true);
    check(r#"{"description":"go","subagent_type":"ghost"}"#, &origin, false);
    check(r#"{"subagent_type":"scout"}"#, &origin, false);
    check(ASK, &origin.child(ParentCall::new("c0", "main", &origin)), false);
}

#[test]
fn a_call_delegates_if_its_runner_does() {
    let slot = RunnerSlot::new();
    let scout = Subagent::new("scout", "looks", "You look around.");
    let tool = SubagentTool::new([scout], Arc::new(slot.clone())).unwrap();
    let delegates = || tool.delegates(&call(ASK), &Origin::default());
    assert!(!delegates());
    slot.fill(Arc::new(runner()));
    assert!(delegates());
}

#[test]
fn a_registry_answers_for_its_tools_and_one_with_a_state_of_its_own_does_not() {
    let clock = Arc::new(VirtualClock::frozen(Time(0)));
    let toolbox = |tool: Arc<dyn DynTool>| Arc::new(Toolbox::new([tool])) as Arc<dyn DynToolRegistry>;
    let plain = || toolbox(Arc::new(tool()));
    let registries: [(&str, Arc<dyn DynToolRegistry>, bool); 6] = [
        ("toolbox", plain(), true),
        ("tool set", Arc::new(ToolSet::new([Arc::new(tool()) as Arc<dyn DynTool>])), true),
        ("combined", Arc::new(Combined::new(Toolbox::default(), [Source::new("", plain())])), true),
        ("validated", toolbox(Arc::new(Validated::new(tool()).unwrap())), true),
        ("with a time limit", toolbox(Arc::new(Timed::new(Arc::new(tool()), Millis(5), clock))), false),
        ("that remembers calls", Arc::new(DuplicateGuard::new(plain(), DuplicateOptions::default())), false),
    ];
    for (name, registry, expected) in registries {
        assert_eq!(registry.delegates_dyn(&call(ASK), &Origin::default()), expected, "{name}");
    }
}

/// Notes the child, and gives it no end.
#[derive(Debug)]
struct Elsewhere(Mutex<Option<ChildRun>>);

impl Children for Elsewhere {
    fn started(&self) -> Time {
        Time(50_000)
    }

    fn run(&self, child: Child) -> ChildFuture {
        *self.0.lock() = ChildRun::of(child);
        Box::pin(std::future::ready(Err("it was removed".to_owned())))
    }
}

#[test]
fn the_child_has_the_limits_of_the_call_from_its_start_on() {
    let elsewhere = Arc::new(Elsewhere(Mutex::default()));
    let mut cx = cx(ASK);
    let mut grant = Amount::NONE;
    (grant.iterations, grant.tokens) = (3, 900);
    (cx.grant, cx.deadline) = (Grant(grant), Some(Time(60_000)));
    cx.children = Some(Arc::clone(&elsewhere) as _);
    let answer = told(&block_on(tool().call(cx)));
    assert!(answer.contains(r#""message": "it was removed""#), "{answer}");
    let child = elsewhere.0.lock().take().unwrap();
    let limits = &child.spec.turn.limits;
    assert_eq!((limits.iterations, limits.tokens, limits.elapsed), (3, 900, Some(Millis(10_000))));
    assert_eq!((child.prompt.joined_text().as_str(), child.origin.depth()), ("go", 1));
}
