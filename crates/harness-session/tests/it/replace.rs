//! Writing a session anew.

use std::os::unix::fs::PermissionsExt;

use harness_core::port::Entry;
use harness_core::tool::RetryClass;
use harness_session::{Error, FileSession};

use crate::support::{Place, append, asks, bare, call, head, load, options, result, say, texts, user};

const OTHERS: &str = r#"{"type":"session","format":"harness.session","version":1,"id":"s","created_at":"t","x-owner":[1.10]}
{"type":"message","id":"a","parent_id":null,"at":"t","x-key":9007199254740993,"message":{"role":"user","content":[{"type":"text","text":"one","x":1e400}]}}
{"type":"vendor:note","id":"b","parent_id":"a","z":1,"a":[1,  2]}
{"type":"message","id":"c","parent_id":"b","at":"t","x-key":{"k":1},"message":{"role":"user","content":[{"type":"text","text":"two"}],"y":2}}
{"type":"loose","n":1.0}
{"type":"message","id":"d","parent_id":"c","at":"t","message":{"role":"user","content":[{"type":"text","text":"three"}]}}
"#;

#[test]
fn other_lines_and_unknown_keys_survive() {
    let place = Place::with(OTHERS);
    let session = place.open();
    let kept = load(&session).unwrap().messages;
    session.replace_blocking(&head(), &[vec![user("summary")], kept[1..].to_vec()].concat()).unwrap();
    insta::assert_snapshot!(place.text(), @r##"
    {"type":"session","format":"harness.session","version":1,"id":"s","created_at":"t","x-owner":[1.10]}
    {"type":"vendor:note","id":"b","parent_id":null,"z":1,"a":[1,  2]}
    {"type":"message","id":"e1","parent_id":"b","at":"2026-01-01T00:00:00.000Z","run_id":"r1","turn":1,"turn_id":"r1.1","message":{"role":"user","content":[{"type":"text","text":"summary"}]}}
    {"type":"message","id":"c","parent_id":"e1","at":"t","x-key":{"k":1},"message":{"role":"user","content":[{"type":"text","text":"two"}],"y":2}}
    {"type":"loose","n":1.0}
    {"type":"message","id":"d","parent_id":"c","at":"t","message":{"role":"user","content":[{"type":"text","text":"three"}]}}
    "##);
    assert_eq!(texts(&load(&session).unwrap()), ["summary", "two", "three"]);
}

#[test]
fn the_same_transcript_gives_the_same_file() {
    let place = Place::with(OTHERS);
    let session = place.open();
    let messages = load(&session).unwrap().messages;
    session.replace_blocking(&head(), &messages).unwrap();
    assert_eq!(place.text(), OTHERS);
}

#[test]
fn an_empty_transcript_leaves_the_header() {
    let place = Place::new();
    let session = place.open();
    session.replace_blocking(&head(), &[]).unwrap();
    assert!(!place.path().exists(), "nothing to write makes no file");
    say(&session, "one").unwrap();
    session.replace_blocking(&head(), &[]).unwrap();
    assert_eq!(place.text().lines().count(), 1);
    say(&session, "two").unwrap();
    assert_eq!(texts(&load(&session).unwrap()), ["two"]);
}

/// A purge that left results in the records of calls would be none.
#[test]
fn records_of_calls_go_with_their_call() {
    let place = Place::new();
    let session = place.open();
    let (class, secret) = (RetryClass::Unsafe, result("c1", "purge me"));
    let c1 = call("c1");
    append(&session, &[Entry::Message(&asks(&["c1"]))]).unwrap();
    append(&session, &[Entry::CallFinished { call: &c1.id, attempt: 1, class: &class, result: &secret }])
        .unwrap();
    let asked = load(&session).unwrap().messages;
    session.replace_blocking(&head(), &asked).unwrap();
    assert_eq!(load(&session).unwrap().open_calls.len(), 1, "a call that stays keeps its records");
    session.replace_blocking(&head(), &[user("nothing happened")]).unwrap();
    assert!(!place.text().contains("purge me"), "{}", place.text());
}

#[test]
fn permissions_and_links_stay() {
    let place = Place::new();
    let link = place.folder().join("link.jsonl");
    std::os::unix::fs::symlink(place.path(), &link).unwrap();
    let session = FileSession::open(&link, options()).unwrap();
    say(&session, "one").unwrap();
    std::fs::set_permissions(place.path(), std::fs::Permissions::from_mode(0o640)).unwrap();
    session.replace_blocking(&head(), &[user("two")]).unwrap();
    assert!(std::fs::symlink_metadata(&link).unwrap().is_symlink());
    assert_eq!(std::fs::metadata(place.path()).unwrap().permissions().mode() & 0o777, 0o640);
    say(&session, "three").unwrap();
    assert_eq!(texts(&place.read().loaded), ["two", "three"]);
}

#[test]
fn bare_messages_get_a_header_and_the_ids_they_had() {
    let place = Place::with([bare("one"), bare("two")].concat());
    let session = place.open();
    let messages = load(&session).unwrap().messages;
    session.replace_blocking(&head(), &messages).unwrap();
    assert!(session.header().is_some());
    say(&session, "three").unwrap();
    let lines: Vec<_> = place.text().lines().map(|line| line[..44].to_owned()).collect();
    insta::assert_debug_snapshot!(lines, @r##"
    [
        "{\"type\":\"session\",\"format\":\"harness.session\"",
        "{\"type\":\"message\",\"id\":\"line1\",\"parent_id\":n",
        "{\"type\":\"message\",\"id\":\"line2\",\"parent_id\":\"",
        "{\"type\":\"message\",\"id\":\"e1\",\"parent_id\":\"lin",
    ]
    "##);
    assert_eq!(texts(&place.read().loaded), ["one", "two", "three"]);
}

#[test]
fn other_branches_go() {
    let line = |id: &str, parent: &str| {
        let message = bare(id);
        format!(
            "{{\"type\":\"message\",\"id\":\"{id}\",\"parent_id\":{parent},\"message\":{}}}\n",
            message.trim_end()
        )
    };
    let place = Place::with([line("a", "null"), line("b", "\"a\""), line("c", "\"a\"")].concat());
    let session = place.open();
    let messages = load(&session).unwrap().messages;
    session.replace_blocking(&head(), &messages).unwrap();
    assert_eq!(texts(&load(&session).unwrap()), ["a", "c"]);
    assert!(!place.text().contains("\"b\""), "{}", place.text());
}

#[test]
fn a_damaged_session_is_not_replaced() {
    let content = format!("{}oops\n{}", bare("one"), bare("two"));
    let place = Place::with(&content);
    let error = place.open().replace_blocking(&head(), &[]).unwrap_err();
    assert!(matches!(error, Error::CorruptLine { line: 2, .. }), "{error:?}");
    assert_eq!(place.text(), content);
}
