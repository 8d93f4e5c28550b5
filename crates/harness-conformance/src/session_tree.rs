//! Vectors of kind `session-tree`: what a model is sent of a session tree of pi.

use harness::session::{Body, Context, Error, ForkOptions, Leaf, Note, OpenOptions, Shown, Tree};
use harness_core::message::Message;
use harness_core::{EntryId, Time};
use serde::Deserialize;
use serde_json::{Map, Value, json};

use crate::Done;
use crate::case::each;
use crate::subset::put;
use crate::vector::Vector;
use crate::verdict::Verdict;

/// Runs the vector.
pub(crate) fn run(vector: &Vector) -> Verdict {
    each(vector, check)
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Input {
    file: String,
    #[serde(default)]
    leaf: LeafWord,
    fork_at: Option<String>,
}

/// Null is before any entry, absent is the last one.
#[derive(Default, Deserialize)]
#[serde(from = "Option<EntryId>")]
enum LeafWord {
    #[default]
    Last,
    Start,
    At(EntryId),
}

impl From<Option<EntryId>> for LeafWord {
    fn from(id: Option<EntryId>) -> Self {
        id.map_or(Self::Start, Self::At)
    }
}

fn check(input: Input) -> Done<Value> {
    let folder = tempfile::tempdir().map_err(|e| e.to_string())?;
    let path = folder.path().join("vector.jsonl");
    std::fs::write(&path, &input.file).map_err(|e| e.to_string())?;
    let bytes = || std::fs::read(&path).map_err(|e| e.to_string());
    let mut got = match Tree::read(&path, &OpenOptions::new()) {
        Ok(tree) => shown(&tree, &input)?,
        Err(fault) => json!({ "error": error(&fault) }),
    };
    put(&mut got, "file_unchanged", json!(bytes()? == input.file.as_bytes()));
    Ok(got)
}

/// The code of an error in the suite's words.
#[expect(clippy::wildcard_enum_match_arm, reason = "of the others the suite has no words")]
pub(crate) fn error(fault: &Error) -> Value {
    match fault {
        Error::CorruptLine { line, .. } | Error::LineTooLong { line, .. } => {
            json!({ "code": "corrupt_line", "line": line })
        }
        other => json!({ "code": other.kind().trim_start_matches("session.") }),
    }
}

fn shown(tree: &Tree, input: &Input) -> Done<Value> {
    let leaf = match &input.leaf {
        LeafWord::Last => Leaf::Last,
        LeafWord::Start => Leaf::Start,
        LeafWord::At(id) => Leaf::At(id),
    };
    let Context { shown, thinking_level, model, .. } = tree.context(leaf);
    let model = model.map(|model| json!({"provider": model.provider, "modelId": model.id}));
    let mut got = json!({
        "messages": short(tree, &shown),
        "thinkingLevel": thinking_level,
        "model": model,
    });
    if let Some(at) = &input.fork_at {
        let fork = tree.fork(Leaf::At(&EntryId::from(&**at)), ForkOptions::new("fork", Time(0)));
        let fork = fork.map_err(|e| e.to_string())?;
        put(&mut got, "fork_messages", short(&fork, &fork.context(Leaf::Last).shown));
    }
    Ok(got)
}

/// Messages in the suite's short form.
fn short(tree: &Tree, shown: &[Shown]) -> Value {
    shown.iter().map(|shown| summary(tree, shown).unwrap_or_else(|| message(&shown.message))).collect()
}

/// A summary, when the message stands for one.
fn summary(tree: &Tree, shown: &Shown) -> Option<Value> {
    let body = &tree.get(&shown.entry)?.body;
    if let Body::Compaction { summary, tokens_before, .. } = body {
        return Some(json!({"role": "compactionSummary", "summary": summary, "tokensBefore": tokens_before}));
    }
    if let Body::Note(Note::BranchSummary { from, summary, .. }) = body {
        return Some(json!({"role": "branchSummary", "summary": summary, "fromId": from}));
    }
    None
}

fn message(message: &Message) -> Value {
    let mut short = Map::new();
    let mut set = |key: &str, value: Value| short.insert(key.to_owned(), value);
    set("role", json!(message.role()));
    set("text", json!(message.joined_text()));
    match message {
        Message::Assistant(answer) => {
            let calls: Vec<_> = answer.tool_calls().map(|call| json!(call.id)).collect();
            set("toolCalls", json!(calls));
            set("stopReason", json!(answer.stop_reason));
            set("errorMessage", json!(answer.error_message));
        }
        Message::ToolResult(result) => {
            set("toolCallId", json!(result.tool_call_id));
            set("toolName", json!(result.tool_name));
            set("isError", json!(result.is_error));
        }
        Message::Custom(custom) => {
            set("customType", json!(custom.custom_type));
            // A role that is pi's alone is kept whole, under its name.
            let foreign = custom.data.as_ref().and_then(|data| data.to::<Map<String, Value>>().ok());
            if let Some(foreign) = foreign.filter(|f| f.get("role") == Some(&json!(custom.custom_type))) {
                short.extend(foreign);
            }
        }
        Message::System(_) | Message::User(_) | _ => {}
    }
    Value::Object(short)
}
