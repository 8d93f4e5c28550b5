//! The one message model: messages of typed blocks, lossless for every provider and session format.
//!
//! A message is the unit that is stored and shared (`Arc<Message>`): one assistant message holds the
//! whole response of a model (text, thinking, calls, usage, stop reason), one tool result message
//! answers one call. Unknown keys and unknown block types survive a round trip; numbers are exact.

mod block;
mod output;
mod role;
mod usage;

pub use block::{
    ApprovalBlock, ApprovalState, AudioBlock, Block, ErrorBlock, ExtensionBlock, FileBlock, ImageBlock,
    RefusalBlock, TextBlock, ThinkingBlock, ToolCall,
};
pub use output::{ApprovalRequest, Invalid, ModelOutput};
pub use role::{
    AssistantMessage, CustomMessage, FinishReason, Message, SystemMessage, ToolResultMessage, UserMessage,
};
pub use usage::{Cost, CostError, CostParts, CostSource, Usage};

#[cfg(test)]
mod tests;
