//! The cost of the control of a run: what it adds to each turn, and one decision on a contract.
//!
//! `cargo bench -p harness-core --bench control` prints a line for each figure. The bars: below 20 us more
//! for each turn with the signal and work items; below 200 us for a decision on 50 requirements after 1,000
//! events, of which those of one turn are new. Not a test of speed: it fails only when a run or a decision
//! comes out wrong.

#![expect(
    clippy::expect_used,
    clippy::indexing_slicing,
    clippy::print_stdout,
    clippy::disallowed_methods,
    reason = "a benchmark may fail loudly, prints its figures and measures real time"
)]

use std::hint::black_box;
use std::sync::Arc;
use std::sync::atomic::{AtomicU32, Ordering};
use std::time::{Duration, Instant};

use futures_util::FutureExt as _;
use harness_control::contract::{PredicateKind, SchemaSource, TaskContract, TextField};
use harness_control::work::{ItemPriority, ItemRole, ItemStatus, NewItem, WorkLedger, WorkLimits};
use harness_control::{
    ControlReport, ControlSpec, ControlState, DecisionCx, SignalSpec, StandardFacts, StopCode, StopDecision,
    TurnOutcome, UntilDone, WorkSpec,
};
use harness_core::decide::{
    Check, CheckDecision, CheckVerdict, DecideCx, FactSource as _, Points, Subject, check,
};
use harness_core::driver::{Ports, drive};
use harness_core::machine::Start;
use harness_core::message::{AssistantMessage, Block, FinishReason, Message, ToolCall, ToolResultMessage};
use harness_core::outcome::StopMode;
use harness_core::port::{Control, Deltas, Model, ModelFault, ModelRequest};
use harness_core::run::{Run, RunLimits, RunSpec};
use harness_core::testing::VirtualClock;
use harness_core::tool::{Tool, ToolCx, ToolDef, ToolOutcome, Toolbox};
use harness_core::transcript::Transcript;
use harness_core::{Cancel, Fault, Json, Origin, StopReason, Time};
use serde_json::json;

/// Turns of a run.
const TURNS: u32 = 200;
/// Its work items.
const ITEMS: u32 = 20;
/// Runs of each sort in a sample.
const RUNS: u32 = 10;
/// Messages of a turn in the log that is judged, and how many turns make 1,000 of them.
const MESSAGES: u32 = 8;
const JUDGED: u32 = 125;
/// Decisions that are measured.
const DECISIONS: u32 = 400;

fn start_of_time() -> Instant {
    Instant::now()
}

fn micros(time: Duration) -> f64 {
    time.as_secs_f64() * 1e6
}

fn median(mut samples: Vec<f64>) -> f64 {
    samples.sort_by(f64::total_cmp);
    samples[samples.len() / 2]
}

/// Works in each turn (a plain tool and a work item, then an answer) and gives the signal in the last.
struct Worker {
    turn: AtomicU32,
    turns: Vec<Vec<Arc<ToolCall>>>,
}

impl Worker {
    fn new() -> Self {
        let call = |id: String, name: &str, arguments: serde_json::Value| {
            Arc::new(ToolCall::new(id, name, Json::of(&arguments).expect("JSON")))
        };
        let works = (1..TURNS).map(|turn| {
            vec![
                call(format!("a{turn}"), "tide", json!({"n": turn})),
                call(format!("b{turn}"), "work_item_update", json!({"turn": turn})),
            ]
        });
        let signal = call("end".to_owned(), "work_complete", json!({"summary": "all is done"}));
        Self { turn: AtomicU32::new(0), turns: works.chain([vec![signal]]).collect() }
    }
}

impl Model for Worker {
    async fn step(&self, request: ModelRequest, _: &dyn Deltas) -> Result<AssistantMessage, ModelFault> {
        if request.progress.iteration > 1 {
            return Ok(AssistantMessage::text("That much for now."));
        }
        let turn = self.turn.fetch_add(1, Ordering::Relaxed) as usize;
        let mut answer = AssistantMessage::default();
        answer.content = self.turns[turn].iter().map(|call| Block::ToolCall(Arc::clone(call))).collect();
        answer.stop_reason = FinishReason::ToolUse;
        Ok(answer)
    }
}

/// Answers each call with the next of what was prepared, the last again and again.
struct Prepared {
    def: ToolDef,
    outcomes: Arc<[ToolOutcome]>,
    at: AtomicU32,
}

impl Tool for Prepared {
    fn def(&self) -> &ToolDef {
        &self.def
    }

    async fn call(&self, _: ToolCx) -> ToolOutcome {
        let at = self.at.fetch_add(1, Ordering::Relaxed) as usize;
        self.outcomes[at.min(self.outcomes.len() - 1)].clone()
    }
}

/// Asks for more until the last turn, so that a run without control has as many turns.
struct More(AtomicU32);

impl Check for More {
    async fn judge(&self, _: &Subject, _: &DecideCx) -> Result<CheckDecision, Fault> {
        if self.0.fetch_add(1, Ordering::Relaxed) + 1 >= TURNS {
            return Ok(CheckVerdict::Accept.into());
        }
        Ok(CheckVerdict::Continue { guidance: "Go on.".to_owned() }.into())
    }
}

/// Accepts everything: what it adds is what asking a check costs.
struct Fine;

impl Check for Fine {
    async fn judge(&self, _: &Subject, _: &DecideCx) -> Result<CheckDecision, Fault> {
        Ok(CheckVerdict::Accept.into())
    }
}

/// The work items at the beginning, and what the tool gives for each turn: one item changes, and in the last
/// turns each is done.
fn work() -> (WorkLedger, Arc<[ToolOutcome]>) {
    let (mut ledger, limits) = (WorkLedger::default(), WorkLimits::default());
    let ids: Vec<_> = (1..=ITEMS)
        .map(|n| {
            let item = NewItem {
                title: format!("Measure basin {n}"),
                role: ItemRole::default(),
                priority: ItemPriority::default(),
                notes: String::new(),
            };
            ledger.add(item, Time(0), &limits).expect("room")
        })
        .collect();
    let begin = ledger.clone();
    let outcomes = (1..TURNS).map(|turn| {
        let before = ledger.clone();
        let status = if turn + ITEMS >= TURNS { ItemStatus::Done } else { ItemStatus::InProgress };
        let id = &ids[(turn % ITEMS) as usize];
        ledger.update(id, status, "", Time(i64::from(turn)), &limits).expect("an item");
        let mut outcome = ToolOutcome::text("noted");
        outcome.structured = Json::of(&json!({"ledger": ledger.delta_since(&before)})).ok();
        outcome
    });
    (begin, outcomes.collect())
}

/// How a run goes on from turn to turn.
#[derive(Clone, Copy)]
enum Sort {
    /// By its control.
    Controlled,
    /// By a check of the end, with so many others before it.
    Gated(usize),
}

/// Plays a whole run; how long it took.
fn play(runtime: &tokio::runtime::Runtime, sort: Sort, work: &(WorkLedger, Arc<[ToolOutcome]>)) -> Duration {
    let model = Arc::new(Worker::new());
    let mut ports = Ports::new(Arc::clone(&model) as _, Arc::new(VirtualClock::still(Time(7))));
    let tool = |def: ToolDef, outcomes: Arc<[ToolOutcome]>| {
        Arc::new(Prepared { def, outcomes, at: AtomicU32::new(0) }) as _
    };
    let mut signal = ToolDef::new("work_complete", "Ends the work.");
    signal.terminal = true;
    ports.tools = Arc::new(Toolbox::new([
        tool(ToolDef::new("tide", "t"), [ToolOutcome::text("level 3")].into()),
        tool(ToolDef::new("work_item_update", "u"), Arc::clone(&work.1)),
        tool(signal, [ToolOutcome::text("noted")].into()),
    ]));
    let mut spec = RunSpec { limits: RunLimits::unlimited(), ..RunSpec::default() };
    let mut control: Option<Box<dyn Control>> = None;
    match sort {
        Sort::Controlled => {
            let spec =
                ControlSpec::default().with_signal(SignalSpec::default()).with_work(WorkSpec::default());
            let state = ControlState::new(&spec).with_ledger(work.0.clone());
            control = Some(Box::new(UntilDone::new(spec).with_state(state)));
        }
        Sort::Gated(others) => {
            spec.mode = StopMode::StrictAutomation;
            let others = (0..others).map(|_| check::new("fine", Points::END, Fine));
            let more = check::new("more", Points::END, More(AtomicU32::new(0)));
            ports.checks = others.chain([more]).collect();
        }
    }
    let run = Run::new(Arc::new(spec), Origin::default(), Transcript::default());
    let mut run = match control {
        Some(control) => run.with_control(control),
        None => run,
    };
    let begin = Start::prompt(Message::user("Measure the harbor."));
    let from = start_of_time();
    let end = runtime.block_on(drive(&mut run, &ports, &Cancel::never(), begin));
    let elapsed = from.elapsed();
    assert_eq!(end.reason(), StopReason::AnswerFinalized);
    assert_eq!(model.turn.load(Ordering::Relaxed), TURNS, "each run has as many turns");
    if let Some(report) = ControlReport::of(&end) {
        let items = report.items.as_ref().expect("work items");
        assert_eq!((items.total, items.done), (ITEMS as usize, ITEMS as usize));
    }
    elapsed
}

/// Microseconds for each turn of a controlled run, of one without control, and of asking a check of the end once:
/// medians of samples that alternate.
fn turns() -> (f64, f64, f64) {
    let runtime = tokio::runtime::Builder::new_current_thread().build().expect("a runtime");
    let work = work();
    let sample = |sort: Sort| {
        let took: Duration = (0..RUNS).map(|_| play(&runtime, sort, &work)).sum();
        micros(took) / f64::from(RUNS * TURNS)
    };
    let (mut controlled, mut plain, mut gate) = (Vec::new(), Vec::new(), Vec::new());
    for round in 0..16 {
        let (ours, one, two) = (sample(Sort::Controlled), sample(Sort::Gated(0)), sample(Sort::Gated(1)));
        if round > 0 {
            controlled.push(ours);
            plain.push(one);
            gate.push(two - one);
        }
    }
    (median(controlled), median(plain), median(gate))
}

/// 20 requirements on results of tools, 20 on texts, 10 on the form of data; every fifth text is never there.
fn contract() -> TaskContract {
    let mut contract = TaskContract::new("c", "Measure the harbor");
    let mut require = |predicate: PredicateKind| {
        let id = format!("R{}", contract.required_outputs.len());
        contract = contract.clone().require(id, "it is measured", predicate);
    };
    for n in 0..20_u32 {
        let args_match = (n % 4 == 0).then(|| json!({"basin": n % 10}).as_object().cloned()).flatten();
        let tool_name = format!("tool-{}", n % 10);
        require(PredicateKind::ToolResultSuccess { tool_name, args_match, min_count: 1 + n % 3 });
    }
    for n in 0..20_u32 {
        let pattern = if n % 5 == 4 { format!("dredged {n}") } else { format!(r"basin {}\b", n % 10) };
        let field = match n % 5 {
            0 | 1 => TextField::Response,
            2 | 4 => TextField::AnyResponse,
            _ => TextField::Transcript,
        };
        require(PredicateKind::ContainsText { pattern, field });
    }
    for n in 0..10_u32 {
        let schema = json!({"type": "object", "required": ["level", "basin"], "title": n.to_string()});
        require(PredicateKind::JsonSchemaValid { schema, source: SchemaSource::Tool(format!("tool-{n}")) });
    }
    contract
}

/// The messages of a turn: a prompt, four calls with their results, an answer with the signal, its result.
fn messages(turn: u32) -> Vec<Message> {
    let call = |n: u32| {
        let basin = (turn * 4 + n) % 10;
        let arguments = json!({"basin": basin, "depth": "mean", "unit": "metre"});
        let arguments = Json::of(&arguments).expect("JSON");
        ToolCall::new(format!("{turn}-{n}"), format!("tool-{basin}").as_str(), arguments)
    };
    let result = |call: &ToolCall, data: Option<serde_json::Value>| {
        let text = "The gauge was read three times, and the mean is told.";
        let mut result = ToolResultMessage::new(call, vec![Block::text(text)], false);
        result.structured = data.and_then(|data| Json::of(&data).ok());
        Message::from(result)
    };
    let calls: Vec<_> = (0..4).map(call).collect();
    let mut messages = vec![Message::user("Go on."), AssistantMessage::calls(calls.clone()).into()];
    for (n, call) in calls.iter().enumerate() {
        messages.push(result(call, Some(json!({"basin": n, "level": turn, "gauge": "the one at the lock"}))));
    }
    let summary = Json::parse(r#"{"summary":"all is measured","confidence":0.9}"#).expect("JSON");
    let signal = ToolCall::new(format!("{turn}-end"), "work_complete", summary);
    let basins: Vec<_> =
        (0..10).map(|n| format!("Basin {n} stands at {} cm, as it should.", turn + n)).collect();
    let mut answer = AssistantMessage::calls([signal.clone()]);
    answer.content.insert(0, Block::text(basins.join(" ")));
    messages.extend([answer.into(), result(&signal, None)]);
    assert_eq!(messages.len(), MESSAGES as usize);
    messages
}

/// A run's control, outside of a run.
struct Judge {
    spec: ControlSpec,
    state: ControlState,
    facts: StandardFacts,
    cx: DecideCx,
    turn: u32,
    events: u64,
}

/// How long the parts of a decision took, in microseconds.
#[derive(Clone, Copy, Default)]
struct Parts {
    notes: f64,
    facts: f64,
    judgement: f64,
}

impl Judge {
    fn new() -> Self {
        let spec = ControlSpec::default().with_signal(SignalSpec::default()).with_contract(contract());
        assert_eq!(spec.check(), []);
        let origin = Arc::new(Origin::default());
        Self {
            state: ControlState::new(&spec),
            spec,
            facts: StandardFacts::default(),
            cx: DecideCx::new(Transcript::default().prefix(), origin, Cancel::never(), Time(0)),
            turn: 0,
            events: 0,
        }
    }

    fn note(&mut self, messages: &[Message]) -> TurnOutcome {
        self.turn += 1;
        for message in messages {
            self.events += 1;
            black_box(self.state.note_message(&self.spec, self.events, message));
        }
        self.state.turn_over(&self.spec)
    }

    fn decide(&mut self, messages: &[Message]) -> (StopDecision, Parts) {
        let begin = start_of_time();
        let outcome = self.note(messages);
        let noted = start_of_time();
        let asked = self.state.asks(&self.spec);
        let ask = Json::of(&asked).expect("JSON");
        let gathered = self.facts.gather(&ask, &self.cx).now_or_never();
        let found = gathered.expect("nothing to wait for").expect("facts").to().expect("facts");
        let known = start_of_time();
        let at = DecisionCx {
            spec: &self.spec,
            mode: StopMode::StrictAutomation,
            turn: self.turn,
            max_turns: u32::MAX,
            asked: &asked,
            found: &found,
            now: Time(i64::from(self.turn)),
        };
        let refusal = self.state.judge(&at, outcome);
        let decision = self.state.decide(&at, outcome, refusal, None);
        let parts = Parts {
            notes: micros(noted - begin),
            facts: micros(known - noted),
            judgement: micros(known.elapsed()),
        };
        assert_eq!(decision.code, StopCode::ContractNotSatisfied);
        let unmet = decision.gaps.as_ref().map(|gaps| gaps.unmet_requirements.len());
        assert_eq!(unmet, Some(4), "what is never said is missing, and nothing else");
        (decision, parts)
    }
}

/// The first decision on a log of 1,000 events and, in the middle, those that follow each further turn.
fn decisions() -> (f64, Parts) {
    let mut judge = Judge::new();
    for turn in 1..JUDGED {
        judge.note(&messages(turn));
    }
    let (_, first) = judge.decide(&messages(JUDGED));
    assert_eq!(judge.events, u64::from(JUDGED * MESSAGES));
    let next = (JUDGED + 1..=JUDGED + DECISIONS).map(|turn| judge.decide(&messages(turn)).1);
    let next: Vec<Parts> = next.collect();
    let of = |part: fn(&Parts) -> f64| median(next.iter().map(part).collect());
    let parts =
        Parts { notes: of(|it| it.notes), facts: of(|it| it.facts), judgement: of(|it| it.judgement) };
    (first.notes + first.facts + first.judgement, parts)
}

fn print(what: &str, value: f64, bar: f64) {
    let verdict = if value < bar { "met" } else { "missed" };
    println!("{what}: {value:.2} us, bar {bar} us, {verdict}");
}

fn main() {
    let (controlled, plain, gate) = turns();
    println!("a turn under control: {controlled:.2} us; by a check of the end instead: {plain:.2} us");
    println!("asking a check of the end, which no controlled turn but the last does: {gate:.2} us");
    print("what control adds to a turn", controlled - (plain - gate), 20.0);
    let (first, next) = decisions();
    println!("the first decision on 1,000 events and 50 requirements: {first:.1} us");
    print("a decision after one further turn", next.notes + next.facts + next.judgement, 200.0);
    println!(
        "of that, notes of {MESSAGES} messages {:.1} us, facts {:.1} us, judgement {:.1} us",
        next.notes, next.facts, next.judgement
    );
}
