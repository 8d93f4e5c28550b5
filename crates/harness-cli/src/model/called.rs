//! Record of model calls. It separates errors before a run from errors during or after it.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use harness::core::message::AssistantMessage;
use harness::core::port::{Deltas, DynModel, Model, ModelFault, ModelRequest, PreparedAgent};

static CALLED: AtomicBool = AtomicBool::new(false);

/// Whether a model was called since the program started.
pub(crate) fn was_called() -> bool {
    CALLED.load(Ordering::Relaxed)
}

/// A model whose calls are recorded.
pub(crate) struct Noticed(pub(crate) Arc<dyn DynModel>);

impl Model for Noticed {
    async fn step(&self, request: ModelRequest, deltas: &dyn Deltas) -> Result<AssistantMessage, ModelFault> {
        CALLED.store(true, Ordering::Relaxed);
        self.0.step_boxed(request, deltas).await
    }

    fn has_structured_output(&self, agent: &PreparedAgent) -> bool {
        self.0.has_structured_output_dyn(agent)
    }
}
