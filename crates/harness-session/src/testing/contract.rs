//! Contract of session stores.

use std::sync::Arc;

use harness_core::message::{AssistantMessage, Block, Message, ToolCall, ToolResultMessage};
use harness_core::outcome::TotalUsage;
use harness_core::port::{Durability, Entry, EntryHead, Loaded, OpenCall, Session};
use harness_core::tool::RetryClass;
use harness_core::{Json, RunId, Stop, StopReason, Time, TurnId, transcript};

/// Checks a store against the rules of the [`Session`] port.
///
/// `make` gives a new, empty session each time. Call it in a test of your store, on any executor:
///
/// ```
/// # async fn test() {
/// use harness_session::MemorySession;
/// use harness_session::testing::session_contract;
///
/// session_contract(MemorySession::new).await;
/// # }
/// ```
///
/// # Panics
/// When a rule is broken; the text names it.
pub async fn session_contract<S: Session>(mut make: impl FnMut() -> S) {
    a_new_session_is_empty(&make()).await;
    entries_come_back_in_order_and_exact(&make()).await;
    a_load_is_a_snapshot(&make()).await;
    started_calls_are_open_until_their_result_is_a_message(&make()).await;
    a_finished_call_shows_its_result(&make()).await;
    call_ids_may_repeat_in_a_later_batch(&make()).await;
    an_append_of_nothing_changes_nothing(&make()).await;
    a_run_is_open_until_its_end(&make()).await;
    nothing_may_be_appended(&make()).await;
    a_load_is_a_legal_transcript(&make()).await;
    the_descriptor_of_the_first_entry_is_kept(&make()).await;
    a_replaced_session_holds_the_new_messages_only(&make()).await;
    the_last_state_of_each_name_counts(&make()).await;
    super::shortening::compactions(&mut make).await;
}

/// Checks a store that outlives its value: what was appended is there when it is opened again.
///
/// `open` opens the session of a name, which is new at first; the value opened before is dropped by then.
///
/// # Panics
/// When a rule is broken; the text names it.
pub async fn durable_session_contract<S: Session>(mut open: impl FnMut(&str) -> S) {
    let transcript = transcript();
    let mut seen = Loaded::default();
    for (count, message) in transcript.iter().enumerate() {
        let session = open("durable");
        let loaded = load(&session).await;
        assert_eq!(loaded, seen, "reopened after {count} messages, the session is as it was");
        append(&session, &[Entry::Message(message)]).await;
        seen = load(&session).await;
        assert_eq!(seen.messages, transcript.get(..=count).unwrap_or_default(), "an append adds at the end");
    }
    let session = open("calls");
    let (call, result) = (call("c1"), result("c1", "done"));
    append(&session, &[Entry::Message(&asks(&["c1"])), started(&call, &RetryClass::Idempotent, 2)]).await;
    append(&session, &[finished(&call, &RetryClass::Idempotent, 2, &result)]).await;
    drop(session);
    let expected = OpenCall::new(call.id.clone(), 2, RetryClass::Idempotent, Some(result));
    assert_eq!(load(&open("calls")).await.open_calls, [expected], "a finished call is there when reopened");
    let first = open("other").id();
    assert_eq!(open("other").id(), first, "a session keeps its name");
}

async fn a_new_session_is_empty(session: &impl Session) {
    assert_eq!(load(session).await, Loaded::default(), "a new session is empty");
}

async fn entries_come_back_in_order_and_exact(session: &impl Session) {
    let transcript = transcript();
    let (one, rest) = transcript.split_at(1);
    for message in one {
        append(session, &[Entry::Message(message)]).await;
    }
    let entries: Vec<_> = rest.iter().map(Entry::Message).collect();
    append(session, &entries).await;
    let last = session.append(&head(), &[Entry::Message(&user("last"))], Durability::Sync).await;
    assert_eq!(last, Ok(()), "a durable append works");
    let loaded = load(session).await.messages;
    assert_eq!(loaded.get(..transcript.len()), Some(&*transcript), "messages come back in order and exact");
    assert_eq!(loaded.get(transcript.len()..), Some(&[user("last")][..]), "both ways of appending are one");
}

async fn a_load_is_a_snapshot(session: &impl Session) {
    append(session, &[Entry::Message(&user("one"))]).await;
    let before = load(session).await;
    assert_eq!(load(session).await, before, "a load changes nothing");
    append(session, &[Entry::Message(&user("two"))]).await;
    assert_eq!(before.messages, [user("one")], "an append does not change what was loaded");
    assert_eq!(load(session).await.messages, [user("one"), user("two")], "a load sees every append");
}

async fn started_calls_are_open_until_their_result_is_a_message(session: &impl Session) {
    let (a, b) = (call("a"), call("b"));
    append(session, &[Entry::Message(&user("go")), Entry::Message(&asks(&["a", "b"]))]).await;
    assert_eq!(load(session).await.open_calls, [], "a call that did not start is not open");
    append(session, &[started(&b, &RetryClass::Unsafe, 1), started(&a, &RetryClass::Idempotent, 1)]).await;
    append(session, &[started(&a, &RetryClass::Idempotent, 2)]).await;
    let expected = [
        OpenCall::new(b.id.clone(), 1, RetryClass::Unsafe, None),
        OpenCall::new(a.id.clone(), 2, RetryClass::Idempotent, None),
    ];
    assert_eq!(load(session).await.open_calls, expected, "open calls: in order of start, last attempt");
    append(session, &[Entry::Message(&result("a", "1"))]).await;
    assert_eq!(
        load(session).await.open_calls,
        expected.get(..1).unwrap_or_default(),
        "a result closes its call"
    );
    append(session, &[Entry::Message(&result("b", "2"))]).await;
    assert_eq!(load(session).await.open_calls, [], "nothing is open after the last result");
}

async fn a_finished_call_shows_its_result(session: &impl Session) {
    let (b, done) = (call("b"), result("b", "early"));
    append(session, &[Entry::Message(&asks(&["a", "b"])), started(&b, &RetryClass::Unsafe, 1)]).await;
    append(session, &[finished(&b, &RetryClass::Unsafe, 1, &done)]).await;
    let loaded = load(session).await;
    let expected = OpenCall::new(b.id.clone(), 1, RetryClass::Unsafe, Some(Arc::clone(&done)));
    assert_eq!(loaded.open_calls, [expected], "a call that finished out of order shows its result");
    assert_eq!(loaded.messages, [asks(&["a", "b"])], "its message is not one of the transcript yet");
    append(session, &[Entry::Message(&result("a", "1")), Entry::Message(&done)]).await;
    assert_eq!(load(session).await.open_calls, [], "its message closes it");
}

async fn call_ids_may_repeat_in_a_later_batch(session: &impl Session) {
    let again = call("call_0");
    append(session, &[Entry::Message(&asks(&["call_0"])), started(&again, &RetryClass::Unsafe, 1)]).await;
    append(session, &[Entry::Message(&result("call_0", "1")), Entry::Message(&asks(&["call_0"]))]).await;
    assert_eq!(load(session).await.open_calls, [], "a new batch begins without open calls");
    append(session, &[started(&again, &RetryClass::Unsafe, 1)]).await;
    let expected = OpenCall::new(again.id.clone(), 1, RetryClass::Unsafe, None);
    assert_eq!(load(session).await.open_calls, [expected], "an earlier result does not answer a later call");
}

/// A turn may end with nothing new to store: what was stored before is on stable storage then.
async fn an_append_of_nothing_changes_nothing(session: &impl Session) {
    for count in [0, 1] {
        for message in transcript().iter().take(count) {
            append(session, &[Entry::Message(message)]).await;
        }
        let before = load(session).await;
        let appended = session.append(&head(), &[], Durability::Sync).await;
        assert_eq!(appended, Ok(()), "an append of nothing is none that fails");
        assert_eq!(load(session).await, before, "an append of nothing changes nothing");
    }
}

async fn a_run_is_open_until_its_end(session: &impl Session) {
    let stop = Stop::from(StopReason::AnswerFinalized);
    let usage = TotalUsage::default();
    append(session, &[Entry::Message(&user("go"))]).await;
    assert!(!load(session).await.ended, "a run that has started is open");
    append(session, &[Entry::RunEnd { stop: &stop, usage: &usage }]).await;
    assert!(load(session).await.ended, "a run that has ended is not open");
    append(session, &[Entry::Message(&user("again"))]).await;
    assert!(!load(session).await.ended, "the next run is open again");
}

async fn nothing_may_be_appended(session: &impl Session) {
    append(session, &[]).await;
    assert_eq!(load(session).await, Loaded::default(), "appending nothing changes nothing");
}

/// Messages that a careless store would change.
fn transcript() -> Vec<Arc<Message>> {
    let exact = r#"{"role":"assistant","content":[{"type":"toolCall","id":"c1","name":"add",
        "arguments":{"z":9007199254740993,"a":1.10,"m":[1e400]},"vendor":{"k":[null]}},
        {"type":"hologram","data":{"b":1,"a":2}}],"stopReason":"toolUse","x-request":"r"}"#;
    let exact = serde_json::from_str::<Message>(exact);
    assert!(exact.is_ok(), "the message of this suite is valid: {exact:?}");
    vec![
        user("one"),
        user("lines\nand\r\nseparators\u{2028}\u{2029}, quotes \" \\ and controls \u{0} \u{7} \u{7f}"),
        exact.map_or_else(|_| user(""), Arc::new),
        result("c1", ""),
        user(&"large ".repeat(200_000)),
        Arc::new(Message::from(AssistantMessage::text("\u{1f600}"))),
    ]
}

pub(super) fn user(text: &str) -> Arc<Message> {
    Arc::new(Message::user(text))
}

fn call(id: &str) -> ToolCall {
    ToolCall::new(id, "tool", Json::empty_object())
}

pub(super) fn asks(ids: &[&str]) -> Arc<Message> {
    Arc::new(AssistantMessage::calls(ids.iter().map(|id| call(id))).into())
}

pub(super) fn result(id: &str, text: &str) -> Arc<Message> {
    Arc::new(ToolResultMessage::new(&call(id), vec![Block::text(text)], false).into())
}

fn started<'a>(call: &'a ToolCall, class: &'a RetryClass, attempt: u32) -> Entry<'a> {
    Entry::CallStarted { call: &call.id, attempt, class }
}

fn finished<'a>(
    call: &'a ToolCall,
    class: &'a RetryClass,
    attempt: u32,
    result: &'a Arc<Message>,
) -> Entry<'a> {
    Entry::CallFinished { call: &call.id, attempt, class, result }
}

async fn a_replaced_session_holds_the_new_messages_only<S: Session>(session: &S) {
    let all = transcript();
    for message in &all {
        append(session, &[Entry::Message(message)]).await;
    }
    let before = load(session).await;
    let kept: Vec<_> = std::iter::once(user("a summary")).chain(all.last().cloned()).collect();
    let replaced = session.replace(&head(), &kept).await;
    let after = load(session).await;
    if replaced == Ok(false) {
        assert_eq!(after, before, "a store that does not replace keeps everything");
        return;
    }
    assert_eq!(replaced, Ok(true), "replacing works");
    assert_eq!(after.messages, kept);
    append(session, &[Entry::Message(&user("next"))]).await;
    assert_eq!(load(session).await.messages.len(), 3, "an append continues from there");
}

async fn the_last_state_of_each_name_counts<S: Session>(session: &S) {
    let [first, second] = ["first", "second"].map(Json::string);
    let entry = |name, state| Entry::State { name, state };
    append(session, &[entry("mode", &first), Entry::Message(&user("one")), entry("list", &first)]).await;
    append(session, &[entry("mode", &second), Entry::Message(&user("two"))]).await;
    let states = [("list".to_owned(), first.clone()), ("mode".to_owned(), second.clone())];
    let loaded = load(session).await;
    assert_eq!(loaded.messages, [user("one"), user("two")], "states are not among the messages");
    assert!(loaded.states.into_iter().eq(states.clone()), "the last state of each name is loaded");
    if session.replace(&head(), &[user("two")]).await == Ok(true) {
        assert!(load(session).await.states.into_iter().eq(states), "replacing keeps the last states");
    }
}

async fn the_descriptor_of_the_first_entry_is_kept<S: Session>(session: &S) {
    for hash in ["sha256:01", "sha256:02"] {
        let mut head = head();
        head.descriptor = Some(hash.into());
        let message = Arc::new(Message::user(hash));
        let appended = session.append(&head, &[Entry::Message(&message)], Durability::Flush).await;
        assert_eq!(appended, Ok(()), "an append works");
    }
    let loaded = load(session).await;
    assert_eq!(loaded.descriptor.as_deref(), Some("sha256:01"), "the hash of the first entry is kept");
    assert_eq!(loaded.check_descriptor(Some("sha256:01")), Ok(()));
    assert!(loaded.check_descriptor(Some("sha256:02")).is_err(), "another descriptor is an explicit choice");
    assert!(loaded.check_descriptor(None).is_err(), "and so is none");
}

async fn a_load_is_a_legal_transcript<S: Session>(session: &S) {
    let (orphan, asked, said) = (result("c9", "lost"), asks(&["c1"]), Arc::new(Message::user("on")));
    let entries = [Entry::Message(&orphan), Entry::Message(&asked), Entry::Message(&said)];
    append(session, &entries).await;
    let loaded = load(session).await;
    assert_eq!(transcript::check(&loaded.messages), [], "a load gives every call its one result");
    assert_eq!(loaded.repairs.len(), 2, "what was repaired is reported: {:?}", loaded.repairs);
    assert_eq!(loaded.messages.last(), Some(&said), "nothing else is lost");
}

fn head() -> EntryHead {
    EntryHead::new(Time(1_767_225_600_000), Some(RunId::from("r1")), 1, Some(TurnId::from("r1.1")))
}

pub(super) async fn append(session: &impl Session, entries: &[Entry<'_>]) {
    let outcome = session.append(&head(), entries, Durability::Flush).await;
    assert_eq!(outcome, Ok(()), "an append works");
}

pub(super) async fn load(session: &impl Session) -> Loaded {
    let loaded = session.load().await;
    assert!(loaded.is_ok(), "a load works: {loaded:?}");
    loaded.unwrap_or_default()
}
