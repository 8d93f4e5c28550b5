//! The one message model: messages of typed blocks, lossless for every provider and session format.
//!
//! A message is the unit that is stored and shared (`Arc<Message>`): one assistant message holds the
//! whole response of a model (text, thinking, calls, usage, stop reason), one tool result message
//! answers one call. Unknown keys and unknown block types survive a round trip; numbers are exact.

mod block;
mod output;
pub(crate) mod rare;
mod role;
pub(crate) mod stored;
mod usage;

pub use block::{
    ApprovalBlock, ApprovalState, AudioBlock, Block, ErrorBlock, ExtensionBlock, FileBlock, ImageBlock,
    RefusalBlock, TextBlock, TextRare, ThinkingBlock, ToolCall, ToolCallRare,
};
pub use output::{ApprovalRequest, Invalid, ModelOutput};
pub use rare::{Rare, RarePart};
pub use role::{
    AssistantMessage, AssistantRare, CustomMessage, FinishReason, Message, SystemMessage, ToolResultMessage,
    ToolResultRare, UserMessage,
};
pub use usage::{Cost, CostError, CostParts, CostSource, Usage};

#[cfg(test)]
mod tests;
