//! Vectors of kind `session-tree`: what a model is sent of a session tree of pi.

use harness::session::{Body, Context, ForkOptions, Leaf, Limits, Note, Shown, Tree};
use harness_core::message::Message;
use harness_core::{EntryId, Time};
use serde_json::{Map, Value, json};

use super::subset::matches;
use super::turn::convert::{at, text};
use crate::vector::Vector;
use crate::verdict::Verdict;

/// Runs the one vector of the file.
pub(crate) fn run(vector: &Vector) -> Verdict {
    check(&vector.value).into()
}

fn check(vector: &Value) -> Result<(), String> {
    let input = at(vector, "input");
    let tree = Tree::parse(text(input, "file").as_bytes(), "vector.jsonl", Limits::default());
    let tree = tree.map_err(|e| e.to_string())?;
    let id = input.get("leaf").and_then(Value::as_str).map(EntryId::from);
    let leaf = match (input.get("leaf"), &id) {
        (_, Some(id)) => Leaf::At(id),
        (Some(Value::Null), None) => Leaf::Start,
        (_, None) => Leaf::Last,
    };
    let Context { shown, thinking_level, model, .. } = tree.context(leaf);
    let model = model.map(|model| json!({"provider": model.provider, "modelId": model.id}));
    let mut got = json!({
        "messages": short(&tree, &shown),
        "thinkingLevel": thinking_level,
        "model": model,
    });
    if let (Some(at), Some(got)) = (input.get("fork_at").and_then(Value::as_str), got.as_object_mut()) {
        let fork = tree.fork(Leaf::At(&EntryId::from(at)), ForkOptions::new("fork", Time(0)));
        let fork = fork.map_err(|e| e.to_string())?;
        let shown = fork.context(Leaf::Last).shown;
        got.insert("fork_messages".to_owned(), short(&fork, &shown));
    }
    matches("expect", at(vector, "expect"), &got)
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
            set("errorMessage", json!(answer.rare.error_message));
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
