//! Messages injected into a running turn.

use std::sync::Arc;

use serde::{Deserialize, Serialize};

use crate::ids::EntryId;
use crate::message::Message;

/// Point of a turn at which queued messages are injected.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
#[non_exhaustive]
pub enum DrainPoint {
    /// After the prompt, before the first request.
    Begin,
    /// Between two iterations.
    #[default]
    Round,
    /// After an answer: without a message the turn is complete.
    Answer,
}

/// Queue of messages to inject: after the results of each batch, before the first request, and before an answer ends the
/// turn. Must not block.
///
/// ```
/// use std::sync::{Arc, Mutex};
///
/// use harness_core::EntryId;
/// use harness_core::message::Message;
/// use harness_core::port::{DrainPoint, Steering};
///
/// /// One message of the user, after an answer.
/// #[derive(Default)]
/// struct Next(Mutex<Option<Arc<Message>>>);
///
/// impl Steering for Next {
///     fn waiting(&self) -> Vec<(EntryId, Arc<Message>)> {
///         let next = self.0.lock().expect("no panic").clone();
///         next.map(|message| (EntryId::from("next"), message)).into_iter().collect()
///     }
///
///     fn waiting_at(&self, point: DrainPoint) -> Vec<(EntryId, Arc<Message>)> {
///         if point == DrainPoint::Answer { self.waiting() } else { Vec::new() }
///     }
///
///     fn injected(&self, _: &[EntryId]) {
///         *self.0.lock().expect("no panic") = None;
///     }
/// }
/// ```
pub trait Steering: Send + Sync {
    /// Returns the queued messages, in order. An entry stays queued until it is injected.
    fn waiting(&self) -> Vec<(EntryId, Arc<Message>)>;

    /// Returns the messages to inject at a point of the turn. Default: all queued messages.
    fn waiting_at(&self, _point: DrainPoint) -> Vec<(EntryId, Arc<Message>)> {
        self.waiting()
    }

    /// Removes entries that are in the transcript.
    fn injected(&self, entries: &[EntryId]);
}
