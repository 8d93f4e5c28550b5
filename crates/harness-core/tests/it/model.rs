//! Law tests by model: the machine against a small reference of a turn's rules, written from the reference
//! page and not from the machine.

use std::collections::VecDeque;
use std::sync::Arc;

use harness_core::machine::{Machine, Op, Reply, Start};
use harness_core::message::{AssistantMessage, Invalid, Message, ToolCall};
use harness_core::port::PreparedAgent;
use harness_core::testing::{Answer, Ran, ScriptedDriver, ScriptedWorld};
use harness_core::tool::{ToolDef, ToolOutcome};
use harness_core::transcript::Transcript;
use harness_core::turn::{OnToolFailure, TurnSpec, TurnState};
use harness_core::{Json, OpId, Origin, StopReason, Time};
use proptest::prelude::*;

use crate::laws::cases;

use crate::bare::bare;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Call {
    Works,
    Fails,
    Unknown,
}

#[derive(Clone, Debug)]
enum Step {
    Text,
    Ask,
    Refuse,
    Invalid,
    Calls(Vec<Call>),
}

fn step() -> impl Strategy<Value = Step> {
    let call = prop_oneof![4 => Just(Call::Works), 2 => Just(Call::Fails), 1 => Just(Call::Unknown)];
    prop_oneof![
        1 => Just(Step::Text),
        1 => Just(Step::Ask),
        1 => Just(Step::Refuse),
        2 => Just(Step::Invalid),
        8 => prop::collection::vec(call, 1..4).prop_map(Step::Calls),
    ]
}

fn spec() -> impl Strategy<Value = TurnSpec> {
    (0u32..6, 0u32..7, 1u32..4, any::<[bool; 2]>()).prop_map(|(iterations, calls, invalid, flags)| {
        let [ends_on_error, closing] = flags;
        let mut spec = bare();
        (spec.limits.iterations, spec.limits.tool_calls) = (iterations, calls);
        spec.limits.invalid_outputs = invalid;
        spec.longest_cycle = 0;
        spec.on_tool_failure = if ends_on_error { OnToolFailure::EndOnError } else { OnToolFailure::Answer };
        spec.closing_step = closing;
        spec
    })
}

/// What a turn comes to: why it stopped, and what is in the transcript after the prompt.
type Came = (StopReason, Vec<&'static str>);

/// The reference: one turn, straight down.
struct Reference<'a> {
    spec: &'a TurnSpec,
    ran: u32,
    closing: Option<StopReason>,
    log: Vec<&'static str>,
}

impl Reference<'_> {
    fn of(spec: &TurnSpec, steps: &[Step]) -> Came {
        let mut turn = Reference { spec, ran: 0, closing: None, log: Vec::new() };
        let reason = turn.run(steps);
        (reason, turn.log)
    }

    fn run(&mut self, steps: &[Step]) -> StopReason {
        let (most, mut invalid) = (self.spec.limits.iterations, 0);
        for iteration in 1.. {
            if iteration > most {
                return StopReason::MaxIterationsReached;
            }
            if self.spec.closing_step && iteration > 1 && iteration == most {
                self.closing.get_or_insert(StopReason::MaxIterationsReached);
            }
            let at = usize::try_from(iteration - 1).expect("small");
            self.log.push("assistant");
            match steps.get(at).unwrap_or(&Step::Text) {
                Step::Text => return self.closing.unwrap_or(StopReason::AnswerFinalized),
                Step::Ask => return StopReason::ClarificationRequired,
                Step::Refuse => return StopReason::ModelRefused,
                Step::Invalid => {
                    invalid += 1;
                    if invalid >= self.spec.limits.invalid_outputs {
                        return StopReason::ModelInvalidResponse;
                    }
                    self.log.push("user");
                }
                Step::Calls(calls) => match self.batch(calls) {
                    Err(stop) => return stop,
                    Ok(refused) => invalid = if refused { invalid } else { 0 },
                },
            }
        }
        unreachable!("every turn ends")
    }

    /// Runs the calls of one answer; what is left of them after a stop does not run. Whether one was refused.
    fn batch(&mut self, calls: &[Call]) -> Result<bool, StopReason> {
        let unknown =
            calls.contains(&Call::Unknown) && self.spec.on_tool_failure == OnToolFailure::EndOnError;
        let at_once = self.closing.or(unknown.then_some(StopReason::ToolUnavailable));
        let (mut stop, mut refused) = (at_once, false);
        for call in calls {
            self.log.push(match (stop, call) {
                (Some(_), _) => "not_run",
                (None, Call::Unknown) => "unknown_tool",
                (None, _) if self.ran >= self.spec.limits.tool_calls => {
                    refused = true;
                    "not_run"
                }
                (None, Call::Works) => {
                    self.ran += 1;
                    "ok"
                }
                (None, Call::Fails) => {
                    self.ran += 1;
                    if self.spec.on_tool_failure == OnToolFailure::EndOnError {
                        stop = Some(StopReason::ToolErrorUnrecoverable);
                    }
                    "bad"
                }
            });
        }
        match (stop, refused, self.spec.closing_step) {
            (Some(stop), _, _) => Err(stop),
            (None, true, false) => Err(StopReason::MaxToolCallsReached),
            (None, true, true) => {
                self.closing = Some(StopReason::MaxToolCallsReached);
                Ok(true)
            }
            (None, false, _) => Ok(false),
        }
    }
}

/// Plays the steps to the real machine.
struct Script {
    steps: VecDeque<Step>,
    made: u32,
}

impl Script {
    fn answer(&mut self) -> AssistantMessage {
        match self.steps.pop_front().unwrap_or(Step::Text) {
            Step::Text => AssistantMessage::text("done"),
            Step::Ask => AssistantMessage::clarification("which?"),
            Step::Refuse => AssistantMessage::refusal("no"),
            Step::Invalid => AssistantMessage::invalid(&Invalid::new("garbled")),
            Step::Calls(calls) => AssistantMessage::calls(calls.into_iter().map(|call| {
                self.made += 1;
                let name = match call {
                    Call::Works => "works",
                    Call::Fails => "fails",
                    Call::Unknown => "unknown",
                };
                ToolCall::new(format!("c{}", self.made), name, Json::empty_object())
            })),
        }
    }
}

impl ScriptedWorld for Script {
    fn perform(&mut self, _: OpId, op: &Op, _: &Transcript) -> Answer {
        Answer::now(match op {
            Op::Prepare { .. } => {
                let tools = vec![ToolDef::new("works", ""), ToolDef::new("fails", "")];
                Reply::Prepared(Ok(Arc::new(PreparedAgent::new("main", "", tools))))
            }
            Op::Model { .. } => Reply::Model(Ok(Arc::new(self.answer().into()))),
            Op::Tool { call, .. } if call.name == "works" => {
                Reply::Tool(Ok(Arc::new(ToolOutcome::text("fine"))))
            }
            Op::Tool { .. } => Reply::Tool(Ok(Arc::new(ToolOutcome::error("bad", "it failed")))),
            other => unreachable!("nobody is there for {other:?}"),
        })
    }
}

fn real(spec: &TurnSpec, steps: &[Step]) -> Came {
    let machine: Machine<TurnState> =
        Machine::new(Arc::new(spec.clone()), Origin::default(), Transcript::default());
    let script = Script { steps: steps.iter().cloned().collect(), made: 0 };
    let mut driver = ScriptedDriver::new(machine, script, Time(0));
    let Ran::Ended(end) = driver.run(Start::prompt(Message::user("go"))) else { panic!("it does not end") };
    let line = |message: &Arc<Message>| match &**message {
        Message::Assistant(_) => "assistant",
        Message::ToolResult(result) => {
            let outcome = result.outcome.as_ref().map_or("", |outcome| outcome.text());
            let codes = ["not_run", "unknown_tool", "bad"];
            codes.into_iter().find(|code| outcome.contains(code)).unwrap_or("ok")
        }
        _ => "user",
    };
    (end.reason(), driver.machine().log().iter().skip(1).map(line).collect())
}

proptest! {
    #![proptest_config(cases(2_000))]

    #[test]
    fn the_machine_does_what_the_reference_does(
        spec in spec(), steps in prop::collection::vec(step(), 0..8),
    ) {
        prop_assert_eq!(real(&spec, &steps), Reference::of(&spec, &steps));
    }
}
