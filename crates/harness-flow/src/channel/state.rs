//! State of a channel: values and waiting parties, without any wait.

use std::collections::VecDeque;
use std::sync::{Arc, Weak};

use harness_core::Json;
use parking_lot::Mutex;
use tokio::sync::{Notify, oneshot};

use super::Mode;

/// State of a channel.
#[derive(Debug)]
pub(super) struct State {
    mode: Mode,
    pub(super) closed: bool,
    next_place: u64,
    /// Current value, or queued values.
    buffer: VecDeque<Json>,
    senders: VecDeque<WaitingSender>,
    receivers: VecDeque<WaitingReceiver>,
    watches: Vec<Weak<Watch>>,
}

/// Sender that waits for room.
#[derive(Debug)]
struct WaitingSender {
    place: u64,
    value: Json,
    taken: oneshot::Sender<()>,
}

/// Receiver that waits for a value.
#[derive(Debug)]
struct WaitingReceiver {
    place: u64,
    to: oneshot::Sender<Json>,
}

/// Place in a line.
#[derive(Debug)]
pub(super) struct Place<T> {
    pub(super) place: u64,
    pub(super) answer: oneshot::Receiver<T>,
}

impl State {
    pub(super) fn new(mode: Mode) -> Self {
        Self {
            mode,
            closed: false,
            next_place: 0,
            buffer: VecDeque::new(),
            senders: VecDeque::new(),
            receivers: VecDeque::new(),
            watches: Vec::new(),
        }
    }

    fn capacity(&self) -> usize {
        match self.mode {
            Mode::Value => 1,
            Mode::Queue { capacity } => capacity,
            Mode::Topic => 0,
        }
    }

    /// Sends a value, or returns a place in the line of senders.
    pub(super) fn send(&mut self, value: Json) -> Option<Place<()>> {
        match self.mode {
            Mode::Value => self.put(value),
            Mode::Topic => self.publish(&value),
            Mode::Queue { capacity } => match self.hand_over(value) {
                Some(value) if self.buffer.len() < capacity => self.buffer.push_back(value),
                Some(value) => return Some(self.park(value)),
                None => {}
            },
        }
        None
    }

    /// Sends without waiting. Returns whether a full queue dropped its oldest value.
    pub(super) fn force(&mut self, value: Json) -> bool {
        let Mode::Queue { capacity } = self.mode else {
            self.send(value);
            return false;
        };
        let Some(value) = self.hand_over(value) else { return false };
        let full = self.buffer.len() >= capacity;
        if full {
            self.buffer.pop_front();
        }
        if capacity > 0 {
            self.buffer.push_back(value);
        }
        full
    }

    /// Takes a value, or a place in the line of receivers.
    pub(super) fn recv(&mut self) -> Result<Json, Place<Json>> {
        let there = self.try_recv().or_else(|| {
            let parked = self.senders.pop_front()?;
            let _ = parked.taken.send(());
            Some(parked.value)
        });
        there.ok_or_else(|| self.wait())
    }

    pub(super) fn try_recv(&mut self) -> Option<Json> {
        match self.mode {
            Mode::Value => self.buffer.front().cloned(),
            Mode::Topic => None,
            Mode::Queue { .. } => {
                let value = self.buffer.pop_front();
                self.promote();
                value
            }
        }
    }

    /// Releases a receiver's place. An unread value returns to the head of the queue.
    pub(super) fn leave(&mut self, place: &mut Place<Json>) {
        let before = self.receivers.len();
        self.receivers.retain(|waiting| waiting.place != place.place);
        let handed = self.receivers.len() == before;
        if let Some(value) = place.answer.try_recv().ok().filter(|_| handed) {
            self.give_back(value);
        }
    }

    /// Releases a sender's place and drops its value.
    pub(super) fn leave_parked(&mut self, place: &Place<()>) {
        self.senders.retain(|parked| parked.place != place.place);
    }

    /// Closes the channel and ends all waits. Buffered values stay.
    pub(super) fn close(&mut self) {
        self.closed = true;
        self.senders.clear();
        self.receivers.clear();
        self.watches.drain(..).filter_map(|watch| watch.upgrade()).for_each(|watch| watch.close());
    }

    /// Creates a buffer for new values, and for the current value of a value channel.
    pub(super) fn watch(&mut self, capacity: usize) -> Arc<Watch> {
        let watch = Arc::new(Watch::new(capacity));
        if let (Mode::Value, Some(value)) = (self.mode, self.buffer.front()) {
            watch.put(value.clone());
        }
        if self.closed {
            watch.close();
        }
        self.watches.push(Arc::downgrade(&watch));
        watch
    }

    fn put(&mut self, value: Json) {
        self.publish(&value);
        self.buffer.clear();
        self.buffer.push_back(value);
    }

    /// Sends to all current receivers and watches.
    fn publish(&mut self, value: &Json) {
        for waiting in self.receivers.drain(..) {
            let _ = waiting.to.send(value.clone());
        }
        self.watches.retain(|watch| watch.upgrade().is_some_and(|watch| watch.put(value.clone())));
    }

    /// Hands the value to the longest waiting receiver, or returns it.
    fn hand_over(&mut self, mut value: Json) -> Option<Json> {
        while let Some(waiting) = self.receivers.pop_front() {
            match waiting.to.send(value) {
                Ok(()) => return None,
                Err(back) => value = back,
            }
        }
        Some(value)
    }

    fn give_back(&mut self, value: Json) {
        if let (Mode::Queue { .. }, Some(value)) = (self.mode, self.hand_over(value)) {
            self.buffer.push_front(value);
        }
    }

    fn promote(&mut self) {
        while self.buffer.len() < self.capacity() {
            let Some(parked) = self.senders.pop_front() else { return };
            self.buffer.push_back(parked.value);
            let _ = parked.taken.send(());
        }
    }

    fn place(&mut self) -> u64 {
        self.next_place += 1;
        self.next_place
    }

    fn park(&mut self, value: Json) -> Place<()> {
        let ((taken, answer), place) = (oneshot::channel(), self.place());
        self.senders.push_back(WaitingSender { place, value, taken });
        Place { place, answer }
    }

    fn wait(&mut self) -> Place<Json> {
        let ((to, answer), place) = (oneshot::channel(), self.place());
        self.receivers.push_back(WaitingReceiver { place, to });
        Place { place, answer }
    }
}

/// Unread values of an external listener.
#[derive(Debug)]
pub(super) struct Watch {
    unread: Mutex<Unread>,
    changed: Notify,
    capacity: usize,
}

#[derive(Debug, Default)]
struct Unread {
    values: VecDeque<Json>,
    missed: u64,
    closed: bool,
}

impl Watch {
    fn new(capacity: usize) -> Self {
        Self { unread: Mutex::default(), changed: Notify::new(), capacity }
    }

    /// Buffers a value, dropping the oldest if full. Returns `true`: the listener exists.
    fn put(&self, value: Json) -> bool {
        let mut held = self.unread.lock();
        if held.values.len() >= self.capacity {
            held.values.pop_front();
            held.missed += 1;
        }
        held.values.push_back(value);
        drop(held);
        self.changed.notify_one();
        true
    }

    fn close(&self) {
        self.unread.lock().closed = true;
        self.changed.notify_one();
    }

    pub(super) fn missed(&self) -> u64 {
        self.unread.lock().missed
    }

    pub(super) async fn next(&self) -> Option<Json> {
        loop {
            let (value, closed) = {
                let mut held = self.unread.lock();
                (held.values.pop_front(), held.closed)
            };
            if value.is_some() || closed {
                return value;
            }
            self.changed.notified().await;
        }
    }
}
