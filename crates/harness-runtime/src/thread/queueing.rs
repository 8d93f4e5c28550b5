//! Messages for a thread that may be at work.

use std::sync::Arc;

use harness_core::message::Message;
use harness_core::{EntryId, Json};

use super::handle::Thread;
use super::state::{State, Status};
use crate::error::RuntimeError;
use crate::prompt::MessageOptions;
use crate::queue::{DeliveryMode, QueueEntry, QueueShare};
use crate::service::ThreadMessage;
use crate::stream::{QueueChange, ThreadEvent};

impl Thread {
    /// Delivers a message in the given mode; an idle thread begins with it at once. Gives the name under which it
    /// waits. Never waits itself, and may be called from inside of the thread's own run.
    ///
    /// # Errors
    /// [`RuntimeError::QueueFull`], [`RuntimeError::QueueBytesFull`], [`RuntimeError::AllQueuesFull`];
    /// [`RuntimeError::OutputSchema`]; [`RuntimeError::Closed`]; [`RuntimeError::NoTokio`].
    pub fn execute(&self, message: impl Into<Message>, mode: DeliveryMode) -> Result<EntryId, RuntimeError> {
        self.deliver(ThreadMessage::new(message, mode))
    }

    /// Like [`execute`](Self::execute), with an entry id of the caller.
    ///
    /// # Errors
    /// As [`Thread::execute`]; [`RuntimeError::EntryExists`].
    pub fn execute_as(
        &self,
        entry: impl Into<EntryId>,
        message: impl Into<Message>,
        mode: DeliveryMode,
    ) -> Result<EntryId, RuntimeError> {
        self.deliver(ThreadMessage::new(message, mode).named(entry))
    }

    /// Like [`execute`](Self::execute), with [options](MessageOptions) of the run.
    ///
    /// # Errors
    /// As [`Thread::execute`].
    pub fn execute_with(
        &self,
        message: impl Into<Message>,
        mode: DeliveryMode,
        options: MessageOptions,
    ) -> Result<EntryId, RuntimeError> {
        self.deliver(ThreadMessage::new(message, mode).options(options))
    }

    /// Ends the run at hand for a message; see [`DeliveryMode::Interrupt`].
    ///
    /// # Errors
    /// As [`Thread::execute`].
    pub fn interrupt(&self, message: impl Into<Message>) -> Result<EntryId, RuntimeError> {
        self.execute(message, DeliveryMode::Interrupt)
    }

    /// Queues a message for between the rounds of the run at hand. An idle thread stays idle: the next run takes
    /// it behind its prompt.
    ///
    /// # Errors
    /// As [`Thread::execute`].
    pub fn steer(&self, message: impl Into<Message>) -> Result<EntryId, RuntimeError> {
        self.deliver(ThreadMessage::new(message, DeliveryMode::BetweenRounds).quiet())
    }

    /// Queues a message for when the work at hand is completed. An idle thread stays idle: the message follows the
    /// next completed run.
    ///
    /// # Errors
    /// As [`Thread::execute`].
    pub fn follow_up(&self, message: impl Into<Message>) -> Result<EntryId, RuntimeError> {
        self.deliver(ThreadMessage::new(message, DeliveryMode::NextTurn).quiet())
    }

    /// Delivers a message in any of these ways.
    ///
    /// # Errors
    /// As [`Thread::execute_as`].
    pub fn deliver(&self, message: ThreadMessage) -> Result<EntryId, RuntimeError> {
        let ThreadMessage { entry, message, mode, wakes, options } = message;
        let shared = &self.0;
        self.says_something(&message)?;
        shared.check_output(&options)?;
        if wakes {
            shared.parts.tokio()?;
        }
        let bytes = Json::size_of(&message);
        let mut state = shared.lock();
        if state.closed {
            return Err(RuntimeError::Closed { thread: shared.id.clone() });
        }
        let bound = shared.parts.limits.queue;
        if state.queue.iter().count() >= bound {
            return Err(RuntimeError::QueueFull { thread: shared.id.clone(), bound });
        }
        let id = entry.unwrap_or_else(|| {
            state.named += 1;
            EntryId::from(format!("msg-{}", state.named))
        });
        if state.queue.has(&id) {
            return Err(RuntimeError::EntryExists { thread: shared.id.clone(), entry: id });
        }
        let share = self.room(&state, bytes, None)?;
        let now = shared.parts.clock.now();
        let mut queued = QueueEntry::new(id.clone(), message, mode, wakes, options, now);
        queued.share = Some(share);
        if mode == DeliveryMode::Interrupt {
            state.queue.push_interrupt(queued);
        } else {
            state.queue.push(queued);
        }
        shared.event_log.emit(ThreadEvent::Queue { entry: id.clone(), change: QueueChange::Queued(mode) });
        if mode == DeliveryMode::Interrupt && matches!(state.status, Status::Generating { .. }) {
            state.interrupting = true;
            shared.stop(&mut state, Arc::from("interrupt"));
        }
        let job = if state.status == Status::Idle { shared.next(&mut state, false) } else { None };
        drop(state);
        if let Some(job) = job {
            shared.spawn(job);
        }
        Ok(id)
    }

    /// Room for a message of that size, in place of the one that waits under `replaced`.
    fn room(
        &self,
        state: &State,
        bytes: usize,
        replaced: Option<&EntryId>,
    ) -> Result<Arc<QueueShare>, RuntimeError> {
        let (parts, thread) = (&self.0.parts, &self.0.id);
        let bound = parts.limits.queue_bytes;
        let used = state.queue.bytes_without(replaced);
        if used.saturating_add(bytes) > bound {
            return Err(RuntimeError::QueueBytesFull { thread: thread.clone(), bytes, used, bound });
        }
        let bound = parts.limits.total_queue_bytes;
        parts.queued.reserve(bytes, bound).ok_or_else(|| RuntimeError::AllQueuesFull {
            thread: thread.clone(),
            bytes,
            bound,
        })
    }

    /// Refuses a user message without content.
    fn says_something(&self, message: &Message) -> Result<(), RuntimeError> {
        if matches!(message, Message::User(user) if user.is_blank()) {
            return Err(RuntimeError::EmptyMessage { thread: self.0.id.clone() });
        }
        Ok(())
    }

    /// Queued messages in the order of delivery, including those that a run is taking.
    pub fn queue(&self) -> Vec<QueueEntry> {
        self.0.lock().queue.iter().cloned().collect()
    }

    /// How many messages wait; what a run has taken is not counted.
    pub fn queue_len(&self) -> usize {
        self.0.lock().queue.len()
    }

    /// Changes what a waiting message says.
    ///
    /// # Errors
    /// [`RuntimeError::NotWaiting`] when it is not there, or a run has taken it; [`RuntimeError::EmptyMessage`];
    /// [`RuntimeError::QueueBytesFull`] and
    /// [`RuntimeError::AllQueuesFull`] when the new message does not fit: the old one stays.
    pub fn edit(&self, entry: &EntryId, message: impl Into<Message>) -> Result<(), RuntimeError> {
        let message = message.into();
        self.says_something(&message)?;
        let bytes = Json::size_of(&message);
        let mut state = self.0.lock();
        if state.queue.waiting_mut(entry).is_none() {
            return Err(self.not_waiting(entry));
        }
        let share = self.room(&state, bytes, Some(entry))?;
        let waiting = state.queue.waiting_mut(entry).ok_or_else(|| self.not_waiting(entry))?;
        (waiting.message, waiting.share) = (Arc::new(message), Some(share));
        self.emit_queue(entry, QueueChange::Changed);
        Ok(())
    }

    /// Moves a waiting message to the n-th place of the queue, from 0.
    ///
    /// # Errors
    /// [`RuntimeError::NotWaiting`], as [`Thread::edit`].
    pub fn reorder(&self, entry: &EntryId, place: usize) -> Result<(), RuntimeError> {
        let mut state = self.0.lock();
        if !state.queue.move_waiting(entry, place) {
            return Err(self.not_waiting(entry));
        }
        self.emit_queue(entry, QueueChange::Changed);
        Ok(())
    }

    /// Takes a waiting message out of the queue: it is not delivered.
    ///
    /// # Errors
    /// [`RuntimeError::NotWaiting`], as [`Thread::edit`].
    pub fn cancel(&self, entry: &EntryId) -> Result<QueueEntry, RuntimeError> {
        let mut state = self.0.lock();
        let removed = state.queue.remove_waiting(entry).ok_or_else(|| self.not_waiting(entry))?;
        self.emit_queue(entry, QueueChange::Removed);
        Ok(removed)
    }

    fn not_waiting(&self, entry: &EntryId) -> RuntimeError {
        RuntimeError::NotWaiting { thread: self.0.id.clone(), entry: entry.clone() }
    }

    fn emit_queue(&self, entry: &EntryId, change: QueueChange) {
        self.0.event_log.emit(ThreadEvent::Queue { entry: entry.clone(), change });
    }
}
