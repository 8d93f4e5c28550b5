//! Event hub: inline folds, and subscriptions over bounded ring buffers.

use std::collections::VecDeque;
use std::fmt;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::{Arc, PoisonError};

use parking_lot::Mutex;
use tokio::sync::Notify;

use super::{Delta, Event};
use crate::base::panic_text;
use crate::origin::Origin;

/// Inline receiver of every event, for fast and trusted code (a record, usage, counters).
///
/// Code that is slow or may fail reads a [`Subscription`] instead. A panic is caught and logged; the next event is
/// delivered as usual.
pub trait Fold: Send {
    /// Receives an event.
    fn apply(&mut self, event: &Event);

    /// Called at the end of a turn or run, after its last event: write buffered data. Default: does nothing.
    fn flush(&mut self) {}

    /// Called when the driver's future was dropped before the end of the work. Default: does nothing.
    fn abandoned(&mut self, _origin: &Origin) {}
}

impl<F: Fold + ?Sized> Fold for Box<F> {
    fn apply(&mut self, event: &Event) {
        (**self).apply(event);
    }

    fn flush(&mut self) {
        (**self).flush();
    }

    fn abandoned(&mut self, origin: &Origin) {
        (**self).abandoned(origin);
    }
}

/// Shared fold, whose result can be read after the run.
impl<F: Fold> Fold for Arc<Mutex<F>> {
    fn apply(&mut self, event: &Event) {
        self.lock().apply(event);
    }

    fn flush(&mut self) {
        self.lock().flush();
    }

    fn abandoned(&mut self, origin: &Origin) {
        self.lock().abandoned(origin);
    }
}

/// Like that of `parking_lot`, for applications that share their folds behind locks of `std`.
#[expect(clippy::disallowed_types, reason = "locks of applications")]
impl<F: Fold> Fold for Arc<std::sync::Mutex<F>> {
    fn apply(&mut self, event: &Event) {
        self.lock().unwrap_or_else(PoisonError::into_inner).apply(event);
    }

    fn flush(&mut self) {
        self.lock().unwrap_or_else(PoisonError::into_inner).flush();
    }

    fn abandoned(&mut self, origin: &Origin) {
        self.lock().unwrap_or_else(PoisonError::into_inner).abandoned(origin);
    }
}

/// Item of a subscription.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum Seen {
    /// Event.
    Event(Event),
    /// Delta of a response.
    Delta(Delta),
    /// Events were dropped because the subscriber was too slow. (Dropped deltas are not counted: the final message
    /// contains them.)
    Lagged {
        /// Number of dropped events.
        missed: u64,
    },
}

#[derive(Debug, Default)]
struct Ring {
    queue: VecDeque<Seen>,
    missed: u64,
    closed: bool,
}

impl Ring {
    fn take(&mut self) -> Option<Seen> {
        match std::mem::take(&mut self.missed) {
            0 => self.queue.pop_front(),
            missed => Some(Seen::Lagged { missed }),
        }
    }
}

#[derive(Debug)]
struct Shared {
    ring: Mutex<Ring>,
    capacity: usize,
    notify: Notify,
}

impl Shared {
    fn push(&self, ring: &mut Ring, seen: Seen) {
        if ring.queue.len() >= self.capacity {
            let delta = ring.queue.iter().position(|s| matches!(s, Seen::Delta(_)));
            match delta.and_then(|at| ring.queue.remove(at)).or_else(|| ring.queue.pop_front()) {
                Some(Seen::Event(_)) => ring.missed += 1,
                Some(Seen::Delta(_) | Seen::Lagged { .. }) | None => {}
            }
        }
        ring.queue.push_back(seen);
    }
}

/// Subscription to the events of a machine: a bounded ring buffer that drops its oldest items, deltas first.
#[derive(Debug)]
pub struct Subscription(Arc<Shared>);

impl Subscription {
    /// Waits for the next item; `None` after the last item of a dropped hub.
    ///
    /// # Cancel safety
    /// No item is lost when the future is dropped.
    pub async fn next(&mut self) -> Option<Seen> {
        loop {
            let notified = self.0.notify.notified();
            {
                let mut ring = self.0.ring.lock();
                let seen = ring.take();
                if seen.is_some() || ring.closed {
                    return seen;
                }
            }
            notified.await;
        }
    }

    /// Returns the next item without waiting.
    pub fn try_next(&mut self) -> Option<Seen> {
        self.0.ring.lock().take()
    }
}

/// Closes its ring when the last hub is dropped.
#[derive(Debug)]
struct Sender(Arc<Shared>);

impl Drop for Sender {
    fn drop(&mut self) {
        self.0.ring.lock().closed = true;
        self.0.notify.notify_one();
    }
}

type OnDelta = dyn Fn(&Delta) + Send + Sync;

/// Distributes events to folds and subscriptions.
///
/// A clone shares the current receivers; those added later are separate.
#[derive(Clone, Default)]
pub struct Hub {
    folds: Vec<Arc<Mutex<dyn Fold>>>,
    rings: Vec<Arc<Sender>>,
    receivers: Vec<Arc<OnDelta>>,
}

impl fmt::Debug for Hub {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Hub").field("subscriptions", &self.rings.len()).finish_non_exhaustive()
    }
}

impl Hub {
    /// Adds an inline receiver.
    pub fn fold(&mut self, fold: impl Fold + 'static) {
        self.folds.push(Arc::new(Mutex::new(fold)));
    }

    /// Adds a subscription with a buffer of `capacity` items, at least one.
    pub fn subscribe(&mut self, capacity: usize) -> Subscription {
        let shared =
            Arc::new(Shared { ring: Mutex::default(), capacity: capacity.max(1), notify: Notify::new() });
        self.rings.push(Arc::new(Sender(Arc::clone(&shared))));
        Subscription(shared)
    }

    /// Adds an inline receiver of deltas, for fast and trusted code that must not miss any. A panic is caught and logged.
    pub fn on_delta(&mut self, receive: impl Fn(&Delta) + Send + Sync + 'static) {
        self.receivers.push(Arc::new(receive));
    }

    /// Whether there are no receivers.
    pub(crate) fn is_silent(&self) -> bool {
        self.folds.is_empty() && self.rings.is_empty() && self.receivers.is_empty()
    }

    /// Whether there are receivers of deltas.
    pub(crate) fn wants_deltas(&self) -> bool {
        !self.rings.is_empty() || !self.receivers.is_empty()
    }

    /// Publishes events, in order. Never waits for a subscriber.
    pub fn publish<'e, I>(&self, batch: I)
    where
        I: IntoIterator<Item = &'e Event>,
        I::IntoIter: Clone,
    {
        let batch = batch.into_iter();
        self.each_fold(|fold| {
            for event in batch.clone() {
                isolated(|| fold.apply(event));
            }
        });
        for Sender(shared) in self.rings.iter().map(|ring| &**ring) {
            let mut ring = shared.ring.lock();
            for event in batch.clone() {
                shared.push(&mut ring, Seen::Event(event.clone()));
            }
            drop(ring);
            shared.notify.notify_one();
        }
    }

    /// Notifies the folds that all events of the work are published.
    pub fn flush(&self) {
        self.each_fold(|fold| isolated(|| fold.flush()));
    }

    /// Notifies the folds that the work was dropped before its end.
    pub(crate) fn abandon(&self, origin: &Origin) {
        self.each_fold(|fold| isolated(|| fold.abandoned(origin)));
    }

    /// Publishes a delta to the subscribers and receivers. Never waits for them.
    pub fn delta(&self, delta: &Delta) {
        for Sender(shared) in self.rings.iter().map(|ring| &**ring) {
            shared.push(&mut shared.ring.lock(), Seen::Delta(delta.clone()));
            shared.notify.notify_one();
        }
        for receive in &self.receivers {
            isolated(|| receive(delta));
        }
    }

    fn each_fold(&self, mut call: impl FnMut(&mut dyn Fold)) {
        for fold in &self.folds {
            call(&mut *fold.lock());
        }
    }
}

/// Calls a receiver and catches its panics.
fn isolated(run: impl FnOnce()) {
    if let Err(panic) = catch_unwind(AssertUnwindSafe(run)) {
        tracing::warn!(panic = panic_text(&*panic), "a receiver of events panicked; the run continues");
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::event::EventKind;
    use crate::ids::OpId;
    use crate::port::DeltaPart;
    use crate::time::Time;

    fn event(seq: u64) -> Event {
        let kind = EventKind::PersistFailed { message: String::new() };
        Event { seq, at: Time(0), origin: Arc::default(), turn: 1, iteration: 0, kind }
    }

    fn delta(n: u32) -> Delta {
        Delta { op: OpId(0), n, after: 0, part: DeltaPart::Text(String::new()) }
    }

    fn drain(subscription: &mut Subscription) -> Vec<String> {
        std::iter::from_fn(|| subscription.try_next())
            .map(|seen| match seen {
                Seen::Event(event) => format!("e{}", event.seq),
                Seen::Delta(delta) => format!("d{}", delta.n),
                Seen::Lagged { missed } => format!("lagged {missed}"),
            })
            .collect()
    }

    #[test]
    fn full_ring_drops_deltas_first_then_its_oldest_events_and_reports_it() {
        let mut hub = Hub::default();
        let mut slow = hub.subscribe(3);
        hub.publish(&[event(0), event(1)]);
        hub.delta(&delta(0));
        hub.publish(&[event(2)]);
        assert_eq!(drain(&mut slow), ["e0", "e1", "e2"]);
        hub.publish(&[event(3), event(4), event(5), event(6), event(7)]);
        assert_eq!(drain(&mut slow), ["lagged 2", "e5", "e6", "e7"]);
    }

    #[test]
    fn clone_shares_current_receivers_only() {
        let mut hub = Hub::default();
        let mut both = hub.subscribe(3);
        let mut clone = hub.clone();
        let mut own = clone.subscribe(3);
        clone.publish(&[event(0)]);
        hub.publish(&[event(1)]);
        assert_eq!((drain(&mut both), drain(&mut own)), (vec!["e0".into(), "e1".into()], vec!["e0".into()]));
    }

    #[test]
    fn inline_receivers_of_deltas_miss_none() {
        let (mut hub, seen) = (Hub::default(), Arc::new(Mutex::new(Vec::new())));
        assert!(!hub.wants_deltas());
        hub.on_delta(|_| panic!("it is caught"));
        let numbers = Arc::clone(&seen);
        hub.on_delta(move |delta| numbers.lock().push(delta.n));
        assert!(hub.wants_deltas());
        (0..3).for_each(|n| hub.delta(&delta(n)));
        assert_eq!(*seen.lock(), [0, 1, 2]);
    }

    #[test]
    fn subscription_ends_with_its_hub() {
        use futures_util::FutureExt as _;
        let mut hub = Hub::default();
        let mut subscription = hub.subscribe(3);
        hub.publish(&[event(0)]);
        drop(hub);
        assert!(matches!(subscription.next().now_or_never(), Some(Some(Seen::Event(_)))));
        assert_eq!(subscription.next().now_or_never(), Some(None));
    }
}
