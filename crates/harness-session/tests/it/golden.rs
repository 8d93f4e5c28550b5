//! A file of each released version stays readable for ever.

use harness_core::SessionId;
use harness_core::port::OpenCall;
use harness_core::tool::RetryClass;
use harness_session::{FORMAT_VERSION, Header, Program};

use crate::support::{Place, call, load, result, say, texts};

/// Version 1: every kind of line, lines of other programs, and a call that had finished when the process
/// ended.
const VERSION_1: &str = include_str!("../fixtures/v1.jsonl");

#[test]
fn version_1_is_read() {
    let place = Place::with(VERSION_1);
    let stored = place.read();
    let header: Header = stored.header.unwrap();
    assert_eq!(header.id, SessionId::from("golden"));
    assert_eq!(header.program, Some(Program::new("harness", "0.1.0")));
    assert_eq!(header.meta.unwrap().text(), r#"{"descriptor":"sha256:00"}"#);
    let loaded = stored.loaded;
    assert_eq!(texts(&loaded), ["How much is left?", "", "9007199254740993", "Enough.", "Refund it.", ""]);
    let done = OpenCall::new(call("c2").id, 1, RetryClass::Idempotent, Some(result("c2", "refunded")));
    let open = OpenCall::new(call("c1").id, 2, RetryClass::Unsafe, None);
    assert_eq!(loaded.open_calls, [open, done]);
    assert!(!loaded.ended);
    assert_eq!(loaded.torn_tail, None);
}

#[test]
fn version_1_is_continued() {
    let place = Place::with(VERSION_1);
    let session = place.open();
    say(&session, "on").unwrap();
    // The calls that were open have their results by then: the one that was stored, and one that is made.
    let said = texts(&load(&session).unwrap());
    assert_eq!(said.len(), 9);
    assert_eq!((&*said[7], &*said[8]), ("refunded", "on"));
    let text = place.text();
    let added = text.strip_prefix(VERSION_1).expect("lines that were there stay as they were");
    assert!(added.starts_with(r#"{"type":"message","id":"e13","parent_id":"e12","#), "{added}");
}

#[test]
fn every_released_version_has_a_golden_file() {
    let folder = std::path::Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/fixtures");
    for version in 1..=FORMAT_VERSION {
        assert!(folder.join(format!("v{version}.jsonl")).is_file(), "version {version}");
    }
}
