//! Threads whose transcripts are in sessions.

use std::collections::HashMap;
use std::sync::Arc;

use harness_core::message::{AssistantMessage, Message, ToolCall, ToolResultMessage};
use harness_core::port::{Durability, DynSession, Entry, EntryHead, Loaded, Session, SessionError};
use harness_core::transcript::{DefectKind, check};
use harness_core::{Json, ThreadId};
use harness_runtime::{Sessions, StartAt, StreamItem};
use parking_lot::Mutex;

use crate::support::{Scripted, Step, builder, config, history};

#[derive(Clone, Default)]
struct Stored(Arc<Mutex<Vec<Arc<Message>>>>);

impl Session for Stored {
    async fn append(&self, _: &EntryHead, entries: &[Entry<'_>], _: Durability) -> Result<(), SessionError> {
        let messages = entries.iter().filter_map(|entry| match entry {
            Entry::Message(message) => Some(Arc::clone(message)),
            _ => None,
        });
        self.0.lock().extend(messages);
        Ok(())
    }

    async fn load(&self) -> Result<Loaded, SessionError> {
        let mut loaded = Loaded::default();
        loaded.messages.clone_from(&self.0.lock());
        Ok(loaded)
    }
}

/// Counts how often each session was opened.
#[derive(Clone, Default)]
struct Cupboard(Arc<Mutex<HashMap<ThreadId, (Stored, u32)>>>);

impl Sessions for Cupboard {
    async fn open(&self, thread: &ThreadId) -> Result<Arc<dyn DynSession>, SessionError> {
        let mut all = self.0.lock();
        let (session, opened) = all.entry(thread.clone()).or_default();
        *opened += 1;
        Ok(Arc::new(session.clone()))
    }
}

impl Cupboard {
    fn opened(&self, thread: &str) -> u32 {
        self.0.lock().get(&ThreadId::from(thread)).map_or(0, |(_, opened)| *opened)
    }
}

#[tokio::test]
async fn an_idle_thread_is_unloaded_and_comes_back_when_it_is_needed() {
    let cupboard = Cupboard::default();
    let model = Scripted::new((0..4).map(|_| Step::Say("ok")));
    let runtime = builder(config(&model)).sessions(cupboard.clone()).limits(|limits| limits.loaded = 1);
    let runtime = runtime.build();
    for (name, said) in [("a", "1"), ("b", "2"), ("a", "3")] {
        runtime.thread(name).prompt(said).await.unwrap();
        runtime.thread(name).wait_idle().await;
    }
    tokio::task::yield_now().await;
    assert_eq!((cupboard.opened("a"), cupboard.opened("b")), (2, 1), "one at a time was loaded");
    assert_eq!(history(&runtime.thread("a")).await, "u:1 a:ok u:3 a:ok");

    let thread = runtime.thread("b");
    let Some(StreamItem::Lagged { missed }) = thread.events(StartAt::Replay).try_next() else {
        panic!("kept")
    };
    assert!(missed > 0, "what was let go of is told as missed");
    thread.prompt("4").await.unwrap();
    assert_eq!(history(&thread).await, "u:2 a:ok u:4 a:ok");
}

#[tokio::test]
async fn threads_know_nothing_of_each_other() {
    let model = Scripted::new((0..200).map(|_| Step::Say("ok")));
    let runtime = builder(config(&model)).build();
    let running = (0..200).map(|n| {
        let thread = runtime.thread(format!("t{n}"));
        tokio::spawn(async move { thread.prompt(format!("p{n}")).await })
    });
    for run in running.collect::<Vec<_>>() {
        run.await.unwrap().unwrap();
    }
    for n in 0..200 {
        assert_eq!(history(&runtime.thread(format!("t{n}"))).await, format!("u:p{n} a:ok"));
    }
}

#[tokio::test]
async fn a_seeded_history_comes_first_and_a_second_one_replaces_it() {
    let model = Scripted::new([Step::Say("one")]);
    let cupboard = Cupboard::default();
    let runtime = builder(config(&model)).sessions(cupboard.clone()).build();
    let thread = runtime.thread("t");
    thread.seed_history([Message::user("zzz")]).await.unwrap();
    thread.seed_history([Message::user("old"), Message::user("older")]).await.unwrap();
    thread.prompt("new").await.unwrap();
    assert_eq!(model.asked(), ["u:old u:older u:new"]);
    let stored = cupboard.0.lock()[&ThreadId::from("t")].0.0.lock().len();
    assert_eq!(stored, 4, "the seed is stored with the first run");
    let error = thread.seed_history([Message::user("x")]).await.unwrap_err();
    assert_eq!(error.kind(), "session.not_replaceable");
}

#[tokio::test]
async fn fault_32_a_seeded_history_is_repaired_and_says_so() {
    let model = Scripted::new([Step::Say("one")]);
    let runtime = builder(config(&model)).build();
    let thread = runtime.thread("t");
    let call = ToolCall::new("c1", "t", Json::empty_object());
    let orphan = ToolResultMessage::new(&call, Vec::new(), false);
    let asked = AssistantMessage::calls([call]);
    let history: [Message; 3] = [orphan.into(), asked.into(), Message::user("on")];
    let repaired = thread.seed_history(history).await.unwrap();
    let kinds: Vec<_> = repaired.iter().map(|defect| defect.kind).collect();
    assert_eq!(kinds, [DefectKind::ResultWithoutCall, DefectKind::CallWithoutResult]);
    let transcript = thread.messages().await.unwrap();
    assert_eq!(check(transcript.iter()), []);
    assert_eq!(transcript.len(), 3);
}
