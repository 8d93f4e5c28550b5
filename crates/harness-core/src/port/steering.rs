//! Messages that arrive while a turn runs.

use std::sync::Arc;

use serde::{Deserialize, Serialize};

use crate::ids::EntryId;
use crate::message::Message;

/// Where in a turn waiting messages are asked for.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
#[non_exhaustive]
pub enum DrainPoint {
    /// Behind the prompt, before the first request.
    Begin,
    /// Between two iterations.
    #[default]
    Round,
    /// The model has answered: with nothing to inject the turn is complete.
    Answer,
}

/// A queue of messages that are injected between iterations. Asked after the results of each batch,
/// before the first request, and before an answer ends the turn; it must answer at once.
///
/// ```
/// use std::sync::{Arc, Mutex};
///
/// use harness_core::EntryId;
/// use harness_core::message::Message;
/// use harness_core::port::{DrainPoint, Steering};
///
/// /// One message of the user, for the end of an answer.
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
    /// What waits now, in order. An entry is asked for again until it was injected.
    fn waiting(&self) -> Vec<(EntryId, Arc<Message>)>;

    /// What is to be injected at that point of the turn. The default makes no difference between them.
    fn waiting_at(&self, _point: DrainPoint) -> Vec<(EntryId, Arc<Message>)> {
        self.waiting()
    }

    /// These entries are in the transcript: let go of them.
    fn injected(&self, entries: &[EntryId]);
}
