//! Calls and results that do not belong together: loads and repairs make the transcript legal.

use std::sync::Arc;

use harness_core::message::Message;
use harness_core::port::{CompactionNote, Durability, Entry, Session as _};
use harness_core::tool::RetryClass;
use harness_core::transcript::{DefectKind, Plan, Span, check};
use harness_session::{FileSession, Leaf, MemorySession, OpenOptions, Tree};

use crate::support::{Place, append, asks, call, head, load, now, options, result, say, texts, user};

/// A message in one word: `c1` its result, `+c1` an answer with that call, anything else said by the user.
fn message(word: &str) -> Arc<Message> {
    match word {
        "c1" | "c2" => result(word, word),
        "+c1" => asks(&["c1"]),
        "+c1c2" => asks(&["c1", "c2"]),
        text => user(text),
    }
}

fn file(words: &[&str]) -> Place {
    let place = Place::new();
    let session = place.open();
    for word in words {
        append(&session, &[Entry::Message(&message(word))]).unwrap();
    }
    place
}

fn words(messages: &[Arc<Message>]) -> Vec<String> {
    let word = |message: &Arc<Message>| match message.as_tool_result() {
        Some(result) if result.is_error => format!("!{}", result.tool_call_id),
        _ => match message.as_assistant() {
            Some(answer) => answer.tool_calls().flat_map(|call| ["+", call.id.as_str()]).collect(),
            None => message.joined_text(),
        },
    };
    messages.iter().map(word).collect()
}

#[test]
fn fault_32_a_load_repairs_orphans_and_names_their_lines() {
    let place = file(&["go", "c2", "+c1c2", "c2", "c1", "+c1", "on"]);
    let loaded = place.read().loaded;
    assert_eq!(words(&loaded.messages), ["go", "+c1+c2", "c1", "c2", "+c1", "!c1", "on"]);
    let told: Vec<_> = loaded.repairs.iter().map(ToString::to_string).collect();
    insta::assert_debug_snapshot!(told, @r#"
    [
        "line 3: result without a call (`c2`)",
        "line 6: result out of order (`c1`)",
        "line 7: call without a result (`c1`)",
    ]
    "#);
    assert_eq!(load(&place.open()).unwrap(), loaded, "the same with each load");
}

/// What is made when a session is loaded has names that compactions can use.
#[test]
fn fault_32_a_compaction_over_a_repaired_transcript_is_loaded_as_it_was_made() {
    let place = file(&["go", "+c1c2", "c2", "on"]);
    let session = place.open();
    let before = load(&session).unwrap().messages;
    assert_eq!(words(&before), ["go", "+c1+c2", "!c1", "c2", "on"]);
    let plan = Plan { spans: Arc::from([Span::Made([user("sum")].into()), Span::Kept(1..usize::MAX)]) };
    let note = CompactionNote::default();
    append(&session, &[Entry::Compaction { note: &note, plan: &plan, permanent: true }]).unwrap();
    let split = Plan { spans: Arc::from([Span::Kept(2..3), Span::Kept(4..usize::MAX)]) };
    append(&session, &[Entry::Compaction { note: &note, plan: &split, permanent: false }]).unwrap();
    say(&session, "more").unwrap();
    drop(session);
    let loaded = load(&place.open()).unwrap();
    assert_eq!(words(&loaded.messages), ["sum", "+c1+c2", "!c1", "c2", "on", "more"]);
    assert_eq!(loaded.plan, Some(split));
}

/// A result that was stored when its call finished is used before one is made.
#[test]
fn fault_32_a_result_that_was_noted_is_not_lost() {
    let place = Place::new();
    let (session, class) = (place.open(), RetryClass::Unsafe);
    let noted = result("c2", "done");
    append(&session, &[Entry::Message(&asks(&["c1", "c2"]))]).unwrap();
    let finished = Entry::CallFinished { call: &call("c2").id, attempt: 1, class: &class, result: &noted };
    append(&session, &[finished]).unwrap();
    say(&session, "on").unwrap();
    let loaded = load(&session).unwrap();
    assert_eq!(loaded.messages[2], noted);
    assert_eq!(words(&loaded.messages), ["+c1+c2", "!c1", "done", "on"]);
    assert_eq!(loaded.open_calls, []);
    drop(session);
    assert!(!FileSession::repair(place.path(), &options()).unwrap().is_sound());
    let stored = place.read().loaded;
    assert_eq!((stored.messages, stored.repairs), (loaded.messages, Vec::new()));
}

#[test]
fn fault_32_a_repair_writes_what_a_load_shows_and_keeps_what_it_takes_out() {
    let place = file(&["go", "c2", "+c1c2", "c2", "c1", "c1", "+c1", "on"]);
    let before = place.read().loaded;
    let report = FileSession::repair(place.path(), &options()).unwrap();
    assert!(!report.is_sound());
    assert_eq!(report.repairs, before.repairs);
    let taken: Vec<_> = report.quarantined.iter().map(|line| (line.line, &*line.reason)).collect();
    assert_eq!(taken, [(3, "result without a call (`c2`)"), (7, "second result of one call (`c1`)")]);
    assert_eq!(std::fs::read_to_string(report.side_file.unwrap()).unwrap().lines().count(), 2);
    let after = place.read().loaded;
    assert_eq!((after.messages, after.repairs), (before.messages, Vec::new()));
    assert!(place.text().contains("interrupted"), "what was made is marked");
    assert!(FileSession::repair(place.path(), &options()).unwrap().is_sound(), "once is enough");
    say(&place.open(), "more").unwrap();
    assert_eq!(place.read().loaded.messages.len(), 8);
}

/// Other branches hang on what is left of their parents, and the session goes on where it did.
#[test]
fn fault_32_a_repair_keeps_other_branches() {
    let place = file(&["go", "+c1", "c2", "aside"]);
    let session = place.open();
    session.branch(Some(&"e3".into())).unwrap();
    say(&session, "main").unwrap();
    drop(session);
    let before = place.read().loaded.messages;
    assert_eq!(words(&before), ["go", "+c1", "!c1", "main"]);
    FileSession::repair(place.path(), &options()).unwrap();
    assert_eq!(place.read().loaded.messages, before);
    let tree = Tree::read(place.path(), &OpenOptions::new()).unwrap();
    assert_eq!(words(&tree.loaded(Leaf::At(&"e4".into())).messages), ["go", "+c1", "!c1", "aside"]);
}

#[test]
fn fault_32_every_short_session_is_repaired_to_what_its_load_shows() {
    let all = ["+c1c2", "c1", "c2", "on", "+c1"];
    for number in 0..all.len().pow(4) {
        let chosen: Vec<_> = (0..4).map(|at| all[number / all.len().pow(at) % all.len()]).collect();
        let place = file(&chosen);
        let before = place.read().loaded;
        assert_eq!(check(&before.messages), [], "{chosen:?}");
        let report = FileSession::repair(place.path(), &options()).unwrap();
        assert_eq!(report.is_sound(), before.repairs.is_empty(), "{chosen:?}");
        let after = place.read().loaded;
        assert_eq!((after.messages, after.repairs), (before.messages, Vec::new()), "{chosen:?}");
    }
}

#[test]
fn fault_32_a_session_in_memory_and_a_tree_of_pi_are_repaired_too() {
    let memory = MemorySession::new();
    for word in ["go", "c1", "+c1", "on"] {
        now(memory.append(&head(), &[Entry::Message(&message(word))], Durability::Flush)).unwrap();
    }
    let loaded = load(&memory).unwrap();
    assert_eq!(words(&loaded.messages), ["go", "+c1", "!c1", "on"]);
    assert_eq!(loaded.repairs.len(), 2);
    assert_eq!(loaded.repairs[0].line, None);

    let pi = r#"{"type":"session","version":3,"id":"s","timestamp":"2026-01-01T00:00:00.000Z","cwd":"/"}
{"type":"message","id":"aaaaaaa1","parentId":null,"timestamp":"2026-01-01T00:00:00.000Z","message":{"role":"user","content":"go"}}
{"type":"message","id":"aaaaaaa2","parentId":"aaaaaaa1","timestamp":"2026-01-01T00:00:00.000Z","message":{"role":"toolResult","toolCallId":"c9","toolName":"t","content":[],"isError":false}}
{"type":"message","id":"aaaaaaa3","parentId":"aaaaaaa2","timestamp":"2026-01-01T00:00:00.000Z","message":{"role":"user","content":"on"}}
"#;
    let place = Place::with(pi);
    let tree = Tree::read(place.path(), &OpenOptions::new()).unwrap();
    let loaded = tree.loaded(Leaf::Last);
    assert_eq!(texts(&loaded), ["go", "on"]);
    assert_eq!(loaded.repairs[0].defect.kind, DefectKind::ResultWithoutCall);
    assert_eq!(loaded.repairs[0].line, Some(3));
}
