//! Memory layers of model steps: states with the lifetime of an execution pass from step to step.

use std::sync::Arc;

use harness_core::message::Message;
use harness_core::port::{AppendSource, ContextPipeline, DynContextPipeline, ViewCx};
use harness_core::transcript::Plan;
use harness_core::{Fault, Json, Origin, Outcome};
use parking_lot::Mutex;

/// State slot with the saved states of layers; part of the checkpoint.
pub(super) const SLOT: &str = "harness.layers";

/// Layers that save their states before the end of the turn.
pub(super) struct SavedLayers {
    inner: Arc<dyn DynContextPipeline>,
    saved: Mutex<Option<Json>>,
}

impl SavedLayers {
    /// Wraps the layers of a new turn and restores the states of an earlier step.
    pub(super) fn new(
        inner: Arc<dyn DynContextPipeline>,
        origin: &Origin,
        states: Option<&Json>,
    ) -> Arc<Self> {
        if let Some(states) = states {
            inner.restore_states_dyn(origin, states);
        }
        Arc::new(Self { inner, saved: Mutex::default() })
    }

    /// Returns the saved states; `None` before the end of the turn, and without such states.
    pub(super) fn saved(&self) -> Option<Json> {
        self.saved.lock().take()
    }
}

impl ContextPipeline for SavedLayers {
    async fn begin(&self, cx: &ViewCx) -> Result<(), Fault> {
        self.inner.begin_boxed(cx).await
    }

    async fn append(
        &self,
        source: AppendSource,
        messages: Vec<Arc<Message>>,
        cx: &ViewCx,
    ) -> Result<Vec<Arc<Message>>, Fault> {
        self.inner.append_boxed(source, messages, cx).await
    }

    async fn recall(&self, cx: &ViewCx) -> Result<Option<Plan>, Fault> {
        self.inner.recall_boxed(cx).await
    }

    async fn after_model(&self, answer: &Arc<Message>, cx: &ViewCx) -> Result<Option<String>, Fault> {
        self.inner.after_model_boxed(answer, cx).await
    }

    async fn store(&self, answer: &Arc<Message>, cx: &ViewCx) -> Result<(), Fault> {
        self.inner.store_boxed(answer, cx).await
    }

    async fn complete(&self, outcome: Outcome, cx: &ViewCx) -> Result<(), Fault> {
        *self.saved.lock() = self.inner.save_states_dyn(&cx.origin);
        self.inner.complete_boxed(outcome, cx).await
    }

    fn ahead(&self) -> Option<Arc<dyn DynContextPipeline>> {
        self.inner.ahead_dyn()
    }
}
