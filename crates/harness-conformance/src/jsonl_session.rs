//! Vectors of kind `jsonl-session`: loads, appends and replacements on one session file.

use std::path::PathBuf;
use std::sync::Arc;

use harness::session::{JsonlSession, OpenOptions};
use harness_core::Time;
use harness_core::message::Message;
use harness_core::port::{Durability, Entry, EntryHead, Session, SessionError};
use serde_json::{Value, json};

use super::subset::matches;
use super::turn::convert::{at, list, text};
use crate::vector::Vector;
use crate::verdict::Verdict;

/// Runs the one vector of the file.
pub(crate) fn run(vector: &Vector) -> Verdict {
    check(&vector.value).into()
}

fn check(vector: &Value) -> Result<(), String> {
    let folder = tempfile::tempdir().map_err(|e| e.to_string())?;
    let (input, expect) = (at(vector, "input"), at(vector, "expect"));
    let file = folder.path().join("session.jsonl");
    if let Some(content) = content(at(input, "file")) {
        std::fs::write(&file, content).map_err(|e| e.to_string())?;
    }
    let session = JsonlSession::open(&file, OpenOptions::new()).map_err(|e| e.to_string())?;
    let case = Case { session, file, counts_only: at(input, "counts_only") == true };
    for (number, (op, expected)) in (1..).zip(list(input, "ops").iter().zip(list(expect, "ops"))) {
        let got = case.perform(op)?;
        matches(&format!("operation {number}"), expected, &got)?;
    }
    if expect.get("file_exists") == Some(&json!(false)) && case.file.exists() {
        return Err("expected no file, there is one".to_owned());
    }
    match expect.get("lines") {
        Some(lines) => matches("lines", lines, &case.lines()?),
        None => Ok(()),
    }
}

fn content(file: &Value) -> Option<Vec<u8>> {
    if let Some(text) = file.get("text").and_then(Value::as_str) {
        return Some(text.as_bytes().to_vec());
    }
    if let Some(text) = file.get("base64").and_then(Value::as_str) {
        return Some(decoded(text));
    }
    if let Some(repeat) = file.get("repeat") {
        let times = repeat.get("times").and_then(Value::as_u64).and_then(|n| usize::try_from(n).ok())?;
        return Some(format!("{}\n", text(repeat, "line")).repeat(times).into_bytes());
    }
    let bytes = file.pointer("/huge_user_line/text_bytes").and_then(Value::as_u64)?;
    let text = "a".repeat(usize::try_from(bytes).ok()?);
    let line = json!({"role": "user", "content": [{"type": "text", "text": text}]});
    Some(format!("{line}\n").into_bytes())
}

/// The bytes of a base64 text.
pub(super) fn decoded(text: &str) -> Vec<u8> {
    let digit = |byte| match byte {
        b'A'..=b'Z' => u32::from(byte - b'A'),
        b'a'..=b'z' => u32::from(byte - b'a') + 26,
        b'0'..=b'9' => u32::from(byte - b'0') + 52,
        b'+' => 62,
        _ => 63,
    };
    let digits = text.trim_end_matches('=').as_bytes();
    let group = |group: &[u8]| {
        let bits = group.iter().fold(0, |bits, byte| bits << 6 | digit(*byte)) << (6 * (4 - group.len()));
        let bytes: Vec<u8> = bits.to_be_bytes().into_iter().skip(1).take(group.len() - 1).collect();
        bytes
    };
    digits.chunks(4).flat_map(group).collect()
}

struct Case {
    session: JsonlSession,
    file: PathBuf,
    counts_only: bool,
}

impl Case {
    fn perform(&self, op: &Value) -> Result<Value, String> {
        let name = text(op, "op");
        let messages = list(op, "messages").iter().map(Value::to_string);
        let messages = messages.map(|text| serde_json::from_str::<Arc<Message>>(&text));
        let messages = messages.collect::<Result<Vec<_>, _>>().map_err(|e| e.to_string())?;
        let head = EntryHead::new(Time(0), None, 0, None);
        let before = std::fs::read(&self.file).ok();
        Ok(match name {
            "load" => {
                let loaded = self.load()?;
                if std::fs::read(&self.file).ok() != before {
                    return Err("the load changed the file".to_owned());
                }
                loaded
            }
            "append" => {
                let entries: Vec<_> = messages.iter().map(Entry::Message).collect();
                match self.session.append_blocking(&head, &entries, Durability::Flush) {
                    Ok(()) => json!({"op": name}),
                    Err(error) => json!({"op": name, "error": code(&error)}),
                }
            }
            "replace" => match self.session.replace_blocking(&head, &messages) {
                Ok(()) => json!({"op": name, "temp_file_left": self.temporary()?}),
                Err(error) => json!({"op": name, "error": code(&error.into())}),
            },
            other => return Err(format!("`{other}` is no operation")),
        })
    }

    fn load(&self) -> Result<Value, String> {
        let runtime = tokio::runtime::Builder::new_current_thread().build().map_err(|e| e.to_string())?;
        Ok(match runtime.block_on(self.session.load()) {
            Ok(loaded) if self.counts_only => json!({"op": "load", "count": loaded.messages.len()}),
            Ok(loaded) => json!({
                "op": "load",
                "messages": loaded.messages,
                "recovered": {"torn_tail": loaded.torn_tail.is_some()},
            }),
            Err(error) => json!({"op": "load", "error": code(&error)}),
        })
    }

    /// Whether a temporary file lies beside the session.
    fn temporary(&self) -> Result<bool, String> {
        let folder = self.file.parent().ok_or("the file has no folder")?;
        let mut names = std::fs::read_dir(folder).map_err(|e| e.to_string())?.flatten();
        Ok(names.any(|file| file.file_name().to_string_lossy().ends_with(".tmp")))
    }

    /// The messages of all lines that hold one; each line must end in one line feed.
    fn lines(&self) -> Result<Value, String> {
        let text = std::fs::read_to_string(&self.file).map_err(|e| e.to_string())?;
        if !text.ends_with('\n') || text.contains('\r') {
            return Err("a line does not end in one line feed".to_owned());
        }
        let lines = text.lines().map(serde_json::from_str::<Value>);
        let lines = lines.collect::<Result<Vec<_>, _>>().map_err(|e| e.to_string())?;
        Ok(lines
            .into_iter()
            .filter_map(|line| match line.get("type").and_then(Value::as_str) {
                Some("message") => line.get("message").cloned(),
                None => Some(line),
                Some(_) => None,
            })
            .collect())
    }
}

/// The code of an error in the suite's words.
fn code(error: &SessionError) -> Value {
    let line = error.message.split_once(", line ").and_then(|(_, rest)| {
        let digits: String = rest.chars().take_while(char::is_ascii_digit).collect();
        digits.parse::<u64>().ok()
    });
    match (&*error.kind, line) {
        ("session.corrupt_line" | "session.line_too_long", Some(line)) => {
            json!({"code": "corrupt_line", "line": line})
        }
        ("session.read_failed", _) => json!({"code": "read_failed"}),
        (other, _) => json!({"code": other}),
    }
}
