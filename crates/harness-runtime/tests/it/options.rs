//! Messages whose runs are particular.

use std::sync::Arc;

use harness_core::message::{Message, UserMessage};
use harness_core::port::{ContextPipeline, ViewCx};
use harness_core::transcript::{Plan, Span};
use harness_core::{Fault, Json};
use harness_runtime::{DeliveryMode, MessageOptions, QueueMode, Thread};

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
    let ann = MessageOptions::default().of_resource("ann");
    let bob = MessageOptions::default().of_resource("bob").with_state(Json::parse("{\"n\":1}").unwrap());
    let other = MessageOptions::default().with_layers(Arc::new(Whose("other")));
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
async fn threads_know_nothing_of_each_other() {
    let model = Scripted::new([Step::Say("one"), Step::Say("two")]);
    let runtime = builder(config(&model)).build().unwrap();
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
