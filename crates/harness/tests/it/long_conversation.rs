//! Three hundred turns over a window of 16,000 tokens.

use std::sync::Arc;

use harness::core::message::ToolCall;
use harness::core::port::{Loaded, Session as _};
use harness::core::testing::EventLog;
use harness::core::transcript::{Transcript, View};
use harness::core::{Json, StopReason};
use harness::memory::compact::artifacts::read_artifact_tool;
use harness::memory::compact::tokens::{CharacterCounter, message_tokens};
use harness::memory::compact::{CompactionPolicy, ContextCompactor, ModelSummarizer, SummaryModel};
use harness::prelude::*;
use harness::session::MemorySession;
use harness::session::artifact::MemoryArtifacts;
use parking_lot::Mutex;

const TURNS: u32 = 300;
const WINDOW: u64 = 16_000;
const TASK: &str = "Inspect the parts that I name, one by one, and never touch part 13.";

/// Inspects the part that the last prompt names, and answers. Notes whatever is wrong with a view.
#[derive(Clone, Default)]
struct Worker {
    wrong: Arc<Mutex<Vec<String>>>,
    longest: Arc<Mutex<u64>>,
}

impl Model for Worker {
    async fn step(&self, request: ModelRequest, _: &dyn Deltas) -> Result<AssistantMessage, ModelFault> {
        self.look_at(&request.view);
        let Some(last) = request.view.last() else { return Ok(AssistantMessage::text("Nothing to do.")) };
        let part = number_in(&last.joined_text());
        if last.as_tool_result().is_some() {
            return Ok(AssistantMessage::text(format!("Part {part} is fine. {}", "Really. ".repeat(40))));
        }
        let arguments = Json::parse(&format!(r#"{{"part":{part}}}"#)).unwrap();
        Ok(AssistantMessage::calls([ToolCall::new(format!("call-{part}"), "inspect", arguments)]))
    }
}

impl Worker {
    fn look_at(&self, view: &View) {
        let mut messages = Vec::new();
        view.for_each(|message| messages.push(Arc::clone(message)));
        let note = |problem: String| self.wrong.lock().push(problem);
        if !messages.first().is_some_and(|first| first.joined_text().starts_with(TASK)) {
            note("the task is not the first message".to_owned());
        }
        if let Err(problem) = is_legal(&messages) {
            note(problem);
        }
        let tokens = messages.iter().map(|message| message_tokens(&CharacterCounter, message)).sum::<u64>();
        let mut longest = self.longest.lock();
        *longest = tokens.max(*longest);
        if tokens > WINDOW {
            note(format!("a view of {tokens} tokens"));
        }
    }
}

/// Tells what it is told in one fact: up to which part all is done.
struct Summarizing;

impl Model for Summarizing {
    async fn step(&self, request: ModelRequest, _: &dyn Deltas) -> Result<AssistantMessage, ModelFault> {
        assert!(request.tools().is_empty());
        let asked = request.view.last().map(|message| message.joined_text()).unwrap_or_default();
        let done = asked.rsplit("Assistant: Part ").next().map_or(0, number_in);
        Ok(AssistantMessage::text(format!(r#"{{"facts":["Everything up to part {done} was fine."]}}"#)))
    }
}

fn number_in(text: &str) -> u32 {
    let digits = text.chars().skip_while(|c| !c.is_ascii_digit()).take_while(char::is_ascii_digit);
    digits.collect::<String>().parse().unwrap_or(0)
}

/// Whether every call has its one result behind it, and every result its call before it.
fn is_legal(messages: &[Arc<Message>]) -> Result<(), String> {
    let mut open = Vec::new();
    for message in messages {
        if let Some(result) = message.as_tool_result() {
            let call = open.iter().position(|id| *id == result.tool_call_id);
            open.remove(call.ok_or_else(|| format!("no call for the result {}", result.tool_call_id))?);
            continue;
        }
        if let Some(id) = open.first() {
            return Err(format!("no result for the call {id}"));
        }
        if let Some(answer) = message.as_assistant() {
            open.extend(answer.tool_calls().map(|call| call.id.clone()));
        }
        if message.content().is_empty() {
            return Err("an empty message".to_owned());
        }
    }
    open.first().map_or(Ok(()), |id| Err(format!("no result for the call {id}")))
}

#[derive(serde::Deserialize, schemars::JsonSchema)]
struct Part {
    part: u32,
}

fn harness(worker: &Worker, session: &MemorySession, events: &EventLog) -> Harness {
    let inspect = tool_fn("inspect", "Inspects a part", |asked: Part, _| async move {
        format!("Part {}: {}", asked.part, "measured, weighed, looked at; ".repeat(45))
    });
    let store = Arc::new(MemoryArtifacts::default());
    let clock: Arc<dyn harness::core::port::Clock> = Arc::new(harness::system::SystemClock::default());
    let compactor = ContextCompactor::new(CompactionPolicy::ladder(WINDOW))
        .with_summarizer(ModelSummarizer::new(SummaryModel::new(Summarizing, WINDOW)))
        .with_artifacts(Arc::<MemoryArtifacts>::clone(&store));
    Harness::new(worker.clone())
        .instructions("You inspect parts.")
        .tool(inspect)
        .shared_tool(read_artifact_tool(store, clock))
        .compactor(compactor)
        .session(session.clone())
        .fold(events.clone())
        .build()
        .unwrap()
}

fn check_session(loaded: &Loaded, transcript_len: usize) {
    assert_eq!(loaded.messages.len(), transcript_len, "nothing is ever lost");
    assert_eq!(is_legal(&loaded.messages), Ok(()));
    let log: Transcript = loaded.messages.iter().cloned().collect();
    if let Some(plan) = &loaded.plan {
        assert_eq!(plan.check(&log), Ok(()));
        let mut shown = Vec::new();
        let view = View::planned(log.prefix(), plan.clone());
        view.for_each(|message| shown.push(Arc::clone(message)));
        assert_eq!(is_legal(&shown), Ok(()));
    }
}

#[tokio::test]
async fn three_hundred_turns_fit_into_a_small_window() {
    let (worker, session, events) = (Worker::default(), MemorySession::new(), EventLog::default());
    let mut harness = self::harness(&worker, &session, &events);
    let compactions =
        || events.lines().iter().filter(|line| line.starts_with("compaction_completed")).count();
    let mut seen = 0;
    for turn in 1..=TURNS {
        let task = if turn == 1 { format!("{TASK} ") } else { String::new() };
        let report = harness.prompt(format!("{task}Part {}, please.", 1_000 + turn)).await.unwrap();
        assert_eq!(report.reason(), StopReason::AnswerFinalized, "turn {turn}");
        if compactions() > seen {
            seen = compactions();
            check_session(&session.load().await.unwrap(), report.transcript.len());
        }
        if turn == TURNS / 2 {
            // The program ends, and another one takes the session up.
            drop(harness);
            harness = self::harness(&worker, &session, &events);
        }
    }
    assert_eq!(*worker.wrong.lock(), Vec::<String>::new());
    assert!((5..100).contains(&seen), "{seen} compactions");
    assert!(*worker.longest.lock() > WINDOW / 2, "the window was made use of");
    let loaded = session.load().await.unwrap();
    check_session(&loaded, loaded.messages.len());
    assert_eq!(loaded.messages.len(), 4 * TURNS as usize);
    let summary = loaded.plan.into_iter().flat_map(|plan| plan.spans.to_vec()).find_map(|span| match span {
        harness::core::transcript::Span::Made(made) => made.first().map(|message| message.joined_text()),
        harness::core::transcript::Span::Kept(_) => None,
    });
    assert!(summary.unwrap().contains("Everything up to part 12"));
}
