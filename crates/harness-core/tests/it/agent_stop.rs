//! Hooks before the end of a run, through the real driver.

use std::collections::VecDeque;
use std::sync::{Arc, Mutex};

use harness_core::driver::{Ports, drive};
use harness_core::hooks::{HookRules, Hooks, OnHookError};
use harness_core::machine::{Origin, Start};
use harness_core::message::{AssistantMessage, Message, ToolCall};
use harness_core::port::{AgentStop, AgentStopAsk, AgentStopHook, ToolDef, ToolOutcome};
use harness_core::run::{Run, RunSpec, StopMode};
use harness_core::testing::{EventLog, ModelStep, ScriptedModel, ScriptedTools, VirtualClock};
use harness_core::transcript::Transcript;
use harness_core::{Cancel, End, Fault, FaultSource, GateName, Json, Time};

/// Says what it is told to, in order, then allows; notes what it saw.
#[derive(Clone, Default)]
struct Hook {
    says: Arc<Mutex<VecDeque<Result<AgentStop, Fault>>>>,
    seen: Arc<Mutex<Vec<String>>>,
}

impl Hook {
    fn saying(answers: impl IntoIterator<Item = Result<AgentStop, Fault>>) -> Self {
        Self { says: Arc::new(Mutex::new(answers.into_iter().collect())), ..Self::default() }
    }
}

impl AgentStopHook for Hook {
    fn name(&self) -> GateName {
        "review".into()
    }

    async fn stopping(&self, ask: &AgentStopAsk) -> Result<AgentStop, Fault> {
        let standing = &ask.standing;
        let calls: Vec<_> = standing.tool_usage.iter().map(|(tool, n)| format!("{tool}={n}")).collect();
        let line = format!("{} {} {}", standing.turn_count, calls.join(","), standing.called_work_complete);
        self.seen.lock().expect("no panic").push(line);
        self.says.lock().expect("no panic").pop_front().unwrap_or(Ok(AgentStop::Allow))
    }
}

fn block() -> AgentStop {
    AgentStop::Block { reason: "the tests do not pass".into() }
}

fn broken() -> Fault {
    Fault::new(FaultSource::Hook, "down", "review service down")
}

struct Played {
    end: Arc<End>,
    seen: Vec<String>,
    /// What the user side said.
    said: Vec<String>,
    events: Vec<String>,
}

/// Turns of two calls and an answer each, the second of which gives the signal.
async fn play(hook: Hook, rules: HookRules, mode: StopMode) -> Played {
    let calls = |names: [&str; 2]| {
        let call = |(n, name): (usize, &str)| ToolCall::new(format!("c{n}"), name, Json::empty_object());
        ModelStep::answer(AssistantMessage::calls(names.into_iter().enumerate().map(call)))
    };
    let answer = || ModelStep::answer(AssistantMessage::text("done"));
    let model = ScriptedModel::new([
        calls(["read", "read"]),
        answer(),
        calls(["read", "work_complete"]),
        answer(),
        answer(),
    ]);
    let tools = ScriptedTools::new(["read", "work_complete"].map(|name| ToolDef::new(name, "")))
        .answering((0..4).map(|_| ToolOutcome::text("ok")));
    let events = EventLog::default();
    let mut ports = Ports::new(Arc::new(model), Arc::new(VirtualClock::still(Time(0))));
    ports.tools = Arc::new(tools);
    ports.hub.fold(events.clone());
    Hooks::new().agent_stop_with(hook.clone(), rules).install(&mut ports);
    let mut spec = RunSpec::default();
    (spec.mode, spec.limits.turns) = (mode, 3);
    let mut run = Run::new(Arc::new(spec), Origin::default(), Transcript::default());
    let end = drive(&mut run, &ports, &Cancel::never(), Start::prompt(Message::user("go"))).await;
    let said = run.log().iter().filter(|message| matches!(***message, Message::User(_) | Message::Custom(_)));
    let seen = hook.seen.lock().expect("no panic").clone();
    Played {
        end,
        seen,
        said: said.map(|message| message.joined_text()).collect(),
        events: events.lines().into_iter().filter(|line| line.starts_with("hook")).collect(),
    }
}

#[tokio::test]
async fn a_block_makes_the_run_go_on_with_its_reason_and_what_the_hook_sees_grows() {
    let played = play(Hook::saying([Ok(block())]), HookRules::default(), StopMode::Interactive).await;
    assert_eq!(played.end.reason().as_str(), "answer_finalized");
    assert_eq!(played.seen, ["1 read=2 false", "2 read=3,work_complete=1 true"]);
    assert_eq!(played.said.len(), 2);
    assert!(played.said[1].contains("the tests do not pass"), "{:?}", played.said);
    let told = [r#"hook agent_stop review block "the tests do not pass""#, "hook agent_stop review allow"];
    assert_eq!(played.events, told);
}

#[tokio::test]
async fn a_hook_that_fails_allows_the_end_of_an_interactive_run_and_blocks_that_of_a_strict_one() {
    let played = play(Hook::saying([Err(broken())]), HookRules::default(), StopMode::Interactive).await;
    assert_eq!((played.end.reason().as_str(), played.end.turns), ("answer_finalized", 1));
    assert_eq!(played.events, ["hook agent_stop review allow"]);

    let played = play(Hook::saying([Err(broken())]), HookRules::default(), StopMode::StrictAutomation).await;
    assert_eq!((played.end.reason().as_str(), played.end.turns), ("answer_finalized", 2));
    assert!(played.said[1].contains("agent-stop hook failed: review service down"), "{:?}", played.said);
}

#[tokio::test]
async fn what_a_failure_means_can_be_said() {
    let deny = HookRules::default().on_error(OnHookError::Deny);
    let played = play(Hook::saying([Err(broken())]), deny, StopMode::Interactive).await;
    assert_eq!(played.end.turns, 2);
    let allow = HookRules::default().on_error(OnHookError::Allow);
    let played = play(Hook::saying([Err(broken())]), allow, StopMode::StrictAutomation).await;
    assert_eq!(played.end.turns, 1);
}

#[tokio::test]
async fn a_strict_run_that_stays_blocked_is_deferred() {
    let blocked = (0..9).map(|_| Ok(block()));
    let played = play(Hook::saying(blocked), HookRules::default(), StopMode::StrictAutomation).await;
    assert_eq!((played.end.reason().as_str(), played.seen.len()), ("max_turns_reached", 3));
}
