//! What stays of answers that break off, and what the parts around a turn are told of its progress.

use std::sync::Arc;

use harness_core::driver::{Ports, drive};
use harness_core::machine::Start;
use harness_core::message::{AssistantMessage, Block, FinishReason, Message, ToolCall, ToolResultMessage};
use harness_core::port::{
    DrainPoint, Durability, Entry, EntryHead, Loaded, ModelFault, ModelFaultCode, Session, SessionError,
    Steering,
};
use harness_core::testing::{ModelStep, ScriptedModel, ScriptedTools, VirtualClock};
use harness_core::tool::{ToolDef, ToolOutcome, ToolUpdates, Toolbox, tool_fn};
use harness_core::transcript::{self, Transcript};
use harness_core::turn::{Turn, TurnSpec};
use harness_core::{Cancel, EntryId, Json, Origin, Time};
use parking_lot::Mutex;

use crate::bare::bare;

fn ports(steps: impl IntoIterator<Item = ModelStep>) -> Ports {
    Ports::new(Arc::new(ScriptedModel::new(steps)), Arc::new(VirtualClock::jumping(Time(0))))
}

#[derive(serde::Deserialize, schemars::JsonSchema)]
struct Nothing {}

fn ending(mut message: AssistantMessage, reason: FinishReason) -> AssistantMessage {
    message.stop_reason = reason;
    message
}

fn called(reason: FinishReason) -> AssistantMessage {
    let call = ToolCall::new("c", "t", Json::empty_object());
    ending(AssistantMessage::calls([call]), reason)
}

fn down() -> ModelFault {
    ModelFault::new(ModelFaultCode::Network, "no route")
}

fn lines(turn: &Turn) -> Vec<String> {
    let line = |message: &Arc<Message>| match message.as_assistant() {
        Some(answer) => format!(
            "assistant {} {:?} {:?}",
            answer.stop_reason.as_str(),
            answer.joined_text(),
            answer.error_message.as_deref().unwrap_or_default()
        ),
        None => format!("{} {}", message.role(), message.joined_text()),
    };
    turn.log().iter().map(line).collect()
}

#[track_caller]
fn check(spec: TurnSpec, steps: impl IntoIterator<Item = ModelStep>, expected: &[&str]) {
    let runtime = tokio::runtime::Builder::new_current_thread().build().expect("a runtime");
    let ports = ports(steps);
    let mut turn = Turn::new(Arc::new(spec), Origin::default(), Transcript::default());
    let start = Start::prompt(Message::user("go"));
    runtime.block_on(drive(&mut turn, &ports, &Cancel::never(), start));
    assert_eq!(lines(&turn), expected);
}

#[test]
fn a_model_that_says_nothing_leaves_a_mark() {
    check(bare(), [down().into()], &["user go", r#"assistant error "" "no route""#]);
}

#[test]
fn law_1_calls_of_an_answer_that_broke_off_are_answered() {
    let broken = || [down().with_partial(called(FinishReason::Error)).into()];
    let answered = "toolResult This call did not run: the answer that asked for it broke off.";
    check(bare(), broken(), &["user go", r#"assistant error "" """#, answered]);
}

#[test]
fn an_answer_that_announces_tools_and_calls_none_counts_if_it_has_text() {
    let lone = |text: &str| ModelStep::from(ending(AssistantMessage::text(text), FinishReason::ToolUse));
    check(bare(), [lone("hm")], &["user go", r#"assistant toolUse "hm" """#]);
    let asked =
        "user Your last answer could not be used: Tool request contained zero calls. Answer again, in full.";
    let silent = r#"assistant toolUse " " """#;
    check(bare(), [lone(" "), lone(" ")], &["user go", silent, asked, silent]);
}

#[tokio::test]
async fn law_1_calls_of_an_answer_that_an_earlier_process_cut_off_never_run_and_are_answered() {
    let tools = ScriptedTools::new([ToolDef::new("t", "")]);
    let mut ports = ports([AssistantMessage::text("on").into()]);
    ports.tools = Arc::new(tools.clone());
    let spec = TurnSpec::default();
    let log = [Message::from(called(FinishReason::Aborted))].map(Arc::new).into_iter().collect();
    let mut turn = Turn::new(Arc::new(spec), Origin::default(), log);
    assert!(turn.log().has_open_calls());
    drive(&mut turn, &ports, &Cancel::never(), Start::prompt(Message::user("next"))).await;
    let (lines, expected) =
        (lines(&turn), ["assistant aborted", "toolResult", "user next", "assistant stop"]);
    assert_eq!(lines.len(), expected.len(), "{lines:?}");
    assert!(lines.iter().zip(expected).all(|(line, start)| line.starts_with(start)), "{lines:?}");
    assert!(tools.executions().is_empty());
}

#[tokio::test]
async fn law_1_a_cancelled_turn_ends_with_results_and_the_mark() {
    let stop = Cancel::new();
    let fires = stop.clone();
    let tool = tool_fn("t", "", move |_: Nothing, _| {
        fires.cancel();
        async { "done" }
    });
    let mut ports = ports([called(FinishReason::ToolUse).into()]);
    ports.tools = Arc::new(Toolbox::new([Arc::new(tool) as _]));
    let spec = TurnSpec::default();
    let mut turn = Turn::new(Arc::new(spec), Origin::default(), Transcript::default());
    drive(&mut turn, &ports, &stop, Start::prompt(Message::user("go"))).await;
    assert_eq!(
        lines(&turn)[1..],
        [
            r#"assistant toolUse "" """#,
            "toolResult done",
            r#"assistant aborted "" "the turn was cancelled (caller)""#
        ]
    );
}

#[derive(Clone, Default)]
struct Asked(Arc<Mutex<Vec<DrainPoint>>>);

impl Steering for Asked {
    fn waiting(&self) -> Vec<(EntryId, Arc<Message>)> {
        Vec::new()
    }

    fn waiting_at(&self, point: DrainPoint) -> Vec<(EntryId, Arc<Message>)> {
        self.0.lock().push(point);
        Vec::new()
    }

    fn injected(&self, _: &[EntryId]) {}
}

#[tokio::test]
async fn a_queue_is_told_where_the_turn_stands() {
    let tools = ScriptedTools::new([ToolDef::new("t", "")])
        .answering([ToolOutcome::text("4"), ToolOutcome::text("5")]);
    let mut ports = ports([
        called(FinishReason::ToolUse).into(),
        called(FinishReason::ToolUse).into(),
        AssistantMessage::text("done").into(),
    ]);
    let asked = Asked::default();
    ports.tools = Arc::new(tools);
    ports.steering = Some(Arc::new(asked.clone()));
    let spec = bare();
    let mut turn = Turn::new(Arc::new(spec), Origin::default(), Transcript::default());
    drive(&mut turn, &ports, &Cancel::never(), Start::prompt(Message::user("go"))).await;
    assert_eq!(
        *asked.0.lock(),
        [DrainPoint::Begin, DrainPoint::Round, DrainPoint::Round, DrainPoint::Answer]
    );
}

/// One message, for the end of a turn.
#[derive(Default)]
struct Objection(Mutex<bool>);

impl Steering for Objection {
    fn waiting(&self) -> Vec<(EntryId, Arc<Message>)> {
        Vec::new()
    }

    fn waiting_at(&self, point: DrainPoint) -> Vec<(EntryId, Arc<Message>)> {
        let waits = point == DrainPoint::Answer && !*self.0.lock();
        if waits { vec![("e".into(), Arc::new(Message::user("not yet")))] } else { Vec::new() }
    }

    fn injected(&self, entries: &[EntryId]) {
        assert_eq!(entries, ["e".into()] as [EntryId; 1]);
        *self.0.lock() = true;
    }
}

#[tokio::test]
async fn a_tool_that_ends_the_turn_does_not_pass_over_what_waits() {
    let mut bye = ToolOutcome::text("bye");
    bye.terminate = true;
    let tools = ScriptedTools::new([ToolDef::new("t", "")]).answering([bye]);
    let mut ports = ports([called(FinishReason::ToolUse).into(), AssistantMessage::text("after").into()]);
    ports.tools = Arc::new(tools);
    ports.steering = Some(Arc::new(Objection::default()));
    let spec = bare();
    let mut turn = Turn::new(Arc::new(spec), Origin::default(), Transcript::default());
    let end = drive(&mut turn, &ports, &Cancel::never(), Start::prompt(Message::user("go"))).await;
    assert_eq!(end.answer.as_deref(), Some("after"));
    assert_eq!(lines(&turn)[2..4], ["toolResult bye", "user not yet"]);
}

#[derive(Default)]
struct Heard(Mutex<Vec<String>>);

impl ToolUpdates for Heard {
    fn update(&self, call: &Arc<ToolCall>, content: Vec<Block>) {
        let text: String = content.iter().filter_map(|block| block.as_text()).collect();
        self.0.lock().push(format!("{} {text}", call.id));
    }
}

#[tokio::test]
async fn a_tool_tells_how_far_it_is_and_the_model_never_sees_it() {
    let tool = tool_fn("t", "", |_: Nothing, cx: harness_core::tool::ToolCx| async move {
        cx.emit(vec![Block::text("10%")]);
        cx.emit(vec![Block::text("90%")]);
        "full"
    });
    let heard = Arc::new(Heard::default());
    let mut ports = ports([called(FinishReason::ToolUse).into(), AssistantMessage::text("done").into()]);
    ports.tools = Arc::new(Toolbox::new([Arc::new(tool) as _]));
    ports.updates = Some(heard.clone());
    let spec = bare();
    let mut turn = Turn::new(Arc::new(spec), Origin::default(), Transcript::default());
    drive(&mut turn, &ports, &Cancel::never(), Start::prompt(Message::user("go"))).await;
    assert_eq!(*heard.0.lock(), ["c 10%", "c 90%"]);
    assert_eq!(lines(&turn)[2], "toolResult full");
}

/// Refuses every append until it is mended.
#[derive(Default)]
struct Moody {
    mended: Mutex<bool>,
    stored: Mutex<Vec<String>>,
}

impl Session for Moody {
    async fn append(&self, _: &EntryHead, entries: &[Entry<'_>], _: Durability) -> Result<(), SessionError> {
        if !*self.mended.lock() {
            return Err(SessionError::new("session.write_failed", "disk full"));
        }
        let texts = entries.iter().filter_map(|entry| match entry {
            Entry::Message(message) => Some(message.joined_text()),
            _ => None,
        });
        self.stored.lock().extend(texts);
        Ok(())
    }

    async fn load(&self) -> Result<Loaded, SessionError> {
        Ok(Loaded::default())
    }
}

#[tokio::test]
async fn law_4_what_one_turn_could_not_store_the_next_one_stores_first() {
    let session = Arc::new(Moody::default());
    let mut ports = ports([AssistantMessage::text("a").into(), AssistantMessage::text("b").into()]);
    ports.session = Some(session.clone());
    let spec = Arc::new(bare());
    let mut turn = Turn::new(spec.clone(), Origin::default(), Transcript::default());
    let end = drive(&mut turn, &ports, &Cancel::never(), Start::prompt(Message::user("one"))).await;
    assert_eq!((end.persist_failed.as_deref(), turn.stored()), (Some("disk full"), 0));

    *session.mended.lock() = true;
    let stored = turn.stored();
    let mut turn = Turn::new(spec, Origin::default(), turn.into_log()).with_stored(stored);
    let end = drive(&mut turn, &ports, &Cancel::never(), Start::prompt(Message::user("two"))).await;
    assert_eq!((end.persist_failed.as_deref(), turn.stored()), (None, 4));
    assert_eq!(*session.stored.lock(), ["one", "a", "two", "b"]);
}

/// Whatever transcript a machine is given, its model is sent each call with its one result.
#[tokio::test]
async fn fault_32_the_machine_never_sees_an_orphan() {
    let call = |id: &str| ToolCall::new(id, "t", Json::empty_object());
    let result = |id: &str| ToolResultMessage::new(&call(id), Vec::new(), false);
    let mut log = Transcript::default();
    let messages: [Message; 6] = [
        result("c9").into(),
        Message::user("go"),
        AssistantMessage::calls([call("c1"), call("c2")]).into(),
        result("c2").into(),
        result("c2").into(),
        Message::user("on"),
    ];
    for message in messages {
        log.push(Arc::new(message));
    }
    assert_eq!(transcript::check(log.iter()).len(), 3);
    let model = ScriptedModel::new([AssistantMessage::text("done")]);
    let ports = Ports::new(Arc::new(model.clone()), Arc::new(VirtualClock::jumping(Time(0))));
    let mut turn = Turn::new(Arc::new(bare()), Origin::default(), log);
    drive(&mut turn, &ports, &Cancel::never(), Start::prompt(Message::user("and?"))).await;
    let request = model.requests().remove(0);
    let mut sent = Vec::new();
    request.view.for_each(|message| sent.push(Arc::clone(message)));
    assert_eq!(transcript::check(&sent), []);
    let roles: Vec<_> = sent.iter().map(|message| message.role()).collect();
    assert_eq!(roles, ["user", "assistant", "toolResult", "toolResult", "user", "user"]);
}
