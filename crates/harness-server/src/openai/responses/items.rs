//! Input items.

use harness::core::ApprovalId;
use harness::core::message::{AssistantMessage, Block, Message};
use serde_json::Value;

use super::super::content;
use crate::fault::Fault;

/// Decision on a pending call.
#[derive(Debug)]
pub(super) struct Approved {
    pub(super) approval: ApprovalId,
    pub(super) is_granted: bool,
    pub(super) reason: Option<String>,
    /// Place in the request.
    pub(super) at: String,
}

/// Reads an input: its messages, and its decisions.
pub(super) fn read(input: &Value) -> Result<(Vec<Message>, Vec<Approved>), Fault> {
    let (mut messages, mut approved) = (Vec::new(), Vec::new());
    match input {
        Value::String(text) => messages.push(content::user(vec![Block::text(text.as_str())], None)),
        Value::Array(items) => {
            for (index, item) in items.iter().enumerate() {
                read_item(item, &format!("input[{index}]"), &mut messages, &mut approved)?;
            }
        }
        Value::Null | Value::Bool(_) | Value::Number(_) | Value::Object(_) => {
            return Err(Fault::unreadable("missing field `input`, a text or a list of items").at("input"));
        }
    }
    Ok((messages, approved))
}

fn read_item(
    item: &Value,
    at: &str,
    messages: &mut Vec<Message>,
    approved: &mut Vec<Approved>,
) -> Result<(), Fault> {
    match item.get("type").and_then(Value::as_str).unwrap_or("message") {
        "message" => messages.push(message(item, at)?),
        "mcp_approval_response" => approved.push(approval(item, at)?),
        "mcp_call" => call(item, at, messages)?,
        // Items of earlier responses that are not part of a transcript.
        "reasoning" | "mcp_approval_request" | "mcp_list_tools" => {}
        other => {
            return Err(Fault::unreadable(format!("the item `{other}` is not supported"))
                .at(format!("{at}.type"))
                .hint("use messages, and continue a thread with `previous_response_id` or `conversation`"));
        }
    }
    Ok(())
}

fn message(item: &Value, at: &str) -> Result<Message, Fault> {
    let content = content::blocks(item.get("content").unwrap_or(&Value::Null), &format!("{at}.content"))?;
    match item.get("role").and_then(Value::as_str) {
        Some("user") => Ok(content::user(content, None)),
        Some("system" | "developer") => Ok(content::system(content)),
        Some("assistant") => {
            let mut answer = AssistantMessage::default();
            answer.content = content;
            Ok(answer.into())
        }
        _ => Err(Fault::unreadable("unknown role")
            .at(format!("{at}.role"))
            .hint("use `system`, `developer`, `user` or `assistant`")),
    }
}

fn approval(item: &Value, at: &str) -> Result<Approved, Fault> {
    let missing =
        |name: &str| Fault::unreadable(format!("missing field `{name}`")).at(format!("{at}.{name}"));
    let approval = item.get("approval_request_id").and_then(Value::as_str);
    let is_granted = item.get("approve").and_then(Value::as_bool);
    Ok(Approved {
        approval: approval.ok_or_else(|| missing("approval_request_id"))?.into(),
        is_granted: is_granted.ok_or_else(|| missing("approve"))?,
        reason: item.get("reason").and_then(Value::as_str).map(str::to_owned),
        at: at.to_owned(),
    })
}

/// A call of an earlier response: the call, and its result.
fn call(item: &Value, at: &str, messages: &mut Vec<Message>) -> Result<(), Fault> {
    let text = |name: &str| item.get(name).and_then(Value::as_str);
    let missing =
        |name: &str| Fault::unreadable(format!("missing field `{name}`")).at(format!("{at}.{name}"));
    let id = text("id").ok_or_else(|| missing("id"))?;
    let name = text("name").ok_or_else(|| missing("name"))?;
    let call = content::call(id, name, text("arguments").unwrap_or("{}"), &format!("{at}.arguments"))?;
    let error = text("error");
    let output = error.or(text("output")).unwrap_or_default();
    messages.push(AssistantMessage::calls([call.clone()]).into());
    messages.push(content::result(&call, vec![Block::text(output)], error.is_some()));
    Ok(())
}
