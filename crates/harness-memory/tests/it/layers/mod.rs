//! The pipeline of layers: what is asked when, what becomes of states, what stands in the view.

mod ahead;
mod anchor;
mod children;
mod construction;
mod durable;
mod functions;
mod order;
mod steering;
mod timing;
mod view;

use std::collections::BTreeMap;
use std::sync::Arc;

use harness_core::message::{AssistantMessage, Message};
use harness_core::port::ViewCx;
use harness_core::testing::VirtualClock;
use harness_core::transcript::Transcript;
use harness_core::{Json, Millis, Origin, Time};
use harness_host::{Storage, StorageError};
use harness_memory::layer::{LayerReport, LayerSetup, Pipeline};
use parking_lot::Mutex;

/// Lines that were left behind, in order.
#[derive(Clone, Debug, Default)]
struct Lines(Arc<Mutex<Vec<String>>>);

impl Lines {
    fn push(&self, line: impl Into<String>) {
        self.0.lock().push(line.into());
    }

    fn take(&self) -> Vec<String> {
        std::mem::take(&mut *self.0.lock())
    }
}

/// A pipeline, its clock and what it reported.
struct Stage {
    clock: VirtualClock,
    layers: Pipeline,
    reports: Lines,
}

impl Stage {
    fn new(setup: LayerSetup) -> Self {
        Self::on(setup, VirtualClock::still(Time(0)))
    }

    fn on(setup: LayerSetup, clock: VirtualClock) -> Self {
        let reports = Lines::default();
        let lines = reports.clone();
        let setup = setup.reporting_to(move |report: &LayerReport| lines.push(report.to_string()));
        let layers = Pipeline::build(setup, Arc::new(clock.clone())).expect("layers that can stand together");
        Self { clock, layers, reports }
    }
}

/// Runs `work`; whenever it waits, a millisecond passes on the clock.
fn run<T>(clock: &VirtualClock, work: impl Future<Output = T>) -> T {
    let runtime = tokio::runtime::Builder::new_current_thread().build().expect("a runtime");
    runtime.block_on(async {
        let mut work = std::pin::pin!(work);
        loop {
            tokio::select! {
                biased;
                done = &mut work => return done,
                () = tokio::task::yield_now() => clock.advance(Millis(1)),
            }
        }
    })
}

/// What hooks look at: a transcript in the run `run` of the thread `thread`.
fn cx_of(run: &str, log: &Transcript) -> ViewCx {
    let mut origin = Origin::default();
    origin.thread = Some("thread".into());
    origin.run = Some(run.into());
    ViewCx::new(log.prefix(), Arc::new(origin), Time(0))
}

fn cx(log: &Transcript) -> ViewCx {
    cx_of("run", log)
}

fn user(text: &str) -> Arc<Message> {
    Arc::new(Message::user(text))
}

fn answer(text: &str) -> Arc<Message> {
    Arc::new(AssistantMessage::text(text).into())
}

fn log(messages: impl IntoIterator<Item = Arc<Message>>) -> Transcript {
    messages.into_iter().collect()
}

fn json(text: &str) -> Json {
    Json::parse(text).expect("JSON")
}

/// A storage in memory that tells what was written, and fails when it is told to.
#[derive(Clone, Debug, Default)]
struct Shelf {
    values: Arc<Mutex<BTreeMap<String, Json>>>,
    writes: Lines,
    failures: Arc<Mutex<u32>>,
}

impl Shelf {
    fn fail(&self, times: u32) {
        *self.failures.lock() = times;
    }

    fn write(&self, line: String) -> Result<(), StorageError> {
        let mut failures = self.failures.lock();
        if *failures > 0 {
            *failures -= 1;
            return Err(StorageError::new("storage.io", "the disk is full"));
        }
        self.writes.push(line);
        Ok(())
    }
}

impl Storage for Shelf {
    async fn get(&self, key: &str) -> Result<Option<Json>, StorageError> {
        Ok(self.values.lock().get(key).cloned())
    }

    async fn set(&self, key: &str, value: &Json) -> Result<(), StorageError> {
        self.write(format!("{key} = {value}"))?;
        self.values.lock().insert(key.to_owned(), value.clone());
        Ok(())
    }

    async fn delete(&self, key: &str) -> Result<(), StorageError> {
        self.write(format!("{key} deleted"))?;
        self.values.lock().remove(key);
        Ok(())
    }

    async fn list(&self, prefix: &str) -> Result<Vec<String>, StorageError> {
        Ok(self.values.lock().keys().filter(|key| key.starts_with(prefix)).cloned().collect())
    }
}
