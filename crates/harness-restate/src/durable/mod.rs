//! The durable driver and its services, over any engine that has a [`DurableContext`].
//!
//! Five services, in the words of an engine with keyed objects:
//!
//! | service | does |
//! |---|---|
//! | thread ([`ThreadState`]) | owns the queue, the decisions and the status of one conversation; each request is short |
//! | run ([`drive`]) | drives the machine of one run; one at a time per thread |
//! | step ([`perform`]) | performs one slow operation (a model, a tool) on any worker |
//! | log ([`LogPages`]) | keeps the records and events of one thread, numbered without gaps |
//! | storage ([`EngineStorage`]) | keeps values under keys, one object per directory |
//!
//! What is journaled are the inputs of the machine and their times, never its state. The module names no type of an
//! engine.

mod answer;
mod blob;
mod child;
mod context;
pub(crate) mod deltas;
mod drive;
mod host;
mod log;
mod opening;
mod reader;
mod request;
mod running;
mod sealed;
mod segment;
mod settle;
mod shown;
pub mod sim;
mod states;
mod step;
pub(crate) mod storage;
mod thread;

pub use answer::{AnswerId, DeltaReceiver, DeltaSink, ToolProgress};
pub use blob::{Blob, BlobHash};
pub use child::{ChildEnd, Delegation};
pub use context::{
    Begin, ControlAsk, ControlReply, DriveInput, Driven, DurableContext, Handle, ParkedRun, SegmentWork,
    StepAsk, StepReply, Stopped, TimedInput, Woken,
};
pub use drive::{DriveOptions, drive};
#[cfg(feature = "restate")]
pub(crate) use host::fault;
pub use host::{Agent, AgentHost, HostAsk, ThreadStore};
pub use log::{LogEntry, LogItem, LogPages, LogRefusal, fold};
pub use reader::Reader;
pub use request::{
    AgentSettings, Held, Queued, ResumeAsk, RunOptions, ThreadAsk, ThreadReply, ThreadSend, ThreadStatus,
};
pub use settle::delivered;
#[cfg(feature = "restate")]
pub(crate) use shown::FAILED;
pub use shown::{EVENT, STRIDE, ended, report, shown};
pub use sim::SimEngine;
#[cfg(feature = "restate")]
pub(crate) use step::lost_reply;
pub use step::{Nonce, StepContext, perform};
pub use storage::{DirectoryAsk, DirectoryReply, DirectoryService, EngineStorage};
pub use thread::{ChildReport, ThreadState};
