//! The host's hooks, through the real driver.

use std::sync::{Arc, Mutex};

use harness_core::driver::{Ports, drive};
use harness_core::machine::{Origin, Start};
use harness_core::message::{AssistantMessage, Invalid, Message, ToolCall};
use harness_core::outcome::{AskReason, Question};
use harness_core::port::{HookCx, HookPoints, ToolDef, ToolOutcome, TurnHooks};
use harness_core::testing::{EventLog, ModelStep, ScriptedModel, ScriptedTools, VirtualClock};
use harness_core::transcript::Transcript;
use harness_core::turn::clarify::ToolEvidenceHook;
use harness_core::turn::{Turn, TurnSpec};
use harness_core::{Cancel, End, Evidence, Fault, FaultSource, Json, Millis, Time};

use crate::bare::bare;

/// What a hook of [`Host`] does.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Does {
    Nothing,
    Ask,
    Fault,
    Panic,
    Hang,
}

/// Hooks that note what they see and do one thing at one point.
struct Host {
    at: &'static str,
    does: Does,
    seen: Mutex<Vec<String>>,
}

impl Host {
    fn new(at: &'static str, does: Does) -> Arc<Self> {
        Arc::new(Self { at, does, seen: Mutex::default() })
    }

    async fn saw(&self, point: &str, what: &str, cx: &HookCx) -> Result<Does, Fault> {
        let line = format!("{point} {what} {}/{}", cx.progress.iteration, cx.log.len() - cx.from);
        self.seen.lock().expect("no panic").push(line);
        if point != self.at {
            return Ok(Does::Nothing);
        }
        match self.does {
            Does::Fault => Err(Fault::new(FaultSource::Hook, "broken", "it broke")),
            Does::Panic => panic!("out of order"),
            Does::Hang => std::future::pending().await,
            Does::Nothing | Does::Ask => Ok(self.does),
        }
    }
}

/// A share of [`Host`], so that it can be read when the turn is over.
struct Shared(Arc<Host>);

impl TurnHooks for Shared {
    async fn on_result(
        &self,
        call: &ToolCall,
        _: &ToolOutcome,
        cx: &HookCx,
    ) -> Result<Option<Question>, Fault> {
        let does = self.0.saw("result", call.id.as_str(), cx).await?;
        Ok((does == Does::Ask).then(|| Question::new(" Which? ", AskReason::EmptyResults)))
    }

    async fn on_tool_error(&self, call: &ToolCall, _: &ToolOutcome, cx: &HookCx) -> Result<(), Fault> {
        self.0.saw("error", call.id.as_str(), cx).await.map(drop)
    }

    async fn on_invalid_output(&self, invalid: &Invalid, cx: &HookCx) -> Result<(), Fault> {
        self.0.saw("invalid", &invalid.reason, cx).await.map(drop)
    }

    async fn on_finished(&self, end: &End, cx: &HookCx) -> Result<(), Fault> {
        self.0.saw("finished", end.reason().as_str(), cx).await.map(drop)
    }
}

fn calls(ids: &[&str]) -> ModelStep {
    AssistantMessage::calls(ids.iter().map(|id| ToolCall::new(*id, "t", Json::empty_object()))).into()
}

struct Played {
    end: Arc<End>,
    seen: Vec<String>,
    events: Vec<String>,
    turn: Turn,
    now: Time,
}

/// A turn of two calls, the second of which fails, then an invalid output, then an answer.
async fn play(host: Arc<Host>, spec: TurnSpec) -> Played {
    let model = ScriptedModel::new([
        calls(&["a", "b"]),
        AssistantMessage::invalid(&Invalid::new("garbled")).into(),
        AssistantMessage::text("done").into(),
    ]);
    let tools = ScriptedTools::new([ToolDef::new("t", "")])
        .answering([ToolOutcome::text("one"), ToolOutcome::error("bad", "it did not work")]);
    let (clock, events) = (VirtualClock::jumping(Time(0)), EventLog::default());
    let mut ports = Ports::new(Arc::new(model), Arc::new(clock.clone()));
    ports.tools = Arc::new(tools);
    ports.hooks = Some(Arc::new(Shared(Arc::clone(&host))));
    ports.hub.fold(events.clone());
    let mut turn = Turn::new(Arc::new(spec), Origin::default(), Transcript::default());
    let end = drive(&mut turn, &ports, &Cancel::never(), Start::prompt(Message::user("go"))).await;
    let seen = host.seen.lock().expect("no panic").clone();
    let now = harness_core::port::Clock::now(&clock);
    Played { end, seen, events: events.lines(), turn, now }
}

const ALL_SEEN: [&str; 5] =
    ["result a 1/3", "error b 1/4", "result b 1/4", "invalid garbled 2/5", "finished answer_finalized 3/7"];

#[tokio::test]
async fn every_hook_sees_its_point_in_order() {
    let played = play(Host::new("nowhere", Does::Nothing), bare()).await;
    assert_eq!(played.seen, ALL_SEEN);
    assert_eq!(played.end.answer.as_deref(), Some("done"));
}

#[tokio::test]
async fn a_question_ends_the_turn_and_stands_in_the_transcript() {
    let played = play(Host::new("result", Does::Ask), bare()).await;
    assert_eq!(played.end.reason().as_str(), "clarification_required");
    assert_eq!(played.end.answer.as_deref(), Some("Which?"));
    let Evidence::ToolResult(evidence) = &played.end.stop.evidence else { panic!("{:?}", played.end.stop) };
    assert_eq!((evidence.call_id.as_str(), evidence.reason), ("a", Some(AskReason::EmptyResults)));
    assert_eq!(played.seen, ["result a 1/3", "finished clarification_required 1/5"]);
    let texts: Vec<_> = played.turn.log().iter().map(|message| message.joined_text()).collect();
    assert_eq!(texts[4], "Which?");
    assert!(texts[3].contains("did not run"), "{texts:?}");
}

#[tokio::test]
async fn a_fault_or_a_panic_of_a_hook_is_told_and_changes_nothing() {
    for at in ["result", "error", "invalid"] {
        for does in [Does::Fault, Does::Panic] {
            let played = play(Host::new(at, does), bare()).await;
            assert_eq!(played.end.answer.as_deref(), Some("done"));
            assert!(played.events.iter().any(|line| line.starts_with("part_failed hook")), "{at}");
        }
    }
}

#[tokio::test]
async fn the_deadline_cuts_off_a_hook_that_hangs() {
    for at in ["result", "error", "invalid"] {
        let played = play(Host::new(at, Does::Hang), bare()).await;
        assert_eq!(played.end.reason().as_str(), "timeout_reached", "{at}");
        assert_eq!(played.end.elapsed, Millis(32_000), "{at}");
    }
}

#[tokio::test]
async fn nothing_that_the_last_hook_does_changes_the_end() {
    for does in [Does::Fault, Does::Panic, Does::Hang] {
        let played = play(Host::new("finished", does), bare()).await;
        assert_eq!(played.seen, ALL_SEEN);
        assert_eq!(played.end.answer.as_deref(), Some("done"));
        let told = played.events.last().map(String::as_str).unwrap_or_default();
        let expected = match does {
            Does::Hang => "turn_finished answer_finalized",
            _ => "part_failed hook ",
        };
        assert!(told.starts_with(expected), "{told}");
        let cut_off = if does == Does::Hang { Time(32_000) } else { Time(0) };
        assert_eq!(played.now, cut_off);
    }
}

#[tokio::test]
async fn the_built_in_hook_asks_about_an_empty_result() {
    let model = ScriptedModel::new([calls(&["a"])]);
    let tools =
        ScriptedTools::new([ToolDef::new("t", "")]).answering([ToolOutcome::text("No results found.")]);
    let mut ports = Ports::new(Arc::new(model), Arc::new(VirtualClock::jumping(Time(0))));
    ports.tools = Arc::new(tools);
    ports.hooks = Some(Arc::new(ToolEvidenceHook::default().asking(AskReason::EmptyResults, "Which file?")));
    assert_eq!(ports.set().hooks, HookPoints::RESULTS);
    let spec = bare();
    let mut turn = Turn::new(Arc::new(spec), Origin::default(), Transcript::default());
    let end = drive(&mut turn, &ports, &Cancel::never(), Start::prompt(Message::user("go"))).await;
    assert_eq!(end.answer.as_deref(), Some("Which file?"));
}
