//! What memory layers are asked, on which path, and what their answers may do to a turn.

use std::sync::Arc;

use harness_core::decide::{Check, CheckDecision, CheckVerdict, DecideCx, Points, Subject, check};
use harness_core::driver::{Ports, drive};
use harness_core::machine::Start;
use harness_core::message::{AssistantMessage, Block, Message, ToolCall, ToolResultMessage};
use harness_core::port::{
    AppendSource, ContextPipeline, Durability, Entry, EntryHead, Loaded, Session, SessionError, Steering,
    ViewCx,
};
use harness_core::run::{Run, RunSpec};
use harness_core::testing::{EventLog, ModelStep, ScriptedModel, ScriptedTools, ToolStep, VirtualClock};
use harness_core::tool::{ToolDef, ToolOutcome};
use harness_core::transcript::{Plan, Transcript};
use harness_core::turn::{Execution, Turn};
use harness_core::{Cancel, End, EntryId, Fault, FaultSource, Json, Origin, Outcome, Time};
use parking_lot::Mutex;

use crate::bare::bare;

type Log = Arc<Mutex<Vec<String>>>;

/// Writes down what it is asked, and does to messages what `change` says.
#[derive(Clone)]
struct Notebook {
    log: Log,
    change: fn(AppendSource, Vec<Arc<Message>>) -> Vec<Arc<Message>>,
    trouble: fn(&str) -> Result<(), Fault>,
    hangs_at: &'static str,
}

impl Default for Notebook {
    fn default() -> Self {
        Self { log: Log::default(), change: |_, messages| messages, trouble: |_| Ok(()), hangs_at: "" }
    }
}

impl Notebook {
    async fn note(&self, hook: &str, what: String, cx: &ViewCx) -> Result<(), Fault> {
        let agent = cx.prepared.as_ref().map_or("-", |prepared| prepared.agent.as_str());
        let line = format!("{hook}{what} [{} messages, {agent}, {}]", cx.log.len(), cx.progress.iteration);
        self.log.lock().push(line);
        if hook == self.hangs_at {
            std::future::pending::<()>().await;
        }
        (self.trouble)(hook)
    }

    fn seen(&self) -> Vec<String> {
        self.log.lock().clone()
    }
}

fn texts(messages: &[Arc<Message>]) -> String {
    messages.iter().fold(String::new(), |all, message| all + " " + &message.joined_text())
}

impl ContextPipeline for Notebook {
    async fn begin(&self, cx: &ViewCx) -> Result<(), Fault> {
        self.note("begin", String::new(), cx).await
    }

    async fn append(
        &self,
        source: AppendSource,
        messages: Vec<Arc<Message>>,
        cx: &ViewCx,
    ) -> Result<Vec<Arc<Message>>, Fault> {
        self.note("append", format!(" {source:?}:{}", texts(&messages)), cx).await?;
        Ok((self.change)(source, messages))
    }

    async fn recall(&self, cx: &ViewCx) -> Result<Option<Plan>, Fault> {
        self.note("recall", String::new(), cx).await.map(|()| None)
    }

    async fn after_model(&self, _: &Arc<Message>, cx: &ViewCx) -> Result<Option<String>, Fault> {
        self.note("after_model", String::new(), cx).await.map(|()| None)
    }

    async fn store(&self, _: &Arc<Message>, cx: &ViewCx) -> Result<(), Fault> {
        self.note("store", String::new(), cx).await
    }

    async fn complete(&self, outcome: Outcome, cx: &ViewCx) -> Result<(), Fault> {
        self.note("complete", format!(" {outcome}"), cx).await
    }
}

fn calls(all: &[&str]) -> ModelStep {
    let call = |id: &&str| ToolCall::new(*id, "t", Json::empty_object());
    ModelStep::answer(AssistantMessage::calls(all.iter().map(call)))
}

fn answer(text: &str) -> ModelStep {
    ModelStep::answer(AssistantMessage::text(text))
}

fn ports(steps: impl IntoIterator<Item = ModelStep>, notebook: &Notebook) -> Ports {
    let clock = Arc::new(VirtualClock::jumping(Time(0)));
    let mut ports = Ports::new(Arc::new(ScriptedModel::new(steps)), clock);
    let results = ["one", "two", "three", "four"].map(|text| ToolStep::outcome(ToolOutcome::text(text)));
    ports.tools = Arc::new(ScriptedTools::new([ToolDef::new("t", "")]).answering(results));
    ports.layers = Some(Arc::new(notebook.clone()));
    ports
}

async fn turn(ports: &Ports, cancel: &Cancel, execution: Execution) -> (Arc<End>, Vec<String>) {
    let mut spec = bare();
    spec.execution = execution;
    let mut turn = Turn::new(Arc::new(spec), Origin::default(), Transcript::default());
    let end = drive(&mut turn, ports, cancel, Start::prompt(Message::user("go"))).await;
    (end, turn.log().iter().map(|message| format!("{} {}", message.role(), message.joined_text())).collect())
}

#[tokio::test]
async fn every_hook_is_asked_in_the_order_of_a_turn() {
    let notebook = Notebook::default();
    let (end, _) = turn(
        &ports([calls(&["a", "b"]), answer("done")], &notebook),
        &Cancel::never(),
        Execution::Sequential,
    )
    .await;
    assert_eq!(end.reason().as_str(), "answer_finalized");
    insta::assert_snapshot!(notebook.seen().join("\n"), @"
    begin [0 messages, -, 0]
    append Prompt: go [0 messages, -, 0]
    recall [1 messages, main, 1]
    after_model [1 messages, main, 1]
    store [2 messages, main, 1]
    append ToolResults: one [2 messages, main, 1]
    append ToolResults: two [3 messages, main, 1]
    recall [4 messages, main, 2]
    after_model [4 messages, main, 2]
    store [5 messages, main, 2]
    complete completed [5 messages, main, 2]
    ");
}

#[tokio::test]
async fn law_1_whatever_layers_do_to_results_each_call_keeps_its_own_in_call_order() {
    async fn check(change: fn(AppendSource, Vec<Arc<Message>>) -> Vec<Arc<Message>>, expected: &[&str]) {
        let notebook = Notebook { change, ..Notebook::default() };
        let ports = ports([calls(&["a", "b"]), answer("done")], &notebook);
        let (_, transcript) = turn(&ports, &Cancel::never(), Execution::Sequential).await;
        assert_eq!(transcript[2..transcript.len() - 1], *expected);
    }
    fn results(
        source: AppendSource,
        messages: Vec<Arc<Message>>,
        f: impl Fn(Arc<Message>) -> Vec<Arc<Message>>,
    ) -> Vec<Arc<Message>> {
        let shown = source == AppendSource::ToolResults;
        if shown { messages.into_iter().flat_map(f).collect() } else { messages }
    }
    check(|_, messages| messages, &["toolResult one", "toolResult two"]).await;
    check(|source, all| results(source, all, |_| Vec::new()), &["toolResult one", "toolResult two"]).await;
    let shout = |source, all| {
        results(source, all, |message| {
            let result = message.as_tool_result().expect("a result");
            let mut loud = ToolResultMessage::clone(result);
            loud.content = vec![Block::text(message.joined_text().to_uppercase())];
            vec![Arc::new(loud.into())]
        })
    };
    check(shout, &["toolResult ONE", "toolResult TWO"]).await;
    let foreign = |source, all| {
        results(source, all, |_| {
            let call = ToolCall::new("x", "t", Json::empty_object());
            vec![Arc::new(ToolResultMessage::new(&call, Vec::new(), false).into())]
        })
    };
    check(foreign, &["toolResult one", "toolResult two"]).await;
    let adding =
        |source, all| results(source, all, |message| vec![Arc::new(Message::user("mind this")), message]);
    check(adding, &["toolResult one", "toolResult two", "user mind this", "user mind this"]).await;
}

#[tokio::test]
async fn layers_add_neither_results_nor_calls_to_a_prompt() {
    let change = |_, mut messages: Vec<Arc<Message>>| {
        let call = ToolCall::new("x", "t", Json::empty_object());
        messages.push(Arc::new(AssistantMessage::calls([call.clone()]).into()));
        messages.push(Arc::new(ToolResultMessage::new(&call, Vec::new(), false).into()));
        messages.push(Arc::new(Message::user("and this")));
        messages
    };
    let notebook = Notebook { change, ..Notebook::default() };
    let mut ports = ports([answer("done")], &notebook);
    let events = EventLog::default();
    ports.hub.fold(events.clone());
    let (_, transcript) = turn(&ports, &Cancel::never(), Execution::Sequential).await;
    assert_eq!(transcript, ["user go", "user and this", "assistant done"]);
    let told = events.lines().iter().filter(|line| line.contains("append_refused")).count();
    assert_eq!(told, 1);
}

/// Writes down what is stored, between what layers are asked.
struct Ledger(Log);

impl Session for Ledger {
    async fn append(&self, _: &EntryHead, entries: &[Entry<'_>], _: Durability) -> Result<(), SessionError> {
        let lines = entries.iter().map(|entry| match entry {
            Entry::Message(message) => format!("stored {}", message.role()),
            Entry::CallFinished { call, .. } => format!("stored the result of {call} aside"),
            _ => "stored a note".to_owned(),
        });
        self.0.lock().extend(lines);
        Ok(())
    }

    async fn load(&self) -> Result<Loaded, SessionError> {
        Ok(Loaded::default())
    }
}

#[tokio::test]
async fn law_4_a_result_is_safe_before_layers_see_it() {
    let notebook = Notebook::default();
    let mut ports = ports([calls(&["a"]), answer("done")], &notebook);
    ports.session = Some(Arc::new(Ledger(Arc::clone(&notebook.log))));
    turn(&ports, &Cancel::never(), Execution::Sequential).await;
    let lines = notebook.seen();
    let aside = lines.iter().position(|line| line == "stored the result of a aside").expect("stored");
    assert!(lines[aside + 1].starts_with("append ToolResults: one"), "{lines:?}");
    assert_eq!(lines[aside + 2], "stored toolResult");
}

#[tokio::test]
async fn layers_hear_of_every_end_once_and_before_it_is_told() {
    async fn check(steps: Vec<ModelStep>, notebook: Notebook, expected: &str) {
        let mut ports = ports(steps, &notebook);
        let events = EventLog::default();
        ports.hub.fold(events.clone());
        let (end, _) = turn(&ports, &Cancel::never(), Execution::Sequential).await;
        let heard: Vec<_> = notebook.seen().into_iter().filter(|line| line.starts_with("complete")).collect();
        let heard: Vec<_> = heard.iter().filter_map(|line| line.split(' ').nth(1)).collect();
        assert_eq!((end.reason().as_str(), heard), (expected, vec![end.outcome().as_str()]));
        let last = events.lines().last().cloned();
        assert_eq!(last, Some(format!("turn_finished {expected}")));
    }
    let quiet = Notebook::default;
    check(vec![answer("done")], quiet(), "answer_finalized").await;
    check(vec![ModelStep::panic("boom")], quiet(), "runtime_error").await;
    check(vec![ModelStep::hang()], quiet(), "timeout_reached").await;
    let broken = |hook: &str| match hook {
        "begin" => Err(Fault::new(FaultSource::Layer, "broken", "it cannot begin")),
        _ => Ok(()),
    };
    check(Vec::new(), Notebook { trouble: broken, ..quiet() }, "runtime_error").await;
    let broken = |hook: &str| match hook {
        "begin" => Ok(()),
        _ => Err(Fault::new(FaultSource::Layer, "broken", "it broke")),
    };
    check(vec![answer("done")], Notebook { trouble: broken, ..quiet() }, "answer_finalized").await;
}

#[tokio::test]
async fn layers_that_hang_at_the_end_hold_it_no_longer_than_they_may() {
    async fn check(cancel: Cancel, steps: Vec<ModelStep>, expected: (&str, i64)) {
        let notebook = Notebook { hangs_at: "complete", ..Notebook::default() };
        let ports = ports(steps, &notebook);
        let (end, _) = turn(&ports, &cancel, Execution::Sequential).await;
        assert_eq!((end.reason().as_str(), ports.clock.now().0), expected);
        assert_eq!(end.elapsed.0, 0, "the turn itself was over at once");
    }
    check(Cancel::never(), vec![answer("done")], ("answer_finalized", 32_000)).await;
    let cancelled = Cancel::new();
    cancelled.cancel();
    check(cancelled, vec![answer("done")], ("cancelled", 4_000)).await;
}

struct Nagging(Mutex<u32>);

impl Check for Nagging {
    async fn judge(&self, _: &Subject, _: &DecideCx) -> Result<CheckDecision, Fault> {
        let mut left = self.0.lock();
        if *left == 0 {
            return Ok(CheckVerdict::Accept.into());
        }
        *left -= 1;
        Ok(CheckVerdict::Continue { guidance: "go on".into() }.into())
    }
}

#[tokio::test]
async fn a_run_of_several_turns_is_one_execution() {
    let notebook = Notebook::default();
    let mut ports = ports([answer("1"), answer("2"), answer("3")], &notebook);
    ports.checks = vec![check::new("nagging", Points::END, Nagging(Mutex::new(2)))];
    let mut run = Run::new(Arc::new(RunSpec::default()), Origin::default(), Transcript::default());
    let end = drive(&mut run, &ports, &Cancel::never(), Start::prompt(Message::user("go"))).await;
    assert_eq!(end.turns, 3);
    let count = |hook: &str| notebook.seen().iter().filter(|line| line.starts_with(hook)).count();
    assert_eq!((count("begin"), count("append Prompt"), count("store"), count("complete")), (1, 3, 3, 1));
}

/// A queue with one message, which says when it is let go of.
struct Queue(Mutex<Vec<EntryId>>, Log);

impl Steering for Queue {
    fn waiting(&self) -> Vec<(EntryId, Arc<Message>)> {
        let waiting = self.0.lock();
        waiting.iter().map(|id| (id.clone(), Arc::new(Message::user("hurry")))).collect()
    }

    fn injected(&self, entries: &[EntryId]) {
        self.0.lock().retain(|id| !entries.contains(id));
        self.1.lock().push("let go".to_owned());
    }
}

#[tokio::test]
async fn what_comes_in_between_passes_the_layers_and_its_queue_keeps_it_until_it_is_stored() {
    let notebook = Notebook::default();
    let mut ports = ports([answer("done")], &notebook);
    ports.session = Some(Arc::new(Ledger(Arc::clone(&notebook.log))));
    ports.steering = Some(Arc::new(Queue(Mutex::new(vec!["q1".into()]), Arc::clone(&notebook.log))));
    let (_, transcript) = turn(&ports, &Cancel::never(), Execution::Sequential).await;
    assert_eq!(transcript, ["user go", "user hurry", "assistant done"]);
    let lines = notebook.seen();
    let at = lines.iter().position(|line| line.starts_with("append Steering: hurry")).expect("asked");
    assert_eq!(lines[at + 1..at + 3], ["stored user", "let go"]);
}
