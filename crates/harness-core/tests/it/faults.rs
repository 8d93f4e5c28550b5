//! Every part fails, hangs or answers garbage at every position, once and from then on; and a turn is
//! cancelled at every point at which it waits.

use std::sync::Arc;

use harness_core::decide::{
    Answered, CheckDecision, CheckVerdict, GateDecision, GateVerdict, Guard, OnError, Points,
};
use harness_core::event::EventKind;
use harness_core::machine::{Machine, Op, PortSet, Reply, Start};
use harness_core::message::{AssistantMessage, Invalid, Message, ToolCall};
use harness_core::port::{Decision, ModelFault, ModelFaultCode, PreparedAgent};
use harness_core::testing::{Answer, Ran, ScriptedDriver, ScriptedWorld};
use harness_core::tool::{RetryClass, ToolDef, ToolOutcome};
use harness_core::transcript::Transcript;
use harness_core::turn::{Execution, TurnSpec, TurnState};
use harness_core::{End, Fault, FaultSource, Json, Millis, OpId, Origin, StopReason, Time};

use crate::laws::check_calls_and_results;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Trouble {
    Fails,
    Hangs,
    Garbage,
}

/// What goes wrong: the n-th operation, and perhaps all of its sort from then on.
#[derive(Clone, Copy, Debug)]
struct Plan {
    at: usize,
    trouble: Trouble,
    lasting: bool,
}

/// A quiet outside, with one thing going wrong.
#[derive(Clone, Default)]
struct Stage {
    plan: Option<Plan>,
    asked: Vec<std::mem::Discriminant<Op>>,
    models: u32,
    /// Calls whose tool answered.
    finished: Vec<String>,
}

fn fault() -> Fault {
    Fault::new(FaultSource::Machine, "broken", "it broke")
}

impl Stage {
    fn troubled(&mut self, op: &Op) -> Option<Trouble> {
        let (n, sort) = (self.asked.len(), std::mem::discriminant(op));
        self.asked.push(sort);
        let plan = self.plan?;
        let again = plan.lasting && n > plan.at && self.asked.get(plan.at) == Some(&sort);
        (n == plan.at || again).then_some(plan.trouble)
    }

    fn model(&mut self) -> AssistantMessage {
        self.models += 1;
        let call = |id: &str, name: &str| ToolCall::new(id, name, Json::empty_object());
        match self.models {
            1 => AssistantMessage::calls([call("a", "look"), call("b", "pay"), call("c", "fail")]),
            2 => AssistantMessage::invalid(&Invalid::new("garbled")),
            3 => AssistantMessage::calls([call("d", "look")]),
            _ => AssistantMessage::text("done"),
        }
    }

    fn well(&mut self, op: &Op) -> Reply {
        match op {
            Op::Prepare { .. } => Reply::Prepared(Ok(Arc::new(PreparedAgent::new("main", "", tools())))),
            Op::Begin { .. } | Op::LayerStore { .. } | Op::Complete { .. } => Reply::Noted(Ok(())),
            Op::Append { messages, .. } => Reply::Appended(Ok(messages.clone())),
            Op::Recall { .. } => Reply::Recalled(Ok(None)),
            Op::Compact { .. } => Reply::Compacted(Ok(Box::default())),
            Op::Model { .. } => Reply::Model(Ok(Arc::new(self.model().into()))),
            Op::AfterModel { .. } => Reply::AfterModel(Ok(None)),
            Op::Arguments { .. } => Reply::Arguments(Ok(())),
            Op::Gate { .. } => Reply::Gate(Box::new(GateDecision::from(GateVerdict::Allow).into())),
            Op::Approve { .. } => Reply::Approval(Decision::Granted),
            Op::Tool { call, .. } => {
                self.finished.push(call.id.to_string());
                let failed = call.name == "fail";
                let outcome =
                    if failed { ToolOutcome::error("bad", "no") } else { ToolOutcome::text("fine") };
                Reply::Tool(Ok(Arc::new(outcome)))
            }
            Op::Check { .. } => Reply::Check(Box::new(CheckDecision::from(CheckVerdict::Accept).into())),
            Op::Drain { .. } => Reply::Drained(Vec::new()),
            other => unreachable!("nobody is there for {other:?}"),
        }
    }

    fn failing(op: &Op) -> Reply {
        match op {
            Op::Prepare { .. } => Reply::Prepared(Err(fault())),
            Op::Begin { .. } | Op::LayerStore { .. } | Op::Complete { .. } => Reply::Noted(Err(fault())),
            Op::Append { .. } => Reply::Appended(Err(fault())),
            Op::Recall { .. } => Reply::Recalled(Err(fault())),
            Op::Compact { .. } => Reply::Compacted(Err(fault())),
            Op::Model { .. } => Reply::Model(Err(Box::new(ModelFault::new(ModelFaultCode::Network, "gone")))),
            Op::AfterModel { .. } => Reply::AfterModel(Err(fault())),
            Op::Gate { .. } => Reply::Gate(Box::new(Answered { answer: Err(fault()), took: Millis(0) })),
            Op::Approve { .. } => Reply::Approval(Decision::Denied { reason: "it failed".into() }),
            Op::Tool { .. } => Reply::Tool(Err(fault())),
            Op::Check { .. } => Reply::Check(Box::new(Answered { answer: Err(fault()), took: Millis(0) })),
            _ => Reply::Interrupted { partial: None },
        }
    }
}

impl ScriptedWorld for Stage {
    fn perform(&mut self, _: OpId, op: &Op, _: &Transcript) -> Answer {
        match self.troubled(op) {
            None => Answer::now(self.well(op)),
            Some(Trouble::Fails) => Answer::now(Self::failing(op)),
            Some(Trouble::Hangs) => Answer::Open,
            Some(Trouble::Garbage) if matches!(op, Op::Drain { .. }) => {
                Answer::now(Reply::Recalled(Ok(None)))
            }
            Some(Trouble::Garbage) => Answer::now(Reply::Drained(Vec::new())),
        }
    }
}

fn tools() -> Vec<ToolDef> {
    let mut pay = ToolDef::new("pay", "");
    pay.requires_approval = true;
    vec![ToolDef::new("look", "").with_class(RetryClass::Pure), pay, ToolDef::new("fail", "")]
}

fn spec(execution: Execution) -> TurnSpec {
    let mut spec = TurnSpec { execution, ..TurnSpec::default() };
    spec.limits.elapsed = Some(Millis(10_000));
    spec
}

fn ports() -> PortSet {
    let mut ports = PortSet::default();
    ports.gates = vec![Guard::new("policy", Points::CALL)];
    let mut looks = Guard::new("looks", Points::RESULT.and(Points::INVALID));
    looks.on_error = OnError::Lenient;
    ports.checks = vec![looks];
    (ports.approver, ports.layers) = (true, Some(Millis(30_000)));
    (ports.compactor, ports.steering) = (true, true);
    ports
}

type Driver = ScriptedDriver<TurnState, Stage>;

fn driver(execution: Execution, stage: Stage, log: Transcript) -> Driver {
    let machine: Machine<TurnState> = Machine::new(Arc::new(spec(execution)), Origin::default(), log);
    ScriptedDriver::new(machine.with_ports(ports()), stage, Time(0))
}

fn begin() -> Start {
    Start::prompt(Message::user("go"))
}

/// The turn is over, lawfully, and every result that a tool gave is in the transcript.
#[track_caller]
fn check(driver: &Driver, ran: &Ran, what: &str) -> Arc<End> {
    let Ran::Ended(end) = ran else { panic!("{what}: {ran:?}") };
    check_calls_and_results(driver.machine().log().iter(), false);
    let log = driver.machine().log();
    for id in &driver.outside().finished {
        let result = log.iter().filter_map(|message| message.as_tool_result());
        let kept = result.filter(|result| result.tool_call_id == id.as_str()).any(|result| {
            let outcome = result.outcome.as_ref().map_or("", |outcome| outcome.text());
            !outcome.contains("not_run") && !outcome.contains("interrupted")
        });
        assert!(kept, "{what}: the result of `{id}` is lost");
    }
    let told = driver.events().iter().filter(|e| matches!(e.kind, EventKind::TurnFinished { .. })).count();
    assert_eq!(told, 1, "{what}");
    Arc::clone(end)
}

const EXECUTIONS: [Execution; 2] = [Execution::Sequential, Execution::Parallel { max: 4 }];

fn quiet(execution: Execution) -> usize {
    let mut driver = driver(execution, Stage::default(), Transcript::default());
    let ran = driver.run(begin());
    let end = check(&driver, &ran, "quiet");
    assert_eq!(end.reason(), StopReason::AnswerFinalized);
    driver.outside().asked.len()
}

#[test]
fn whatever_fails_wherever_the_turn_ends_lawfully_and_keeps_what_is_finished() {
    for execution in EXECUTIONS {
        let asked = quiet(execution);
        assert!(asked > 40, "{asked} operations");
        for at in 0..asked {
            for trouble in [Trouble::Fails, Trouble::Hangs, Trouble::Garbage] {
                for lasting in [false, true] {
                    let plan = Plan { at, trouble, lasting };
                    let stage = Stage { plan: Some(plan), ..Stage::default() };
                    let mut driver = driver(execution, stage, Transcript::default());
                    let ran = driver.run(begin());
                    let end = check(&driver, &ran, &format!("{execution:?} {plan:?}"));
                    if trouble == Trouble::Hangs {
                        assert!(end.elapsed <= Millis(10_000), "{plan:?}: {}", end.elapsed);
                    }
                }
            }
        }
    }
}

#[test]
fn law_8_a_cancellation_at_every_await_point_keeps_what_is_finished_and_the_next_prompt_works() {
    for execution in EXECUTIONS {
        for at in 0..quiet(execution) {
            let plan = Plan { at, trouble: Trouble::Hangs, lasting: false };
            let stage = Stage { plan: Some(plan), ..Stage::default() };
            let mut first = driver(execution, stage, Transcript::default());
            first.input(harness_core::machine::Input::Start(Box::new(begin())));
            assert_eq!(first.settle(), Ran::Waiting, "{plan:?}");
            first.input(harness_core::machine::Input::Cancel { by: Arc::from("test") });
            let ran = first.proceed();
            let end = check(&first, &ran, &format!("{execution:?} {plan:?}"));
            let finished = first.events().iter().any(|e| {
                matches!(&e.kind, EventKind::TurnFinished { end } if end.reason() == StopReason::AnswerFinalized)
            });
            let expected = if finished { StopReason::AnswerFinalized } else { StopReason::Cancelled };
            assert_eq!((end.reason(), end.elapsed), (expected, Millis(0)), "{plan:?}");

            let log: Transcript = first.machine().log().iter().cloned().collect();
            let stage = Stage { models: 3, ..Stage::default() };
            let mut next = driver(execution, stage, log);
            let ran = next.run(begin());
            assert_eq!(check(&next, &ran, "next").reason(), StopReason::AnswerFinalized, "{plan:?}");
        }
    }
}
