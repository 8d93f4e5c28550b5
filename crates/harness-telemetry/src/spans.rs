//! The event observer.

use std::sync::Arc;

use harness_core::Origin;
use harness_core::event::{Event, EventKind, Fold};
use tracing::Level;

use crate::open::TARGET;
use crate::options::SpanOptions;
use crate::parents::Parents;
use crate::work::Work;

/// Shared state of related observers.
#[derive(Debug, Default)]
pub(crate) struct Shared {
    options: SpanOptions,
    pub(crate) parents: Parents,
}

impl Shared {
    /// Bytes of a text of content; `None` when none is wanted.
    pub(crate) fn content_bytes(&self) -> Option<usize> {
        self.options.content.then_some(self.options.content_bytes)
    }
}

/// Opens and closes `tracing` spans while the events of runs are told: run → turn → model call, tool call,
/// hook, approval and compaction. An inline listener of a [`Hub`](harness_core::event::Hub).
///
/// ```
/// use harness_core::event::Hub;
/// use harness_telemetry::{SpanOptions, Spans};
///
/// let spans = Spans::new(SpanOptions::new());
/// let mut hub = Hub::default();
/// hub.fold(spans.clone());
/// // Hubs of sub-agents get clones, too: their runs then stand below the calls that began them.
/// let mut of_subagent = Hub::default();
/// of_subagent.fold(spans.clone());
/// ```
///
/// - *Clones* listen each for itself and know of each other's open calls and runs.
/// - *Ends*: every span is closed when its run ends, in whatever way. One that had no end of its own is
///   marked as failed: `cut_off` when its turn ended without it, `abandoned` when the future of the run, or
///   the listener, was dropped.
/// - *Cost*: without a subscriber that wants spans of [`TARGET`], one check per run and turn.
/// - *Subscriber*: that of the thread in which the work begins, for all its spans. What begins while a span is
///   entered stands below that one.
#[derive(Debug, Default)]
pub struct Spans {
    shared: Arc<Shared>,
    works: Vec<Work>,
}

impl Clone for Spans {
    fn clone(&self) -> Self {
        Self { shared: Arc::clone(&self.shared), works: Vec::new() }
    }
}

impl Spans {
    /// Creates an observer.
    pub fn new(options: SpanOptions) -> Self {
        Self { shared: Arc::new(Shared { options, parents: Parents::default() }), works: Vec::new() }
    }
}

impl Fold for Spans {
    fn apply(&mut self, event: &Event) {
        let at = match self.works.iter().position(|work| work.is_of(&event.origin)) {
            Some(at) => at,
            None if begins(&event.kind) && tracing::span_enabled!(target: TARGET, Level::INFO) => {
                self.works.push(Work::new(&event.origin, &self.shared));
                self.works.len() - 1
            }
            None => return,
        };
        if self.works.get_mut(at).is_some_and(|work| work.record(event)) {
            self.works.swap_remove(at);
        }
    }

    /// Closes a compaction without a turn, whatever its result.
    fn flush(&mut self) {
        self.works.retain(Work::has_root);
    }

    fn abandoned(&mut self, origin: &Origin) {
        if let Some(at) = self.works.iter().position(|work| work.is_of(origin)) {
            self.works.swap_remove(at).abandon();
        }
    }
}

/// Whether an event can be the first of its work.
fn begins(kind: &EventKind) -> bool {
    matches!(
        kind,
        EventKind::RunStarted { .. }
            | EventKind::RunTakenUp { .. }
            | EventKind::AgentPrepared { .. }
            | EventKind::TurnStarted { .. }
            | EventKind::CompactionStarted { .. }
    )
}
