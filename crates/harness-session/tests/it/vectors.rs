//! The vectors of kind `jsonl-session`: what source 004 was observed to do, and where the product differs.

use std::fmt::Write as _;
use std::path::Path;
use std::sync::Arc;

use harness_core::message::Message;
use harness_core::port::Session;
use harness_core::port::{Durability, Entry, SessionError};
use harness_session::JsonlSession;
use serde_json::{Value, json};

use crate::support::{Place, head, load};

/// Vectors of tier `decision` where we decided otherwise, and why.
const DECISIONS: &[(&str, &str)] =
    &[("jsonl-content-string", "a plain string is read as one text block, since pi and others write it")];

#[test]
fn all_vectors_hold() {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../fixtures/conformance/session");
    let (mut count, mut failures) = (0, String::new());
    for file in std::fs::read_dir(folder).unwrap() {
        let vector: Value = serde_json::from_slice(&std::fs::read(file.unwrap().path()).unwrap()).unwrap();
        if vector["kind"] != "jsonl-session" {
            continue;
        }
        count += 1;
        let id = vector["id"].as_str().unwrap();
        let differs = check(&vector).err();
        let decided = vector["tier"] == "decision" && DECISIONS.iter().any(|(decided, _)| *decided == id);
        match differs {
            Some(difference) if !decided => writeln!(failures, "{id}: {difference}").unwrap(),
            None if decided => writeln!(failures, "{id} holds and needs no decision").unwrap(),
            Some(_) | None => {}
        }
    }
    assert!(count >= 20, "{count} vectors");
    assert!(failures.is_empty(), "{failures}");
}

fn check(vector: &Value) -> Result<(), String> {
    let place = Place::new();
    if let Some(content) = content(&vector["input"]["file"]) {
        std::fs::write(place.path(), content).unwrap();
    }
    let session = place.open();
    let counts_only = vector["input"]["counts_only"] == true;
    let ops = vector["input"]["ops"].as_array().unwrap();
    let expected = vector["expect"]["ops"].as_array().unwrap();
    assert_eq!(ops.len(), expected.len());
    for (op, expected) in ops.iter().zip(expected) {
        let before = std::fs::read(place.path()).ok();
        let actual = perform(&session, &place, op, counts_only);
        matches(expected, &actual)?;
        if op["op"] == "load" && std::fs::read(place.path()).ok() != before {
            return Err("the load changed the file".to_owned());
        }
    }
    if vector["expect"]["file_exists"] == false && place.path().exists() {
        return Err("the file exists".to_owned());
    }
    let lines = &vector["expect"]["lines"];
    if lines.is_null() { Ok(()) } else { matches(lines, &message_lines(&place.text())) }
}

fn content(file: &Value) -> Option<Vec<u8>> {
    if let Some(text) = file["text"].as_str() {
        return Some(text.as_bytes().to_vec());
    }
    if let Some(text) = file["base64"].as_str() {
        return Some(base64(text));
    }
    if let Some(line) = file["repeat"]["line"].as_str() {
        let times = usize::try_from(file["repeat"]["times"].as_u64().unwrap()).unwrap();
        return Some(format!("{line}\n").repeat(times).into_bytes());
    }
    let bytes = usize::try_from(file["huge_user_line"]["text_bytes"].as_u64()?).unwrap();
    Some(crate::support::bare(&"a".repeat(bytes)).into_bytes())
}

fn base64(text: &str) -> Vec<u8> {
    let digit = |byte| match byte {
        b'A'..=b'Z' => u32::from(byte - b'A'),
        b'a'..=b'z' => u32::from(byte - b'a') + 26,
        b'0'..=b'9' => u32::from(byte - b'0') + 52,
        b'+' => 62,
        _ => 63,
    };
    let text = text.trim_end_matches('=').as_bytes();
    text.chunks(4)
        .flat_map(|group| {
            let bits = group.iter().fold(0, |bits, byte| bits << 6 | digit(*byte)) << (6 * (4 - group.len()));
            bits.to_be_bytes()[1..group.len()].to_vec()
        })
        .collect()
}

fn perform(session: &JsonlSession, place: &Place, op: &Value, counts_only: bool) -> Value {
    let messages: Vec<Arc<Message>> =
        serde_json::from_str(&op["messages"].to_string()).ok().unwrap_or_default();
    match op["op"].as_str().unwrap() {
        "load" => match load(session) {
            Ok(loaded) if counts_only => json!({"op": "load", "count": loaded.messages.len()}),
            Ok(loaded) => json!({
                "op": "load",
                "messages": loaded.messages,
                "recovered": {"torn_tail": loaded.torn_tail.is_some()},
            }),
            Err(error) => json!({"op": "load", "error": code(&error)}),
        },
        "append" => {
            let entries: Vec<_> = messages.iter().map(Entry::Message).collect();
            match session.try_append(&head(), &entries, Durability::Flush).unwrap() {
                Ok(()) => json!({"op": "append"}),
                Err(error) => json!({"op": "append", "error": code(&error)}),
            }
        }
        "replace" => {
            session.replace(&head(), &messages).unwrap();
            let left = place.files().iter().any(|name| name.contains(".tmp"));
            json!({"op": "replace", "temp_file_left": left})
        }
        other => panic!("unknown operation {other}"),
    }
}

/// The code of an error in the vectors' words.
fn code(error: &SessionError) -> Value {
    match &*error.kind {
        "session.corrupt_line" => {
            let (_, rest) = error.message.split_once(", line ").unwrap();
            let line: u64 = rest.split(' ').next().unwrap().parse().unwrap();
            json!({"code": "corrupt_line", "line": line})
        }
        other => json!({"code": other}),
    }
}

/// The messages of all lines that hold one.
fn message_lines(text: &str) -> Value {
    assert!(text.ends_with('\n'));
    text.lines()
        .map(|line| serde_json::from_str::<Value>(line).unwrap())
        .filter_map(|line| match line["type"].as_str() {
            Some("message") => Some(line["message"].clone()),
            None => Some(line),
            Some(_) => None,
        })
        .collect()
}

/// Every key of `expected` is in `actual` and matches; keys that it lacks are not compared.
fn matches(expected: &Value, actual: &Value) -> Result<(), String> {
    let same = match (expected, actual) {
        (Value::Object(expected), Value::Object(actual)) => {
            if !expected.contains_key("error") && actual.contains_key("error") {
                return Err(format!("unexpected error {}", actual["error"]));
            }
            return expected
                .iter()
                .try_for_each(|(key, value)| matches(value, actual.get(key).unwrap_or(&Value::Null)));
        }
        (Value::Array(expected), Value::Array(actual)) if expected.len() == actual.len() => {
            return expected.iter().zip(actual).try_for_each(|(expected, actual)| matches(expected, actual));
        }
        (expected, actual) => expected == actual,
    };
    if same { Ok(()) } else { Err(format!("expected {expected}, got {actual}")) }
}
