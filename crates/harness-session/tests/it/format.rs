//! What a session file looks like, and what of other files is read.

use std::os::unix::fs::PermissionsExt;
use std::path::Path;
use std::sync::Arc;

use harness_core::message::{AssistantMessage, Message, ToolCall};
use harness_core::outcome::TotalUsage;
use harness_core::port::{CompactionLevel, CompactionNote, Durability, Entry, EntryHead, Session};
use harness_core::tool::RetryClass;
use harness_core::transcript::{Plan, Span};
use harness_core::{Json, SessionId, Stop, StopReason, Time};
use harness_session::{FileSession, unanswered};

use crate::support::{Place, append, asks, bare, call, head, load, options, result, say, texts, user};

#[test]
fn each_kind_of_entry_is_one_line() {
    let place = Place::new();
    let options = options().id("s-1").meta(Json::parse(r#"{"descriptor":"sha256:00"}"#).unwrap());
    let session = FileSession::open(place.path(), options).unwrap();
    let (go, asked, done) = (user("go"), asks(&["c1"]), result("c1", "ok"));
    let (call, class) = (call("c1"), RetryClass::Unsafe);
    append(&session, &[Entry::Message(&go), Entry::Message(&asked)]).unwrap();
    append(&session, &[Entry::CallStarted { call: &call.id, attempt: 1, class: &class }]).unwrap();
    let finished = Entry::CallFinished { call: &call.id, attempt: 1, class: &class, result: &done };
    let (stop, usage) = (Stop::from(StopReason::AnswerFinalized), TotalUsage::default());
    append(&session, &[finished]).unwrap();
    let state = Json::parse(r#"{"mode":"plan"}"#).unwrap();
    append(&session, &[Entry::State { name: "modes", state: &state }]).unwrap();
    append(&session, &[Entry::RunEnd { stop: &stop, usage: &usage }]).unwrap();
    let outside = EntryHead::new(Time(1_767_225_600_001), None, 0, None);
    session.append_blocking(&outside, &[Entry::Message(&user("note"))], Durability::Sync).unwrap();
    insta::assert_snapshot!(place.text(), @r##"
    {"type":"session","format":"harness.session","version":1,"id":"s-1","created_at":"2026-01-01T00:00:00.000Z","harness":{"name":"test","version":"1"},"meta":{"descriptor":"sha256:00"}}
    {"type":"message","id":"e1","parent_id":null,"at":"2026-01-01T00:00:00.000Z","run_id":"r1","turn":1,"turn_id":"r1.1","message":{"role":"user","content":[{"type":"text","text":"go"}]}}
    {"type":"message","id":"e2","parent_id":"e1","at":"2026-01-01T00:00:00.000Z","run_id":"r1","turn":1,"turn_id":"r1.1","message":{"role":"assistant","content":[{"type":"toolCall","id":"c1","name":"refund","arguments":{"cents":9007199254740993}}],"stopReason":"toolUse"}}
    {"type":"call","id":"e3","parent_id":"e2","at":"2026-01-01T00:00:00.000Z","run_id":"r1","turn":1,"turn_id":"r1.1","call_id":"c1","state":"started","attempt":1,"retry_class":"unsafe"}
    {"type":"call","id":"e4","parent_id":"e3","at":"2026-01-01T00:00:00.000Z","run_id":"r1","turn":1,"turn_id":"r1.1","call_id":"c1","state":"finished","attempt":1,"retry_class":"unsafe","result":{"role":"toolResult","toolCallId":"c1","toolName":"refund","content":[{"type":"text","text":"ok"}],"isError":false}}
    {"type":"state","id":"e5","parent_id":"e4","at":"2026-01-01T00:00:00.000Z","run_id":"r1","turn":1,"turn_id":"r1.1","name":"modes","state":{"mode":"plan"}}
    {"type":"run_end","id":"e6","parent_id":"e5","at":"2026-01-01T00:00:00.000Z","run_id":"r1","turn":1,"turn_id":"r1.1","stop":{"reason":"answer_finalized","evidence":"none"},"usage":{"modelCalls":0,"toolCalls":0}}
    {"type":"message","id":"e7","parent_id":"e6","at":"2026-01-01T00:00:00.001Z","message":{"role":"user","content":[{"type":"text","text":"note"}]}}
    "##);
}

#[test]
fn a_compaction_names_what_it_keeps() {
    let place = Place::new();
    let session = place.open();
    let mut note = CompactionNote::default();
    (note.tokens_before, note.tokens_after, note.target) = (900, 90, 100);
    (note.plan_version, note.level) = (1, CompactionLevel::Compressed);
    (note.actions, note.summary) = (vec![("summarize".to_owned(), 1)], Some("short".to_owned()));
    note.first_kept = 1;
    let spans = [Span::Made([user("short")].into()), Span::Kept(1..usize::MAX)];
    let plan = Plan { spans: spans.into() };
    append(&session, &[Entry::Message(&user("one")), Entry::Message(&user("two"))]).unwrap();
    append(&session, &[Entry::Compaction { note: &note, plan: &plan, permanent: true }]).unwrap();
    let spans = [Span::Kept(0..1), Span::Kept(2..usize::MAX)];
    let (note, plan) = (CompactionNote::default(), Plan { spans: spans.into() });
    append(&session, &[Entry::Compaction { note: &note, plan: &plan, permanent: false }]).unwrap();
    let text = place.text();
    let own = text.lines().filter_map(|line| line.split_once(r#""turn_id":"r1.1","#)).skip(2);
    let own: Vec<_> = own.map(|(_, own)| own).collect();
    insta::assert_snapshot!(own.join("\n"), @r##"
    "summary":"short","first_kept_id":"e2","tokens_before":900,"tokens_after":90,"plan":[{"made":[{"role":"user","content":[{"type":"text","text":"short"}]}]},{"kept":{"first":"e2"}}],"permanent":true,"details":{"target":100,"plan_version":1,"actions":[["summarize",1]],"level":"compressed"}}
    "first_kept_id":"e3#0","tokens_before":0,"tokens_after":0,"plan":[{"kept":{"first":"e3#0","last":"e3#0"}},{"kept":{}}],"details":{"target":0,"plan_version":0,"actions":[],"level":"none"}}
    "##);
    assert_eq!(texts(&place.read().loaded), ["short", "two"]);
    assert_eq!(place.read().loaded.plan, Some(plan));
}

#[test]
fn a_compaction_of_what_is_not_there_any_more_shows_everything() {
    let line = r#"{"type":"compaction","id":"c","parent_id":"line2","plan":[{"kept":{"first":"gone"}}],"permanent":true}"#;
    let place = Place::with(format!("{}{}{line}\n", bare("one"), bare("two")));
    assert_eq!(texts(&place.read().loaded), ["one", "two"]);
}

#[test]
fn the_file_is_private_and_appears_with_the_first_append() {
    let place = Place::new();
    let path = place.folder().join("a/b/chat.jsonl");
    let session = FileSession::open(&path, options()).unwrap();
    assert!(!path.exists());
    assert_eq!((session.id(), session.header()), (None, None));
    append(&session, &[]).unwrap();
    assert!(!path.exists());
    say(&session, "hi").unwrap();
    assert_eq!(mode(&path), 0o600);
    assert_eq!(mode(&place.folder().join("a/b")), 0o700);
    assert_eq!(mode(&place.folder().join("a")), 0o700);
    assert_eq!(session.id(), Some(SessionId::from("chat-19b76daa800")));
}

#[track_caller]
fn mode(path: &Path) -> u32 {
    std::fs::metadata(path).unwrap().permissions().mode() & 0o777
}

#[test]
fn a_reopened_session_goes_on_where_it_was() {
    let place = Place::new();
    say(&place.open(), "one").unwrap();
    let session = FileSession::open(place.path(), options().id("another").program("other", "2")).unwrap();
    assert_eq!(session.id(), Some(SessionId::from("chat-19b76daa800")));
    say(&session, "two").unwrap();
    say(&session, "three").unwrap();
    let links: Vec<_> = place.text().lines().skip(1).map(|line| line[..46].to_owned()).collect();
    insta::assert_debug_snapshot!(links, @r##"
    [
        "{\"type\":\"message\",\"id\":\"e1\",\"parent_id\":null,\"",
        "{\"type\":\"message\",\"id\":\"e2\",\"parent_id\":\"e1\",\"",
        "{\"type\":\"message\",\"id\":\"e3\",\"parent_id\":\"e2\",\"",
    ]
    "##);
}

#[test]
fn a_raw_value_with_line_breaks_is_brought_to_one_line() {
    let place = Place::new();
    let raw = serde_json::value::RawValue::from_string("{\n\t\"a\":\r\n\"x\\ny\"}".to_owned()).unwrap();
    let call = ToolCall::new("c1", "t", Json::of(&raw).unwrap());
    let asked = Arc::new(Message::from(AssistantMessage::calls([call])));
    append(&place.open(), &[Entry::Message(&asked)]).unwrap();
    assert_eq!(place.text().lines().count(), 2);
    let read = &place.read().loaded.messages[0];
    let read = &read.as_assistant().unwrap().tool_calls().next().unwrap().arguments;
    assert_eq!(read.to::<serde_json::Value>().unwrap(), serde_json::json!({"a": "x\ny"}));
}

#[test]
fn bare_messages_are_read_and_continued() {
    let place = Place::with(format!("{}\r\n \n{}", bare("one").trim_end(), bare("two")));
    let session = place.open();
    assert_eq!(texts(&load(&session).unwrap()), ["one", "two"]);
    say(&session, "three").unwrap();
    assert_eq!(texts(&place.read().loaded), ["one", "two", "three"]);
    assert!(place.text().ends_with('\n'));
    assert!(place.text().contains(r#""id":"e1","parent_id":"line3""#), "{}", place.text());
    assert_eq!(place.read().header, None);
}

#[test]
fn a_file_of_blank_lines_is_an_empty_session() {
    let place = Place::with("\n \r\n\n");
    say(&place.open(), "one").unwrap();
    assert_eq!(texts(&place.read().loaded), ["one"]);
    assert!(place.read().header.is_some());
}

#[test]
fn other_types_are_passed_over_and_stay_in_the_chain() {
    let place = Place::new();
    let session = place.open();
    say(&session, "one").unwrap();
    drop(session);
    let label = r#"{"type":"label","id":"l","parent_id":"e1","at":"x","target_id":"e1","label":"here"}"#;
    let foreign = r#"{"type":"vendor:note","text":["any",{"shape":1}]}"#;
    let state = r#"{"type":"state","id":"s","parent_id":"l","at":"x","of":"another program"}"#;
    std::fs::write(place.path(), format!("{}{label}\n{state}\n{foreign}\n", place.text())).unwrap();
    let session = place.open();
    say(&session, "two").unwrap();
    assert!(place.text().contains(r#""id":"e2","parent_id":"s""#), "{}", place.text());
    let loaded = load(&session).unwrap();
    assert_eq!(texts(&loaded), ["one", "two"]);
    assert!(loaded.states.is_empty());
}

#[test]
fn the_branch_of_the_last_entry_counts() {
    let line = |id: &str, parent: &str, text: &str| {
        format!(
            "{{\"type\":\"message\",\"id\":\"{id}\",\"parent_id\":{parent},\"message\":{}}}\n",
            bare(text).trim_end()
        )
    };
    let tree = [
        line("a", "null", "root"),
        line("b", "\"a\"", "left"),
        line("c", "\"b\"", "left end"),
        line("d", "\"a\"", "right"),
        line("e", "\"d\"", "right end"),
    ];
    let place = Place::with(tree.concat());
    let session = place.open();
    assert_eq!(texts(&load(&session).unwrap()), ["root", "right", "right end"]);
    say(&session, "on").unwrap();
    assert_eq!(texts(&load(&session).unwrap()), ["root", "right", "right end", "on"]);
}

#[test]
fn unanswered_calls_are_told_in_call_order() {
    let place = Place::new();
    let session = place.open();
    let (class, b, done) = (RetryClass::Unsafe, call("b"), result("b", "early"));
    append(&session, &[Entry::Message(&asks(&["z"])), Entry::Message(&result("z", "old"))]).unwrap();
    append(&session, &[Entry::Message(&asks(&["a", "b", "c"])), Entry::Message(&result("a", "ok"))]).unwrap();
    append(&session, &[Entry::CallFinished { call: &b.id, attempt: 1, class: &class, result: &done }])
        .unwrap();
    let open: Vec<_> = unanswered(&place.read().loaded)
        .into_iter()
        .map(|call| (call.call.id.to_string(), call.open.and_then(|open| open.result)))
        .collect();
    assert_eq!(open, [("b".to_owned(), Some(done)), ("c".to_owned(), None)]);
}

#[test]
fn a_long_session_is_read_back_whole() {
    let place = Place::new();
    let session = place.open();
    let messages: Vec<Arc<Message>> = (0..2_000).map(|n| user(&format!("message {n}"))).collect();
    for message in &messages {
        session.append_blocking(&head(), &[Entry::Message(message)], Durability::Flush).unwrap();
    }
    assert_eq!(place.read().loaded.messages, messages);
}
