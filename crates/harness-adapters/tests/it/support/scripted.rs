//! A model that does what a test says.

use std::collections::VecDeque;
use std::sync::Arc;

use harness_core::ModelName;
use harness_core::message::AssistantMessage;
use harness_core::port::{DeltaPart, Deltas, Model, ModelFault, ModelRequest};
use parking_lot::Mutex;

/// What the model streams first, and what it ends with; without an end it hangs.
pub(crate) struct Step(pub(crate) Vec<DeltaPart>, pub(crate) Option<Result<AssistantMessage, ModelFault>>);

impl Step {
    pub(crate) fn text(text: &str) -> Self {
        Self(vec![DeltaPart::Text(text.to_owned())], Some(Ok(AssistantMessage::text(text))))
    }

    pub(crate) fn answer(message: AssistantMessage) -> Self {
        Self(Vec::new(), Some(Ok(message)))
    }

    pub(crate) fn fault(fault: ModelFault) -> Self {
        Self(Vec::new(), Some(Err(fault)))
    }

    pub(crate) fn hang() -> Self {
        Self(Vec::new(), None)
    }

    /// The same step, which streams these pieces first.
    pub(crate) fn after(self, pieces: impl IntoIterator<Item = DeltaPart>) -> Self {
        Self(pieces.into_iter().collect(), self.1)
    }
}

/// Takes one step of its script per call; a call past its end fails the test. Clones share the script.
#[derive(Clone)]
pub(crate) struct Scripted(Arc<Mutex<State>>);

struct State {
    steps: VecDeque<Step>,
    models: Vec<Option<ModelName>>,
}

impl Scripted {
    pub(crate) fn new(steps: impl IntoIterator<Item = Step>) -> Self {
        let state = State { steps: steps.into_iter().collect(), models: Vec::new() };
        Self(Arc::new(Mutex::new(state)))
    }

    /// Steps that were not taken.
    pub(crate) fn left(&self) -> usize {
        self.0.lock().steps.len()
    }

    /// The models that the requests asked for.
    pub(crate) fn models(&self) -> Vec<Option<ModelName>> {
        self.0.lock().models.clone()
    }
}

impl Model for Scripted {
    async fn step(&self, request: ModelRequest, deltas: &dyn Deltas) -> Result<AssistantMessage, ModelFault> {
        let Step(parts, end) = {
            let mut state = self.0.lock();
            state.models.push(request.prepared.model.clone());
            state.steps.pop_front().expect("the script has a step for each call")
        };
        for part in parts {
            deltas.part(part);
        }
        match end {
            Some(end) => end,
            None => std::future::pending().await,
        }
    }
}

impl Model for &Scripted {
    async fn step(&self, request: ModelRequest, deltas: &dyn Deltas) -> Result<AssistantMessage, ModelFault> {
        Scripted::step(self, request, deltas).await
    }
}
