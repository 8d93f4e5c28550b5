//! Listeners: folds inline, subscriptions over bounded rings.

use std::collections::VecDeque;
use std::fmt;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use tokio::sync::Notify;

use super::{Delta, Event};
use crate::origin::Origin;
use crate::panics::panic_text;

/// Code that is called inline with every event: pure, quick and trusted (a record, usage, counters).
///
/// Anything slower, or that may fail, reads a [`Subscription`] instead. A fold that panics does not harm
/// the work that it listens to: the panic ends there, and the next event is told to it like any other.
pub trait Fold: Send {
    /// Takes one event.
    fn apply(&mut self, event: &Event);

    /// The turn or run is over and everything was told: write out what is still held back. The default
    /// does nothing.
    fn flush(&mut self) {}

    /// The future that drove the work of `origin` was dropped before its end: nothing more will be told of it.
    /// The default does nothing.
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

/// A share of a fold, so that its result can be read after the run.
impl<F: Fold> Fold for Arc<Mutex<F>> {
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

/// What a subscriber sees.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum Seen {
    /// An event.
    Event(Event),
    /// A piece of an answer that is still coming.
    Delta(Delta),
    /// The subscriber was too slow: this many events were dropped. (Dropped deltas are not counted: the
    /// final message holds what they said.)
    Lagged {
        /// How many.
        missed: u64,
    },
}

#[derive(Debug, Default)]
struct Ring {
    queue: VecDeque<Seen>,
    missed: u64,
    closed: bool,
}

#[derive(Debug)]
struct Shared {
    ring: Mutex<Ring>,
    capacity: usize,
    notify: Notify,
}

impl Shared {
    fn lock(&self) -> MutexGuard<'_, Ring> {
        self.ring.lock().unwrap_or_else(PoisonError::into_inner)
    }

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

/// Reads the events of a machine at the reader's own pace, out of a bounded ring that drops its oldest
/// entries, deltas first.
#[derive(Debug)]
pub struct Subscription(Arc<Shared>);

impl Subscription {
    /// The next thing to see; `None` when the hub is gone and everything was seen.
    ///
    /// Cancel safe: nothing is lost when the future is dropped.
    pub async fn next(&mut self) -> Option<Seen> {
        loop {
            let notified = self.0.notify.notified();
            {
                let mut ring = self.0.lock();
                if ring.missed > 0 {
                    let missed = std::mem::take(&mut ring.missed);
                    return Some(Seen::Lagged { missed });
                }
                if let Some(seen) = ring.queue.pop_front() {
                    return Some(seen);
                }
                if ring.closed {
                    return None;
                }
            }
            notified.await;
        }
    }

    /// What can be seen without waiting.
    pub fn try_next(&mut self) -> Option<Seen> {
        let mut ring = self.0.lock();
        if ring.missed > 0 {
            return Some(Seen::Lagged { missed: std::mem::take(&mut ring.missed) });
        }
        ring.queue.pop_front()
    }
}

/// Closes its ring when the last hub that tells it something is gone.
#[derive(Debug)]
struct Sender(Arc<Shared>);

impl Drop for Sender {
    fn drop(&mut self) {
        self.0.lock().closed = true;
        self.0.notify.notify_one();
    }
}

/// Tells events to everybody who listens.
///
/// A clone has the listeners that there are; those that are added to it later are its own.
#[derive(Clone, Default)]
pub struct Hub {
    folds: Vec<Arc<Mutex<dyn Fold>>>,
    rings: Vec<Arc<Sender>>,
}

impl fmt::Debug for Hub {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Hub").field("subscriptions", &self.rings.len()).finish_non_exhaustive()
    }
}

impl Hub {
    /// Adds an inline listener.
    pub fn fold(&mut self, fold: impl Fold + 'static) {
        self.folds.push(Arc::new(Mutex::new(fold)));
    }

    /// Adds a listener with a ring of at least one entry.
    pub fn subscribe(&mut self, capacity: usize) -> Subscription {
        let shared =
            Arc::new(Shared { ring: Mutex::default(), capacity: capacity.max(1), notify: Notify::new() });
        self.rings.push(Arc::new(Sender(Arc::clone(&shared))));
        Subscription(shared)
    }

    /// Whether somebody would see deltas.
    pub(crate) fn wants_deltas(&self) -> bool {
        !self.rings.is_empty()
    }

    /// Tells events, in order. Never waits for a subscriber.
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
            let mut ring = shared.lock();
            for event in batch.clone() {
                shared.push(&mut ring, Seen::Event(event.clone()));
            }
            drop(ring);
            shared.notify.notify_one();
        }
    }

    /// Everything was told: folds write out what they hold back.
    pub(crate) fn flush(&self) {
        self.each_fold(|fold| isolated(|| fold.flush()));
    }

    /// The work of `origin` ended without an end: its future was dropped.
    pub(crate) fn abandon(&self, origin: &Origin) {
        self.each_fold(|fold| isolated(|| fold.abandoned(origin)));
    }

    /// Tells a piece of an answer.
    pub(crate) fn delta(&self, delta: &Delta) {
        for Sender(shared) in self.rings.iter().map(|ring| &**ring) {
            shared.push(&mut shared.lock(), Seen::Delta(delta.clone()));
            shared.notify.notify_one();
        }
    }

    fn each_fold(&self, mut tell: impl FnMut(&mut dyn Fold)) {
        for fold in &self.folds {
            tell(&mut *fold.lock().unwrap_or_else(PoisonError::into_inner));
        }
    }
}

/// Runs a listener's code; a panic of it ends here.
fn isolated(run: impl FnOnce()) {
    if let Err(panic) = catch_unwind(AssertUnwindSafe(run)) {
        tracing::warn!(panic = panic_text(&*panic), "a listener panicked; the work goes on");
    }
}

/// A user's own listener: asynchronous, may be slow, may fail. Run it with [`observe`] in a task.
pub trait Observer: Send {
    /// Takes one thing that was seen.
    fn on(&mut self, seen: Seen) -> impl Future<Output = ()> + Send;
}

/// Feeds a subscription to an observer until the hub is gone.
pub async fn observe(mut subscription: Subscription, mut observer: impl Observer) {
    while let Some(seen) = subscription.next().await {
        observer.on(seen).await;
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
    fn a_full_ring_drops_deltas_first_then_its_oldest_events_and_says_so() {
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
    fn a_clone_has_the_listeners_there_are_and_its_own() {
        let mut hub = Hub::default();
        let mut both = hub.subscribe(3);
        let mut clone = hub.clone();
        let mut own = clone.subscribe(3);
        clone.publish(&[event(0)]);
        hub.publish(&[event(1)]);
        assert_eq!((drain(&mut both), drain(&mut own)), (vec!["e0".into(), "e1".into()], vec!["e0".into()]));
    }

    #[test]
    fn a_subscription_ends_with_its_hub() {
        use futures_util::FutureExt as _;
        let mut hub = Hub::default();
        let mut subscription = hub.subscribe(3);
        hub.publish(&[event(0)]);
        drop(hub);
        assert!(matches!(subscription.next().now_or_never(), Some(Some(Seen::Event(_)))));
        assert_eq!(subscription.next().now_or_never(), Some(None));
    }
}
