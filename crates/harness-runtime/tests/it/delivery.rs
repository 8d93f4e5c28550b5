//! When messages are delivered.

use harness_core::message::Message;
use harness_runtime::DeliveryMode::{BetweenRounds, Interrupt, NextTurn};
use harness_runtime::{DeliveryState, QueueMode};

use crate::support::{Step, during, history, thread_of, thread_with};

fn user(text: &str) -> Message {
    Message::user(text)
}

#[tokio::test]
async fn messages_for_the_next_turn_get_one_each_unless_they_are_merged() {
    for (mode, expected) in [
        (QueueMode::OneAtATime, "u:a a:one u:b a:two u:c a:three"),
        (QueueMode::All, "u:a a:one u:b u:c a:two"),
    ] {
        let queue = during(|thread| {
            thread.execute(user("b"), NextTurn).unwrap();
            thread.execute(user("c"), NextTurn).unwrap();
        });
        let steps = [queue, Step::Say("one"), Step::Say("two"), Step::Say("three")];
        let (thread, _) = thread_with(steps, |config| config.follow_up_mode = mode);
        thread.execute(user("a"), NextTurn).unwrap();
        thread.response().await.unwrap();
        assert_eq!(history(&thread).await, expected);
    }
}

#[tokio::test]
async fn an_interruption_ends_the_run_and_waiters_hear_of_the_run_that_it_led_to() {
    let interrupt = during(|thread| {
        thread.execute(user("later"), NextTurn).unwrap();
        thread.execute(user("now"), Interrupt).unwrap();
        thread.execute(user("and now"), Interrupt).unwrap();
        let waiting: Vec<_> = thread.queue().iter().map(|entry| entry.message.joined_text()).collect();
        assert_eq!(waiting, ["now", "and now", "later"]);
    });
    let (thread, _) =
        thread_of([interrupt, Step::Hang, Step::Say("one"), Step::Say("two"), Step::Say("three")]);
    let report = thread.prompt("first").await.unwrap();
    assert_eq!(report.answer(), "three");
    assert_eq!(history(&thread).await, "u:first !aborted u:now a:one u:and now a:two u:later a:three");
}

#[tokio::test]
async fn what_waits_is_seen_changed_moved_and_removed() {
    let (thread, _) = thread_of([
        during(|thread| {
            let first = thread.execute(user("x"), NextTurn).unwrap();
            let second = thread.execute_as("mine", user("y"), NextTurn).unwrap();
            let third = thread.execute(user("z"), BetweenRounds).unwrap();
            assert_eq!(
                thread.execute_as("mine", user("y"), NextTurn).unwrap_err().kind(),
                "runtime.entry_exists"
            );
            thread.edit(&second, user("Y")).unwrap();
            thread.reorder(&second, 0).unwrap();
            thread.cancel(&third).unwrap();
            assert_eq!(thread.cancel(&third).unwrap_err().kind(), "runtime.not_waiting");
            let queue = thread.queue();
            let ids: Vec<_> = queue.iter().map(|entry| &entry.id).collect();
            assert_eq!(ids, [&second, &first]);
            assert!(queue.iter().all(|entry| entry.state == DeliveryState::Waiting));
        }),
        Step::Say("1"),
        Step::Say("2"),
        Step::Say("3"),
    ]);
    thread.prompt("go").await.unwrap();
    assert_eq!(history(&thread).await, "u:go a:1 u:Y a:2 u:x a:3");
    assert!(thread.queue().is_empty());
}

#[tokio::test]
async fn what_was_queued_before_a_failure_waits_for_the_next_prompt() {
    let (thread, model) = thread_of([
        during(|thread| {
            thread.steer(user("s")).unwrap();
            thread.follow_up(user("f")).unwrap();
        }),
        Step::Fail("down"),
        Step::Say("one"),
        Step::Say("two"),
    ]);
    let report = thread.prompt("a").await.unwrap();
    assert_eq!((report.problem().as_deref(), report.waiting), (Some("down"), 2));
    assert_eq!(thread.prompt("b").await.unwrap().answer(), "two");
    assert_eq!(model.asked()[1..], ["u:a !error u:b u:s", "u:a !error u:b u:s a:one u:f"]);
}

#[tokio::test]
async fn law_11_a_full_queue_refuses() {
    let (thread, _) = thread_of([]);
    for _ in 0..64 {
        thread.steer(user("s")).unwrap();
    }
    assert_eq!(thread.steer(user("too many")).unwrap_err().kind(), "runtime.queue_full");
}
