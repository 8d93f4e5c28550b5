//! A model that does what a test says.

use std::collections::VecDeque;
use std::sync::Mutex;

use harness_core::message::AssistantMessage;
use harness_core::port::{DeltaPart, Deltas, Model, ModelFault, ModelRequest};

/// What the model streams first, and what it ends with.
pub(crate) struct Step(pub(crate) Vec<DeltaPart>, pub(crate) Result<AssistantMessage, ModelFault>);

impl Step {
    pub(crate) fn text(text: &str) -> Self {
        Self(vec![DeltaPart::Text(text.to_owned())], Ok(AssistantMessage::text(text)))
    }

    pub(crate) fn fault(fault: ModelFault) -> Self {
        Self(Vec::new(), Err(fault))
    }
}

/// Takes one step of its script per call; a call past its end fails the test.
pub(crate) struct Scripted(Mutex<VecDeque<Step>>);

impl Scripted {
    pub(crate) fn new(steps: impl IntoIterator<Item = Step>) -> Self {
        Self(Mutex::new(steps.into_iter().collect()))
    }

    /// Steps that were not taken.
    pub(crate) fn left(&self) -> usize {
        self.0.lock().unwrap().len()
    }
}

impl Model for &Scripted {
    async fn step(&self, _: ModelRequest, deltas: &dyn Deltas) -> Result<AssistantMessage, ModelFault> {
        let Step(parts, result) =
            self.0.lock().unwrap().pop_front().expect("the script has a step for each call");
        for part in parts {
            deltas.part(part);
        }
        result
    }
}
