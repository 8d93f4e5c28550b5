//! Vectors of the thread runtime: channels, the steps of flows, threads.

pub(super) mod channel;
pub(super) mod checkpoint;
mod error;
pub(super) mod parallel;
pub(super) mod repeat;
pub(super) mod rounds;
pub(super) mod streams;
pub(super) mod threads;

use harness_core::RunId;
use harness_core::message::{Block, Message};

/// Every run has one name: vectors name none.
pub(super) struct Ids;

impl harness_core::port::Ids for Ids {
    fn run_id(&self) -> RunId {
        "run".into()
    }
}

/// A message as item codes.
fn codes(message: &Message) -> Vec<String> {
    if let Some(answer) = message.as_assistant() {
        return answer.content.iter().filter_map(block_code).collect();
    }
    if let Message::ToolResult(result) = message {
        return vec![format!("o:{}", result.tool_call_id)];
    }
    Some(message.joined_text())
        .filter(|said| !said.is_empty())
        .map(|said| format!("u:{said}"))
        .into_iter()
        .collect()
}

fn block_code(block: &Block) -> Option<String> {
    if let Block::ToolCall(call) = block {
        return Some(format!("c:{}", call.id));
    }
    block.as_text().map(|text| format!("a:{text}"))
}
