//! Deltas, progress of tools and notices from workers to front ends: best effort, beside the log.
//!
//! A worker sends what is new to every front end that it knows, in small batches. The front end replies which threads have
//! readers there and how much of each answer it has. So a worker sends the text of an answer from its start to a reader that
//! comes late, nothing twice, and for threads without readers a question from time to time.

mod hub;
mod listen;
mod outbox;
mod send;

use harness::core::ThreadId;
use harness::core::port::DeltaPart;
use secrecy::SecretString;
use serde::{Deserialize, Serialize};

use crate::durable::{AnswerId, ToolProgress};

pub use hub::RelayHub;
pub(super) use hub::{Feed, FeedReader};
pub use listen::RelayError;
pub(super) use outbox::Outbox;
pub use send::Relays;

/// Path of the one route of a relay.
const PATH: &str = "/v1/relay";

/// Bytes of the deltas of one answer, at most; the rest comes with its message. 256 KiB.
const ANSWER_BYTES: usize = 256 << 10;

/// Bytes that count for a delta beside its text.
const PART_BYTES: usize = 64;

/// A bearer token, which is in no log.
pub(super) type Token = SecretString;

/// A batch of a worker.
#[derive(Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
struct Push {
    /// Answers in progress.
    #[serde(default)]
    answers: Vec<PushedAnswer>,
    /// Progress of tools.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    reports: Vec<ToolProgress>,
    /// Threads that changed: their logs may have grown.
    #[serde(default)]
    changed: Vec<ThreadId>,
}

/// New deltas of an answer.
#[derive(Debug, PartialEq, Eq, Serialize, Deserialize)]
struct PushedAnswer {
    id: AnswerId,
    /// Number of the first delta here, from 0.
    from: usize,
    parts: Vec<DeltaPart>,
}

/// Reply of a front end.
#[derive(Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
struct Pushed {
    /// For each answer of the batch, the number of its deltas that are here; `None` if no more are wanted.
    #[serde(default)]
    have: Vec<Option<usize>>,
    /// Threads of the batch that have no reader.
    #[serde(default)]
    unread: Vec<ThreadId>,
}

/// Size of a delta for limits.
fn size_of(part: &DeltaPart) -> usize {
    let text = match part {
        DeltaPart::Text(text) | DeltaPart::Thinking(text) | DeltaPart::Note(text) => text.len(),
        DeltaPart::CallArguments { text, .. } => text.len(),
        DeltaPart::BackendToolStarted { input, .. } => input.text().len(),
        DeltaPart::BackendToolFinished { output, .. } => output.len(),
        DeltaPart::CallStarted { .. } | DeltaPart::Provider(_) | _ => 0,
    };
    PART_BYTES.saturating_add(text)
}

#[cfg(test)]
mod tests;
