//! What happens in a thread, for whoever wants to follow it.
//!
//! Each thread has one tape: everything that happens, numbered over all of its runs, the newest
//! [`kept`](crate::Limits::tape) of it. A reader has a position on it and nothing else; text, reasoning and
//! items are folds over what is read.

mod assembly;
mod items;
mod reader;
mod tape;

pub use assembly::PartialBlock;
pub use items::{Item, ItemContent, ItemStream, Items};
pub use reader::{ReasoningStream, StartAt, Stream, TextStream, Told};
pub use tape::{QueueChange, ThreadEvent};

pub(crate) use tape::Tape;
