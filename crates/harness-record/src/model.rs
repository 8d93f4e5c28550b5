//! A model that answers from a record.

use std::fmt;
use std::sync::atomic::{AtomicUsize, Ordering};

use harness_core::message::AssistantMessage;
use harness_core::port::{DeltaPart, Deltas, Model, ModelFault, ModelFaultCode, ModelRequest};

use super::entries::ModelCallEntry;
use super::run_record::RunRecord;

enum Step {
    Answer(Box<AssistantMessage>),
    Fault(Box<ModelFault>),
}

/// Gives the recorded answers in order, faults included: with [`ReplayTools`](super::ReplayTools) a whole
/// run is repeated without a network. The requests are not compared: what a changed descriptor, gate or
/// tool does with the same answers is what such a replay shows.
///
/// When the run asks for more answers than there are, it gets a fault (`recording`).
pub struct RecordedModel {
    steps: Vec<Step>,
    used: AtomicUsize,
}

impl fmt::Debug for RecordedModel {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let used = self.used.load(Ordering::Relaxed);
        f.debug_struct("RecordedModel").field("steps", &self.steps.len()).field("used", &used).finish()
    }
}

impl RecordedModel {
    /// The answers of a recorded run.
    pub fn new(record: &RunRecord) -> Self {
        let steps = record.model_calls.iter().map(|call| step(record, call)).collect();
        Self { steps, used: AtomicUsize::new(0) }
    }

    /// How many answers nothing has asked for yet.
    pub fn unused(&self) -> usize {
        self.steps.len().saturating_sub(self.used.load(Ordering::Acquire))
    }
}

fn step(record: &RunRecord, call: &ModelCallEntry) -> Step {
    let item = call.item.and_then(|at| record.items.get(usize::try_from(at).ok()?));
    let answer = item.and_then(|item| item.as_assistant()).cloned();
    match (&call.fault, answer) {
        (None, Some(answer)) => Step::Answer(Box::new(answer)),
        // Cut off, refused by a guardrail, or taken out by redaction.
        (None, None) => Step::Fault(Box::new(ModelFault::new(
            ModelFaultCode::Recording,
            format!(
                "the record does not hold the answer to model request {}; let a live model answer",
                call.turn
            ),
        ))),
        (Some(told), partial) => {
            let fault = ModelFault::new(code(&told.code), told.message.clone());
            Step::Fault(Box::new(match partial {
                Some(partial) => fault.with_partial(partial),
                None => fault,
            }))
        }
    }
}

/// The code of a model's fault, by its wire name.
fn code(name: &str) -> ModelFaultCode {
    serde_json::from_value(serde_json::Value::from(name)).unwrap_or(ModelFaultCode::Unknown)
}

impl Model for RecordedModel {
    async fn step(&self, _: ModelRequest, deltas: &dyn Deltas) -> Result<AssistantMessage, ModelFault> {
        let at = self.used.fetch_add(1, Ordering::AcqRel);
        match self.steps.get(at) {
            Some(Step::Answer(answer)) => {
                let text = answer.joined_text();
                if !text.is_empty() {
                    deltas.part(DeltaPart::Text(text));
                }
                Ok(AssistantMessage::clone(answer))
            }
            Some(Step::Fault(fault)) => Err(ModelFault::clone(fault)),
            None => Err(ModelFault::new(
                ModelFaultCode::Recording,
                format!(
                    "the record holds {} model answers, the run asks for answer {}; let a live model answer, or record \
                     the run again",
                    self.steps.len(),
                    at.saturating_add(1)
                ),
            )),
        }
    }
}
