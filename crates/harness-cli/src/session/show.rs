//! `harness session show`.

use std::collections::HashMap;
use std::fmt::Write as _;
use std::path::Path;

use harness::core::EntryId;
use harness::core::message::{Block, Message};
use harness::session::{Body, Node, Note, Tree};
use serde::Serialize;
use serde_json::{Value, json};

use super::{entry, leaf, read};
use crate::args::ShowSessionArgs;
use crate::error::CliError;
use crate::exit::Exit;
use crate::output;
use crate::render::{BAD, BOLD, DIM, GOOD, NOTE, harmless, one_line};

/// Shows a session.
pub(super) fn show(args: &ShowSessionArgs) -> Result<Exit, CliError> {
    let tree = read(&args.session)?;
    let id = entry(&tree, &args.session, args.leaf.as_deref())?;
    if args.json {
        return output::print_value(whole(&tree, &args.session), Exit::Completed);
    }
    output::print_long(&text(&tree, &args.session, id.as_ref()), Exit::Completed)
}

/// Everything, for programs.
fn whole(tree: &Tree, path: &Path) -> Value {
    let entries: Vec<Value> = tree.nodes().iter().map(told).collect();
    let labels: serde_json::Map<String, Value> =
        tree.labels().into_iter().map(|(id, label)| (id.to_string(), json!(label))).collect();
    json!({
        "session": path,
        "source": tree.source().to_string(),
        "header": value_of(&tree.header()),
        "name": tree.name(),
        "torn_tail": tree.torn_tail().map(|tail| json!({"line": tail.line, "bytes": tail.bytes})),
        "leaves": tree.leaves().map(|node| node.id.to_string()).collect::<Vec<_>>(),
        "labels": labels,
        "entries": entries,
    })
}

/// The stored data as a JSON value; data nested too deeply becomes an error object.
fn value_of<T: Serialize>(stored: &T) -> Value {
    serde_json::to_value(stored).unwrap_or_else(|fault| json!({ "error": fault.to_string() }))
}

fn told(node: &Node) -> Value {
    let body = match &node.body {
        Body::Message(message) => json!({"type": "message", "message": value_of(message)}),
        Body::Call { call, finished } => json!({"type": "call", "call_id": call, "finished": finished}),
        Body::RunEnd { reason } => json!({"type": "run_end", "reason": reason}),
        Body::Compaction { summary, first_kept, tokens_before, tokens_after, permanent, .. } => json!({
            "type": "compaction",
            "summary": summary,
            "first_kept_id": first_kept,
            "tokens_before": tokens_before,
            "tokens_after": tokens_after,
            "permanent": permanent,
        }),
        Body::Note(kept) => told_note(kept),
        Body::State { name } => json!({"type": "state", "name": name}),
        Body::Other { kind, .. } => json!({"type": kind}),
        _ => json!({}),
    };
    let mut entry = json!({"id": node.id, "parent_id": node.parent, "at": node.at, "run_id": node.run});
    if let (Value::Object(entry), Value::Object(body)) = (&mut entry, body) {
        entry.extend(body);
    }
    entry
}

fn told_note(note: &Note) -> Value {
    let body = match note {
        Note::BranchSummary { from, summary, details } => {
            json!({"from_id": from, "summary": summary, "details": value_of(details)})
        }
        Note::Custom { custom_type, data } => json!({"custom_type": custom_type, "data": value_of(data)}),
        Note::ConfigChange { model, thinking_level, active_tools } => {
            json!({"model": model, "thinking_level": thinking_level, "active_tools": active_tools})
        }
        Note::Label { target, label } => json!({"target_id": target, "label": label}),
        Note::SessionInfo { name, meta } => json!({"name": name, "meta": value_of(meta)}),
        _ => json!({}),
    };
    let mut told = json!({"type": note.kind()});
    if let (Value::Object(told), Value::Object(body)) = (&mut told, body) {
        told.extend(body.into_iter().filter(|(_, value)| !value.is_null()));
    }
    told
}

/// One branch in human-readable form.
fn text(tree: &Tree, path: &Path, id: Option<&EntryId>) -> String {
    let mut text = String::new();
    let header = tree.header().map(|header| header.id.to_string());
    let title = tree.name().map(str::to_owned).or(header);
    let title = title.unwrap_or_else(|| path.display().to_string());
    let _ = writeln!(text, "{BOLD}{}{BOLD:#}", one_line(&title));
    let (branches, entries) = (tree.leaves().count(), tree.nodes().len());
    let mut about = vec![format!("{entries} entries")];
    about.extend((branches > 1).then(|| format!("{branches} branches")));
    about.push(format!("from {}", tree.source()));
    let parent = tree.header().and_then(|header| header.parent_session.clone());
    about.extend(parent.map(|parent| format!("forked from {parent}")));
    let _ = writeln!(text, "{DIM}{}{DIM:#}", one_line(&about.join(" · ")));
    if let Some(tail) = tree.torn_tail() {
        let (line, bytes) = (tail.line, tail.bytes);
        let _ = writeln!(text, "{BAD}line {line} is incomplete{BAD:#}: {bytes} bytes skipped");
    }
    let labels: HashMap<&EntryId, &str> = tree.labels().into_iter().collect();
    let mut followed: HashMap<&EntryId, Vec<&EntryId>> = HashMap::new();
    for node in tree.nodes() {
        if let Some(parent) = &node.parent {
            followed.entry(parent).or_default().push(&node.id);
        }
    }
    let shown: Vec<&Node> = tree.path(leaf(id)).collect();
    for (at, node) in shown.iter().enumerate() {
        body(node, &mut text);
        if let Some(label) = labels.get(&node.id) {
            let _ = writeln!(text, "    {NOTE}[{}]{NOTE:#}", one_line(label));
        }
        let next = shown.get(at + 1).map(|next| &next.id);
        let others: Vec<_> =
            followed.get(&node.id).into_iter().flatten().filter(|id| Some(**id) != next).collect();
        for other in others {
            let _ = writeln!(text, "    {DIM}another branch starts with {}{DIM:#}", one_line(other.as_str()));
        }
    }
    text
}

fn body(node: &Node, text: &mut String) {
    let id = one_line(node.id.as_str());
    match &node.body {
        Body::Message(message) => self::message(&id, message, text),
        Body::Compaction { summary, first_kept, tokens_before, tokens_after, permanent, .. } => {
            let what = if *permanent { "the session was compacted" } else { "the view was compacted" };
            let after = tokens_after.map(|after| format!(" → {after}")).unwrap_or_default();
            let kept = first_kept.as_ref().map(|kept| format!(", kept from {kept} on")).unwrap_or_default();
            let kept = one_line(&kept);
            let _ = writeln!(
                text,
                "\n{DIM}{id}{DIM:#} {NOTE}{what}{NOTE:#}: {tokens_before}{after} tokens{kept}"
            );
            if let Some(summary) = summary {
                indented(summary, text);
            }
        }
        Body::Note(Note::BranchSummary { from, summary, .. }) => {
            let from = one_line(from.as_str());
            let _ = writeln!(text, "\n{DIM}{id}{DIM:#} {NOTE}back from the branch of {from}{NOTE:#}");
            indented(summary, text);
        }
        Body::Note(Note::ConfigChange { model, thinking_level, .. }) => {
            let model = model.as_ref().map(|model| format!("model {}", model.id));
            let level = thinking_level.as_ref().map(|level| format!("thinking {level}"));
            let set: Vec<String> = model.into_iter().chain(level).collect();
            let _ = writeln!(text, "\n{DIM}{id} {}{DIM:#}", one_line(&set.join(", ")));
        }
        Body::RunEnd { reason } => {
            let _ = writeln!(text, "\n{DIM}{id} the run ended: {}{DIM:#}", one_line(reason));
        }
        Body::State { name } => {
            let _ = writeln!(text, "\n{DIM}{id} state of {}{DIM:#}", one_line(name));
        }
        Body::Other { kind, .. } => {
            let _ = writeln!(text, "\n{DIM}{id} {}{DIM:#}", one_line(kind));
        }
        Body::Call { .. } | Body::Note(_) | _ => {}
    }
}

fn message(id: &str, message: &Message, text: &mut String) {
    let _ = write!(text, "\n{DIM}{id}{DIM:#} ");
    let _ = match message {
        Message::Assistant(answer) => {
            let usage = answer.usage.as_ref();
            let tokens = usage.map(|used| {
                let (input, output) = (used.input.unwrap_or(0), used.output.unwrap_or(0));
                format!(" {DIM}· {input} + {output} tokens{DIM:#}")
            });
            writeln!(text, "{GOOD}assistant{GOOD:#}{}", tokens.unwrap_or_default())
        }
        Message::ToolResult(result) if result.is_error => {
            writeln!(text, "{BAD}{} failed{BAD:#}", one_line(result.tool_name.as_str()))
        }
        Message::ToolResult(result) => {
            writeln!(text, "{NOTE}{} answered{NOTE:#}", one_line(result.tool_name.as_str()))
        }
        Message::User(user) => match &user.origin {
            Some(origin) => writeln!(text, "{BOLD}user{BOLD:#} ({})", one_line(origin)),
            None => writeln!(text, "{BOLD}user{BOLD:#}"),
        },
        Message::Custom(custom) => writeln!(text, "{}", one_line(&custom.custom_type)),
        Message::System(_) | _ => writeln!(text, "{}", message.role()),
    };
    for block in message.content() {
        match block {
            Block::Text(block) => indented(&block.text, text),
            Block::Thinking(block) => indented(&format!("(thinking) {}", block.thinking), text),
            Block::ToolCall(call) => {
                let arguments = one_line(call.arguments.text());
                let _ = writeln!(text, "    → {} {arguments}", one_line(call.name.as_str()));
            }
            Block::Refusal(block) => indented(&format!("(declined) {}", block.text), text),
            Block::Error(block) => indented(&format!("(error) {}", block.message), text),
            Block::Image(_) => indented("(an image)", text),
            Block::File(_) => indented("(a file)", text),
            Block::Audio(_) => indented("(sound)", text),
            Block::Approval(_) => indented("(an approval)", text),
            Block::Extension(_) | Block::Unknown(_) | _ => indented("(unknown content)", text),
        }
    }
}

fn indented(content: &str, text: &mut String) {
    for line in harmless(content).lines() {
        let _ = writeln!(text, "    {line}");
    }
}
