//! A model that says what a test wrote down.

use std::collections::VecDeque;
use std::sync::Arc;

use parking_lot::Mutex;

use super::VirtualClock;
use crate::message::AssistantMessage;
use crate::port::{DeltaPart, Deltas, Model, ModelFault, ModelFaultCode, ModelRequest};
use crate::time::Millis;

/// The response of a [`ScriptedModel`] to one request.
///
/// ```
/// use harness_core::message::AssistantMessage;
/// use harness_core::port::DeltaPart;
/// use harness_core::testing::{ModelStep, ScriptedModel};
///
/// let step = ModelStep::answer(AssistantMessage::text("Hello.")).with_deltas([DeltaPart::Text("Hel".into())]);
/// let model = ScriptedModel::new([step, ModelStep::hang()]);
/// assert_eq!(model.unused(), 2);
/// ```
#[derive(Clone, Debug)]
pub struct ModelStep {
    say: Say,
    deltas: Vec<DeltaPart>,
    takes: Millis,
}

#[derive(Clone, Debug)]
enum Say {
    Answer(Box<AssistantMessage>),
    Fault(Box<ModelFault>),
    Panic(String),
    Hang,
}

impl ModelStep {
    fn new(say: Say) -> Self {
        Self { say, deltas: Vec::new(), takes: Millis(0) }
    }

    /// Gives this answer.
    pub fn answer(message: AssistantMessage) -> Self {
        Self::new(Say::Answer(Box::new(message)))
    }

    /// Fails.
    pub fn fault(fault: ModelFault) -> Self {
        Self::new(Say::Fault(Box::new(fault)))
    }

    /// Panics with this message.
    pub fn panic(message: impl Into<String>) -> Self {
        Self::new(Say::Panic(message.into()))
    }

    /// Never answers; ends when its future is dropped.
    pub fn hang() -> Self {
        Self::new(Say::Hang)
    }

    /// Streams these deltas first.
    #[must_use]
    pub fn with_deltas(mut self, deltas: impl IntoIterator<Item = DeltaPart>) -> Self {
        self.deltas.extend(deltas);
        self
    }

    /// Moves the clock of [`ScriptedModel::with_clock`] by this time before the response.
    #[must_use]
    pub fn taking(mut self, time: Millis) -> Self {
        self.takes = time;
        self
    }
}

impl From<AssistantMessage> for ModelStep {
    fn from(message: AssistantMessage) -> Self {
        Self::answer(message)
    }
}

impl From<ModelFault> for ModelStep {
    fn from(fault: ModelFault) -> Self {
        Self::fault(fault)
    }
}

/// A [`Model`] that takes its steps from a list, in order, and records its requests. Clones share the list. When the list
/// is empty, it fails.
///
/// ```
/// use harness_core::Json;
/// use harness_core::message::{AssistantMessage, ToolCall};
/// use harness_core::testing::ScriptedModel;
///
/// let model = ScriptedModel::new([
///     AssistantMessage::calls([ToolCall::new("c1", "add", Json::empty_object())]),
///     AssistantMessage::text("It is 4."),
/// ]);
/// assert_eq!(model.unused(), 2);
/// ```
#[derive(Clone, Debug, Default)]
pub struct ScriptedModel {
    script: Arc<Mutex<Script>>,
    clock: Option<VirtualClock>,
    is_repeatable: bool,
}

#[derive(Debug, Default)]
struct Script {
    steps: VecDeque<ModelStep>,
    requests: Vec<ModelRequest>,
}

impl ScriptedModel {
    /// A model with these steps.
    pub fn new<S: Into<ModelStep>>(steps: impl IntoIterator<Item = S>) -> Self {
        let steps = steps.into_iter().map(Into::into).collect();
        let script = Arc::new(Mutex::new(Script { steps, requests: Vec::new() }));
        Self { script, clock: None, is_repeatable: false }
    }

    /// Answers a request that shows n answers with step n + 1, and keeps all steps: a request that is sent again after a
    /// crash gets the answer that it got before. For runs without compaction.
    ///
    /// ```
    /// use harness_core::message::AssistantMessage;
    /// use harness_core::testing::ScriptedModel;
    ///
    /// let model = ScriptedModel::new([AssistantMessage::text("Hello.")]).repeatable();
    /// assert_eq!(model.unused(), 1);
    /// ```
    #[must_use]
    pub fn repeatable(mut self) -> Self {
        self.is_repeatable = true;
        self
    }

    /// Sets the clock that its steps move.
    #[must_use]
    pub fn with_clock(mut self, clock: VirtualClock) -> Self {
        self.clock = Some(clock);
        self
    }

    /// All requests, in order.
    pub fn requests(&self) -> Vec<ModelRequest> {
        self.script.lock().requests.clone()
    }

    /// Steps that are left; all of a [repeatable](Self::repeatable) model.
    pub fn unused(&self) -> usize {
        self.script.lock().steps.len()
    }

    fn take(&self, request: ModelRequest) -> Result<ModelStep, ModelFault> {
        let mut script = self.script.lock();
        let mut answers = 0;
        request.view.for_each(|message| answers += usize::from(message.as_assistant().is_some()));
        script.requests.push(request);
        let number = if self.is_repeatable { answers + 1 } else { script.requests.len() };
        let step =
            if self.is_repeatable { script.steps.get(answers).cloned() } else { script.steps.pop_front() };
        step.ok_or_else(|| {
            let message = format!("the scripted model has no step for request {number}: add one");
            ModelFault::new(ModelFaultCode::Unknown, message)
        })
    }
}

impl Model for ScriptedModel {
    #[expect(clippy::panic, reason = "a scripted panic is what the test asked for")]
    async fn step(&self, request: ModelRequest, deltas: &dyn Deltas) -> Result<AssistantMessage, ModelFault> {
        let step = self.take(request)?;
        step.deltas.into_iter().for_each(|part| deltas.part(part));
        if let Some(clock) = &self.clock {
            clock.advance(step.takes);
        }
        match step.say {
            Say::Answer(message) => Ok(*message),
            Say::Fault(fault) => Err(*fault),
            Say::Panic(message) => panic!("{message}"),
            Say::Hang => std::future::pending().await,
        }
    }
}
