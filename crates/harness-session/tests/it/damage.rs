//! Bad input: torn tails, damage, newer versions, other formats, limits, refusals of the system.

use std::os::unix::fs::PermissionsExt;

use harness_core::Json;
use harness_core::message::{Block, Message, UserMessage};
use harness_core::port::{Entry, SessionError, TornTail};
use harness_session::{Error, FileSession, Limits};

use crate::support::{Place, append, bare, call, load, options, say, texts, user};

/// A file of one good line and then `tail` is loaded without it, is not changed by that, and the next
/// append cuts it off; `aside` is what is kept of it beside the session.
#[track_caller]
fn check_torn(tail: &[u8], aside: Option<&[u8]>) {
    let content = [bare("one").as_bytes(), tail].concat();
    let place = Place::with(&content);
    let session = place.open();
    let loaded = load(&session).unwrap();
    assert_eq!(texts(&loaded), ["one"]);
    assert_eq!(loaded.torn_tail, Some(TornTail { line: 2, bytes: tail.len() as u64 }));
    assert_eq!(std::fs::read(place.path()).unwrap(), content, "a load changes nothing");
    assert_eq!(place.files(), ["chat.jsonl", "chat.jsonl.lock"]);

    say(&session, "two").unwrap();
    let loaded = load(&session).unwrap();
    assert_eq!((texts(&loaded), loaded.torn_tail), (vec!["one".to_owned(), "two".to_owned()], None));
    assert_eq!(place.text().lines().count(), 2);
    assert_eq!(std::fs::read(place.beside(".torn")).ok().as_deref(), aside);
}

#[test]
fn a_torn_tail_is_reported_and_cut_off_by_the_next_append() {
    let torn = br#"{"role":"user","content":[{"type":"te"#;
    check_torn(torn, Some(&[torn, &b"\n"[..]].concat()));
    check_torn(b"{", Some(b"{\n"));
    check_torn(b"\xc3", Some(b"\xc3\n"));
    check_torn(b"{\"role\":\"user\",\0\0\0", Some(b"{\"role\":\"user\",\0\0\0\n"));
}

#[test]
fn a_tail_of_nul_bytes_is_not_worth_keeping() {
    check_torn(b"\0", None);
    check_torn(&vec![0; 200_000], None);
}

#[test]
fn an_append_without_a_load_before_cuts_off_a_torn_tail_too() {
    let place = Place::with(format!("{}{{\"ro", bare("one")));
    say(&place.open(), "two").unwrap();
    assert_eq!(texts(&place.read().loaded), ["one", "two"]);
}

#[test]
fn a_torn_first_line_is_an_empty_session() {
    let place = Place::with(r#"{"type":"session","format":"harness.se"#);
    say(&place.open(), "one").unwrap();
    let stored = place.read();
    assert_eq!(texts(&stored.loaded), ["one"]);
    assert!(stored.header.is_some());
}

/// Nothing of a tail longer than the line limit is read into memory, and it is a torn one all the same.
#[test]
fn a_tail_longer_than_the_line_limit_is_a_torn_one() {
    let mut limits = Limits::default();
    limits.line_bytes = 300;
    let place = Place::with(format!("{}{}", bare("one"), "x".repeat(5_000)));
    let session = FileSession::open(place.path(), options().limits(limits)).unwrap();
    assert_eq!(load(&session).unwrap().torn_tail, Some(TornTail { line: 2, bytes: 5_000 }));
    say(&session, "two").unwrap();
    assert_eq!(texts(&load(&session).unwrap()), ["one", "two"]);
    assert_eq!(std::fs::read(place.beside(".torn")).unwrap().len(), 5_001);
}

/// The error of opening, loading and appending to a file of `content`: the same each time, and the file
/// stays as it is.
#[track_caller]
fn error_of(content: impl AsRef<[u8]>) -> String {
    let place = Place::with(&content);
    let told = |error: SessionError| {
        let file = place.path();
        format!("{}: {}", error.kind, error.message.replace(file.to_str().unwrap(), "FILE"))
    };
    let read = told(FileSession::read(place.path(), &options()).unwrap_err().into());
    match FileSession::open(place.path(), options()) {
        Err(error) => assert_eq!(told(error.into()), read),
        Ok(session) => {
            assert_eq!(told(say(&session, "no").unwrap_err()), read);
            assert_eq!(told(load(&session).unwrap_err()), read);
        }
    }
    assert_eq!(std::fs::read(place.path()).unwrap(), content.as_ref());
    read
}

#[test]
fn damage_elsewhere_is_an_error_with_its_place() {
    let lines = |bad: &str| format!("{}{bad}\n{}", bare("one"), bare("two"));
    let errors = [
        error_of(lines("{\"role\":\"us")),
        error_of(lines("\0\0\0")),
        error_of(lines("[1]")),
        error_of(lines("{}")),
        error_of(lines(r#"{"type":7}"#)),
        error_of(lines(r#"{"role":"wizard"}"#)),
        error_of(lines(r#"{"type":"message","message":{"role":"user"}}"#)),
        error_of(lines(r#"{"type":"message","id":"a","parent_id":"b","message":{"role":"user"}}"#)),
        error_of(lines(r#"{"type":"label","id":"line1"}"#)),
        error_of(lines(
            r#"{"type":"call","id":"a","call_id":"c","state":"paused","attempt":1,"retry_class":"pure"}"#,
        )),
        error_of(lines(r#"{"type":"session","format":"harness.session","version":1,"id":"s"}"#)),
        error_of("{\"role\":\"us\n"),
    ];
    insta::assert_snapshot!(errors.join("\n"), @r##"
    session.corrupt_line: session `FILE`, line 2 (byte 57): EOF while parsing a string, at byte 11 of the line (`harness session repair` moves such lines to a separate file; the session is unchanged)
    session.corrupt_line: session `FILE`, line 2 (byte 57): a JSON object was expected (`harness session repair` moves such lines to a separate file; the session is unchanged)
    session.corrupt_line: session `FILE`, line 2 (byte 57): a JSON object was expected (`harness session repair` moves such lines to a separate file; the session is unchanged)
    session.corrupt_line: session `FILE`, line 2 (byte 57): it has neither a `type` nor a `role` (`harness session repair` moves such lines to a separate file; the session is unchanged)
    session.corrupt_line: session `FILE`, line 2 (byte 57): invalid type: integer, expected a string, at byte 9 of the line (`harness session repair` moves such lines to a separate file; the session is unchanged)
    session.corrupt_line: session `FILE`, line 2 (byte 57): unknown variant `wizard`, expected one of `system`, `user`, `assistant`, `toolResult`, `custom`, at byte 17 of the line (`harness session repair` moves such lines to a separate file; the session is unchanged)
    session.corrupt_line: session `FILE`, line 2 (byte 57): missing field `id`, at byte 44 of the line (`harness session repair` moves such lines to a separate file; the session is unchanged)
    session.corrupt_line: session `FILE`, line 2 (byte 57): `parent_id` names the entry `b`, which is not before it (`harness session repair` moves such lines to a separate file; the session is unchanged)
    session.corrupt_line: session `FILE`, line 2 (byte 57): `id` repeats the entry `line1` (`harness session repair` moves such lines to a separate file; the session is unchanged)
    session.corrupt_line: session `FILE`, line 2 (byte 57): unknown variant `paused`, expected `started` or `finished`, at byte 54 of the line (`harness session repair` moves such lines to a separate file; the session is unchanged)
    session.corrupt_line: session `FILE`, line 2 (byte 57): a header follows the first line; two files were joined (`harness session repair` moves such lines to a separate file; the session is unchanged)
    session.corrupt_line: session `FILE`, line 1 (byte 0): EOF while parsing a string, at byte 11 of the line (`harness session repair` moves such lines to a separate file; the session is unchanged)
    "##);
}

/// Law 10: what a transcript holds may be secret.
#[test]
fn law_10_an_error_does_not_quote_the_transcript() {
    let error = error_of(format!(
        "{}\n{}",
        r#"{"role":"user","content":[{"type":"text","text":["hunter2"]}]}"#,
        bare("x")
    ));
    assert!(!error.contains("hunter2"), "{error}");
    let error = error_of(format!(
        "{}\n{}",
        r#"{"role":"toolResult","toolCallId":"a","toolName":"b","isError":"hunter2 \", expected"}"#,
        bare("x")
    ));
    assert!(!error.contains("hunter2"), "{error}");
    insta::assert_snapshot!(error, @"session.corrupt_line: session `FILE`, line 1 (byte 0): toolResult message: invalid type: string, expected a boolean, at byte 85 of the line (`harness session repair` moves such lines to a separate file; the session is unchanged)");
}

#[test]
fn headers_of_others_are_refused() {
    let errors = [
        error_of(
            "{\"type\":\"session\",\"format\":\"harness.session\",\"version\":2,\"id\":{\"new\":1}}\n{\"type\":\"future\"}\n",
        ),
        error_of(r#"{"type":"session","format":"harness.session","version":99}"#),
        error_of("{\"type\":\"session\",\"format\":\"harness.session\",\"id\":\"s\"}\n"),
        error_of("{\"type\":\"session\",\"format\":\"other.session\",\"version\":1}\n"),
        error_of("{\"type\":\"session\",\"version\":3,\"id\":\"u\",\"timestamp\":\"t\",\"cwd\":\"/\"}\n"),
    ];
    insta::assert_snapshot!(errors.join("\n"), @r##"
    session.newer_version: session `FILE` has format version 2, this program reads up to version 1 (use the version of harness that wrote it, or a newer one; the file was left as it is)
    session.newer_version: session `FILE` has format version 99, this program reads up to version 1 (use the version of harness that wrote it, or a newer one; the file was left as it is)
    session.corrupt_line: session `FILE`, line 1 (byte 0): the header has no version (`harness session repair` moves such lines to a separate file; the session is unchanged)
    session.wrong_format: `FILE` is not a harness session: its header says format `other.session` (use another session file; this one was left as it is)
    session.wrong_format: `FILE` is not a harness session: its header says a session tree of pi, version 3 (use another session file; this one was left as it is)
    "##);
}

#[test]
fn a_call_outside_an_assistant_message_is_not_stored() {
    let place = Place::new();
    let session = place.open();
    let mut message = UserMessage::text("call it");
    message.content.push(Block::from(call("c1")));
    let message = std::sync::Arc::new(Message::from(message));
    let error = append(&session, &[Entry::Message(&user("one")), Entry::Message(&message)]).unwrap_err();
    let text = error.message.replace(place.path().to_str().unwrap(), "FILE");
    insta::assert_snapshot!(text, @"an entry cannot be stored in session `FILE`: a user message cannot hold a `toolCall` block (correct the message; nothing was written)");
    assert!(!place.path().exists(), "nothing of the append is written");
}

#[test]
fn the_line_limit_holds_for_writing_and_reading() {
    let mut limits = Limits::default();
    limits.line_bytes = 400;
    let place = Place::new();
    let session = FileSession::open(place.path(), options().limits(limits)).unwrap();
    say(&session, "short").unwrap();
    let length = std::fs::metadata(place.path()).unwrap().len();
    let error = append(&session, &[Entry::Message(&user("ok")), Entry::Message(&user(&"x".repeat(400)))])
        .unwrap_err();
    assert_eq!(&*error.kind, "session.line_too_long");
    assert!(error.message.contains("line 4") && error.message.contains("400 bytes"), "{}", error.message);
    assert_eq!(std::fs::metadata(place.path()).unwrap().len(), length, "nothing of the append is written");
    // The longest line that is written is read.
    let frame = place.text().lines().last().unwrap().len() - "short".len();
    say(&session, &"y".repeat(400 - frame)).unwrap();
    assert!(say(&session, &"y".repeat(401 - frame)).is_err());
    assert_eq!(load(&session).unwrap().messages.len(), 2);

    limits.line_bytes = 399;
    let error = FileSession::read(place.path(), &options().limits(limits)).unwrap_err();
    assert!(matches!(error, Error::LineTooLong { line: 3, bytes: 401, limit: 399, .. }), "{error:?}");
}

#[test]
fn the_size_limit_holds_for_writing_and_reading() {
    let mut limits = Limits::default();
    limits.file_bytes = 700;
    let place = Place::new();
    let session = FileSession::open(place.path(), options().limits(limits)).unwrap();
    say(&session, "short").unwrap();
    let error = say(&session, &"x".repeat(300)).unwrap_err();
    assert_eq!(&*error.kind, "session.too_large");
    say(&session, "still works").unwrap();
    assert_eq!(texts(&load(&session).unwrap()), ["short", "still works"]);
    limits.file_bytes = 100;
    let error = FileSession::read(place.path(), &options().limits(limits)).unwrap_err();
    assert!(matches!(error, Error::TooLarge { limit: 100, .. }), "{error:?}");
}

#[test]
fn a_session_is_a_regular_file() {
    let place = Place::new();
    let error = FileSession::open(place.folder(), options()).unwrap_err();
    assert_eq!(error.kind(), "session.not_a_file");
    let error = FileSession::open(place.path(), options().create(false)).unwrap_err();
    assert_eq!(error.kind(), "session.not_found");
    assert_eq!(place.files(), [""; 0]);
    std::fs::write(place.path(), "").unwrap();
    let error = FileSession::open(place.path().join("below"), options()).unwrap_err();
    assert_eq!(error.kind(), "session.open_failed");
    assert!(error.hint().contains("directory"), "{}", error.hint());
}

#[test]
fn a_folder_that_cannot_be_made_is_named() {
    let error = FileSession::open("/proc/no/such/chat.jsonl", options()).unwrap_err();
    assert_eq!(error.kind(), "session.open_failed");
    assert!(error.to_string().starts_with("cannot create directory of session `/proc/no/such`: "), "{error}");
}

#[test]
fn an_unreadable_file_is_named() {
    let place = Place::with(bare("one"));
    std::fs::set_permissions(place.path(), std::fs::Permissions::from_mode(0o000)).unwrap();
    // A privileged user may read everything; then there is nothing to refuse.
    match FileSession::read(place.path(), &options()) {
        Ok(stored) => assert_eq!(texts(&stored.loaded), ["one"]),
        Err(error) => {
            assert_eq!(error.kind(), "session.open_failed");
            assert!(error.hint().contains("who may read"), "{}", error.hint());
        }
    }
}

#[test]
fn every_error_says_what_to_do() {
    let place = Place::new();
    let _owner = place.open();
    let error = FileSession::open(place.path(), options()).unwrap_err();
    let (hint, kind) = (error.hint(), error.kind());
    let told = SessionError::from(error);
    assert!(told.message.ends_with(&format!("({hint})")), "{}", told.message);
    assert_eq!(&*told.kind, kind);
}

#[test]
fn deep_arguments_come_back() {
    let place = Place::new();
    let session = place.open();
    let deep = Json::parse(&format!("{}1{}", "[".repeat(5_000), "]".repeat(5_000))).unwrap();
    let mut message = UserMessage::text("deep");
    message.metadata = Some(deep);
    let message = std::sync::Arc::new(Message::from(message));
    append(&session, &[Entry::Message(&message)]).unwrap();
    assert_eq!(load(&session).unwrap().messages, [message]);
}
