//! Taking damage out of a session file.

use harness_session::{Error, FileSession, OpenOptions, RepairReport};

use crate::support::{Place, bare, options, say, texts};

fn repair(place: &Place) -> RepairReport {
    FileSession::repair(place.path(), &options()).unwrap()
}

/// A session of these messages.
fn session(messages: &[&str]) -> Place {
    let place = Place::new();
    let session = place.open();
    for text in messages {
        say(&session, text).unwrap();
    }
    place
}

/// The session's file with one line (from 1) replaced.
fn damage(place: &Place, line: usize, with: &[u8]) -> u64 {
    let text = place.text();
    let lines: Vec<_> = text.split_inclusive('\n').collect();
    let before = lines[..line - 1].concat();
    let bytes = [before.as_bytes(), with, lines[line..].concat().as_bytes()].concat();
    std::fs::write(place.path(), bytes).unwrap();
    before.len() as u64
}

#[test]
fn a_sound_file_is_left_as_it_is() {
    let place = session(&["one", "two"]);
    let before = place.text();
    let report = repair(&place);
    assert!(report.is_sound());
    assert_eq!((report.kept, report.side_file), (2, None));
    assert_eq!((place.text(), place.files()), (before, vec!["chat.jsonl".to_owned()]));
}

#[test]
fn a_damaged_line_goes_to_a_side_file_and_the_chain_is_closed() {
    let place = session(&["one", "two", "three"]);
    let offset = damage(&place, 3, b"{\"type\":\"mess\xff\n");
    assert!(matches!(FileSession::read(place.path(), &OpenOptions::new()), Err(Error::CorruptLine { .. })));
    let report = repair(&place);
    let [line] = &report.quarantined[..] else { panic!("{report:?}") };
    assert_eq!((line.line, line.offset, line.bytes), (3, offset, 15));
    assert_eq!((report.relinked, report.kept), (1, 2));
    assert_eq!(texts(&place.read().loaded), ["one", "three"]);
    let aside = std::fs::read_to_string(place.beside(".quarantine")).unwrap();
    let aside: serde_json::Value = serde_json::from_str(&aside).unwrap();
    assert_eq!((&aside["line"], &aside["hex"]), (&3.into(), &"7b2274797065223a226d657373ff0a".into()));
    assert!(repair(&place).is_sound());
    say(&place.open(), "four").unwrap();
    assert_eq!(texts(&place.read().loaded), ["one", "three", "four"]);
}

#[test]
fn a_lost_header_and_a_torn_tail_are_repaired() {
    let place = session(&["one", "two"]);
    damage(&place, 1, b"{\"type\":\"session\n");
    damage(&place, 3, b"{\"type\":\"message\",\"id\":\"e2\"");
    let report = repair(&place);
    let lines: Vec<_> = report.quarantined.iter().map(|line| line.line).collect();
    assert_eq!(lines, [1, 3]);
    assert_eq!(texts(&place.read().loaded), ["one"]);
    assert_eq!(place.read().header.unwrap().id.as_str(), "chat");
    assert!(place.text().ends_with('\n'));
}

#[test]
fn bare_messages_keep_their_names() {
    let place = Place::with(format!("{}nonsense\n{}{}", bare("one"), bare("two"), bare("three").trim_end()));
    let report = repair(&place);
    assert_eq!((report.quarantined.len(), report.kept), (1, 3));
    assert_eq!(texts(&place.read().loaded), ["one", "two", "three"]);
    assert!(place.text().contains(r#""id":"line4","parent_id":"line3""#), "{}", place.text());
}

#[test]
fn branches_stay_and_what_followed_a_lost_entry_follows_the_one_before() {
    let place = session(&["root", "left"]);
    let open = place.open();
    open.branch(Some(&"e1".into())).unwrap();
    say(&open, "right").unwrap();
    say(&open, "right end").unwrap();
    drop(open);
    damage(&place, 4, b"\0\0\0\n");
    repair(&place);
    assert_eq!(texts(&place.read().loaded), ["root", "left", "right end"]);
}

#[test]
fn a_session_in_use_a_missing_one_and_another_format_are_refused() {
    let place = session(&["one"]);
    let owner = place.open();
    assert!(matches!(FileSession::repair(place.path(), &options()), Err(Error::Locked { .. })));
    drop(owner);
    let missing = FileSession::repair(place.folder().join("none.jsonl"), &options());
    assert!(matches!(missing, Err(Error::NotFound { .. })), "{missing:?}");
    damage(&place, 1, b"{\"type\":\"session\",\"format\":\"harness.session\",\"version\":9,\"id\":\"x\"}\n");
    assert!(matches!(FileSession::repair(place.path(), &options()), Err(Error::NewerVersion { .. })));
}
