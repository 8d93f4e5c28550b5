//! Entries that are moved to another thread.

use std::sync::Arc;

use harness_core::message::Message;
use harness_core::outcome::TotalUsage;
use harness_core::port::{CompactionNote, Entry};
use harness_core::tool::RetryClass;
use harness_core::transcript::Plan;
use harness_core::{CallId, Json, Stop};

/// An entry with all that it refers to.
pub(super) enum OwnEntry {
    Message(Arc<Message>),
    CallStarted { call: CallId, attempt: u32, class: RetryClass },
    CallFinished { call: CallId, attempt: u32, class: RetryClass, result: Arc<Message> },
    Compaction(Box<(CompactionNote, Plan, bool)>),
    State(Box<(String, Json)>),
    RunEnd(Box<(Stop, TotalUsage)>),
}

impl OwnEntry {
    /// A copy of the entry; `None` for one of a kind that this version does not know.
    pub(super) fn of(entry: &Entry<'_>) -> Option<Self> {
        Some(match *entry {
            Entry::Message(message) => Self::Message(Arc::clone(message)),
            Entry::CallStarted { call, attempt, class } => {
                Self::CallStarted { call: call.clone(), attempt, class: *class }
            }
            Entry::CallFinished { call, attempt, class, result } => {
                Self::CallFinished { call: call.clone(), attempt, class: *class, result: Arc::clone(result) }
            }
            Entry::Compaction { note, plan, permanent } => {
                Self::Compaction(Box::new((note.clone(), plan.clone(), permanent)))
            }
            Entry::State { name, state } => Self::State(Box::new((name.to_owned(), state.clone()))),
            Entry::RunEnd { stop, usage } => Self::RunEnd(Box::new((stop.clone(), usage.clone()))),
            _ => return None,
        })
    }

    pub(super) fn entry(&self) -> Entry<'_> {
        match self {
            Self::Message(message) => Entry::Message(message),
            Self::CallStarted { call, attempt, class } => {
                Entry::CallStarted { call, attempt: *attempt, class }
            }
            Self::CallFinished { call, attempt, class, result } => {
                Entry::CallFinished { call, attempt: *attempt, class, result }
            }
            Self::Compaction(own) => {
                let (note, plan, permanent) = &**own;
                Entry::Compaction { note, plan, permanent: *permanent }
            }
            Self::State(own) => Entry::State { name: &own.0, state: &own.1 },
            Self::RunEnd(own) => Entry::RunEnd { stop: &own.0, usage: &own.1 },
        }
    }
}
