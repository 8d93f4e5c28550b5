//! Ends: of threads, of compactions, of runs that never began. Nobody waits for ever, and nothing is kept.

use std::sync::Arc;

use futures_util::FutureExt as _;
use harness_core::message::Message;
use harness_core::port::{CompactAsk, CompactReason, Compaction, Compactor, DynSession, SessionError};
use harness_core::{Fault, ThreadId};
use harness_runtime::{DeliveryMode, Runtime, RuntimeError, Sessions, StartAt, Status, Thread};

use crate::support::{Scripted, Step, builder, config, during, history, thread_of, thread_with};

fn kind<T>(result: Result<T, RuntimeError>) -> String {
    result.err().map_or_else(|| "ok".to_owned(), |error| error.kind().to_owned())
}

#[tokio::test]
async fn nothing_of_a_thread_is_left_when_nobody_holds_it() {
    let mark = Arc::new(());
    let model = Scripted::new([Step::Say("x"), Step::Say("y")]);
    let mut config = config(&model);
    let held = Arc::clone(&mark);
    config.convert = Some(Arc::new(move |view| {
        assert_eq!(*held, ());
        let mut messages = Vec::new();
        view.for_each(|message| messages.push(Arc::clone(message)));
        messages
    }));
    let runtime = builder(config).build();
    let thread = runtime.thread("t");
    thread.prompt("a").await.unwrap();
    thread.execute(Message::user("b"), DeliveryMode::NextTurn).unwrap();
    thread.response().await.unwrap();
    thread.close().await;
    drop((thread, runtime));
    tokio::task::yield_now().await;
    assert_eq!(Arc::strong_count(&mark), 1);
}

#[tokio::test]
async fn who_waits_for_the_first_run_of_a_thread_hears_that_it_is_closed() {
    let (thread, _) = thread_of([]);
    let mut waiting = Box::pin(thread.response());
    assert!((&mut waiting).now_or_never().is_none());
    thread.close().await;
    assert_eq!(kind(waiting.await), "runtime.closed");
    assert_eq!(
        (kind(thread.response().await), kind(thread.messages().await)),
        ("runtime.closed".to_owned(), "runtime.closed".to_owned())
    );
}

/// When it is asked for, it waits until it is cancelled, and then some.
struct Slow;

impl Compactor for Slow {
    async fn compact(&self, ask: CompactAsk) -> Result<Compaction, Fault> {
        if matches!(ask.reason, CompactReason::Requested { .. }) {
            ask.cx.cancel.cancelled().await;
            tokio::task::yield_now().await;
        }
        Ok(Compaction::unchanged())
    }
}

fn with_slow_compactor(steps: impl IntoIterator<Item = Step>) -> Thread {
    thread_with(steps, |config| config.ports.compactor = Some(Arc::new(Slow))).0
}

#[tokio::test]
async fn an_abort_of_a_compaction_ends_with_it() {
    let thread = with_slow_compactor([]);
    let compacting = tokio::spawn({
        let thread = thread.clone();
        async move { thread.compact(None).await }
    });
    while thread.status() != Status::Compacting {
        tokio::task::yield_now().await;
    }
    let mut response = Box::pin(thread.response());
    assert!((&mut response).now_or_never().is_none());
    let stopping = thread.abort("enough");
    assert!(stopping.any());
    stopping.ended().await;
    assert_eq!((thread.status(), compacting.await.unwrap()), (Status::Idle, Ok(None)));
}

#[tokio::test]
async fn a_message_that_came_during_a_compaction_begins_when_that_is_dropped() {
    let thread = with_slow_compactor([Step::Say("x")]);
    let mut compacting = Box::pin(thread.compact(None));
    assert!((&mut compacting).now_or_never().is_none());
    thread.execute(Message::user("a"), DeliveryMode::NextTurn).unwrap();
    drop(compacting);
    assert_eq!(thread.response().await.unwrap().answer(), "x");
    assert_eq!(history(&thread).await, "u:a a:x");
}

struct Closed;

impl Sessions for Closed {
    async fn open(&self, _: &ThreadId) -> Result<Arc<dyn DynSession>, SessionError> {
        Err(SessionError::new("session.gone", "the disk is gone"))
    }
}

fn without_a_disk() -> Runtime {
    builder(config(&Scripted::new([]))).sessions(Closed).build()
}

#[tokio::test]
async fn a_session_that_cannot_be_opened_is_not_tried_again_before_somebody_speaks() {
    let thread = without_a_disk().thread("t");
    let mut run = thread.events(StartAt::Live).of_one_run();
    thread.execute(Message::user("a"), DeliveryMode::NextTurn).unwrap();
    assert_eq!(kind(thread.response().await), "session.gone");
    assert_eq!((thread.status(), thread.queue_len()), (Status::Idle, 1), "the message is kept");
    while run.next().await.is_some() {}
}

#[tokio::test]
async fn a_prompt_that_was_never_taken_is_told_so_also_when_it_was_interrupted() {
    let thread = without_a_disk().thread("t");
    let mut prompt = Box::pin(thread.prompt("a"));
    assert!((&mut prompt).now_or_never().is_none());
    thread.interrupt(Message::user("b")).unwrap();
    assert_eq!(kind(prompt.await), "session.gone");
}

#[test]
fn the_readers_of_a_run_that_is_lost_come_to_an_end() {
    let tokio = tokio::runtime::Builder::new_current_thread().build().unwrap();
    let (thread, mut run) = tokio.block_on(async {
        let (thread, model) = thread_of([during(|_| {}), Step::Hang]);
        let run = thread.events(StartAt::Live).of_one_run();
        thread.execute(Message::user("a"), DeliveryMode::NextTurn).unwrap();
        while model.requests().is_empty() {
            tokio::task::yield_now().await;
        }
        (thread, run)
    });
    drop(tokio);
    while run.next().now_or_never().expect("no waiting").is_some() {}
    assert_eq!(thread.response().now_or_never().map(kind).as_deref(), Some("runtime.lost"));
}
