//! Contract of compactions in session stores.

use std::sync::Arc;

use harness_core::message::Message;
use harness_core::port::{CompactionNote, Entry, Session};
use harness_core::transcript::{Plan, Span};

use super::contract::{append, asks, load, result, user};

/// Checks all rules of compactions.
pub(super) async fn compactions<S: Session>(make: &mut impl FnMut() -> S) {
    a_compaction_of_the_view_is_shown_and_takes_nothing_away(&make()).await;
    an_open_span_grows(&make()).await;
    the_last_plan_counts(&make()).await;
    a_permanent_compaction_makes_the_transcript_what_it_showed(&make()).await;
    plans_count_from_the_last_permanent_compaction(&make()).await;
    entries_of_one_append_count_for_its_compaction(&make()).await;
}

async fn a_compaction_of_the_view_is_shown_and_takes_nothing_away(session: &impl Session) {
    say(session, &["one", "two", "three"]).await;
    let plan = plan([made("one and two"), Span::Kept(2..3)]);
    compact(session, &plan, false).await;
    let loaded = load(session).await;
    assert_eq!(loaded.plan, Some(plan), "the plan of a compaction of the view comes back exact");
    assert_eq!(texts(&loaded.messages), ["one", "two", "three"], "it removes nothing");
}

async fn an_open_span_grows(session: &impl Session) {
    say(session, &["one"]).await;
    let open = plan([Span::Kept(0..1), made("x"), Span::Kept(1..usize::MAX)]);
    compact(session, &open, false).await;
    say(session, &["two"]).await;
    assert_eq!(load(session).await.plan, Some(open), "an open span keeps its start and stays open");
}

async fn the_last_plan_counts(session: &impl Session) {
    say(session, &["one", "two"]).await;
    compact(session, &plan([made("first"), Span::Kept(1..usize::MAX)]), false).await;
    let last = plan([made("second"), Span::Kept(2..usize::MAX)]);
    compact(session, &last, false).await;
    assert_eq!(load(session).await.plan, Some(last), "of several plans the last one counts");
    compact(session, &plan([Span::Kept(0..usize::MAX)]), true).await;
    assert_eq!(load(session).await.plan, None, "a permanent compaction ends the plan before it");
}

async fn a_permanent_compaction_makes_the_transcript_what_it_showed(session: &impl Session) {
    say(session, &["one", "two"]).await;
    let (asked, done) = (asks(&["a"]), result("a", "1"));
    append(session, &[Entry::Message(&asked), Entry::Message(&done)]).await;
    compact(session, &plan([made("short"), Span::Kept(2..usize::MAX)]), true).await;
    say(session, &["three"]).await;
    let loaded = load(session).await;
    let expected = [user("short"), asked, done, user("three")];
    assert_eq!(loaded.messages, expected, "the transcript is what the plan showed, and what came later");
    assert_eq!(loaded.plan, None, "and all of it is shown");
    assert_eq!(loaded.open_calls, [], "calls are as they were");
}

async fn plans_count_from_the_last_permanent_compaction(session: &impl Session) {
    say(session, &["one", "two", "three"]).await;
    compact(session, &plan([made("a"), made("b"), Span::Kept(2..usize::MAX)]), true).await;
    say(session, &["four"]).await;
    let view = plan([Span::Kept(1..3), made("x"), Span::Kept(3..usize::MAX)]);
    compact(session, &view, false).await;
    let loaded = load(session).await;
    assert_eq!(loaded.plan, Some(view), "positions are those of the transcript as it is now");
    assert_eq!(texts(&loaded.messages), ["a", "b", "three", "four"], "made messages are messages");
    compact(session, &plan([Span::Kept(1..2), Span::Kept(3..4)]), true).await;
    assert_eq!(texts(&load(session).await.messages), ["b", "four"], "made messages can be kept again");
}

async fn entries_of_one_append_count_for_its_compaction(session: &impl Session) {
    let (one, two, note) = (user("one"), user("two"), CompactionNote::default());
    let plan = plan([made("x"), Span::Kept(1..2)]);
    let compaction = Entry::Compaction { note: &note, plan: &plan, permanent: true };
    append(session, &[Entry::Message(&one), Entry::Message(&two), compaction, Entry::Message(&one)]).await;
    assert_eq!(texts(&load(session).await.messages), ["x", "two", "one"], "entries count in their order");
}

async fn say(session: &impl Session, texts: &[&str]) {
    for text in texts {
        append(session, &[Entry::Message(&user(text))]).await;
    }
}

async fn compact(session: &impl Session, plan: &Plan, permanent: bool) {
    let note = CompactionNote::default();
    append(session, &[Entry::Compaction { note: &note, plan, permanent }]).await;
}

fn plan<const N: usize>(spans: [Span; N]) -> Plan {
    Plan { spans: Arc::from(spans) }
}

fn made(text: &str) -> Span {
    Span::Made([user(text)].into())
}

fn texts(messages: &[Arc<Message>]) -> Vec<String> {
    messages.iter().map(|message| message.joined_text()).collect()
}
