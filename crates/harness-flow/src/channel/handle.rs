//! Internal side of a channel.

use std::fmt;
use std::sync::Arc;

use harness_core::port::Clock;
use harness_core::{Cancel, Json, Millis};
use parking_lot::{Mutex, MutexGuard};

use super::state::{Place, State};
use super::{ChannelError, ChannelSpec, Mode};
use crate::ended::{Ended, within};

/// Default timeout of a wait.
const DEFAULT_TIMEOUT: Millis = Millis(30_000);
/// Timeout of a topic receiver that sets none.
const TOPIC_TIMEOUT: Millis = Millis(300_000);

/// Channel of a scope.
pub(super) struct Shared {
    pub(super) spec: ChannelSpec,
    pub(super) clock: Arc<dyn Clock>,
    state: Mutex<State>,
}

impl Shared {
    pub(super) fn new(spec: ChannelSpec, clock: Arc<dyn Clock>) -> Self {
        let state = Mutex::new(State::new(spec.mode));
        Self { spec, clock, state }
    }

    pub(super) fn lock(&self) -> MutexGuard<'_, State> {
        self.state.lock()
    }

    pub(super) fn closed(&self) -> ChannelError {
        ChannelError::Closed { channel: Arc::clone(&self.spec.name) }
    }

    /// Validates a value for an open channel.
    pub(super) fn admit(&self, value: Json) -> Result<Json, ChannelError> {
        if self.lock().closed {
            return Err(self.closed());
        }
        let channel = || Arc::clone(&self.spec.name);
        let fits = self.spec.check(&value);
        fits.map_err(|problem| ChannelError::Schema { channel: channel(), problem }).map(|()| value)
    }
}

/// Handle of a channel inside an execution. Clones share the channel.
#[derive(Clone)]
pub struct Channel {
    shared: Arc<Shared>,
    cancel: Cancel,
    timeout: Option<Millis>,
}

impl fmt::Debug for Channel {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Channel")
            .field("spec", &self.shared.spec)
            .field("timeout", &self.timeout)
            .finish_non_exhaustive()
    }
}

impl Channel {
    pub(super) fn new(shared: Arc<Shared>, cancel: Cancel) -> Self {
        Self { shared, cancel, timeout: Some(DEFAULT_TIMEOUT) }
    }

    /// Sets the timeout of each wait; `None` is unlimited, for a topic 300 s. Default 30 s.
    #[must_use]
    pub fn timeout(mut self, timeout: Option<Millis>) -> Self {
        self.timeout = timeout;
        self
    }

    /// Name of the channel.
    pub fn name(&self) -> &Arc<str> {
        &self.shared.spec.name
    }

    /// Sends a value. Waits only while a queue is full; a send that need not wait succeeds even after an abort.
    ///
    /// # Errors
    /// [`ChannelError::Schema`], [`ChannelError::Closed`], and for a wait [`ChannelError::Timeout`] and
    /// [`ChannelError::Cancelled`]. The value was not sent.
    pub async fn send(&self, value: Json) -> Result<(), ChannelError> {
        let value = self.shared.admit(value)?;
        let Some(place) = self.shared.lock().send(value) else { return Ok(()) };
        let mut line = SendLine { shared: &self.shared, place };
        match within(&mut line.place.answer, &*self.shared.clock, self.timeout, &self.cancel).await {
            Ended::Done(Ok(())) => Ok(()),
            Ended::Done(Err(_)) => Err(self.shared.closed()),
            Ended::TimedOut => Err(self.timed_out(self.timeout)),
            Ended::Cancelled(reason) => Err(ChannelError::Cancelled { reason }),
        }
    }

    /// Waits for the next value.
    ///
    /// # Errors
    /// [`ChannelError::Cancelled`], even without a wait; [`ChannelError::Closed`]; [`ChannelError::Timeout`].
    ///
    /// # Cancel safety
    /// A value that was handed to a dropped receiver returns to the head of its queue.
    pub async fn recv(&self) -> Result<Json, ChannelError> {
        if let Some(reason) = self.cancel.reason() {
            return Err(ChannelError::Cancelled { reason });
        }
        let place = {
            let mut state = self.shared.lock();
            if state.closed {
                return Err(self.shared.closed());
            }
            match state.recv() {
                Ok(value) => return Ok(value),
                Err(place) => place,
            }
        };
        let timeout = self.recv_timeout();
        let mut line = RecvLine { shared: &self.shared, place };
        match within(&mut line.place.answer, &*self.shared.clock, timeout, &self.cancel).await {
            Ended::Done(Ok(value)) => Ok(value),
            Ended::Done(Err(_)) => Err(self.shared.closed()),
            Ended::TimedOut => Err(self.timed_out(timeout)),
            Ended::Cancelled(reason) => Err(ChannelError::Cancelled { reason }),
        }
    }

    /// Returns an available value without waiting.
    pub fn try_recv(&self) -> Option<Json> {
        self.shared.lock().try_recv()
    }

    fn recv_timeout(&self) -> Option<Millis> {
        if self.timeout.is_none() && self.shared.spec.mode == Mode::Topic {
            tracing::warn!(channel = %self.name(), "a topic receiver without timeout waits at most {TOPIC_TIMEOUT}");
            return Some(TOPIC_TIMEOUT);
        }
        self.timeout
    }

    fn timed_out(&self, timeout: Option<Millis>) -> ChannelError {
        ChannelError::Timeout { channel: Arc::clone(self.name()), timeout: timeout.unwrap_or_default() }
    }
}

/// Place of a waiting sender, released on drop.
struct SendLine<'a> {
    shared: &'a Shared,
    place: Place<()>,
}

impl Drop for SendLine<'_> {
    fn drop(&mut self) {
        self.shared.lock().leave_parked(&self.place);
    }
}

/// Place of a waiting receiver, released on drop.
pub(super) struct RecvLine<'a> {
    pub(super) shared: &'a Shared,
    pub(super) place: Place<Json>,
}

impl Drop for RecvLine<'_> {
    fn drop(&mut self) {
        self.shared.lock().leave(&mut self.place);
    }
}
