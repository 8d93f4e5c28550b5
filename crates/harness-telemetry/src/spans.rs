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
    /// Size limit of a content text in bytes; `None` if content is off.
    pub(crate) fn content_bytes(&self) -> Option<usize> {
        self.options.content.then_some(self.options.content_bytes)
    }
}

/// Opens and closes `tracing` spans as a fold over the events of a [`Hub`](harness_core::event::Hub): run → turn →
/// model call, tool call, hook, approval and compaction.
///
/// ```
/// use harness_core::event::Hub;
/// use harness_telemetry::{SpanOptions, Spans};
///
/// let spans = Spans::new(SpanOptions::new());
/// let mut hub = Hub::default();
/// hub.fold(spans.clone());
/// // Give clones to the hubs of sub-agents: their runs are then below the calls that started them.
/// let mut of_subagent = Hub::default();
/// of_subagent.fold(spans.clone());
/// ```
///
/// - *Clones* are independent folds that share the open calls and runs.
/// - *Ends*: every span is closed when its run ends. A span without an end is marked as failed: `cut_off` if its turn
///   ended first, `abandoned` if the future of the run or the fold was dropped.
/// - *Cost*: one check per run and turn if no subscriber enables spans of [`TARGET`].
/// - *Subscriber*: that of the thread on which the run starts, for all its spans. The current span of that thread is
///   their parent.
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
