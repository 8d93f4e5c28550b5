//! Hooks around calls, through the real driver.

use std::sync::{Arc, Mutex};

use harness_core::driver::{Ports, drive};
use harness_core::event::EventKind;
use harness_core::hooks::{HookRules, Hooks, OnHookError};
use harness_core::machine::{Origin, Start};
use harness_core::message::{AssistantMessage, Message, ToolCall};
use harness_core::port::{
    ApprovalAsk, Approver, Decision, FinishedCall, GateCx, PostToolHook, PreTool, PreToolHook, ProposedCall,
    RawTool, Toolbox,
};
use harness_core::testing::{EventLog, ModelStep, ScriptedModel, VirtualClock};
use harness_core::transcript::Transcript;
use harness_core::turn::{Turn, TurnSpec};
use harness_core::{Cancel, End, Fault, FaultSource, GateName, Json, Millis, Time};

/// What happened, in order.
type Seen = Arc<Mutex<Vec<String>>>;

fn saw(seen: &Seen, what: String) {
    seen.lock().expect("no panic").push(what);
}

/// What a hook of these tests does.
#[derive(Clone)]
enum Does {
    Says(PreTool),
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
    async fn act(&self) -> Result<PreTool, Fault> {
        match &self.does {
            Does::Says(answer) => Ok(answer.clone()),
            Does::Fails => Err(Fault::new(FaultSource::Hook, "down", "policy service down")),
            Does::Panics => panic!("out of order"),
            Does::Hangs => std::future::pending().await,
        }
    }
}

impl PreToolHook for Hook {
    fn name(&self) -> GateName {
        self.name.into()
    }

    async fn before(&self, ask: &ProposedCall, _: &GateCx) -> Result<PreTool, Fault> {
        saw(&self.seen, format!("{} {}", self.name, ask.call.arguments.text()));
        self.act().await
    }
}

impl PostToolHook for Hook {
    fn name(&self) -> GateName {
        self.name.into()
    }

    async fn after(&self, done: &FinishedCall) -> Result<(), Fault> {
        saw(&self.seen, format!("{} #{} {}", self.name, done.call.id, done.outcome.status.as_str()));
        self.act().await.map(drop)
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
async fn play(n: &str, hooks: impl FnOnce(&Seen) -> Hooks) -> Played {
    play_on(VirtualClock::jumping(Time(0)), n, hooks).await
}

async fn play_on(clock: VirtualClock, n: &str, hooks: impl FnOnce(&Seen) -> Hooks) -> Played {
    let seen = Seen::default();
    let arguments = Json::parse(&format!(r#"{{"n":{n}}}"#)).expect("JSON");
    let model = ScriptedModel::new([
        ModelStep::answer(AssistantMessage::calls([ToolCall::new("c", "count", arguments)])),
        ModelStep::answer(AssistantMessage::text("done")),
    ]);
    let counted = Arc::clone(&seen);
    let count = RawTool::new("count", "", Json::empty_object(), move |arguments: Json, _| {
        saw(&counted, format!("run {}", arguments.text()));
        async move { if arguments.text().contains("13") { Err("unlucky") } else { Ok("counted") } }
    });
    let events = EventLog::default();
    let mut ports = Ports::new(Arc::new(model), Arc::new(clock.clone()));
    ports.tools = Arc::new(Toolbox::new([Arc::new(count) as _]));
    ports.approver = Some(Arc::new(Grants(Arc::clone(&seen))));
    ports.hub.fold(events.clone());
    hooks(&seen).install(&mut ports);
    let mut spec = TurnSpec::default();
    spec.limits.elapsed = None;
    let mut turn = Turn::new(Arc::new(spec), Origin::default(), Transcript::default());
    let end = drive(&mut turn, &ports, &Cancel::never(), Start::prompt(Message::user("go"))).await;
    let results = turn.log().iter().filter(|message| message.as_tool_result().is_some());
    let lines = events.lines();
    Played {
        end,
        results: results.map(|message| message.joined_text()).collect(),
        events: lines
            .into_iter()
            .filter(|line| line.starts_with("hook") || line.starts_with("gate"))
            .collect(),
        faults: events
            .events()
            .iter()
            .filter_map(|event| match &event.kind {
                EventKind::Hook { fault: Some(fault), duration, .. } => {
                    Some(format!("{} after {}", fault.code, duration.0))
                }
                _ => None,
            })
            .collect(),
        seen: seen.lock().expect("no panic").clone(),
        now: harness_core::port::Clock::now(&clock),
    }
}

fn hook(name: &'static str, does: Does, seen: &Seen) -> Hook {
    Hook { name, does, seen: Arc::clone(seen) }
}

fn deny() -> Does {
    Does::Says(PreTool::Deny { reason: "read-only session".into() })
}

#[tokio::test]
async fn a_denial_skips_later_hooks_the_tool_and_the_observers_and_the_turn_goes_on() {
    let played = play("1", |seen| {
        Hooks::new()
            .pre_tool(hook("first", deny(), seen))
            .pre_tool(hook("second", Does::Says(PreTool::Allow), seen))
            .post_tool(hook("audit", Does::Says(PreTool::Allow), seen))
    })
    .await;
    assert_eq!(played.seen, [r#"first {"n":1}"#]);
    assert_eq!(played.results, ["Denied: read-only session"]);
    assert_eq!(played.end.answer.as_deref(), Some("done"));
    let told = [
        r#"hook #c pre_tool first deny "read-only session""#,
        r#"gate_decided #c first deny "Denied: read-only session""#,
    ];
    assert_eq!(played.events, told);
}

#[tokio::test]
async fn a_call_that_nobody_minds_runs_and_is_observed() {
    let allow = || Does::Says(PreTool::Allow);
    let played = play("1", |seen| {
        Hooks::new().pre_tool(hook("pre", allow(), seen)).post_tool(hook("post", allow(), seen))
    })
    .await;
    assert_eq!(played.seen, [r#"pre {"n":1}"#, r#"run {"n":1}"#, "post #c success"]);
    assert_eq!(played.events, ["hook #c pre_tool pre allow", "hook #c post_tool post seen"]);
}

#[tokio::test]
async fn a_failing_call_is_observed_with_its_error() {
    let played =
        play("13", |seen| Hooks::new().post_tool(hook("post", Does::Says(PreTool::Allow), seen))).await;
    assert_eq!(played.seen, [r#"run {"n":13}"#, "post #c failed"]);
}

#[tokio::test]
async fn replaced_arguments_are_checked_and_seen_by_whoever_comes_later() {
    let replace = |json: &str| Does::Says(PreTool::Replace(Json::parse(json).expect("JSON")));
    let allow = || Does::Says(PreTool::Allow);
    let played = play("1", |seen| {
        Hooks::new()
            .pre_tool(hook("swap", replace(r#"{"n":2}"#), seen))
            .pre_tool(hook("later", allow(), seen))
            .post_tool(hook("post", allow(), seen))
    })
    .await;
    assert_eq!(played.seen, [r#"swap {"n":1}"#, r#"later {"n":2}"#, r#"run {"n":2}"#, "post #c success"]);

    let played = play("1", |seen| {
        Hooks::new().pre_tool(hook("swap", replace("[2]"), seen)).pre_tool(hook("later", allow(), seen))
    })
    .await;
    assert_eq!(played.seen, [r#"swap {"n":1}"#], "neither a hook nor the tool sees what does not fit");
    assert!(played.results[0].contains("expected an object"), "{:?}", played.results);
}

#[tokio::test]
async fn a_hook_that_asks_holds_the_call_and_the_others_are_still_asked() {
    let ask = || Does::Says(PreTool::Ask { reason: "it counts".into() });
    let played = play("1", |seen| {
        Hooks::new().pre_tool(hook("ask", ask(), seen)).pre_tool(hook(
            "later",
            Does::Says(PreTool::Allow),
            seen,
        ))
    })
    .await;
    assert_eq!(
        played.seen,
        [r#"ask {"n":1}"#, r#"later {"n":1}"#, r#"approver "it counts""#, r#"run {"n":1}"#]
    );

    let played = play("1", |seen| {
        Hooks::new().pre_tool(hook("ask", ask(), seen)).pre_tool(hook("later", deny(), seen))
    })
    .await;
    assert_eq!(played.seen, [r#"ask {"n":1}"#, r#"later {"n":1}"#], "nobody is asked about what is refused");
}

/// A guard that cannot answer is not read as consent.
#[track_caller]
fn closed(played: &Played, why: &str, fault: &str) {
    assert_eq!(played.results, [format!("Denied: pre-tool hook failed: {why}")]);
    assert_eq!(played.faults, [fault]);
    assert_eq!(played.end.answer.as_deref(), Some("done"), "the turn goes on");
}

#[tokio::test]
async fn a_hook_that_fails_denies() {
    let one = |does| move |seen: &Seen| Hooks::new().pre_tool(hook("guard", does, seen));
    closed(&play("1", one(Does::Fails)).await, "policy service down", "down after 0");
    closed(&play("1", one(Does::Panics)).await, "it panicked: out of order", "panicked after 0");
    let played = play("1", one(Does::Hangs)).await;
    closed(&played, "it gave no answer within 30.0 s", "timeout after 30000");
    assert_eq!(played.now, Time(30_000));
}

#[tokio::test]
async fn a_hook_may_be_told_to_fail_open_and_how_long_it_may_take() {
    for does in [Does::Fails, Does::Panics, Does::Hangs] {
        let rules = HookRules::default().within(Millis(50)).on_error(OnHookError::Allow);
        let played = play("1", |seen| Hooks::new().pre_tool_with(hook("guard", does, seen), rules)).await;
        assert_eq!((&*played.results[0], played.faults.len()), ("counted", 1));
        assert!(played.now <= Time(50), "{}", played.now);
    }
}

#[tokio::test]
async fn what_an_observer_does_has_no_effect() {
    for does in [Does::Fails, Does::Panics, Does::Hangs] {
        // On this clock whoever waited would wait for ever.
        let played = play_on(VirtualClock::still(Time(0)), "1", |seen| {
            let allow = Does::Says(PreTool::Allow);
            Hooks::new().post_tool(hook("bad", does.clone(), seen)).post_tool(hook("good", allow, seen))
        })
        .await;
        assert_eq!(played.end.answer.as_deref(), Some("done"));
        assert_eq!(played.results, ["counted"]);
        assert!(played.seen.contains(&"good #c success".to_owned()), "{:?}", played.seen);
    }
}
