//! Plans: which messages are shown how, as data beside a transcript that nobody changes.
//!
//! [`Coordinator`] looks for what can go and makes a [`CompactionPlan`]; [`CompactionPlan::render`] shows
//! the transcript through it. The coordinator does no I/O: what a summarizer or a store has to do, it asks
//! for, and goes on with the answer.
//!
//! ```
//! use harness_core::Json;
//! use harness_core::message::{AssistantMessage, Block, Message, ToolCall, ToolResultMessage};
//! use harness_memory::compact::item::Item;
//! use harness_memory::compact::plan::{Clear, Coordinator};
//! use harness_memory::compact::tokens::RoundedCharacters;
//!
//! let call = ToolCall::new("c1", "list_directory", Json::empty_object());
//! let result = ToolResultMessage::new(&call, vec![Block::text("a file\n".repeat(100))], false);
//! let items = [
//!     Item::new("u", Message::user("What is there?")),
//!     Item::new("a", Message::from(AssistantMessage::calls([call]))),
//!     Item::new("t", Message::from(result)),
//!     Item::new("b", Message::from(AssistantMessage::text("A hundred files."))),
//! ];
//! let clear = Clear { preserve_recent_messages: 1, ..Clear::default() };
//! let coordinator = Coordinator::new([clear.into()]);
//! let mut work = coordinator.begin(&items, &RoundedCharacters, 100);
//! assert!(work.next().is_none(), "clearing needs nobody's help");
//! let done = work.finish();
//! let view = done.plan.render(&items);
//! assert_eq!(view[2].message.joined_text(), "[Cleared: tool message]");
//! assert!(done.plan.tokens_freed() > 100);
//! ```

mod coordinate;
mod count;
mod ladder;
mod propose;
mod record;
mod render;
mod scene;

pub use coordinate::{Coordinated, Coordination, Coordinator, Done, Work};
pub use count::{MESSAGE_OVERHEAD, content_tokens, total_tokens, wire_tokens};
pub use ladder::{Clear, Drop, Externalize, Strategy, Summarize};
pub use propose::CompactionProposal;
pub use record::{
    Action, ClearRecord, CompactionPlan, DropRecord, ExternalizationRecord, PlanWarning, SummarizationRecord,
};
