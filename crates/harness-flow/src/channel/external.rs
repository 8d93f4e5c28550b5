//! A channel as the outside has it.

use std::fmt;
use std::sync::Arc;

use harness_core::Json;

use super::handle::{RecvLine, Shared};
use super::state::Watch;
use super::{ChannelError, Mode};

/// Values that a listener of a topic may leave unread.
const UNREAD: usize = 1_000;

/// A channel as the outside has it: sending never waits. It is closed while its execution does not run, and
/// open again when a root run begins on it anew.
#[derive(Clone)]
pub struct ExternalChannel(Arc<Shared>);

impl fmt::Debug for ExternalChannel {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("ExternalChannel").field(&self.0.spec).finish()
    }
}

impl ExternalChannel {
    pub(super) fn new(shared: Arc<Shared>) -> Self {
        Self(shared)
    }

    /// Sends a value at once. A full queue loses its oldest value, with a warning; senders inside that wait for
    /// a place go on waiting.
    ///
    /// # Errors
    /// [`ChannelError::Closed`] and [`ChannelError::Schema`]; the value was not sent.
    pub fn send(&self, value: Json) -> Result<(), ChannelError> {
        let value = self.0.admit(value)?;
        if self.0.lock().force(value) {
            let Mode::Queue { capacity } = self.0.spec.mode else { return Ok(()) };
            tracing::warn!(channel = %self.0.spec.name, capacity, "the queue is full: its oldest value is lost");
        }
        Ok(())
    }

    /// Whether its execution is over.
    pub fn is_closed(&self) -> bool {
        self.0.lock().closed
    }

    /// Listens, until the execution is over: to what a topic says from now on, at most 1000 values behind; for
    /// the values of a queue, in one line with the receivers inside; to the present value and then the newest.
    pub fn listen(&self) -> ExternalStream {
        let kind = match self.0.spec.mode {
            Mode::Queue { .. } => Kind::Queue(Arc::clone(&self.0)),
            Mode::Topic => Kind::Watch(self.0.lock().watch(UNREAD)),
            Mode::Value => Kind::Watch(self.0.lock().watch(1)),
        };
        ExternalStream(kind)
    }
}

/// What comes out of a channel. Dropping it ends the listening.
pub struct ExternalStream(Kind);

enum Kind {
    Queue(Arc<Shared>),
    Watch(Arc<Watch>),
}

impl fmt::Debug for ExternalStream {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("ExternalStream").field("missed", &self.missed()).finish_non_exhaustive()
    }
}

impl ExternalStream {
    /// The next value, however long it takes; `None` when the execution is over and nothing is left.
    pub async fn next(&mut self) -> Option<Json> {
        match &self.0 {
            Kind::Watch(watch) => watch.next().await,
            Kind::Queue(shared) => next_of_queue(shared).await,
        }
    }

    /// Values that were lost because they were not read in time; of a value channel, those that a newer one
    /// replaced.
    pub fn missed(&self) -> u64 {
        match &self.0 {
            Kind::Watch(watch) => watch.missed(),
            Kind::Queue(_) => 0,
        }
    }
}

async fn next_of_queue(shared: &Shared) -> Option<Json> {
    let place = {
        let mut state = shared.lock();
        if state.closed {
            return state.try_recv();
        }
        match state.recv() {
            Ok(value) => return Some(value),
            Err(place) => place,
        }
    };
    let mut line = RecvLine { shared, place };
    // Without an answer the execution ended while nothing was there.
    (&mut line.place.answer).await.ok()
}
