//! Going back in a session, and notes.

use std::sync::Arc;

use harness_core::message::Message;
use harness_core::port::Entry;
use harness_core::transcript::{Plan, Span};
use harness_core::{EntryId, Json};
use harness_session::{Body, Error, Leaf, MemorySession, ModelRef, Note, OpenOptions, Tree};

use crate::support::{Place, append, head, load, say, texts, user};

fn id(text: &str) -> EntryId {
    EntryId::from(text)
}

#[test]
fn what_is_appended_after_going_back_is_another_branch() {
    let place = Place::new();
    let session = place.open();
    for text in ["one", "two", "three"] {
        say(&session, text).unwrap();
    }
    session.branch(Some(&id("e1"))).unwrap();
    assert_eq!(session.leaf().unwrap(), Some(id("e1")));
    assert_eq!(texts(&load(&session).unwrap()), ["one"]);
    say(&session, "other").unwrap();
    say(&session, "on").unwrap();
    assert_eq!(texts(&load(&session).unwrap()), ["one", "other", "on"]);
    assert_eq!(texts(&place.read().loaded), ["one", "other", "on"]);
    assert!(place.text().contains(r#""id":"e4","parent_id":"e1""#), "{}", place.text());
    assert!(place.text().contains(r#""id":"e5","parent_id":"e4""#), "{}", place.text());
    session.branch(Some(&id("e3"))).unwrap();
    assert_eq!(texts(&load(&session).unwrap()), ["one", "two", "three"]);
    assert_eq!(session.tree().unwrap().leaves().count(), 2);
}

#[test]
fn a_branch_may_begin_before_everything() {
    let place = Place::new();
    let session = place.open();
    say(&session, "one").unwrap();
    session.branch(None).unwrap();
    assert_eq!((session.leaf().unwrap(), load(&session).unwrap().messages), (None, Vec::new()));
    say(&session, "again").unwrap();
    assert_eq!(texts(&place.read().loaded), ["again"]);
}

#[test]
fn plans_count_messages_of_their_branch() {
    let place = Place::new();
    let session = place.open();
    for text in ["one", "two", "three"] {
        say(&session, text).unwrap();
    }
    session.branch(Some(&id("e2"))).unwrap();
    say(&session, "other").unwrap();
    let spans = [Span::Made([user("short")].into()), Span::Kept(2..usize::MAX)];
    let (note, plan) = (harness_core::port::CompactionNote::default(), Plan { spans: spans.into() });
    append(&session, &[Entry::Compaction { note: &note, plan: &plan, permanent: true }]).unwrap();
    assert_eq!(texts(&load(&session).unwrap()), ["short", "other"]);
    session.branch(Some(&id("e3"))).unwrap();
    assert_eq!(texts(&load(&session).unwrap()), ["one", "two", "three"]);
}

#[test]
fn a_session_in_memory_goes_back_as_one_in_a_file_does() {
    let session = MemorySession::new();
    let say = |text: &str| {
        let message = Arc::new(Message::user(text));
        session.append_blocking(&head(), &[Entry::Message(&message)]).unwrap();
    };
    for text in ["one", "two", "three"] {
        say(text);
    }
    session.branch(Some(&id("e1"))).unwrap();
    assert_eq!(session.leaf(), Some(id("e1")));
    say("other");
    assert_eq!(texts(&load(&session).unwrap()), ["one", "other"]);
    session.branch(Some(&id("e3"))).unwrap();
    assert_eq!(texts(&load(&session).unwrap()), ["one", "two", "three"]);
    assert_eq!(session.branch(Some(&id("e9"))).unwrap_err().kind.as_ref(), "session.unknown_entry");
}

#[test]
fn an_entry_that_is_not_there_is_named() {
    let place = Place::new();
    let session = place.open();
    say(&session, "one").unwrap();
    let refused = session.branch(Some(&id("e9")));
    assert!(matches!(&refused, Err(Error::UnknownEntry { id, .. }) if id == "e9"), "{refused:?}");
    let refused = session.note(&head(), &Note::label(id("e9"), "here"));
    assert!(matches!(&refused, Err(Error::UnknownEntry { id, .. }) if id == "e9"), "{refused:?}");
    say(&session, "two").unwrap();
    assert_eq!(texts(&load(&session).unwrap()), ["one", "two"]);
}

#[test]
fn each_kind_of_note_is_one_line() {
    let place = Place::new();
    let session = place.open();
    say(&session, "one").unwrap();
    let notes = [
        Note::label(id("e1"), "start"),
        Note::no_label(id("e1")),
        Note::Custom { custom_type: "ext".to_owned(), data: Some(Json::parse(r#"{"n":1.10}"#).unwrap()) },
        Note::ConfigChange {
            model: Some(ModelRef { provider: Some("p".to_owned()), id: "m".to_owned() }),
            thinking_level: Some("high".to_owned()),
            active_tools: Some(vec!["look".to_owned()]),
        },
        Note::SessionInfo { name: Some("The order".to_owned()), meta: None },
        Note::BranchSummary { from: id("e1"), summary: "was wrong".to_owned(), details: None },
    ];
    for note in &notes {
        session.note(&head(), note).unwrap();
    }
    say(&session, "two").unwrap();
    let text = place.text();
    let own = text.lines().skip(2).filter_map(|line| line.split_once(r#""turn_id":"r1.1","#));
    let own: Vec<_> = own.map(|(_, own)| own).collect();
    insta::assert_snapshot!(own.join("\n"), @r##"
    "target_id":"e1","label":"start"}
    "target_id":"e1"}
    "custom_type":"ext","data":{"n":1.10}}
    "model":{"provider":"p","id":"m"},"thinking_level":"high","active_tools":["look"]}
    "name":"The order"}
    "from_id":"e1","summary":"was wrong"}
    "message":{"role":"user","content":[{"type":"text","text":"two"}]}}
    "##);
    let tree = Tree::read(place.path(), &OpenOptions::new()).unwrap();
    let note = |body: &Body| if let Body::Note(note) = body { Some(note.clone()) } else { None };
    let kept: Vec<_> = tree.nodes().iter().filter_map(|node| note(&node.body)).collect();
    assert_eq!(kept, notes);
    assert_eq!(tree.context(Leaf::Last).shown.len(), 3);
    assert_eq!(load(&session).unwrap().messages.len(), 3);
}
