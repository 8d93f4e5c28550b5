//! What a JSON Lines session writes and reads.

use std::sync::Arc;

use harness_core::message::Message;
use harness_core::port::{Durability, Entry, EntryHead, Session};
use harness_core::{RunId, Time, TurnId};
use harness_session::{JsonlSession, Limits, OpenOptions};

#[test]
fn an_append_is_one_line_after_the_header() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("a/b/chat.jsonl");
    let session = JsonlSession::open(&path, OpenOptions::new().program("test", "1")).unwrap();
    let head =
        EntryHead::new(Time(1_767_225_600_000), Some(RunId::from("r1")), 1, Some(TurnId::from("r1.1")));
    let hello = Arc::new(Message::user("hello"));
    session.try_append(&head, &[Entry::Message(&hello)], Durability::Sync).unwrap().unwrap();
    insta::assert_snapshot!(std::fs::read_to_string(&path).unwrap(), @r#"
    {"type":"session","format":"harness.session","version":1,"id":"chat-19b76daa800","created_at":"2026-01-01T00:00:00.000Z","harness":{"name":"test","version":"1"}}
    {"type":"message","id":"e1","parent_id":null,"at":"2026-01-01T00:00:00.000Z","run_id":"r1","turn":1,"turn_id":"r1.1","message":{"role":"user","content":[{"type":"text","text":"hello"}]}}
    "#);
    drop(session);
    let session = JsonlSession::open(&path, OpenOptions::new()).unwrap();
    session.try_append(&head, &[Entry::Message(&hello)], Durability::Sync).unwrap().unwrap();
    let loaded = JsonlSession::read(&path, Limits::default()).unwrap().loaded;
    assert_eq!(loaded.messages, [Arc::clone(&hello), hello]);
}
