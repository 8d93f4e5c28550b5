//! What both benchmarks are made of: an instant model, sessions in memory, the real clock.

use std::collections::HashMap;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Instant;

use harness_core::message::{AssistantMessage, Message};
use harness_core::port::{
    BoxFuture, Clock, Deltas, Durability, DynSession, Entry, EntryHead, Ids, Loaded, Model, ModelFault,
    ModelRequest, Session, SessionError,
};
use harness_core::{RunId, ThreadId, Time};
use harness_runtime::{Limits, ModelChoice, Runtime, Sessions, ThreadConfig};
use parking_lot::Mutex;

/// Answers at once.
pub(crate) struct Instantly;

impl Model for Instantly {
    async fn step(&self, _: ModelRequest, _: &dyn Deltas) -> Result<AssistantMessage, ModelFault> {
        Ok(AssistantMessage::text("It is fine."))
    }
}

pub(crate) struct SystemClock(Instant);

impl Clock for SystemClock {
    fn now(&self) -> Time {
        Time(i64::try_from(self.0.elapsed().as_millis()).unwrap_or(i64::MAX))
    }

    fn sleep_until(&self, at: Time) -> BoxFuture<'static, ()> {
        Box::pin(tokio::time::sleep(at.since(self.now()).duration()))
    }
}

#[derive(Default)]
struct Counted(AtomicU64);

impl Ids for Counted {
    fn run_id(&self) -> RunId {
        RunId::from(self.0.fetch_add(1, Ordering::Relaxed).to_string())
    }
}

/// A session in memory: it keeps the messages, as shared as they come.
#[derive(Clone, Default)]
struct InMemory(Arc<Mutex<Vec<Arc<Message>>>>);

impl InMemory {
    fn write(&self, entries: &[Entry<'_>]) {
        let messages = entries.iter().filter_map(|entry| match entry {
            Entry::Message(message) => Some(Arc::clone(message)),
            _ => None,
        });
        self.0.lock().extend(messages);
    }
}

impl Session for InMemory {
    async fn append(&self, _: &EntryHead, entries: &[Entry<'_>], _: Durability) -> Result<(), SessionError> {
        self.write(entries);
        Ok(())
    }

    async fn load(&self) -> Result<Loaded, SessionError> {
        let mut loaded = Loaded::default();
        loaded.messages.clone_from(&self.0.lock());
        Ok(loaded)
    }
}

#[derive(Default)]
struct Drawer(Mutex<HashMap<ThreadId, InMemory>>);

impl Sessions for Drawer {
    async fn open(&self, thread: &ThreadId) -> Result<Arc<dyn DynSession>, SessionError> {
        let mut all = self.0.lock();
        Ok(Arc::new(all.entry(thread.clone()).or_default().clone()))
    }
}

/// A runtime of threads with such a model, and sessions in memory when asked for.
pub(crate) fn runtime(
    model: impl Model + 'static,
    from: Instant,
    stored: bool,
    change: impl FnOnce(&mut ThreadConfig),
    limits: impl FnOnce(&mut Limits),
) -> Runtime {
    let mut config = ThreadConfig::new(ModelChoice::new(model), Arc::new(SystemClock(from)));
    change(&mut config);
    let builder = Runtime::builder(config, Arc::new(Counted::default()));
    let builder = if stored { builder.sessions(Drawer::default()) } else { builder };
    builder.limits(limits).build()
}

pub(crate) fn median(mut samples: Vec<f64>) -> f64 {
    at(&mut samples, 0.5)
}

/// The value below which that part of the samples lies.
pub(crate) fn at(samples: &mut [f64], part: f64) -> f64 {
    samples.sort_by(f64::total_cmp);
    let last = samples.len().saturating_sub(1);
    let place = (last as f64 * part).round() as usize;
    samples.get(place).copied().unwrap_or(f64::NAN)
}

/// Whether the figures are to be printed as one line of JSON.
pub(crate) fn as_json() -> bool {
    std::env::args().any(|argument| argument == "--json")
}
