//! Layers that do what a vector wrote down, and what was seen of them.

use std::sync::{Arc, Mutex, PoisonError};

use harness_core::machine::Origin;
use harness_core::message::Message;
use harness_core::port::{Clock, ViewCx};
use harness_core::testing::VirtualClock;
use harness_core::transcript::Transcript;
use harness_core::{Millis, Time};
use harness_memory::MemoryError;
use harness_memory::layer::{LayerReport, LayerSetup, Pipeline};

use super::Done;

/// Lines that layers and the pipeline left behind.
#[derive(Clone, Debug, Default)]
pub(super) struct Lines(Arc<Mutex<Vec<String>>>);

impl Lines {
    pub(super) fn push(&self, line: String) {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).push(line);
    }

    pub(super) fn all(&self) -> Vec<String> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }
}

/// A pipeline on a clock that only moves while everybody waits.
pub(super) struct Stage {
    pub(super) clock: VirtualClock,
    pub(super) pipeline: Pipeline,
    /// `LAYER HOOK: MESSAGE` for each failure that was passed over.
    pub(super) diagnostics: Lines,
}

impl Stage {
    pub(super) fn new(setup: LayerSetup, clock: VirtualClock) -> Done<Self> {
        let diagnostics = Lines::default();
        let lines = diagnostics.clone();
        let setup = setup.reporting_to(move |report: &LayerReport| {
            // The source leaves such a layer out without a word.
            if !matches!(report.error, MemoryError::NeverBegun) {
                lines.push(format!("{} {}: {}", report.layer, report.hook, report.error));
            }
        });
        let pipeline = Pipeline::build(setup, Arc::new(clock.clone())).map_err(|e| e.to_string())?;
        Ok(Self { clock, pipeline, diagnostics })
    }

    /// What hooks look at: these messages, in the thread `T1`.
    pub(super) fn cx(&self, log: &[Arc<Message>]) -> ViewCx {
        let log: Transcript = log.iter().cloned().collect();
        let mut origin = Origin::default();
        origin.thread = Some("T1".into());
        origin.run = Some("R1".into());
        ViewCx::new(log.prefix(), Arc::new(origin), self.clock.now())
    }

    /// Runs `work`; whenever it waits, a millisecond passes.
    pub(super) fn run<T>(&self, work: impl Future<Output = T>) -> Done<T> {
        let runtime = tokio::runtime::Builder::new_current_thread().build().map_err(|e| e.to_string())?;
        Ok(runtime.block_on(async {
            let mut work = std::pin::pin!(work);
            loop {
                tokio::select! {
                    biased;
                    done = &mut work => return done,
                    () = tokio::task::yield_now() => self.clock.advance(Millis(1)),
                }
            }
        }))
    }
}

/// A clock at the beginning of time.
pub(super) fn clock() -> VirtualClock {
    VirtualClock::still(Time(0))
}

/// Waits for some time on a clock.
pub(super) async fn wait(clock: &VirtualClock, span: Millis) {
    clock.sleep_until(clock.now().after(span)).await;
}
