//! Messages that wait for a thread.
//!
//! Plain data: what is taken when is decided here, when to take is the thread's business. The table of
//! modes is in `docs/reference/delivery.md`.

use std::collections::VecDeque;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use harness_core::message::Message;
use harness_core::port::DrainPoint;
use harness_core::{EntryId, Time};
use serde::{Deserialize, Serialize};

use crate::prompt::MessageOptions;

/// When a message is delivered to a thread that is at work. To an idle thread all of them mean: now.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
#[non_exhaustive]
pub enum DeliveryMode {
    /// When the run at hand is over.
    #[default]
    NextTurn,
    /// Before the next model call of the run at hand.
    BetweenRounds,
    /// At once: the run at hand is ended for it.
    Interrupt,
}

/// How many of the messages that wait are delivered together.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
#[non_exhaustive]
pub enum QueueMode {
    /// The oldest alone.
    #[default]
    OneAtATime,
    /// All of them.
    All,
}

impl QueueMode {
    fn most(self) -> usize {
        match self {
            Self::OneAtATime => 1,
            Self::All => usize::MAX,
        }
    }
}

/// Delivery of steering that arrives after the answer of the model.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
#[non_exhaustive]
pub enum LateSteering {
    /// The run continues with it.
    #[default]
    GoesOn,
    /// It begins the next run.
    NextTurn,
}

/// How a thread delivers waiting messages: the delivery settings of a [`ThreadConfig`](crate::ThreadConfig), for a thread
/// outside of this process.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct DeliveryRules {
    /// How much steering is delivered at once. Default one message.
    pub steering: QueueMode,
    /// How many messages one run begins with. Default one.
    pub follow_up: QueueMode,
    /// Delivery of steering that arrives after the answer. Default: the run continues with it.
    pub late_steering: LateSteering,
}

impl DeliveryRules {
    /// Whether each setting is the default.
    pub fn is_default(&self) -> bool {
        *self == Self::default()
    }
}

/// State of a queued message.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
#[non_exhaustive]
pub enum DeliveryState {
    /// It waits, and can be changed and removed.
    #[default]
    Waiting,
    /// A run has taken it, and does not have it in its transcript yet.
    Delivering,
}

/// Bytes of the messages that wait in all threads of a runtime. Clones share the count.
#[derive(Clone, Debug, Default)]
pub(crate) struct QueuedBytes(Arc<AtomicUsize>);

impl QueuedBytes {
    /// Counts `bytes` until the share is dropped. `None` when `bound` does not leave room for them.
    pub(crate) fn reserve(&self, bytes: usize, bound: usize) -> Option<Arc<QueueShare>> {
        let fit = |used: usize| used.checked_add(bytes).filter(|total| *total <= bound);
        self.0.fetch_update(Ordering::AcqRel, Ordering::Acquire, fit).ok()?;
        Some(Arc::new(QueueShare { bytes, total: Self::clone(self) }))
    }
}

/// Room that one message takes of all queues. Copies of its entry share it.
#[derive(Debug)]
pub(crate) struct QueueShare {
    pub(crate) bytes: usize,
    total: QueuedBytes,
}

impl Drop for QueueShare {
    fn drop(&mut self) {
        self.total.0.fetch_sub(self.bytes, Ordering::AcqRel);
    }
}

impl PartialEq for QueueShare {
    fn eq(&self, other: &Self) -> bool {
        self.bytes == other.bytes
    }
}

impl Eq for QueueShare {}

/// A message that waits, with options of the run that it starts: a thread of this process, or one on an engine, has its own.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
#[non_exhaustive]
pub struct QueueEntry<O = MessageOptions> {
    /// Its name: the caller's, or one that the thread gave it.
    pub id: EntryId,
    /// Message to deliver.
    pub message: Arc<Message>,
    /// When it is delivered.
    pub mode: DeliveryMode,
    /// State of the delivery.
    pub state: DeliveryState,
    /// When it was queued.
    pub queued_at: Time,
    /// Whether it makes an idle thread begin: what is queued by `steer` and `follow_up` does not.
    pub wakes: bool,
    /// Options of the run that it starts.
    pub options: O,
    /// The room that it takes of the queues of a runtime.
    #[serde(skip)]
    pub(crate) share: Option<Arc<QueueShare>>,
}

impl<O> QueueEntry<O> {
    /// A message that waits from now on.
    pub fn new(
        id: EntryId,
        message: Arc<Message>,
        mode: DeliveryMode,
        wakes: bool,
        options: O,
        now: Time,
    ) -> Self {
        let state = DeliveryState::Waiting;
        Self { id, message, mode, state, queued_at: now, wakes, options, share: None }
    }

    fn is_waiting(&self) -> bool {
        self.state == DeliveryState::Waiting
    }

    /// Whether a run may begin with it. What is only steering waits for a run to begin.
    fn begins(&self) -> bool {
        self.is_waiting() && (self.wakes || self.mode != DeliveryMode::BetweenRounds)
    }

    fn is_steering(&self) -> bool {
        self.is_waiting() && self.mode == DeliveryMode::BetweenRounds
    }
}

impl Queue {
    /// The bytes of all messages, those that are being delivered included, but for one.
    pub(crate) fn bytes_without(&self, id: Option<&EntryId>) -> usize {
        let others = self.0.iter().filter(|entry| Some(&entry.id) != id);
        let shares = others.filter_map(|entry| entry.share.as_ref());
        shares.fold(0, |sum, share| sum.saturating_add(share.bytes))
    }
}

/// The messages that wait for one thread, in the order of their delivery. Data alone: the rules of
/// `docs/reference/delivery.md` for threads in a process, and for those on an engine.
///
/// ```
/// use harness_runtime::{MessageOptions, Queue};
///
/// let queue = Queue::<MessageOptions>::default();
/// assert!(queue.len() == 0 && !queue.wakes());
/// ```
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(transparent)]
pub struct Queue<O = MessageOptions>(VecDeque<QueueEntry<O>>);

impl<O> Default for Queue<O> {
    fn default() -> Self {
        Self(VecDeque::new())
    }
}

impl<O: PartialEq> Queue<O> {
    /// How many messages wait; what a run has taken is not counted.
    #[expect(clippy::len_without_is_empty, reason = "a queue without waiting messages may hold others")]
    pub fn len(&self) -> usize {
        self.0.iter().filter(|entry| entry.is_waiting()).count()
    }

    /// All messages, those that are being delivered included.
    pub fn iter(&self) -> impl Iterator<Item = &QueueEntry<O>> {
        self.0.iter()
    }

    /// Whether there is a message of that name.
    pub fn has(&self, id: &EntryId) -> bool {
        self.0.iter().any(|entry| entry.id == *id)
    }

    /// Behind everything that waits.
    pub fn push(&mut self, entry: QueueEntry<O>) {
        self.0.push_back(entry);
    }

    /// Before everything that waits, behind earlier interruptions.
    pub fn push_interrupt(&mut self, entry: QueueEntry<O>) {
        let before = self.0.iter().take_while(|entry| entry.mode == DeliveryMode::Interrupt).count();
        self.0.insert(before, entry);
    }

    /// The queued entry of that id.
    pub fn waiting_mut(&mut self, id: &EntryId) -> Option<&mut QueueEntry<O>> {
        self.0.iter_mut().find(|entry| entry.id == *id && entry.is_waiting())
    }

    /// Removes the queued entry of that id.
    pub fn remove_waiting(&mut self, id: &EntryId) -> Option<QueueEntry<O>> {
        let at = self.0.iter().position(|entry| entry.id == *id && entry.is_waiting())?;
        self.0.remove(at)
    }

    /// Moves what waits under that id to the n-th place.
    pub fn move_waiting(&mut self, id: &EntryId, to: usize) -> bool {
        let Some(entry) = self.remove_waiting(id) else { return false };
        self.0.insert(to.min(self.0.len()), entry);
        true
    }

    /// Whether something waits that makes an idle thread begin.
    pub fn wakes(&self) -> bool {
        self.0.iter().any(|entry| entry.wakes && entry.begins())
    }

    /// The first message that the next run begins with.
    pub fn beginning(&self) -> Option<&QueueEntry<O>> {
        self.0.iter().find(|entry| entry.begins())
    }

    /// Takes what the next run begins with: the oldest that may begin one, or all of those up to the first that wants
    /// another run. They stay in the queue as being delivered.
    pub fn take_beginning(&mut self, mode: QueueMode) -> Vec<(EntryId, Arc<Message>)> {
        let Some(first) = self.beginning() else { return Vec::new() };
        let differs = |entry: &QueueEntry<O>| entry.begins() && entry.options != first.options;
        let agreeing = self.0.iter().position(differs).unwrap_or(self.0.len());
        deliver(self.0.iter_mut().take(agreeing), mode, QueueEntry::begins)
    }

    /// Takes these messages, as far as they wait. They stay in the queue as being delivered.
    pub fn take_named(&mut self, ids: &[EntryId]) -> Vec<(EntryId, Arc<Message>)> {
        deliver(self.0.iter_mut(), QueueMode::All, |entry| entry.is_waiting() && ids.contains(&entry.id))
    }

    /// Takes what is steering.
    pub fn take_steering(&mut self, mode: QueueMode) -> Vec<(EntryId, Arc<Message>)> {
        deliver(self.0.iter_mut(), mode, QueueEntry::is_steering)
    }

    /// The steering that a run would take behind its prompt.
    pub(crate) fn preview(&self, mode: QueueMode) -> Vec<Arc<Message>> {
        let steering = self.0.iter().filter(|entry| entry.is_steering()).take(mode.most());
        steering.map(|entry| Arc::clone(&entry.message)).collect()
    }

    /// Takes the steering for a run at a point of its turn.
    pub fn take_at(
        &mut self,
        point: DrainPoint,
        mode: QueueMode,
        late: LateSteering,
    ) -> Vec<(EntryId, Arc<Message>)> {
        if point == DrainPoint::Answer && late == LateSteering::NextTurn {
            return Vec::new();
        }
        self.take_steering(mode)
    }

    /// These are in a transcript.
    pub fn delivered(&mut self, ids: &[EntryId]) {
        self.0.retain(|entry| !ids.contains(&entry.id));
    }

    /// Requeues undelivered messages in their old places. Returns whether there were any.
    pub fn restore(&mut self) -> bool {
        let mut any = false;
        for entry in self.0.iter_mut().filter(|entry| !entry.is_waiting()) {
            entry.state = DeliveryState::Waiting;
            any = true;
        }
        any
    }
}

/// Hands out what is wanted of these.
fn deliver<'q, O: 'q>(
    entries: impl Iterator<Item = &'q mut QueueEntry<O>>,
    mode: QueueMode,
    wanted: impl Fn(&QueueEntry<O>) -> bool,
) -> Vec<(EntryId, Arc<Message>)> {
    let taken = entries.filter(|entry| wanted(entry)).take(mode.most());
    taken
        .map(|entry| {
            entry.state = DeliveryState::Delivering;
            (entry.id.clone(), Arc::clone(&entry.message))
        })
        .collect()
}
