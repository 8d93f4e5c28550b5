//! Law 3 in numbers: of what is limited to n, exactly n happen, for 0, 1, n and n + 1 wanted.

use std::sync::Arc;

use harness_core::machine::{Op, Reply, Start};
use harness_core::message::{AssistantMessage, Message, ToolCall};
use harness_core::port::PreparedAgent;
use harness_core::testing::{Answer, Ran, ScriptedDriver, ScriptedWorld};
use harness_core::tool::{ToolDef, ToolOutcome};
use harness_core::transcript::Transcript;
use harness_core::turn::{Turn, TurnSpec};
use harness_core::{Json, OpId, Origin, StopReason, Time};

use crate::bare::bare;

/// Wants one call per step, `wanted` times, and answers then.
#[derive(Default)]
struct Wants {
    wanted: u32,
    asked: u32,
    executed: u32,
}

impl ScriptedWorld for Wants {
    fn perform(&mut self, _: OpId, op: &Op, _: &Transcript) -> Answer {
        Answer::now(match op {
            Op::Prepare { .. } => {
                Reply::Prepared(Ok(Arc::new(PreparedAgent::new("main", "", [ToolDef::new("add", "")]))))
            }
            Op::Model { .. } => {
                self.asked += 1;
                let call = ToolCall::new(format!("c{}", self.asked), "add", Json::empty_object());
                let done = self.asked > self.wanted;
                let message =
                    if done { AssistantMessage::text("done") } else { AssistantMessage::calls([call]) };
                Reply::Model(Ok(Arc::new(message.into())))
            }
            _ => {
                self.executed += 1;
                Reply::Tool(Ok(Arc::new(ToolOutcome::text("4"))))
            }
        })
    }
}

/// The model requests and executions of a turn that wants `wanted` calls, and why it ended.
fn run(spec: &TurnSpec, wanted: u32) -> (u32, u32, StopReason) {
    let machine = Turn::new(Arc::new(spec.clone()), Origin::default(), Transcript::default());
    let mut driver = ScriptedDriver::new(machine, Wants { wanted, ..Wants::default() }, Time(1));
    let Ran::Ended(end) = driver.run(Start::prompt(Message::user("go"))) else { panic!("it does not end") };
    (driver.outside().asked, driver.outside().executed, end.reason())
}

fn spec(iterations: u32, calls: u32) -> TurnSpec {
    let mut spec = bare();
    (spec.limits.iterations, spec.limits.tool_calls) = (iterations, calls);
    spec.longest_cycle = 0;
    spec
}

#[test]
fn law_3_exactly_n_iterations_happen() {
    for n in 0..=6 {
        let spec = spec(n, 100);
        assert_eq!(run(&spec, 100), (n, n, StopReason::MaxIterationsReached), "of {n}");
        if n > 0 {
            assert_eq!(
                run(&spec, n - 1),
                (n, n - 1, StopReason::AnswerFinalized),
                "the last of {n} may answer"
            );
        }
    }
}

#[test]
fn law_3_exactly_n_calls_happen() {
    for n in 0..=6 {
        let spec = spec(100, n);
        assert_eq!(run(&spec, n), (n + 1, n, StopReason::AnswerFinalized), "{n} of {n}");
        assert_eq!(run(&spec, n + 1), (n + 1, n, StopReason::MaxToolCallsReached), "one more than {n}");
    }
}
