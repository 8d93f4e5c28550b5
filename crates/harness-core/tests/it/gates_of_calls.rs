//! Gates before calls, through the real driver.

use std::sync::Arc;

use harness_core::decide::{DecideCx, DynGate, Gate, GateDecision, GateVerdict, Guarded, OnError, gate};
use harness_core::driver::{Ports, drive};
use harness_core::event::EventKind;
use harness_core::machine::Start;
use harness_core::message::{AssistantMessage, Message, ToolCall};
use harness_core::port::{ApprovalAsk, Approver, Decision, ProposedCall};
use harness_core::testing::{EventLog, ModelStep, ScriptedModel, VirtualClock};
use harness_core::tool::{FnTool, Toolbox};
use harness_core::transcript::Transcript;
use harness_core::turn::{Turn, TurnSpec};
use harness_core::{Cancel, End, Fault, FaultSource, Json, Millis, Origin, Time};
use parking_lot::Mutex;

type Gates = Vec<Guarded<dyn DynGate>>;

/// What happened, in order.
type Seen = Arc<Mutex<Vec<String>>>;

fn saw(seen: &Seen, what: String) {
    seen.lock().push(what);
}

/// What a hook of these tests does.
#[derive(Clone)]
enum Does {
    Says(GateVerdict),
    Fails,
    Panics,
    Hangs,
}

struct Hook {
    name: &'static str,
    does: Does,
    seen: Seen,
}

impl Hook {
    async fn act(&self) -> Result<GateVerdict, Fault> {
        match &self.does {
            Does::Says(answer) => Ok(answer.clone()),
            Does::Fails => Err(Fault::new(FaultSource::Gate, "down", "policy service down")),
            Does::Panics => panic!("out of order"),
            Does::Hangs => std::future::pending().await,
        }
    }
}

impl Gate for Hook {
    async fn decide(&self, ask: &ProposedCall, _: &DecideCx) -> Result<GateDecision, Fault> {
        saw(&self.seen, format!("{} {}", self.name, ask.call.arguments.text()));
        self.act().await.map(GateDecision::from)
    }
}

struct Grants(Seen);

impl Approver for Grants {
    async fn decide(&self, ask: ApprovalAsk) -> Decision {
        saw(&self.0, format!("approver {:?}", ask.proposed.reason));
        Decision::Granted
    }
}

struct Played {
    end: Arc<End>,
    seen: Vec<String>,
    /// The results as the model reads them.
    results: Vec<String>,
    events: Vec<String>,
    faults: Vec<String>,
    now: Time,
}

/// A turn of one call of a tool that takes `{"n": number}` and fails for 13, then an answer; who waits on the
/// clock makes the time pass.
async fn play(n: &str, hooks: impl FnOnce(&Seen) -> Gates) -> Played {
    play_on(VirtualClock::jumping(Time(0)), n, hooks).await
}

async fn play_on(clock: VirtualClock, n: &str, hooks: impl FnOnce(&Seen) -> Gates) -> Played {
    let seen = Seen::default();
    let arguments = Json::parse(&format!(r#"{{"n":{n}}}"#)).expect("JSON");
    let model = ScriptedModel::new([
        ModelStep::answer(AssistantMessage::calls([ToolCall::new("c", "count", arguments)])),
        ModelStep::answer(AssistantMessage::text("done")),
    ]);
    let counted = Arc::clone(&seen);
    let count = FnTool::with_schema("count", "", Json::empty_object(), move |arguments: Json, _| {
        saw(&counted, format!("run {}", arguments.text()));
        async move { if arguments.text().contains("13") { Err("unlucky") } else { Ok("counted") } }
    });
    let events = EventLog::default();
    let mut ports = Ports::new(Arc::new(model), Arc::new(clock.clone()));
    ports.tools = Arc::new(Toolbox::new([Arc::new(count) as _]));
    ports.approver = Some(Arc::new(Grants(Arc::clone(&seen))));
    ports.hub.fold(events.clone());
    ports.gates = hooks(&seen);
    let mut spec = TurnSpec::default();
    spec.limits.elapsed = None;
    let mut turn = Turn::new(Arc::new(spec), Origin::default(), Transcript::default());
    let end = drive(&mut turn, &ports, &Cancel::never(), Start::prompt(Message::user("go"))).await;
    let results = turn.log().iter().filter(|message| message.as_tool_result().is_some());
    let lines = events.lines();
    Played {
        end,
        results: results.map(|message| message.joined_text()).collect(),
        events: lines.into_iter().filter(|line| line.starts_with("decided")).collect(),
        faults: events
            .events()
            .iter()
            .filter_map(|event| match &event.kind {
                EventKind::Decided { fault: Some(fault), duration, .. } => {
                    Some(format!("{} after {}", fault.code, duration.0))
                }
                _ => None,
            })
            .collect(),
        seen: seen.lock().clone(),
        now: harness_core::port::Clock::now(&clock),
    }
}

fn hook(name: &'static str, does: Does, seen: &Seen) -> Hook {
    Hook { name, does, seen: Arc::clone(seen) }
}

fn gate(name: &'static str, does: Does, seen: &Seen) -> Guarded<dyn DynGate> {
    gate::new(name, hook(name, does, seen))
}

fn allow() -> Does {
    Does::Says(GateVerdict::Allow)
}

fn deny() -> Does {
    Does::Says(GateVerdict::Deny { message: "Denied: read-only session".into() })
}

#[tokio::test]
async fn a_denial_skips_later_gates_and_the_tool_and_the_turn_goes_on() {
    let played = play("1", |seen| vec![gate("first", deny(), seen), gate("second", allow(), seen)]).await;
    assert_eq!(played.seen, [r#"first {"n":1}"#]);
    assert_eq!(played.results, ["Denied: read-only session"]);
    assert_eq!(played.end.answer.as_deref(), Some("done"));
    assert_eq!(played.events, [r#"decided #c call first deny "Denied: read-only session""#]);
}

#[tokio::test]
async fn a_call_that_nobody_minds_runs() {
    let played = play("1", |seen| vec![gate("pre", allow(), seen)]).await;
    assert_eq!(played.seen, [r#"pre {"n":1}"#, r#"run {"n":1}"#]);
    assert_eq!(played.events, ["decided #c call pre allow"]);
}

#[tokio::test]
async fn replaced_arguments_are_checked_and_seen_by_whoever_comes_later() {
    let rewrite = |json: &str| Does::Says(GateVerdict::Rewrite(Json::parse(json).expect("JSON")));
    let played =
        play("1", |seen| vec![gate("swap", rewrite(r#"{"n":2}"#), seen), gate("later", allow(), seen)]).await;
    assert_eq!(played.seen, [r#"swap {"n":1}"#, r#"later {"n":2}"#, r#"run {"n":2}"#]);

    let played =
        play("1", |seen| vec![gate("swap", rewrite("[2]"), seen), gate("later", allow(), seen)]).await;
    assert_eq!(played.seen, [r#"swap {"n":1}"#], "neither a gate nor the tool sees what does not fit");
    assert!(played.results[0].contains("expected an object"), "{:?}", played.results);
}

#[tokio::test]
async fn a_gate_that_holds_a_call_asks_the_approver_behind_the_others() {
    let hold = || Does::Says(GateVerdict::Hold { reason: "it counts".into() });
    let played = play("1", |seen| vec![gate("ask", hold(), seen), gate("later", allow(), seen)]).await;
    assert_eq!(
        played.seen,
        [r#"ask {"n":1}"#, r#"later {"n":1}"#, r#"approver "it counts""#, r#"run {"n":1}"#]
    );

    let played = play("1", |seen| vec![gate("ask", hold(), seen), gate("later", deny(), seen)]).await;
    assert_eq!(played.seen, [r#"ask {"n":1}"#, r#"later {"n":1}"#], "nobody is asked about what is refused");
}

/// A guard that cannot answer is not read as consent.
#[track_caller]
fn closed(played: &Played, why: &str, fault: &str) {
    assert_eq!(played.results, [format!("Denied: the gate `guard` failed: {why}")]);
    assert_eq!(played.faults, [fault]);
    assert_eq!(played.end.answer.as_deref(), Some("done"), "the turn goes on");
}

#[tokio::test]
async fn a_gate_that_fails_denies() {
    let one = |does| move |seen: &Seen| vec![gate("guard", does, seen)];
    closed(&play("1", one(Does::Fails)).await, "policy service down", "down after 0");
    closed(&play("1", one(Does::Panics)).await, "panicked: out of order", "panicked after 0");
    let played = play("1", one(Does::Hangs)).await;
    closed(&played, "no decision within 60.0 s", "timeout after 60000");
    assert_eq!(played.now, Time(60_000));
}

#[tokio::test]
async fn a_gate_may_be_told_to_fail_open_and_how_long_it_may_take() {
    for does in [Does::Fails, Does::Panics, Does::Hangs] {
        let lenient = |seen: &Seen| gate("guard", does, seen).within(Millis(50)).on_error(OnError::Lenient);
        let played = play("1", |seen| vec![lenient(seen)]).await;
        assert_eq!((&*played.results[0], played.faults.len()), ("counted", 1));
        assert!(played.now <= Time(50), "{}", played.now);
    }
}
