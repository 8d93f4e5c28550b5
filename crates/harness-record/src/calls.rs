//! Calls of a history, with their outputs.

use std::collections::HashMap;
use std::sync::Arc;

use harness_core::message::{Block, Message};
use harness_core::{CallId, Json, ToolName, canonical};
use serde::Serialize;

use super::run_record::RunRecord;

/// Call of a history, with its output.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
#[non_exhaustive]
pub struct ExtractedCall {
    /// Id of the call.
    pub call_id: CallId,
    /// Name of the tool; empty for an output without a call.
    pub name: ToolName,
    /// Arguments as written by the model; `{}` without any.
    pub arguments: Json,
    /// Output: structured data, otherwise text.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub output: Option<Json>,
    /// Whether there is an output.
    pub has_output: bool,
    /// Whether the output is an error.
    pub is_error: bool,
    /// Number of the call, starting at 1.
    pub turn: u32,
    /// Canonical text of the arguments.
    pub args_canonical_json: String,
    /// SHA-256 of that text.
    pub args_hash: String,
}

/// Extracts the calls of the run, in order, without those of earlier runs.
pub fn extract_tool_calls(record: &RunRecord) -> Vec<ExtractedCall> {
    let mut calls = extract_calls_of(record.own_items());
    // Hashes are those of the unredacted arguments.
    if !record.redaction.paths.is_empty() || record.redaction.custom {
        let hashes: HashMap<_, _> =
            record.tool_calls.iter().map(|entry| (&entry.call_id, &entry.args_hash)).collect();
        for call in &mut calls {
            if let Some(hash) = hashes.get(&call.call_id) {
                call.args_hash.clone_from(hash);
            }
        }
    }
    calls
}

/// Extracts the calls of messages, in order. An output without a call becomes an entry without a name.
pub fn extract_calls_of(items: &[Arc<Message>]) -> Vec<ExtractedCall> {
    let mut calls: Vec<ExtractedCall> = Vec::new();
    // Ids may repeat: an output belongs to the first call without one.
    for item in items {
        match &**item {
            Message::Assistant(answer) => {
                for call in answer.tool_calls() {
                    let turn = number(calls.len());
                    calls.push(entry(&call.id, &call.name, call.arguments.clone(), turn));
                }
            }
            Message::ToolResult(result) => {
                let waiting =
                    calls.iter_mut().find(|call| call.call_id == result.tool_call_id && !call.has_output);
                let output = output(result.structured.as_ref(), &result.content);
                if let Some(call) = waiting {
                    (call.output, call.has_output, call.is_error) = (Some(output), true, result.is_error);
                } else {
                    let turn = number(calls.len());
                    let mut lost =
                        entry(&result.tool_call_id, &ToolName::from(""), Json::empty_object(), turn);
                    (lost.output, lost.has_output, lost.is_error) = (Some(output), true, result.is_error);
                    calls.push(lost);
                }
            }
            Message::System(_) | Message::User(_) | Message::Custom(_) | _ => {}
        }
    }
    calls
}

fn number(before: usize) -> u32 {
    u32::try_from(before).unwrap_or(u32::MAX).saturating_add(1)
}

fn entry(id: &CallId, name: &ToolName, arguments: Json, turn: u32) -> ExtractedCall {
    let args_canonical_json = canonical::text(&arguments);
    ExtractedCall {
        call_id: id.clone(),
        name: name.clone(),
        arguments,
        output: None,
        has_output: false,
        is_error: false,
        turn,
        args_hash: canonical::sha256_hex(&args_canonical_json),
        args_canonical_json,
    }
}

/// Converts an output to a JSON value.
pub(super) fn output(structured: Option<&Json>, content: &[Block]) -> Json {
    structured.cloned().unwrap_or_else(|| {
        if content.iter().all(|block| block.as_text().is_some()) {
            let text: String = content.iter().filter_map(Block::as_text).collect();
            return Json::string(&text);
        }
        Json::of(content).unwrap_or_else(|_| Json::null())
    })
}
