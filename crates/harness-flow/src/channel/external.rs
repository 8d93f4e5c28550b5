//! External side of a channel.

use std::fmt;
use std::sync::Arc;

use harness_core::Json;

use super::handle::{RecvLine, Shared};
use super::state::Watch;
use super::{ChannelError, Mode};

/// Maximum number of unread values per listener of a topic.
const UNREAD: usize = 1_000;

/// External handle of a channel. Sending never waits. The channel is closed while its execution is not running.
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

    /// Sends a value at once. A full queue drops its oldest value and logs a warning; waiting senders keep
    /// waiting.
    ///
    /// # Errors
    /// [`ChannelError::Closed`] and [`ChannelError::Schema`].
    pub fn send(&self, value: Json) -> Result<(), ChannelError> {
        let value = self.0.admit(value)?;
        if self.0.lock().force(value) {
            let Mode::Queue { capacity } = self.0.spec.mode else { return Ok(()) };
            tracing::warn!(channel = %self.0.spec.name, capacity, "queue full: oldest value dropped");
        }
        Ok(())
    }

    /// Whether the channel is closed.
    pub fn is_closed(&self) -> bool {
        self.0.lock().closed
    }

    /// Subscribes until the channel closes: to new values of a topic, buffering at most 1,000; to the values of a
    /// queue, in line with receivers inside; to the current value of a value channel and its changes.
    pub fn listen(&self) -> ExternalStream {
        let kind = match self.0.spec.mode {
            Mode::Queue { .. } => Kind::Queue(Arc::clone(&self.0)),
            Mode::Topic => Kind::Watch(self.0.lock().watch(UNREAD)),
            Mode::Value => Kind::Watch(self.0.lock().watch(1)),
        };
        ExternalStream(kind)
    }
}

/// Stream of a channel's values. Dropping it ends the subscription.
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
    /// Waits for the next value; `None` when the channel is closed and empty.
    pub async fn next(&mut self) -> Option<Json> {
        match &self.0 {
            Kind::Watch(watch) => watch.next().await,
            Kind::Queue(shared) => next_of_queue(shared).await,
        }
    }

    /// Number of values dropped because they were not read in time. A value channel counts replaced values.
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
