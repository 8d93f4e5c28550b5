//! One ledger: every model call on behalf of a run is reserved, settled and reported.

use std::sync::Arc;

use harness_core::decide::{
    Check, CheckDecision, CheckVerdict, DecideCx, Gate, GateDecision, GateVerdict, Points, Subject, check,
    gate,
};
use harness_core::driver::{Ports, drive};
use harness_core::event::{Event, EventKind, Fold};
use harness_core::limits::{Amount, Limit};
use harness_core::machine::Start;
use harness_core::message::{AssistantMessage, Cost, Message, ToolCall, Usage};
use harness_core::outcome::{Purpose, TotalUsage};
use harness_core::port::{
    CompactAsk, Compaction, Compactor, ContextPipeline, Ledger, ModelFault, ModelFaultCode, ModelRequest,
    PreparedAgent, ProposedCall, ViewCx,
};
use harness_core::run::{Run, RunSpec};
use harness_core::testing::{ModelStep, ScriptedModel, ScriptedTools, ToolStep, VirtualClock};
use harness_core::tool::{ToolDef, ToolOutcome};
use harness_core::transcript::{Plan, Transcript, View};
use harness_core::{Cancel, End, Fault, Json, Origin, Time};
use parking_lot::Mutex;

use crate::bare::bare;

/// A part with a model of its own, which uses this much in each call.
#[derive(Clone)]
struct Part(Arc<ScriptedModel>);

impl Part {
    fn using(tokens: u64) -> Self {
        let answer = || ModelStep::answer(AssistantMessage::text("yes").with_usage(Usage::tokens(tokens, 1)));
        Self(Arc::new(ScriptedModel::new((0..20).map(|_| answer()))))
    }

    fn calls(&self) -> usize {
        self.0.requests().len()
    }

    async fn ask(&self, ledger: &Ledger) -> Result<AssistantMessage, ModelFault> {
        let log: Transcript = [Arc::new(Message::user("Is it so?"))].into_iter().collect();
        let request =
            ModelRequest::new(View::whole(log.prefix()), Arc::new(PreparedAgent::new("part", "", [])));
        ledger.call(&*self.0, request).await
    }
}

/// Where a layer calls its model.
#[derive(Clone, Copy, PartialEq)]
enum Hook {
    Begin,
    Recall,
    AfterModel,
    Store,
    Complete,
}

struct Layer(Part, Hook);

impl Layer {
    async fn at(&self, hook: Hook, cx: &ViewCx) {
        if self.1 == hook {
            let _ = self.0.ask(&cx.ledger).await;
        }
    }
}

impl ContextPipeline for Layer {
    async fn begin(&self, cx: &ViewCx) -> Result<(), Fault> {
        self.at(Hook::Begin, cx).await;
        Ok(())
    }

    async fn recall(&self, cx: &ViewCx) -> Result<Option<Plan>, Fault> {
        self.at(Hook::Recall, cx).await;
        Ok(None)
    }

    async fn after_model(&self, _: &Arc<Message>, cx: &ViewCx) -> Result<Option<String>, Fault> {
        self.at(Hook::AfterModel, cx).await;
        Ok(None)
    }

    async fn store(&self, _: &Arc<Message>, cx: &ViewCx) -> Result<(), Fault> {
        self.at(Hook::Store, cx).await;
        Ok(())
    }

    async fn complete(&self, _: harness_core::Outcome, cx: &ViewCx) -> Result<(), Fault> {
        self.at(Hook::Complete, cx).await;
        Ok(())
    }
}

struct Asks(Part);

impl Check for Asks {
    async fn judge(&self, _: &Subject, cx: &DecideCx) -> Result<CheckDecision, Fault> {
        self.0.ask(&cx.ledger).await.expect("a call with room");
        Ok(CheckVerdict::Accept.into())
    }
}

impl Gate for Asks {
    async fn decide(&self, _: &ProposedCall, cx: &DecideCx) -> Result<GateDecision, Fault> {
        self.0.ask(&cx.ledger).await.expect("a call with room");
        Ok(GateVerdict::Allow.into())
    }
}

impl Compactor for Asks {
    async fn compact(&self, ask: CompactAsk) -> Result<Compaction, Fault> {
        self.0.ask(&ask.cx.ledger).await.expect("a call with room");
        Ok(Compaction::unchanged())
    }
}

#[derive(Clone, Default)]
struct Seen(Arc<Mutex<Vec<Event>>>);

impl Fold for Seen {
    fn apply(&mut self, event: &Event) {
        self.0.lock().push(event.clone());
    }
}

impl Seen {
    /// The charges, as the events tell them.
    fn charged(&self) -> TotalUsage {
        let mut sum = TotalUsage::default();
        for event in &*self.0.lock() {
            if let EventKind::ModelUsageCharged { purpose, usage } = &event.kind {
                sum.add(*purpose, usage);
            }
        }
        sum
    }
}

fn answer(text: &str) -> ModelStep {
    ModelStep::answer(AssistantMessage::text(text).with_usage(Usage::tokens(10, 1)))
}

fn ports(steps: impl IntoIterator<Item = ModelStep>) -> Ports {
    Ports::new(Arc::new(ScriptedModel::new(steps)), Arc::new(VirtualClock::frozen(Time(1))))
}

/// A tool that answers this often, each time with something else.
fn look(times: usize) -> ScriptedTools {
    let steps = (0..times).map(|n| ToolStep::outcome(ToolOutcome::text(format!("nothing in {n}"))));
    ScriptedTools::new([ToolDef::new("look", "Looks.")]).answering(steps)
}

fn limited(tokens: u64) -> RunSpec {
    let mut spec = RunSpec::default();
    (spec.turn.limits.tokens, spec.limits.amount.tokens) = (tokens, tokens);
    spec
}

fn run(mut ports: Ports, spec: RunSpec) -> (Arc<End>, Seen) {
    let seen = Seen::default();
    ports.hub.fold(seen.clone());
    let mut run = Run::new(Arc::new(spec), Origin::default(), Transcript::default());
    let start = Start::prompt(Message::user("hello"));
    let end = futures_util::FutureExt::now_or_never(drive(&mut run, &ports, &Cancel::never(), start));
    (end.expect("nothing waits"), seen)
}

fn tokens(end: &End, purpose: Purpose) -> (u32, u64) {
    let used = end.usage.of(purpose);
    (used.model_calls, used.amount().tokens)
}

#[test]
fn fault_16_a_layers_model_call_is_charged_and_ends_the_run_at_its_limit() {
    for hook in [Hook::Begin, Hook::Recall] {
        let part = Part::using(1_000_000);
        let mut ports = ports([answer("never asked for")]);
        ports.layers = Some(Arc::new(Layer(part.clone(), hook)));
        let (end, _) = run(ports, limited(1_000));
        assert_eq!(end.reason().as_str(), "budget_reached");
        assert_eq!((part.calls(), tokens(&end, Purpose::Layer)), (1, (1, 1_000_001)));
        assert_eq!((tokens(&end, Purpose::Answer), end.iterations), ((0, 0), 0), "the agent was not asked");
        assert_eq!((end.usage.model_calls, end.usage.input_tokens), (1, Some(1_000_000)));
    }
    for hook in [Hook::AfterModel, Hook::Store, Hook::Complete] {
        let mut ports = ports([answer("done")]);
        ports.layers = Some(Arc::new(Layer(Part::using(1_000_000), hook)));
        let (end, seen) = run(ports, limited(1_000));
        assert_eq!(end.reason().as_str(), "answer_finalized", "the answer was there before");
        assert_eq!(tokens(&end, Purpose::Layer), (1, 1_000_001));
        assert_eq!((end.usage.model_calls, end.usage.input_tokens), (2, Some(1_000_010)));
        assert_eq!(seen.charged().of(Purpose::Layer), end.usage.of(Purpose::Layer));
    }
}

#[test]
fn fault_16_every_part_that_calls_a_model_is_in_the_usage_of_the_run() {
    let part = Part::using(100);
    let asks = || Arc::new(Asks(part.clone()));
    let call = ToolCall::new("c1", "look", Json::empty_object());
    let mut ports = ports([
        ModelStep::answer(AssistantMessage::calls([call]).with_usage(Usage::tokens(10, 1))),
        answer("done"),
    ]);
    ports.tools = Arc::new(look(1));
    ports.layers = Some(Arc::new(Layer(part.clone(), Hook::Recall)));
    ports.compactor = Some(asks());
    let points = Points::PROMPT.and(Points::ANSWER).and(Points::RESULT);
    ports.checks = vec![check::new("asks", points, Asks(part.clone()))];
    ports.gates = vec![gate::new("asks", Asks(part.clone()))];
    ports.checks.push(check::new("asks too", Points::END, Asks(part.clone())));
    let (end, seen) = run(ports, limited(100_000));
    assert_eq!(end.reason().as_str(), "answer_finalized");
    let shares = [
        (Purpose::Answer, 2, 22),
        (Purpose::Layer, 2, 202),
        (Purpose::Guardrail, 2, 202),
        (Purpose::StopGate, 1, 101),
        (Purpose::Compaction, 2, 202),
        // The gate of the call, and the check of its result.
        (Purpose::Judge, 2, 202),
    ];
    for (purpose, calls, used) in shares {
        assert_eq!(tokens(&end, purpose), (calls, used), "{purpose:?}");
        let told = seen.charged().of(purpose);
        let told = (told.model_calls, told.amount().tokens);
        assert!(purpose == Purpose::Answer || told == (calls, used), "{purpose:?}: {told:?}");
    }
    assert_eq!((end.usage.model_calls, end.usage.amount().tokens), (11, 931));
    assert_eq!(part.calls(), 9);
}

/// Calls its model twice, and keeps what it was told.
struct Twice(Part, Arc<Mutex<Vec<Result<u64, ModelFaultCode>>>>);

impl Check for Twice {
    async fn judge(&self, _: &Subject, cx: &DecideCx) -> Result<CheckDecision, Fault> {
        for _ in 0..2 {
            let said = self.0.ask(&cx.ledger).await;
            let said = said.map(|said| said.usage.expect("usage").all_tokens()).map_err(|fault| fault.code);
            self.1.lock().push(said);
        }
        Ok(CheckVerdict::Accept.into())
    }
}

#[test]
fn fault_16_a_call_past_the_budget_is_refused_before_it_is_made() {
    let part = Part::using(100);
    let refused = {
        // The budget of a run that has 40 tokens left, of which the agent's own step used 11.
        let (asked, told) = (part.clone(), Arc::new(Mutex::new(Vec::new())));
        let mut ports = ports([answer("done")]);
        ports.checks = vec![check::new("twice", Points::END, Twice(asked, Arc::clone(&told)))];
        let (end, _) = run(ports, limited(40));
        assert_eq!((end.reason().as_str(), end.usage.amount().tokens), ("answer_finalized", 112));
        Arc::try_unwrap(told).expect("the last one").into_inner()
    };
    assert_eq!(refused, [Ok(101), Err(ModelFaultCode::BudgetReached)]);
    assert_eq!(part.calls(), 1, "the second call was not made");
}

#[test]
fn fault_16_failed_and_dropped_calls_are_charged() {
    let ledger = Ledger::unlimited(Purpose::Judge);
    let partial = AssistantMessage::text("half").with_usage(Usage::tokens(7, 2));
    let broke = ModelFault::new(ModelFaultCode::Network, "broke off").with_partial(partial);
    let part = Part(Arc::new(ScriptedModel::new([ModelStep::fault(broke), ModelStep::hang()])));
    let mut failing = std::pin::pin!(part.ask(&ledger));
    assert!(futures_util::FutureExt::now_or_never(failing.as_mut()).is_some_and(|failed| failed.is_err()));
    let used = ledger.take().expect("a charge").of(Purpose::Judge);
    assert_eq!((used.model_calls, used.failed_calls, used.amount().tokens), (1, 1, 9));
    assert!(futures_util::FutureExt::now_or_never(part.ask(&ledger)).is_none(), "it hangs, and is dropped");
    let used = ledger.take().expect("a charge").of(Purpose::Judge);
    assert_eq!((used.model_calls, used.failed_calls), (1, 1));
    let sent = used.estimated_tokens.expect("an estimate");
    assert!(sent > 0, "its request was sent: {used:?}");
    assert_eq!(ledger.left().tokens, Amount::UNLIMITED.tokens - 9 - sent, "nothing stays reserved");
}

#[test]
fn fault_17_tokens_that_nobody_reports_are_estimated_and_bind() {
    let silent = |n: u32| {
        ModelStep::answer(AssistantMessage::calls([ToolCall::new(
            format!("c{n}").as_str(),
            "look",
            Json::parse(&format!(r#"{{"at":{n},"why":"{}"}}"#, "because ".repeat(50))).expect("a value"),
        )]))
    };
    let mut ports = ports((0..30).map(silent));
    ports.tools = Arc::new(look(30));
    let (end, _) = run(ports, limited(1_000));
    assert_eq!(end.reason().as_str(), "budget_reached");
    let used = end.usage.amount().tokens;
    assert!((100..=1_000).contains(&used), "about a hundred tokens a call: {used}");
    assert_eq!(end.usage.estimated_tokens, Some(used), "and all of them are marked");
}

#[test]
fn fault_17_what_is_reported_is_not_estimated() {
    let (end, _) = run(ports([answer("done")]), limited(1_000));
    assert_eq!((end.usage.amount().tokens, end.usage.estimated_tokens), (11, None));
    let zero = ModelStep::answer(AssistantMessage::text("done").with_usage(Usage::tokens(0, 0)));
    let (end, _) = run(ports([zero]), limited(1_000));
    assert_eq!((end.usage.amount().tokens, end.usage.estimated_tokens), (0, None));
}

#[test]
fn fault_18_the_evidence_says_what_the_next_call_needs() {
    let call = |id: &str| {
        let call = ToolCall::new(id, "look", Json::parse(&format!(r#"{{"id":"{id}"}}"#)).expect("a value"));
        ModelStep::answer(AssistantMessage::calls([call]).with_usage(Usage::tokens(11, 1)))
    };
    let mut ports = ports([call("c1"), call("c2"), answer("never asked for")]);
    ports.tools = Arc::new(look(2));
    let mut spec = limited(30);
    spec.turn.closing_step = false;
    let (end, _) = run(ports, spec);
    let harness_core::Evidence::Limit(reached) = &end.stop.evidence else { panic!("{:?}", end.stop) };
    assert_eq!((reached.limit, reached.value, reached.ceiling), (Limit::Tokens, 24, 30));
    assert_eq!(reached.needs, Some(12), "as much as the call before");
}

#[test]
fn fault_19_iterations_and_model_calls_are_those_that_were_made() {
    let call = ToolCall::new("c1", "look", Json::empty_object());
    let mut ports = ports([ModelStep::answer(AssistantMessage::calls([call]))]);
    ports.tools = Arc::new(look(1));
    let mut spec = RunSpec { turn: bare(), ..RunSpec::default() };
    spec.turn.limits.iterations = 1;
    let (end, _) = run(ports, spec);
    assert_eq!(end.reason().as_str(), "max_iterations_reached");
    assert_eq!((end.iterations, end.refused_iteration, end.usage.model_calls), (1, Some(2), 1));

    let partial = AssistantMessage::text("half").with_usage(Usage::tokens(7, 2).with_cost(Cost(5)));
    let broke = ModelFault::new(ModelFaultCode::Network, "broke off").with_partial(partial);
    let (end, _) =
        run(self::ports([ModelStep::fault(broke)]), RunSpec { turn: bare(), ..RunSpec::default() });
    assert_eq!(end.reason().as_str(), "runtime_error");
    let used = &end.usage;
    assert_eq!((used.model_calls, used.failed_calls, used.amount().tokens), (1, 1, 9));
    assert_eq!(end.iterations, 1);
}
