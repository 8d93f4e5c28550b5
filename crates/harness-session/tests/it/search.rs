//! Search finds the same in a directory of files as in a database.

use std::sync::Arc;

use harness_core::message::{AssistantMessage, Message, ToolCall};
use harness_core::port::{Durability, Entry, EntryHead};
use harness_core::{Json, Time};
use harness_session::search::{Found, Query, search};
use harness_session::{FileSession, OpenOptions};

use crate::support::{Place, options};

/// Two sessions, once as files and once as threads of a database.
fn sessions() -> Place {
    let place = Place::new();
    let call = ToolCall::new("c1", "find_order", Json::parse(r#"{"id":"1042"}"#).unwrap());
    let told = [
        ("maria", "Where is my order 1042?"),
        ("ida", "Bitte erstatten Sie die Stra\u{df}enkarte, 100% \"Wolle\""),
        ("maria", "The second order, please"),
        ("ida", "注文はどこですか"),
    ];
    for (at, (name, text)) in (0..).zip(told) {
        for path in [format!("{name}.jsonl"), format!("chats.db#{name}")] {
            let session = FileSession::open(place.folder().join(path), options()).unwrap();
            let head = EntryHead::new(Time(1_767_225_600_000 + at), None, 0, None);
            let message = Arc::new(Message::user(text));
            session.append_blocking(&head, &[Entry::Message(&message)], Durability::Flush).unwrap();
            if at == 0 {
                let asks = Arc::new(Message::from(AssistantMessage::calls([call.clone()])));
                session.append_blocking(&head, &[Entry::Message(&asks)], Durability::Flush).unwrap();
            }
        }
    }
    place
}

fn lines(found: &Found) -> Vec<String> {
    let of = |hit: &harness_session::search::Hit| {
        let name = hit.session.file_name().unwrap().to_str().unwrap();
        let name = name.trim_end_matches(".jsonl").trim_start_matches("chats.db#");
        format!("{name} {} {}: {}", hit.entry, hit.role, hit.snippet)
    };
    found.hits.iter().map(of).collect()
}

#[track_caller]
fn check(words: &str, expected: &[&str]) {
    let place = sessions();
    for path in [place.folder().to_owned(), place.folder().join("chats.db")] {
        for _ in 0..2 {
            let found = search(&path, &Query::new(words), 10, &OpenOptions::new()).unwrap();
            assert!(found.problems.is_empty() && !found.more, "{found:?}");
            assert_eq!(lines(&found), expected, "{words} in {}", path.display());
        }
    }
}

#[test]
fn every_word_is_found_in_any_case_and_the_latest_first() {
    check(
        "ORDER",
        &[
            "maria e3 user: The second order, please",
            "maria e2 assistant: find_order {\"id\":\"1042\"}",
            "maria e1 user: Where is my order 1042?",
        ],
    );
    check("1042 where", &["maria e1 user: Where is my order 1042?"]);
    check("STRA\u{df}E", &["ida e1 user: Bitte erstatten Sie die Stra\u{df}enkarte, 100% \"Wolle\""]);
    check("\"wolle\"", &["ida e1 user: \u{2026}te erstatten Sie die Stra\u{df}enkarte, 100% \"Wolle\""]);
    check("0%", &["ida e1 user: Bitte erstatten Sie die Stra\u{df}enkarte, 100% \"Wolle\""]);
    check("注文", &["ida e2 user: 注文はどこですか"]);
    check("order nothing", &[]);
    check("", &[]);
}

#[test]
fn the_index_keeps_up_with_appends() {
    let place = sessions();
    let path = place.folder().join("chats.db");
    let count = |words: &str| search(&path, &Query::new(words), 10, &options()).unwrap().hits.len();
    assert_eq!((count("tent"), count("order")), (0, 3));
    let session = FileSession::open(place.folder().join("chats.db#maria"), options()).unwrap();
    crate::support::say(&session, "The tent of my order").unwrap();
    assert_eq!((count("tent"), count("order")), (1, 4));
}

#[test]
fn hits_are_bounded_and_snippets_are_short() {
    let place = sessions();
    let long = format!("{}needle {}", "before ".repeat(200), "after ".repeat(200));
    for path in ["long.jsonl", "chats.db#long"] {
        let session = FileSession::open(place.folder().join(path), options()).unwrap();
        crate::support::say(&session, &long).unwrap();
    }
    for path in [place.folder().to_owned(), place.folder().join("chats.db")] {
        let found = search(&path, &Query::new("needle"), 10, &options()).unwrap();
        let snippet = &found.hits[0].snippet;
        assert!(snippet.starts_with('\u{2026}') && snippet.ends_with('\u{2026}'), "{snippet}");
        assert!(snippet.contains("needle") && snippet.chars().count() < 170, "{snippet}");
        let found = search(&path, &Query::new("order"), 2, &options()).unwrap();
        assert!(found.more && found.hits.len() == 2, "{found:?}");
    }
}
