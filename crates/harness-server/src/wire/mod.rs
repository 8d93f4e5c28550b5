//! Wire types.

mod event;
mod input;
mod item;
mod report;
mod schema;
mod thread;

pub(crate) use event::{Frame, frame, transient_frame};
pub(crate) use input::{
    AbortThread, Answer, Compact, CreateThread, EditEntry, Say, Send, StartRun, decision,
};
pub(crate) use item::ItemFrames;
pub(crate) use report::ReportView;
pub(crate) use schema::{ThreadEvent, components, event_schema};
pub(crate) use thread::{
    Aborted, ApprovalList, ApprovalView, Compacted, EntryView, MessageList, Queue, Queued, Started,
    StatusView, ThreadLine, ThreadList, ThreadState, ThreadView,
};
