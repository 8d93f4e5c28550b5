//! A random outside for machines: every decision comes from a list of dice, so that a failure shrinks
//! and repeats.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use harness_core::decide::{
    Answered, CheckDecision, CheckVerdict, GateDecision, GateVerdict, Guard, OnError, Points, Subject,
};
use harness_core::limits::Limits;
use harness_core::machine::{Input, Machine, Op, Phase, PortSet, Record, Reply, Start};
use harness_core::message::{
    ApprovalRequest, AssistantMessage, Cost, FinishReason, Invalid, Message, ToolCall, Usage, UserMessage,
};
use harness_core::outcome::{AskReason, Question};
use harness_core::port::{
    CompactReason, Compaction, CompactionNote, Decision, ModelFault, ModelFaultCode, Overflow, Prepared,
    PreparedAgent,
};
use harness_core::testing::{Answer, Ran, ScriptedDriver, ScriptedWorld, event_line};
use harness_core::tool::{ArgumentFault, RetryClass, ToolDef, ToolOutcome};
use harness_core::transcript::{Plan, Span, Transcript, View};
use harness_core::turn::{Execution, OnToolFailure, RetryPolicy, TurnSpec, TurnState};
use harness_core::{CallId, EntryId, Fault, FaultSource, Json, Millis, OpId, Origin, Time, ToolName};
use proptest::prelude::*;

pub(crate) const BEGIN: Time = Time(1_000_000);

/// A whole random scenario.
#[derive(Clone, Debug)]
pub(crate) struct Case {
    pub(crate) spec: TurnSpec,
    pub(crate) ports: PortSet,
    pub(crate) dice: Vec<u16>,
    pub(crate) inputs: Vec<(u64, External)>,
    pub(crate) grace: u64,
    pub(crate) echo: bool,
    pub(crate) repeated_ids: bool,
    /// How long a store takes; `None` when it answers before anything else happens.
    pub(crate) store_takes: Option<u64>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum External {
    Cancel,
    /// The time has come, although nothing asked for it.
    Wake,
}

fn failure() -> impl Strategy<Value = OnToolFailure> {
    use OnToolFailure::{Answer, EndOnError, EndOnFault};
    prop_oneof![Just(Answer), Just(EndOnFault), Just(EndOnError)]
}

fn limits() -> impl Strategy<Value = Limits> {
    let elapsed = prop_oneof![Just(None), (1u64..200).prop_map(|ms| Some(Millis(ms)))];
    let tokens = prop_oneof![3 => Just(u64::MAX), 1 => 0u64..300];
    let cost = prop_oneof![3 => Just(u64::MAX), 1 => 0u64..30];
    (0u32..6, 0u32..7, elapsed, tokens, cost, 1u32..4).prop_map(
        |(iterations, tool_calls, elapsed, tokens, cost, invalid)| {
            let mut limits = Limits::default();
            limits.iterations = iterations;
            limits.tool_calls = tool_calls;
            limits.elapsed = elapsed;
            limits.tokens = tokens;
            limits.cost = Cost(cost);
            limits.invalid_outputs = invalid;
            limits
        },
    )
}

/// Every setting of a turn.
pub(crate) fn spec() -> impl Strategy<Value = TurnSpec> {
    let execution =
        prop_oneof![Just(Execution::Sequential), (1u32..5).prop_map(|max| Execution::Parallel { max })];
    let cycle = prop_oneof![Just(0), Just(1), Just(4)];
    let waits = prop::collection::vec(prop_oneof![Just(0u64), 1u64..40], 1..3);
    let retry = (0u32..3, waits).prop_map(|(retries, waits)| RetryPolicy {
        max_retries: retries,
        backoff: waits.into_iter().map(Millis).collect(),
    });
    let continues = prop_oneof![3 => Just(0), 1 => 1u32..3];
    (limits(), execution, failure(), retry, cycle, any::<bool>(), continues).prop_map(
        |(limits, execution, on_tool_failure, retry, longest_cycle, closing_step, continue_broken)| {
            // Without a rest, so that a new setting fails to build here.
            TurnSpec {
                limits,
                execution,
                on_tool_failure,
                retry,
                longest_cycle,
                closing_step,
                continue_broken,
            }
        },
    )
}

/// The ports that a turn may have.
pub(crate) fn port_set() -> impl Strategy<Value = PortSet> {
    let rails = prop_oneof![
        2 => Just((0usize, 0usize, false)),
        1 => (0usize..3, 0usize..3, any::<bool>()),
    ];
    let layers = prop_oneof![
        1 => Just(None),
        1 => prop_oneof![Just(0u64), Just(5), Just(30_000)].prop_map(|ms| Some(Millis(ms))),
    ];
    let timeout = prop_oneof![Just(None), (1u64..50).prop_map(|ms| Some(Millis(ms)))];
    let gates = (0usize..3, any::<bool>(), any::<bool>(), 0usize..3, timeout);
    (gates, any::<bool>(), layers, any::<bool>(), any::<[bool; 2]>(), any::<[bool; 2]>(), rails).prop_map(
        |(
            (gates, prepares, lenient, ends, facts_within),
            approver,
            layers,
            compactor,
            [steering, checkpoints],
            looks,
            rails,
        )| {
            let mut ports = PortSet::default();
            let rail = |prefix, points| move |n| Guard::new(format!("{prefix}{n}"), points);
            ports.checks = (0..rails.0).map(rail("in", Points::PROMPT)).collect();
            ports.checks.extend((0..rails.1).map(rail("out", Points::ANSWER)));
            if rails.2 {
                ports.checks.iter_mut().for_each(|check| check.on_error = OnError::Lenient);
            }
            let points =
                |n| if prepares && n == 0 { Points::PREPARE } else { Points::CALL.and(Points::HANDOFF) };
            ports.gates = (0..gates).map(|n| Guard::new(format!("gate{n}"), points(n))).collect();
            if lenient {
                ports.gates.iter_mut().for_each(|gate| gate.on_error = OnError::Lenient);
            }
            ports.checks.extend((0..ends).map(rail("end", Points::END)));
            for (wanted, points) in looks.into_iter().zip([Points::RESULT, Points::INVALID]) {
                ports.checks.extend((0..usize::from(wanted)).map(rail("look", points)));
            }
            ports.facts_within = facts_within;
            (ports.approver, ports.layers, ports.compactor, ports.steering) =
                (approver, layers, compactor, steering);
            ports.checkpoints = checkpoints;
            ports
        },
    )
}

pub(crate) fn case() -> impl Strategy<Value = Case> {
    let external = prop_oneof![Just(External::Cancel), Just(External::Wake)];
    let inputs = prop::collection::vec((0u64..150, external), 0..3);
    let dice = prop::collection::vec(any::<u16>(), 0..120);
    let store_takes = prop_oneof![2 => Just(None), 1 => (0u64..20).prop_map(Some)];
    (spec(), port_set(), dice, inputs, 0u64..20, any::<bool>(), any::<bool>(), store_takes).prop_map(
        |(spec, ports, dice, inputs, grace, echo, repeated_ids, store_takes)| Case {
            spec,
            ports,
            dice,
            inputs,
            grace,
            echo,
            repeated_ids,
            store_takes,
        },
    )
}

/// What happens outside of a machine in a [`Case`], and what was asked there.
#[derive(Clone, Debug, Default)]
pub(crate) struct World {
    dice: Vec<u16>,
    at: usize,
    calls: u32,
    repeated_ids: bool,
    steered: u32,
    hang: bool,
    /// Whether the store fails now and then.
    pub(crate) store_fails: bool,
    /// Attempts whose start is stored.
    started: BTreeSet<(CallId, u32)>,
    /// Attempts that began although their start was not stored and their tool is not pure.
    pub(crate) unstored_starts: u32,
    /// Model requests: the time is not known here, the count is what matters.
    pub(crate) model_requests: u32,
    /// Executions per call.
    pub(crate) executions: BTreeMap<CallId, Vec<RetryClass>>,
    pub(crate) first_attempts: u32,
}

impl World {
    pub(crate) fn of(case: &Case) -> Self {
        Self { dice: case.dice.clone(), repeated_ids: case.repeated_ids, hang: true, ..Self::default() }
    }

    /// The same world in the next process: it goes on where it was, but nothing hangs any more.
    pub(crate) fn next_process(&self) -> Self {
        Self { hang: false, ..self.clone() }
    }

    /// The next die below `sides`; 0 when all are used, which is always the quiet choice.
    fn die(&mut self, sides: u16) -> u16 {
        let value = self.dice.get(self.at).copied().unwrap_or(0);
        self.at += 1;
        value % sides
    }

    fn delay(&mut self) -> Option<Millis> {
        match self.die(12) {
            0..=5 => Some(Millis(0)),
            6..=8 => Some(Millis(u64::from(self.die(5)))),
            9 | 10 => Some(Millis(u64::from(self.die(120)))),
            _ if self.hang => None,
            _ => Some(Millis(1)),
        }
    }

    fn calls(&mut self) -> AssistantMessage {
        let count = 1 + self.die(4);
        let calls = (0..count).map(|_| {
            self.calls += 1;
            let id = if self.repeated_ids { "c".to_owned() } else { format!("c{}", self.calls) };
            let name =
                ["pure", "idem", "risky", "ask", "alone", "move", "missing"][usize::from(self.die(13) % 7)];
            ToolCall::new(id, name, Json::empty_object())
        });
        AssistantMessage::calls(calls.collect::<Vec<_>>())
    }

    /// An answer that was cut off, with or without calls, or an empty one.
    fn incomplete(&mut self) -> AssistantMessage {
        let mut cut = match self.die(3) {
            0 => self.calls(),
            1 => AssistantMessage::text("half"),
            _ => return AssistantMessage::text(""),
        };
        cut.stop_reason = FinishReason::Length;
        cut
    }

    fn model(&mut self) -> Reply {
        self.model_requests += 1;
        let mut message = match self.die(16) {
            0 => AssistantMessage::text("done"),
            1 => self.incomplete(),
            2..=10 => self.calls(),
            11 => AssistantMessage::clarification("which?"),
            12 => AssistantMessage::invalid(&Invalid::new("garbled")),
            13 => AssistantMessage::refusal("no"),
            14 => AssistantMessage::approval_request(&ApprovalRequest::new("ap", "kind", "may I?")),
            _ => {
                let long = self.die(3) == 2;
                let code = if long { ModelFaultCode::ContextLengthExceeded } else { ModelFaultCode::Network };
                let fault = ModelFault::new(code, "the line broke");
                let partial = self.calls();
                let fault = if self.die(2) == 0 { fault } else { fault.with_partial(partial) };
                return Reply::Model(Err(Box::new(fault)));
            }
        };
        if self.die(3) > 0 {
            let usage = Usage::tokens(u64::from(self.die(50)), u64::from(self.die(50)));
            message.usage = Some(Arc::new(usage.with_cost(Cost(u64::from(self.die(8))))));
        }
        Reply::Model(Ok(Arc::new(message.into())))
    }

    fn tool(&mut self) -> Reply {
        let outcome = match self.die(12) {
            0..=4 => ToolOutcome::text("fine"),
            5 => ToolOutcome::text(format!("result {}", self.die(9))),
            6 => ToolOutcome::error("bad", "it did not work"),
            7 | 8 => ToolOutcome::retryable("busy", "try later"),
            9 => {
                let mut outcome = ToolOutcome::text("bye");
                outcome.terminate = true;
                outcome
            }
            10 => ToolOutcome::structured(Json::parse(r#"{"n":1}"#).expect("JSON")),
            _ => return Reply::Tool(Err(Fault::new(FaultSource::Tool, "panic", "the tool panicked"))),
        };
        Reply::Tool(Ok(Arc::new(outcome)))
    }

    fn gate(&mut self) -> Reply {
        let verdict = match self.die(10) {
            0..=4 => GateVerdict::Allow,
            5 => GateVerdict::Rewrite(Json::parse(r#"{"by":"gate"}"#).expect("JSON")),
            6 => GateVerdict::Hold { reason: "it is late".into() },
            7 => GateVerdict::Deny { message: "not here".into() },
            8 => {
                let answer = Err(Fault::new(FaultSource::Gate, "broken", "it broke"));
                return Reply::Gate(Box::new(Answered { answer, took: Millis(3) }));
            }
            _ => GateVerdict::Halt { message: "never".into(), reason: "it is forbidden".into() },
        };
        Reply::Gate(Box::new(GateDecision::from(verdict).into()))
    }

    fn check(&mut self, subject: &Subject) -> Reply {
        if let Subject::Result { .. } | Subject::Invalid { .. } = subject {
            let verdict = match self.die(9) {
                7 => CheckVerdict::Ask(Question::new("Which one?", AskReason::Custom)),
                6 => CheckVerdict::Ask(Question::new("  ", AskReason::Custom)),
                5 => CheckVerdict::Continue { guidance: "in full".into() },
                8 => CheckVerdict::refuse("not this"),
                _ => CheckVerdict::Accept,
            };
            return Reply::Check(Box::new(CheckDecision::from(verdict).into()));
        }
        if let Subject::End { .. } = subject {
            let verdict = match self.die(9) {
                0..=2 => CheckVerdict::Accept,
                3 => CheckVerdict::Waive { why: "good enough".into() },
                4 => CheckVerdict::Ask(Question::new("Is it done?", AskReason::Custom)),
                5 => CheckVerdict::refuse("it is not done"),
                _ => CheckVerdict::Continue { guidance: "it is not done".into() },
            };
            return Reply::Check(Box::new(CheckDecision::from(verdict).into()));
        }
        let verdict = match self.die(11) {
            10 => CheckVerdict::Ask(Question::new("What do you mean?", AskReason::Custom)),
            0..=5 => CheckVerdict::Accept,
            6 => CheckVerdict::Amend("amended".into()),
            7 => CheckVerdict::Continue { guidance: "again".into() },
            8 => {
                let answer = Err(Fault::new(FaultSource::Guardrail, "broken", "it broke"));
                return Reply::Check(Box::new(Answered { answer, took: Millis(3) }));
            }
            _ => CheckVerdict::refuse("not here"),
        };
        Reply::Check(Box::new(CheckDecision::from(verdict).into()))
    }

    fn decision(&mut self) -> Reply {
        Reply::Approval(match self.die(5) {
            0 | 1 => Decision::Granted,
            2 => Decision::Edited(Json::parse(r#"{"by":"person"}"#).expect("JSON")),
            3 => Decision::Denied { reason: "no".into() },
            _ => Decision::Later,
        })
    }

    fn fault<T>(&mut self, value: T) -> Result<T, Fault> {
        if self.die(9) == 8 { Err(Fault::new(FaultSource::Layer, "broken", "it broke")) } else { Ok(value) }
    }

    fn plan(&mut self, log: &Transcript) -> Result<Option<Plan>, Fault> {
        let from = usize::from(self.die(4));
        let plan = match self.die(3) {
            0 => None,
            1 => Some(Plan { spans: Arc::from([Span::Kept(0..usize::MAX)]) }),
            // A plan that may split a call from its result, which the machine then refuses.
            _ => {
                let made = Span::Made(Arc::from([Arc::new(Message::user("what was before"))]));
                let all = [made, Span::Kept(from..log.len().max(from))];
                Some(Plan { spans: all.into_iter().skip(usize::from(self.die(2))).collect() })
            }
        };
        self.fault(plan)
    }

    /// Layers leave messages out, add some, change some, mix them up.
    fn appended(&mut self, messages: &[Arc<Message>], log: &Transcript) -> Reply {
        let mut given = messages.to_vec();
        match self.die(8) {
            4 => drop(given.pop()),
            5 => given.insert(0, Arc::new(Message::user("remember this"))),
            6 => given.reverse(),
            7 => given.extend(log.iter().take(3).cloned()),
            _ => {}
        }
        Reply::Appended(self.fault(given))
    }

    fn compacted(&mut self, reason: &CompactReason, log: &Transcript) -> Reply {
        let mut done = match self.plan(log) {
            Ok(plan) => plan.map_or_else(Compaction::unchanged, Compaction::planned),
            Err(fault) => return Reply::Compacted(Err(fault)),
        };
        if self.die(3) == 2 {
            done.note = Some(CompactionNote::default());
        }
        if self.die(4) == 3 {
            (done.usage.input_tokens, done.usage.cost) = (Some(u64::from(self.die(60))), Some(Cost(1)));
        }
        match self.die(if *reason == CompactReason::Overflow { 3 } else { 12 }) {
            1 => done.overflow = Some(Overflow { tokens: 9, ceiling: 8 }),
            2 => done.failed.push(Fault::new(FaultSource::Compactor, "summary", "it is empty")),
            _ => {}
        }
        Reply::Compacted(Ok(Box::new(done)))
    }

    fn after_model(&mut self) -> Reply {
        let guidance = (self.die(8) == 7).then(|| "look again".to_owned());
        Reply::AfterModel(self.fault(guidance))
    }

    fn drained(&mut self) -> Reply {
        if self.die(6) < 5 {
            return Reply::Drained(Vec::new());
        }
        self.steered += 1;
        let message = UserMessage::text("by the way").from_origin("steering");
        let id = EntryId::from(format!("q{}", self.steered));
        Reply::Drained(vec![(id, Arc::new(message.into()))])
    }

    fn reply(&mut self, op: &Op, log: &Transcript) -> Reply {
        match op {
            Op::Prepare { agent, .. } => {
                let name = agent.as_ref().map_or("main", |agent| agent.as_str());
                let fault = Fault::new(FaultSource::Agent, "unknown", "no such agent");
                let mut prepared = PreparedAgent::new(name, "", tools());
                let thrown = self.die(25);
                prepared.changes = thrown % 2 == 1;
                Reply::Prepared(if thrown == 24 { Err(fault) } else { Ok(Arc::new(prepared)) })
            }
            Op::Begin { .. } => Reply::Noted(match self.die(25) {
                24 => Err(Fault::new(FaultSource::Layer, "broken", "it could not begin")),
                _ => Ok(()),
            }),
            Op::Append { messages, .. } => self.appended(messages, log),
            Op::LayerStore { .. } | Op::Complete { .. } => Reply::Noted(self.fault(())),
            Op::Recall { .. } => Reply::Recalled(self.plan(log)),
            Op::Compact { reason, .. } => self.compacted(reason, log),
            Op::Model { plan, .. } => {
                check_view(log, plan.as_ref());
                self.model()
            }
            Op::AfterModel { .. } => self.after_model(),
            Op::Arguments { .. } => Reply::Arguments(match self.die(8) {
                7 => Err(Box::new(ArgumentFault::new("a", "a number was expected"))),
                _ => Ok(()),
            }),
            Op::Gate { .. } => self.gate(),
            Op::Approve { .. } => self.decision(),
            Op::NoteApproval { request } => {
                let request = request.clone();
                Reply::ApprovalNoted(self.fault(Box::new(Prepared { request: *request, continuation: None })))
            }
            Op::Tool { call, attempt, .. } => {
                let class = class_of(&call.name);
                let stored = class == RetryClass::Pure || self.started.contains(&(call.id.clone(), *attempt));
                self.unstored_starts += u32::from(!stored);
                self.first_attempts += u32::from(*attempt == 1);
                self.executions.entry(call.id.clone()).or_default().push(class);
                self.tool()
            }
            Op::Drain { .. } => self.drained(),
            Op::Check { subject, .. } => self.check(subject),
            Op::Facts { .. } => Reply::Facts(self.fault(Json::empty_object())),
            Op::Store { .. } | Op::Save { .. } => unreachable!("the driver stores"),
        }
    }
}

pub(crate) fn tools() -> Vec<ToolDef> {
    let plain = |name: &str, class| ToolDef::new(name, "").with_class(class);
    let mut ask = plain("ask", RetryClass::Unsafe);
    ask.requires_approval = true;
    let mut alone = plain("alone", RetryClass::Pure);
    alone.sequential = true;
    vec![
        plain("pure", RetryClass::Pure),
        plain("idem", RetryClass::Idempotent),
        plain("risky", RetryClass::Unsafe),
        ask,
        alone,
        ToolDef::handoff("move", "", "other".into()),
    ]
}

/// Law 6: what a model is sent holds every call with its result.
#[track_caller]
fn check_view(log: &Transcript, plan: Option<&Plan>) {
    let mut shown = Vec::new();
    let view = match plan {
        Some(plan) => View::planned(log.prefix(), plan.clone()),
        None => View::whole(log.prefix()),
    };
    view.for_each(|message| shown.push(Arc::clone(message)));
    crate::laws::check_calls_and_results(shown.iter(), false);
}

fn class_of(name: &ToolName) -> RetryClass {
    tools().iter().find(|def| def.name == *name).map_or(RetryClass::Unsafe, |def| def.class)
}

impl ScriptedWorld for World {
    fn perform(&mut self, _: OpId, op: &Op, log: &Transcript) -> Answer {
        let reply = self.reply(op, log);
        match self.delay() {
            Some(delay) => Answer::After(delay, reply),
            None => Answer::Open,
        }
    }

    fn persist(&mut self, records: &[Record]) -> Result<(), String> {
        if self.store_fails && self.die(6) >= 4 {
            return Err("the disk is full".to_owned());
        }
        for record in records {
            if let Record::CallStarted { call, attempt, .. } = record {
                self.started.insert((call.id.clone(), *attempt));
            }
        }
        Ok(())
    }

    fn partial(&mut self, _: OpId, op: &Op) -> Option<Arc<Message>> {
        let cut = matches!(op, Op::Model { .. }) && self.die(2) == 1;
        cut.then(|| {
            let mut message = self.calls();
            message.stop_reason = "aborted".into();
            Arc::new(message.into())
        })
    }
}

impl Case {
    pub(crate) fn machine(&self) -> Machine<TurnState> {
        self.machine_over(Transcript::default())
    }

    pub(crate) fn machine_over(&self, log: Transcript) -> Machine<TurnState> {
        Machine::new(Arc::new(self.spec.clone()), Origin::default(), log).with_ports(self.ports.clone())
    }

    pub(crate) fn driver(&self) -> ScriptedDriver<TurnState, World> {
        self.driver_of(self.machine())
    }

    pub(crate) fn driver_of<P: Phase>(&self, machine: Machine<P>) -> ScriptedDriver<P, World> {
        let driver = ScriptedDriver::new(machine, World::of(self), BEGIN).with_grace(Millis(self.grace));
        let driver = match self.store_takes {
            Some(span) => driver.storing_for(Millis(span)),
            None => driver,
        };
        if self.echo { driver.repeating_replies() } else { driver }
    }

    /// Begins with `start` and lets the inputs from outside come at their times.
    pub(crate) fn drive<P: Phase>(&self, driver: &mut ScriptedDriver<P, World>, start: Start) -> Ran {
        driver.input(Input::Start(Box::new(start)));
        for (at, external) in &self.inputs {
            driver.input_at(BEGIN.after(Millis(*at)), external.input());
        }
        driver.proceed()
    }

    /// Runs to the end; what hangs for ever is cancelled.
    pub(crate) fn run(&self) -> ScriptedDriver<TurnState, World> {
        let mut driver = self.driver();
        let ran = self.drive(&mut driver, begin());
        finish(&mut driver, ran);
        driver
    }
}

/// How every case begins.
pub(crate) fn begin() -> Start {
    Start::prompt(Message::user("go"))
}

/// What happened, for messages of failed checks.
pub(crate) fn told<P: Phase>(driver: &ScriptedDriver<P, World>) -> String {
    let lines =
        driver.events().iter().map(|e| format!("{:>4} {}\n", e.at.since(BEGIN).0, event_line(&e.kind)));
    let open = driver.open().iter().map(|(id, op)| format!("open {id} {}\n", &format!("{op:?}")[..12]));
    lines.chain(open).collect()
}

/// Cancels what would wait for ever.
pub(crate) fn finish<P: Phase>(driver: &mut ScriptedDriver<P, World>, ran: Ran) {
    let ran = match ran {
        Ran::Waiting => {
            driver.input(External::Cancel.input());
            driver.proceed()
        }
        ran => ran,
    };
    assert!(matches!(ran, Ran::Ended(_)), "it does not end:\n{}", told(driver));
}

impl External {
    fn input(self) -> Input {
        match self {
            Self::Cancel => Input::Cancel { by: Arc::from("test") },
            Self::Wake => Input::Wake,
        }
    }
}
