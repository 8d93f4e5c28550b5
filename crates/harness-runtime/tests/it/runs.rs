//! Runs: prompting, going on, aborting, what is kept.

use harness_core::StopReason;
use harness_core::message::Message;
use harness_runtime::{DeliveryMode, ResumeFrom, RuntimeError, Status};

use crate::support::{Step, during, history, thread_of};

#[tokio::test]
async fn a_thread_remembers_what_was_said() {
    let (thread, model) = thread_of([Step::Say("one"), Step::Say("two")]);
    let report = thread.prompt("a").await.unwrap();
    assert_eq!((report.answer(), report.messages().count(), report.from), ("one", 2, 0));
    let report = thread.prompt("b").await.unwrap();
    assert_eq!((report.answer(), report.messages().count(), report.from), ("two", 2, 2));
    assert_eq!(model.asked(), ["u:a", "u:a a:one u:b"]);
    assert_eq!(thread.status(), Status::Idle);
}

#[tokio::test]
async fn from_inside_of_its_own_run_a_thread_is_busy_and_never_waits_for_itself() {
    let (thread, _) = thread_of([
        during(|thread| {
            use futures_util::FutureExt as _;
            let busy = |error: RuntimeError| error.kind() == "runtime.busy";
            assert!(thread.prompt("nested").now_or_never().expect("at once").is_err_and(busy));
            assert!(thread.resume(ResumeFrom::Transcript).now_or_never().expect("at once").is_err_and(busy));
            assert!(thread.compact(None).now_or_never().expect("at once").is_err_and(busy));
            let seeded = thread.seed_history([Message::user("x")]).now_or_never();
            assert!(seeded.expect("at once").is_err_and(busy));
        }),
        Step::Say("ok"),
    ]);
    assert_eq!(thread.prompt("go").await.unwrap().answer(), "ok");
}

#[tokio::test]
async fn law_8_an_abort_keeps_what_was_finished_and_the_thread_takes_the_next_prompt() {
    let (thread, _) = thread_of([
        during(|thread| {
            thread.abort("user pressed stop");
            assert!(matches!(thread.status(), Status::Aborting { .. }));
        }),
        Step::Hang,
        Step::Say("two"),
    ]);
    let report = thread.prompt("first").await.unwrap();
    assert_eq!(report.end.reason(), StopReason::Cancelled);
    assert_eq!(report.problem().as_deref(), Some("Cancelled: user pressed stop"));
    assert_eq!(thread.prompt("second").await.unwrap().answer(), "two");
    assert_eq!(history(&thread).await, "u:first !aborted u:second a:two");
    assert!(!thread.abort("nothing").any());
}

#[tokio::test]
async fn going_on_needs_something_to_go_on_with() {
    let (thread, model) = thread_of([Step::Say("a"), Step::Say("b"), Step::Say("c")]);
    let kind = |result: Result<harness_runtime::Report, RuntimeError>| result.unwrap_err().kind().to_owned();
    assert_eq!(kind(thread.resume(ResumeFrom::Transcript).await), "runtime.empty_transcript");
    thread.prompt("go").await.unwrap();
    assert_eq!(kind(thread.resume(ResumeFrom::Transcript).await), "runtime.nothing_to_resume");
    thread.follow_up(Message::user("f")).unwrap();
    thread.steer(Message::user("s")).unwrap();
    assert_eq!(thread.resume(ResumeFrom::Transcript).await.unwrap().answer(), "c");
    assert_eq!(model.asked()[1..], ["u:go a:a u:s", "u:go a:a u:s a:b u:f"]);
}

#[tokio::test]
async fn a_closed_thread_takes_nothing() {
    let (thread, _) = thread_of([during(|thread| drop(thread.follow_up(Message::user("f")))), Step::Hang]);
    let mut events = thread.events(harness_runtime::StartAt::Live);
    let running = tokio::spawn({
        let thread = thread.clone();
        async move { thread.prompt("go").await }
    });
    while thread.queue_len() == 0 {
        tokio::task::yield_now().await;
    }
    thread.close().await;
    assert_eq!(running.await.unwrap().unwrap().end.reason(), StopReason::Cancelled);
    assert_eq!(thread.prompt("x").await.unwrap_err().kind(), "runtime.closed");
    assert_eq!(
        thread.execute(Message::user("x"), DeliveryMode::default()).unwrap_err().kind(),
        "runtime.closed"
    );
    while events.next().await.is_some() {}
}
