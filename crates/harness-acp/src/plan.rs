//! The plan that a model keeps, when it has a tool for that.

use std::sync::Arc;

use agent_client_protocol::v1::schema::{Plan, PlanEntry, PlanEntryPriority, PlanEntryStatus};
use harness::core::message::Message;
use serde_json::Value;

use crate::content::value;

/// Plan in the last of these messages that contains one: results of `write_todos` and related
/// tools.
pub(crate) fn told_in<'m>(messages: impl DoubleEndedIterator<Item = &'m Arc<Message>>) -> Option<Plan> {
    messages.rev().find_map(of_message)
}

fn of_message(message: &Arc<Message>) -> Option<Plan> {
    let result = message.as_tool_result()?;
    if !matches!(result.tool_name.as_str(), "write_todos" | "list_todos" | "complete_todo") {
        return None;
    }
    let told = value(result.structured.as_ref()?)?;
    let entries = told.get("todos")?.as_array()?.iter().filter_map(|todo| {
        let status = match todo.get("status").and_then(Value::as_str)? {
            "completed" => PlanEntryStatus::Completed,
            "in_progress" => PlanEntryStatus::InProgress,
            _ => PlanEntryStatus::Pending,
        };
        let content = todo.get("content").and_then(Value::as_str)?;
        Some(PlanEntry::new(content, PlanEntryPriority::Medium, status))
    });
    Some(Plan::new(entries.collect()))
}
