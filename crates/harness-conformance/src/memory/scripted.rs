//! Layers that do what a vector wrote down, and what was seen of them.

use std::sync::Arc;
use std::time::Duration;

use harness_core::Origin;
use harness_core::message::Message;
use harness_core::port::{Clock, ViewCx};
use harness_core::transcript::Transcript;
use harness_memory::MemoryError;
use harness_memory::layer::{LayerReport, LayerSetup, Pipeline};
use parking_lot::Mutex;

use super::Done;
use crate::clock::PausedClock;

/// Lines that layers and the pipeline left behind.
#[derive(Clone, Debug, Default)]
pub(super) struct Lines(Arc<Mutex<Vec<String>>>);

impl Lines {
    pub(super) fn push(&self, line: String) {
        self.0.lock().push(line);
    }

    pub(super) fn all(&self) -> Vec<String> {
        self.0.lock().clone()
    }
}

/// A pipeline on paused time.
pub(super) struct Stage {
    clock: PausedClock,
    pub(super) pipeline: Pipeline,
    /// `LAYER HOOK: MESSAGE` for each failure that was passed over.
    pub(super) diagnostics: Lines,
}

impl Stage {
    pub(super) fn new(setup: LayerSetup) -> Done<Self> {
        let (diagnostics, clock) = (Lines::default(), PausedClock::new());
        let lines = diagnostics.clone();
        let setup = setup.reporting_to(move |report: &LayerReport| {
            // The source leaves such a layer out without a word.
            if !matches!(report.error, MemoryError::NeverBegun) {
                lines.push(format!("{} {}: {}", report.layer, report.hook, report.error));
            }
        });
        let pipeline = Pipeline::build(setup, Arc::new(clock)).map_err(|e| e.to_string())?;
        Ok(Self { clock, pipeline, diagnostics })
    }

    /// Input of hooks: these messages, in the thread `T1`.
    pub(super) fn cx(&self, log: &[Arc<Message>]) -> ViewCx {
        let log: Transcript = log.iter().cloned().collect();
        let mut origin = Origin::default();
        origin.thread = Some("T1".into());
        origin.run = Some("R1".into());
        ViewCx::new(log.prefix(), Arc::new(origin), self.clock.now())
    }
}

/// Waits for some milliseconds.
pub(super) async fn wait(ms: u64) {
    tokio::time::sleep(Duration::from_millis(ms)).await;
}
