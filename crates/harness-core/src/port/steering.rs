//! Messages that arrive while a turn runs.

use std::sync::Arc;

use crate::ids::EntryId;
use crate::message::Message;

/// A queue of messages that are injected between iterations. Asked after the results of each batch and
/// before the first request; it must answer at once.
pub trait Steering: Send + Sync {
    /// What waits now, in order. An entry is asked for again until it was injected.
    fn waiting(&self) -> Vec<(EntryId, Arc<Message>)>;

    /// These entries are in the transcript: let go of them.
    fn injected(&self, entries: &[EntryId]);
}

/// No steering.
#[derive(Clone, Copy, Debug, Default)]
pub struct NoSteering;

impl Steering for NoSteering {
    fn waiting(&self) -> Vec<(EntryId, Arc<Message>)> {
        Vec::new()
    }

    fn injected(&self, _: &[EntryId]) {}
}
