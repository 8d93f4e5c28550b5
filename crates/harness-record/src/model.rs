//! Model that answers from a record.

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

/// Model that returns the recorded answers and errors in order. With [`ReplayTools`](super::ReplayTools), it replays a
/// whole run without a network. Requests are not compared, so the replay shows the effect of changed descriptors, gates
/// and tools.
///
/// Further requests fail (`recording`).
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
    /// Creates a model from a record.
    pub fn new(record: &RunRecord) -> Self {
        let steps = record.model_calls.iter().map(|call| step(record, call)).collect();
        Self { steps, used: AtomicUsize::new(0) }
    }

    /// Number of unused answers.
    pub fn unused(&self) -> usize {
        self.steps.len().saturating_sub(self.used.load(Ordering::Acquire))
    }
}

fn step(record: &RunRecord, call: &ModelCallEntry) -> Step {
    let item = call.item.and_then(|at| record.items.get(usize::try_from(at).ok()?));
    let answer = item.and_then(|item| item.as_assistant()).cloned();
    match (&call.fault, answer) {
        (None, Some(answer)) => Step::Answer(Box::new(answer)),
        // Cancelled, refused by a guardrail, or redacted.
        (None, None) => Step::Fault(Box::new(ModelFault::new(
            ModelFaultCode::Recording,
            format!("the record has no answer to model request {}; use a live model", call.turn),
        ))),
        (Some(recorded), partial) => {
            let fault = ModelFault::new(code(&recorded.code), recorded.message.clone());
            Step::Fault(Box::new(match partial {
                Some(partial) => fault.with_partial(partial),
                None => fault,
            }))
        }
    }
}

/// Model error code by wire name.
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
                    "the record has {} model answers, but the run requested answer {}; use a live model, or record the \
                     run again",
                    self.steps.len(),
                    at.saturating_add(1)
                ),
            )),
        }
    }
}
