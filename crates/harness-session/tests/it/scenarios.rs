//! Twelve stories of a session, as a driver writes them: what the crash points break, one change at a time.

use std::sync::Arc;

use harness_core::message::{AssistantMessage, Message, ToolCall};
use harness_core::outcome::TotalUsage;
use harness_core::port::{CompactionNote, Durability, Entry, SessionError};
use harness_core::tool::RetryClass;
use harness_core::transcript::{Plan, Span};
use harness_core::{EntryId, Json, Stop, StopReason};
use harness_session::{FileSession, Note};

use crate::support::{asks, call, head, result, user};

/// A story.
pub(crate) struct Scenario {
    pub(crate) name: &'static str,
    /// What the file holds before it begins.
    pub(crate) before: String,
    pub(crate) steps: Vec<Step>,
}

/// One thing that is done with a session.
pub(crate) enum Step {
    Append(Vec<Own>, Durability),
    Replace(Vec<Arc<Message>>),
    /// A note, which changes nothing that is loaded.
    Note(Note),
    /// Goes back to the entry of this name, which holds the first message, and goes on from there.
    GoBack(&'static str, Own),
}

/// An entry with all that it holds.
pub(crate) enum Own {
    Message(Arc<Message>),
    Started(ToolCall, RetryClass),
    Finished(ToolCall, RetryClass, Arc<Message>),
    State(Json),
    End(Stop, TotalUsage),
    Compaction(CompactionNote, Plan, bool),
}

impl Own {
    pub(crate) fn entry(&self) -> Entry<'_> {
        match self {
            Self::Message(message) => Entry::Message(message),
            Self::Started(call, class) => Entry::CallStarted { call: &call.id, attempt: 1, class },
            Self::Finished(call, class, result) => {
                Entry::CallFinished { call: &call.id, attempt: 1, class, result }
            }
            Self::State(state) => Entry::State { name: "mode", state },
            Self::End(stop, usage) => Entry::RunEnd { stop, usage },
            Self::Compaction(note, plan, permanent) => {
                Entry::Compaction { note, plan, permanent: *permanent }
            }
        }
    }
}

impl Step {
    pub(crate) fn take(&self, session: &FileSession) -> Result<(), SessionError> {
        match self {
            Self::Append(entries, durability) => {
                let entries: Vec<_> = entries.iter().map(Own::entry).collect();
                session.append_blocking(&head(), &entries, *durability)
            }
            Self::Replace(messages) => Ok(session.replace_blocking(&head(), messages)?),
            Self::Note(note) => session.note(&head(), note).map(drop).map_err(SessionError::from),
            Self::GoBack(at, entry) => {
                session.branch(Some(&EntryId::from(*at)))?;
                session.append_blocking(&head(), &[entry.entry()], Durability::Flush)
            }
        }
    }
}

fn flush(entries: impl IntoIterator<Item = Own>) -> Step {
    Step::Append(entries.into_iter().collect(), Durability::Flush)
}

fn sync(entries: impl IntoIterator<Item = Own>) -> Step {
    Step::Append(entries.into_iter().collect(), Durability::Sync)
}

fn says(text: &str) -> Own {
    Own::Message(user(text))
}

fn answers(text: &str) -> Own {
    Own::Message(Arc::new(AssistantMessage::text(text).into()))
}

fn asks_for(ids: &[&str]) -> Own {
    Own::Message(asks(ids))
}

fn starts(id: &str) -> Own {
    Own::Started(call(id), RetryClass::Unsafe)
}

fn finishes(id: &str) -> Own {
    Own::Finished(call(id), RetryClass::Idempotent, result(id, "done"))
}

fn gives(id: &str) -> Own {
    Own::Message(result(id, "done"))
}

fn mode(name: &str) -> Own {
    Own::State(Json::string(name))
}

fn ends(reason: StopReason) -> Own {
    Own::End(Stop::from(reason), TotalUsage::default())
}

fn compacts<const N: usize>(spans: [Span; N], permanent: bool) -> Own {
    Own::Compaction(CompactionNote::default(), Plan { spans: Arc::from(spans) }, permanent)
}

fn summary() -> Span {
    Span::Made([user("what was said before")].into())
}

/// A line of a tree with branches and labels.
fn line(id: &str, parent: &str, text: &str) -> String {
    let message = format!(r#"{{"role":"user","content":[{{"type":"text","text":"{text}"}}]}}"#);
    format!(r#"{{"type":"message","id":"{id}","parent_id":{parent},"at":"t","message":{message}}}"#) + "\n"
}

const HEADER: &str = r#"{"type":"session","format":"harness.session","version":1,"id":"s","created_at":"t"}
"#;

/// All twelve.
pub(crate) fn scenarios() -> Vec<Scenario> {
    [answers_and_calls(), states_and_compactions(), stops_and_starts(), trees()]
        .into_iter()
        .flatten()
        .collect()
}

/// A story that begins with a new session.
fn new(name: &'static str, steps: Vec<Step>) -> Scenario {
    Scenario { name, before: String::new(), steps }
}

fn answers_and_calls() -> Vec<Scenario> {
    vec![
        new(
            "plain answer",
            vec![flush([says("hello")]), flush([answers("hi")]), sync([ends(StopReason::AnswerFinalized)])],
        ),
        new("tool call", {
            let call = [flush([says("pay")]), flush([asks_for(&["c1"])]), sync([starts("c1")])];
            let rest =
                [flush([gives("c1")]), flush([answers("paid")]), sync([ends(StopReason::AnswerFinalized)])];
            call.into_iter().chain(rest).collect()
        }),
        new("parallel calls", {
            let calls = [flush([says("go"), asks_for(&["c1", "c2", "c3"])])];
            let starts = ["c1", "c2", "c3"].map(|id| sync([starts(id)]));
            let rest =
                [flush([gives("c1"), gives("c2"), gives("c3")]), sync([ends(StopReason::AnswerFinalized)])];
            calls.into_iter().chain(starts).chain(rest).collect()
        }),
        new(
            "results out of order",
            vec![
                flush([says("go"), asks_for(&["c1", "c2", "c3"])]),
                flush([starts("c1"), starts("c2"), starts("c3")]),
                flush([finishes("c3")]),
                flush([finishes("c2")]),
                flush([gives("c1"), gives("c2"), gives("c3")]),
                flush([answers("all done")]),
            ],
        ),
    ]
}

fn states_and_compactions() -> Vec<Scenario> {
    vec![
        new(
            "run state",
            vec![
                flush([mode("plan"), says("go")]),
                sync([mode("execute"), answers("one")]),
                sync([says("on"), answers("two")]),
                sync([ends(StopReason::MaxTurnsReached)]),
            ],
        ),
        new(
            "compaction of the view",
            vec![
                flush([says("one"), answers("two"), says("three")]),
                flush([compacts([summary(), Span::Kept(2..usize::MAX)], false)]),
                flush([answers("four")]),
                flush([compacts([summary(), Span::Kept(3..usize::MAX)], false), answers("five")]),
                sync([ends(StopReason::AnswerFinalized)]),
            ],
        ),
        new(
            "permanent compaction",
            vec![
                flush([says("one"), asks_for(&["c1"]), gives("c1")]),
                sync([compacts([summary(), Span::Kept(1..usize::MAX)], true)]),
                flush([says("four"), answers("five")]),
                sync([compacts([summary(), Span::Kept(4..5)], true), says("six")]),
            ],
        ),
        new(
            "replace",
            vec![
                flush([mode("plan"), says("one"), mode("execute"), answers("two"), says("three")]),
                Step::Replace(vec![user("short"), user("three")]),
                flush([answers("four")]),
                Step::Replace(Vec::new()),
                sync([says("five")]),
            ],
        ),
    ]
}

fn stops_and_starts() -> Vec<Scenario> {
    let open_call = [
        HEADER,
        &line("e1", "null", "pay"),
        r#"{"type":"message","id":"e2","parent_id":"e1","at":"t","message":{"role":"assistant","content":[{"type":"toolCall","id":"c1","name":"refund","arguments":{}}],"stopReason":"toolUse"}}"#,
        "\n",
        r#"{"type":"call","id":"e3","parent_id":"e2","at":"t","call_id":"c1","state":"started","attempt":1,"retry_class":"unsafe"}"#,
        "\n{\"type\":\"mess",
    ];
    vec![
        new(
            "handoff",
            vec![
                flush([says("I want my money back")]),
                flush([asks_for(&["to_billing"])]),
                flush([starts("to_billing"), gives("to_billing")]),
                sync([answers("Billing here.")]),
                sync([ends(StopReason::AnswerFinalized)]),
            ],
        ),
        new(
            "approval parked",
            vec![
                flush([says("pay"), asks_for(&["c1", "c2"])]),
                flush([starts("c1"), finishes("c1")]),
                sync([]),
                sync([ends(StopReason::ApprovalRequired)]),
            ],
        ),
        Scenario {
            name: "resume",
            before: open_call.concat(),
            steps: vec![
                flush([gives("c1")]),
                flush([answers("It may have been paid.")]),
                sync([ends(StopReason::AnswerFinalized)]),
            ],
        },
    ]
}

fn trees() -> Vec<Scenario> {
    let branched = [
        HEADER,
        &line("a", "null", "root"),
        &line("b", "\"a\"", "left"),
        "{\"type\":\"label\",\"id\":\"l\",\"parent_id\":\"b\",\"at\":\"t\",\"target_id\":\"b\",\"label\":\"kept\"}\n",
        &line("c", "\"a\"", "went on"),
    ];
    vec![Scenario {
        name: "labels and branches",
        before: branched.concat(),
        steps: vec![
            Step::Note(Note::label(EntryId::from("a"), "start")),
            flush([says("further")]),
            Step::GoBack("a", says("or rather")),
            Step::Note(Note::no_label(EntryId::from("b"))),
            flush([answers("yes")]),
            sync([ends(StopReason::AnswerFinalized)]),
        ],
    }]
}
