//! Events of a thread, for subscribers.
//!
//! Each thread has one event log: everything that happens, numbered over all of its runs, the newest
//! [`kept`](crate::Limits::event_log) of it. A reader has a position on it and nothing else; text, reasoning and
//! items are folds over what is read.

mod assembly;
mod event_log;
mod items;
mod reader;

pub use assembly::PartialBlock;
pub use event_log::{QueueChange, ThreadEvent};
pub use items::{Item, ItemContent, ItemStream, Items};
pub use reader::{ReasoningStream, StartAt, Stream, StreamItem, TextStream};

pub(crate) use event_log::EventLog;
