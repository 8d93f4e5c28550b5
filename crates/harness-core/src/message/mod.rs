//! Messages of typed blocks, lossless for every provider and session format.
//!
//! A message is the unit of storage and sharing (`Arc<Message>`): an assistant message holds one whole response of a
//! model (text, thinking, calls, usage, stop reason), a tool result message answers one call. Unknown keys and block
//! types survive a round trip; numbers are exact.
//!
//! ```
//! use harness_core::message::{
//!     ApprovalRequest, ApprovalState, AssistantMessage, Cost, CostError, CostSource, FinishReason, Invalid,
//!     ModelOutput,
//! };
//!
//! assert!(matches!(AssistantMessage::text("It is 4.").output(), ModelOutput::FinalAnswer));
//! let request = ApprovalRequest::new("a1", "payment", "Pay 50 euros?");
//! let message = AssistantMessage::approval_request(&request);
//! assert_eq!(message.output(), ModelOutput::ApprovalRequest(request));
//! assert_eq!(AssistantMessage::invalid(&Invalid::new("no JSON")).output_type(), "invalid");
//!
//! assert_eq!(FinishReason::from("toolUse"), FinishReason::ToolUse);
//! assert_eq!(serde_json::to_string(&ApprovalState::Granted).unwrap(), r#""granted""#);
//! let cost: Cost = "0.25".parse()?;
//! assert_eq!((cost, cost.to_string().as_str()), (Cost(250_000_000), "0.25"));
//! assert_eq!(CostSource::Reported.to_string(), "reported");
//! # Ok::<(), CostError>(())
//! ```

mod block;
mod output;
mod role;
mod usage;

pub use block::{
    ApprovalBlock, ApprovalState, AudioBlock, Block, ErrorBlock, ExtensionBlock, FileBlock, ImageBlock,
    RefusalBlock, TextBlock, ThinkingBlock, ToolCall,
};
pub use output::{ApprovalRequest, Invalid, ModelOutput};
pub(crate) use role::Handoff;
pub use role::{
    AssistantMessage, CustomMessage, FinishReason, Message, SystemMessage, ToolResultMessage, UserMessage,
};
pub use usage::{Cost, CostError, CostParts, CostSource, Usage};

#[cfg(test)]
mod tests;
