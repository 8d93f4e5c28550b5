//! Messages whose runs are particular.

use std::sync::Arc;

use futures_util::FutureExt as _;
use harness_core::message::{Message, UserMessage};
use harness_core::port::{ContextPipeline, ViewCx};
use harness_core::transcript::{Plan, Span};
use harness_core::{Fault, Json};
use harness_runtime::{DeliveryMode, MessageOptions, Prompt, QueueMode, Thread};

use crate::support::{Scripted, Step, builder, config, during, history, thread_with};

/// Shows whose work it is, under a name.
struct Whose(&'static str);

impl ContextPipeline for Whose {
    async fn recall(&self, cx: &ViewCx) -> Result<Option<Plan>, Fault> {
        let user = cx.origin.user.as_deref().unwrap_or("-");
        let state = cx.origin.metadata.as_ref().map_or("-", Json::text);
        let made = UserMessage::text(format!("{}/{user}/{state}", self.0));
        let spans = [Span::Made(Arc::from([Arc::new(Message::from(made))])), Span::Kept(0..usize::MAX)];
        Ok(Some(Plan { spans: spans.into() }))
    }
}

fn queue(thread: &Thread, texts: &[&str], options: &MessageOptions) {
    for text in texts {
        thread.execute_with(Message::user(*text), DeliveryMode::NextTurn, options.clone()).unwrap();
    }
}

#[tokio::test]
async fn messages_that_differ_in_it_begin_their_own_runs_in_order() {
    let (mut ann, mut bob, mut other) =
        (MessageOptions::default(), MessageOptions::default(), MessageOptions::default());
    ann.user = Some("ann".into());
    (bob.user, bob.metadata) = (Some("bob".into()), Json::parse("{\"n\":1}").ok());
    other.layers = Some(Arc::new(Whose("other")));
    let act = move |thread: &Thread| {
        queue(thread, &["b", "c"], &ann);
        queue(thread, &["d"], &bob);
        queue(thread, &["e"], &ann);
        queue(thread, &["f"], &other);
        thread.execute(Message::user("g"), DeliveryMode::NextTurn).unwrap();
    };
    let says = (0..6).map(|_| Step::Say("ok"));
    let (thread, model) = thread_with([during(act)].into_iter().chain(says), |config| {
        config.follow_up_mode = QueueMode::All;
        config.ports.layers = Some(Arc::new(Whose("own")));
    });
    thread.prompt("a").await.unwrap();
    let begun: Vec<_> = model.asked().iter().map(|line| line.split(' ').next().unwrap().to_owned()).collect();
    let expected =
        ["u:own/-/-", "u:own/ann/-", "u:own/bob/{\"n\":1}", "u:own/ann/-", "u:other/-/-", "u:own/-/-"];
    assert_eq!(begun, expected);
    assert_eq!(history(&thread).await, "u:a a:ok u:b u:c a:ok u:d a:ok u:e a:ok u:f a:ok u:g a:ok");
}

#[tokio::test]
async fn a_prompt_has_its_own_user_and_tools_and_can_be_cancelled() {
    let (thread, model) = thread_with([Step::Say("x"), Step::Say("y"), Step::Hang], |config| {
        config.ports.layers = Some(Arc::new(Whose("own")));
    });
    thread.prompt(Prompt::from("a").user("ann")).await.unwrap();
    thread.prompt("b").await.unwrap();
    let begun: Vec<_> = model.asked().iter().map(|line| line.split(' ').next().unwrap().to_owned()).collect();
    assert_eq!(begun, ["u:own/ann/-", "u:own/-/-"]);
    let cancel = harness_core::Cancel::new();
    let stopped = async {
        tokio::task::yield_now().await;
        cancel.cancel();
    };
    let (report, ()) = tokio::join!(thread.prompt(Prompt::from("c").cancel_with(cancel.clone())), stopped);
    assert_eq!(report.unwrap().end.reason().as_str(), "cancelled");
}

#[tokio::test]
async fn prompts_wait_their_turn_when_they_are_told_to() {
    let (thread, _) = thread_with([Step::Say("x"), Step::Say("y")], |_| {});
    let (first, refused, second) =
        tokio::join!(thread.prompt("a"), thread.prompt("b"), thread.prompt("c").in_turn());
    assert_eq!((first.unwrap().answer(), second.unwrap().answer()), ("x", "y"));
    assert_eq!(refused.unwrap_err().kind(), "runtime.busy");
}

#[tokio::test]
async fn a_dropped_response_aborts_its_run_when_it_is_told_to() {
    for (aborts, expected) in [(true, "cancelled"), (false, "answer_finalized")] {
        let (thread, _) = thread_with([Step::Say("x")], |_| {});
        let response = thread.prompt("a");
        let mut response = if aborts { response.abort_on_drop() } else { response };
        assert!((&mut response).now_or_never().is_none());
        drop(response);
        assert_eq!(thread.response().await.unwrap().end.reason().as_str(), expected);
    }
}

#[tokio::test]
async fn threads_know_nothing_of_each_other() {
    let model = Scripted::new([Step::Say("one"), Step::Say("two")]);
    let runtime = builder(config(&model)).build();
    let (a, b) = (runtime.thread("a"), runtime.thread("b"));
    a.set_instructions("for a");
    a.follow_up(Message::user("later")).unwrap();
    b.prompt("hello").await.unwrap();
    assert_eq!((history(&a).await, history(&b).await), (String::new(), "u:hello a:one".to_owned()));
    assert_eq!((a.queue_len(), b.queue_len()), (1, 0));
    assert_eq!(model.requests()[0].prepared.instructions.as_ref(), "");
    b.close().await;
    a.prompt("hello").await.unwrap();
    assert_eq!(model.requests()[1].prepared.instructions.as_ref(), "for a");
}
