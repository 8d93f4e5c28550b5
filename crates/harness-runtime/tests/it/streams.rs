//! Following a thread.

use harness_core::message::Message;
use harness_runtime::{DeliveryMode, Item, ItemContent, PartialBlock, StartAt, StreamItem, ThreadEvent};

use crate::support::{Step, builder, config, short, thread_of};

fn line(item: &Item) -> String {
    let mark = if item.complete { "done" } else { "part" };
    match &item.content {
        ItemContent::Message(message) => format!("{mark} {}", short(message)),
        ItemContent::Coming(PartialBlock::Text(text)) => format!("{mark} a:{text}"),
        ItemContent::Block(block) => format!("{mark} a:{}", block.as_text().unwrap_or_default()),
        other => format!("{mark} {other:?}"),
    }
}

#[tokio::test]
async fn one_reader_follows_two_runs_and_a_late_one_sees_them_again() {
    let (thread, _) = thread_of([Step::Say("hello"), Step::Say("bye")]);
    let mut live = thread.items(StartAt::Live);
    thread.prompt("hi").await.unwrap();
    thread.prompt("more").await.unwrap();
    let expected = [
        "done u:hi",
        "part a:",
        "part a:hel",
        "part a:hello",
        "done a:hello",
        "done u:more",
        "part a:",
        "part a:by",
        "part a:bye",
        "done a:bye",
    ];
    let mut late = thread.items(StartAt::Replay);
    for items in [&mut live, &mut late] {
        let told: Vec<String> = std::iter::from_fn(|| items.try_next()).map(|item| line(&item)).collect();
        assert_eq!(told, expected);
    }
    let mut last = thread.text(StartAt::Turn);
    assert_eq!((last.next().await, last.next().await), (Some("by".into()), Some("e".into())));
}

#[tokio::test]
async fn law_11_who_falls_behind_is_told_how_much_and_slows_nobody() {
    let model = crate::support::Scripted::new((0..9).map(|_| Step::Say("x")));
    let runtime = builder(config(&model)).limits(|limits| limits.event_log = 8).build();
    let thread = runtime.thread("t");
    let mut slow = thread.events(StartAt::Live);
    for _ in 0..9 {
        thread.prompt("go").await.unwrap();
    }
    let Some(StreamItem::Lagged { missed }) = slow.try_next() else { panic!("nothing was missed") };
    let seqs: Vec<u64> = std::iter::from_fn(|| slow.try_next())
        .map(|told| match told {
            StreamItem::Event { seq, .. } => seq,
            other => panic!("{other:?}"),
        })
        .collect();
    assert_eq!(seqs, (missed..missed + 8).collect::<Vec<_>>());
}

#[tokio::test]
async fn threads_that_were_idle_the_longest_let_go_of_what_they_told() {
    let model = crate::support::Scripted::new((0..3).map(|_| Step::Say("x")));
    let runtime = builder(config(&model)).limits(|limits| limits.tapes = 1).build();
    let (old, new) = (runtime.thread("old"), runtime.thread("new"));
    let mut reader = old.events(StartAt::Replay);
    for thread in [&old, &new] {
        thread.prompt("go").await.unwrap();
        thread.wait_idle().await;
    }
    // The owner of a run forgets others behind its own end.
    tokio::task::yield_now().await;
    assert!(matches!(reader.try_next(), Some(StreamItem::Lagged { .. })));
    assert!(reader.try_next().is_none());
    assert!(matches!(new.events(StartAt::Replay).try_next(), Some(StreamItem::Event { seq: 0, .. })));
    assert_eq!(old.messages().await.unwrap().len(), 2, "the transcript stays");
    let mut live = old.text(StartAt::Live);
    old.prompt("again").await.unwrap();
    assert_eq!(live.next().await.as_deref(), Some("x"));
}

#[tokio::test]
async fn a_stream_of_one_run_ends_with_it_whatever_came_of_it() {
    let (thread, _) = thread_of([Step::Fail("down"), Step::Say("fine")]);
    for problem in [Some("down"), None] {
        let mut events = thread.events(StartAt::Live).of_one_run();
        thread.execute(Message::user("go"), DeliveryMode::NextTurn).unwrap();
        let mut last = None;
        while let Some(StreamItem::Event { event, .. }) = events.next().await {
            last = Some(event);
        }
        let Some(ThreadEvent::RunEnded(report)) = last else { panic!("{last:?}") };
        assert_eq!(report.problem().as_deref(), problem);
        thread.wait_idle().await;
    }
}

#[tokio::test]
async fn a_reader_that_comes_back_with_a_number_gets_exactly_the_rest() {
    let (thread, _) = thread_of([Step::Say("hello"), Step::Say("bye")]);
    let mut all = thread.events(StartAt::Replay);
    thread.prompt("hi").await.unwrap();
    thread.prompt("more").await.unwrap();
    let told = |told: StreamItem| match told {
        StreamItem::Event { seq, event } => (seq, format!("{event:?}")),
        StreamItem::Lagged { missed } => panic!("{missed} were missed"),
        StreamItem::Held { .. } | _ => panic!("something else was told"),
    };
    let all: Vec<_> = std::iter::from_fn(|| all.try_next()).map(told).collect();
    for at in 0..=all.len() {
        let mut rest = thread.events(StartAt::At(at as u64));
        assert_eq!(rest.position(), at as u64);
        assert_eq!(std::iter::from_fn(|| rest.try_next()).map(told).collect::<Vec<_>>(), all[at..]);
    }
    assert_eq!(thread.events(StartAt::Live).position(), all.len() as u64);
}
