//! Vectors of kind `jsonl-session`: loads, appends and replacements on one session file.

use std::path::{Path, PathBuf};
use std::sync::Arc;

use harness::session::{FileSession, OpenOptions};
use harness_core::message::Message;
use harness_core::port::{Durability, Entry, EntryHead, Session, SessionError};
use harness_core::{Json, Time};
use serde::Deserialize;
use serde_json::{Value, json};

use crate::Done;
use crate::case::{Case as Written, block_on};
use crate::session_tree;
use crate::subset::matches;
use crate::vector::Vector;
use crate::verdict::Verdict;

/// Runs the one vector of the file.
pub(crate) fn run(vector: &Vector) -> Verdict {
    check(vector).into()
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Input {
    file: Option<File>,
    ops: Vec<Op>,
    #[serde(default)]
    counts_only: bool,
}

#[derive(Deserialize)]
#[serde(rename_all = "snake_case")]
enum File {
    Text(String),
    Base64(String),
    Repeat(Repeat),
    HugeUserLine(HugeUserLine),
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Repeat {
    line: String,
    times: usize,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct HugeUserLine {
    text_bytes: usize,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Op {
    op: OpName,
    messages: Option<Vec<Json>>,
}

#[derive(Clone, Copy, Deserialize)]
#[serde(rename_all = "lowercase")]
enum OpName {
    Load,
    Append,
    Replace,
}

fn check(vector: &Vector) -> Done<()> {
    let Written { input, mut expect, .. } = Written::<Input>::of(vector)?;
    let folder = tempfile::tempdir().map_err(|e| e.to_string())?;
    let file = folder.path().join("session.jsonl");
    if let Some(content) = input.file.map(File::content) {
        std::fs::write(&file, content).map_err(|e| e.to_string())?;
    }
    let session = FileSession::open(&file, OpenOptions::new()).map_err(|e| e.to_string())?;
    let case = Case { session, file, counts_only: input.counts_only };
    let ops = input.ops.into_iter().map(|op| case.perform(op)).collect::<Done<Vec<_>>>()?;
    let mut got = json!({ "ops": ops, "file_exists": case.file.exists() });
    if let Some(expected) = expect.as_object_mut()
        && let Some(lines) = expected.remove("lines")
    {
        matches("lines", &lines, &case.lines()?)?;
    }
    if let (Some(ops), Some(got)) = (expect.get("ops").and_then(Value::as_array), got.get_mut("ops")) {
        // Every operation runs; an expectation may end before them.
        got.as_array_mut().into_iter().for_each(|got| got.truncate(ops.len()));
    }
    matches("expect", &expect, &got)
}

impl File {
    fn content(self) -> Vec<u8> {
        match self {
            Self::Text(text) => text.into_bytes(),
            Self::Base64(text) => decoded(&text),
            Self::Repeat(Repeat { line, times }) => format!("{line}\n").repeat(times).into_bytes(),
            Self::HugeUserLine(HugeUserLine { text_bytes }) => {
                let text = "a".repeat(text_bytes);
                let line = json!({"role": "user", "content": [{"type": "text", "text": text}]});
                format!("{line}\n").into_bytes()
            }
        }
    }
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
    session: FileSession,
    file: PathBuf,
    counts_only: bool,
}

impl Case {
    fn perform(&self, op: Op) -> Done<Value> {
        let messages = op.messages.unwrap_or_default();
        let messages = messages.iter().map(Json::to::<Arc<Message>>);
        let messages = messages.collect::<Result<Vec<_>, _>>().map_err(|e| e.to_string())?;
        let head = EntryHead::new(Time(0), None, 0, None);
        let before = std::fs::read(&self.file).ok();
        Ok(match op.op {
            OpName::Load => {
                let loaded = self.load()?;
                if std::fs::read(&self.file).ok() != before {
                    return Err("the load changed the file".to_owned());
                }
                loaded
            }
            OpName::Append => {
                let entries: Vec<_> = messages.iter().map(Entry::Message).collect();
                match self.session.append_blocking(&head, &entries, Durability::Flush) {
                    Ok(()) => json!({"op": "append", "error": null}),
                    Err(error) => json!({"op": "append", "error": code(&error)}),
                }
            }
            OpName::Replace => match self.session.replace_blocking(&head, &messages) {
                Ok(()) => json!({"op": "replace", "error": null, "temp_file_left": self.temporary()?}),
                Err(error) => json!({"op": "replace", "error": session_tree::error(&error)}),
            },
        })
    }

    fn load(&self) -> Done<Value> {
        Ok(match block_on(self.session.load())? {
            Ok(loaded) if self.counts_only => {
                json!({"op": "load", "error": null, "count": loaded.messages.len()})
            }
            Ok(loaded) => json!({
                "op": "load",
                "error": null,
                "messages": loaded.messages,
                "recovered": {"torn_tail": loaded.torn_tail.is_some()},
            }),
            Err(error) => json!({"op": "load", "error": failure(&self.file, &error)}),
        })
    }

    /// Whether a temporary file exists next to the session.
    fn temporary(&self) -> Result<bool, String> {
        let folder = self.file.parent().ok_or("the file has no directory")?;
        let mut names = std::fs::read_dir(folder).map_err(|e| e.to_string())?.flatten();
        Ok(names.any(|file| file.file_name().to_string_lossy().ends_with(".tmp")))
    }

    /// The messages of all lines that hold one; each line must end in one line feed.
    fn lines(&self) -> Done<Value> {
        lines(&self.file)
    }
}

/// The messages of all lines of a session file that hold one; each line must end in one line feed.
pub(crate) fn lines(file: &Path) -> Done<Value> {
    let text = std::fs::read_to_string(file).map_err(|e| e.to_string())?;
    if !text.is_empty() && (!text.ends_with('\n') || text.contains('\r')) {
        return Err("a line does not end in one line feed".to_owned());
    }
    let lines = text.lines().map(serde_json::from_str::<Value>);
    let lines = lines.collect::<Result<Vec<_>, _>>().map_err(|e| e.to_string())?;
    let message = |line: Value| match line.get("type").and_then(Value::as_str) {
        Some("message") => line.get("message").cloned(),
        None => Some(line),
        Some(_) => None,
    };
    Ok(lines.into_iter().filter_map(message).collect())
}

/// Reason why a session file cannot be loaded, with the line.
pub(crate) fn failure(file: &Path, error: &SessionError) -> Value {
    let told = FileSession::read(file, &OpenOptions::new()).err();
    told.map_or_else(|| code(error), |told| session_tree::error(&told))
}

/// The code of an error in the suite's words.
fn code(error: &SessionError) -> Value {
    json!({ "code": error.kind.trim_start_matches("session.") })
}
