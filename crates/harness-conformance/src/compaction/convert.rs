//! Messages and summaries between the source's form and the product's.

use harness_core::message::{AssistantMessage, Block, Message, SystemMessage, ToolCall, ToolResultMessage};
use harness_core::{Json, ToolName};
use harness_memory::compact::durability::ToolResultEnvelope;
use serde_json::Value;

use crate::turn::convert::{at, list, text};

pub(super) type Done<T> = Result<T, String>;

/// The messages of one of a vector.
pub(super) fn messages_of(wire: &Value) -> Done<Vec<Message>> {
    let said = written(at(wire, "text"));
    Ok(match text(wire, "role") {
        "system" => vec![SystemMessage::text(said).into()],
        "user" => vec![Message::user(said)],
        "assistant" => vec![answer(wire, said)?],
        "tool" => list(wire, "results").iter().map(|part| result(wire, part)).collect::<Done<_>>()?,
        other => return Err(format!("`{other}` is no role")),
    })
}

fn answer(wire: &Value, said: String) -> Done<Message> {
    let mut content = Vec::new();
    if let Some(reasoning) = wire.get("reasoning").and_then(Value::as_str) {
        content.push(Block::thinking(reasoning));
    }
    if wire.get("text").is_some() {
        content.push(Block::text(said));
    }
    for call in list(wire, "calls") {
        let arguments = call.get("args").map_or_else(|| Ok(Json::empty_object()), Json::of);
        let arguments = arguments.map_err(|e| e.to_string())?;
        content.push(ToolCall::new(text(call, "id"), text(call, "tool"), arguments).into());
    }
    let mut answer = AssistantMessage::default();
    answer.content = content;
    Ok(answer.into())
}

/// The source's results do not name their tool: the product finds it at the call.
fn result(wire: &Value, part: &Value) -> Done<Message> {
    let unnamed = ToolCall::new(text(part, "id"), ToolName::from(""), Json::empty_object());
    let mut content = vec![Block::text(written(at(part, "text")))];
    if let Some(wire) = wire.get("envelope").filter(|envelope| !envelope.is_null()) {
        content.push(envelope(wire)?.block());
    }
    Ok(ToolResultMessage::new(&unnamed, content, false).into())
}

pub(super) fn envelope(wire: &Value) -> Done<ToolResultEnvelope> {
    serde_json::from_value(wire.clone()).map_err(|e| format!("envelope {wire}: {e}"))
}

/// A text, or `{"repeat": [unit, times]}`.
fn written(value: &Value) -> String {
    let unit = value.pointer("/repeat/0").and_then(Value::as_str);
    let times = value.pointer("/repeat/1").and_then(Value::as_u64).and_then(|n| usize::try_from(n).ok());
    match (unit, times) {
        (Some(unit), Some(times)) => unit.repeat(times),
        _ => value.as_str().unwrap_or_default().to_owned(),
    }
}

/// Long texts are told by their begin and their length.
pub(super) fn shown(text: &str) -> String {
    let length = text.chars().count();
    if length <= 160 {
        return text.to_owned();
    }
    format!("{}…({length} chars)", text.chars().take(60).collect::<String>())
}

/// Puts a wanted text with `<…>` in it, which stands for any wording, in the place of a text that fits.
pub(super) fn free_texts(wanted: &Value, got: &mut Value) {
    match (wanted, got) {
        (Value::Object(wanted), Value::Object(got)) => {
            for (key, wanted) in wanted {
                if let Some(got) = got.get_mut(key) {
                    free_texts(wanted, got);
                }
            }
        }
        (Value::Array(wanted), Value::Array(got)) => {
            for (wanted, got) in wanted.iter().zip(got) {
                free_texts(wanted, got);
            }
        }
        (Value::String(wanted), Value::String(got)) if fits(wanted, got) => got.clone_from(wanted),
        _ => {}
    }
}

fn fits(wanted: &str, got: &str) -> bool {
    let Some((begin, rest)) = wanted.split_once('<') else { return false };
    let Some((_, end)) = rest.split_once('>') else { return false };
    let whole = got.strip_prefix(begin).and_then(|rest| rest.strip_suffix(end));
    // A shown text has lost its end when it is long.
    whole.is_some() || (got.ends_with(" chars)") && begin.starts_with(got.split('…').next().unwrap_or(got)))
}
