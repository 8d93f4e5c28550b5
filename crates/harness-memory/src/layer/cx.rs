//! Context of the hooks of layers.

use std::sync::Arc;

use harness_core::message::{AssistantMessage, Message};
use harness_core::outcome::{Purpose, TotalUsage};
use harness_core::port::{DynModel, Ledger, ModelRequest, PreparedAgent};
use harness_core::transcript::{Prefix, Transcript, View};
use harness_core::{Cancel, Json, ModelName, Origin, ThreadId, Time};
use parking_lot::Mutex;

use super::def::LayerId;
use crate::MemoryError;
use crate::compact::tokens::{CharacterCounter, TokenCounter};

/// One execution: a run, a turn that stands alone, or a child of one.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct Execution {
    /// Id of the run, turn or child.
    pub id: Arc<str>,
    /// Thread of the execution.
    pub thread: Option<ThreadId>,
    /// User for whom the work is done: the owner of states of scope `resource`.
    pub resource: Option<Arc<str>>,
    /// The workspace that the work belongs to.
    pub workspace: Option<Arc<str>>,
    /// 0 at the root, 1 for its children, and so on.
    pub depth: u32,
}

impl Execution {
    /// A root execution.
    pub fn new(id: impl Into<Arc<str>>) -> Self {
        Self { id: id.into(), thread: None, resource: None, workspace: None, depth: 0 }
    }

    /// The ids of its work, as far as layers know them.
    pub(crate) fn origin(&self) -> Origin {
        let mut origin = Origin::default();
        origin.thread.clone_from(&self.thread);
        origin.user.clone_from(&self.resource);
        origin.workspace.clone_from(&self.workspace);
        origin
    }

    /// A child of this execution in the same conversation.
    #[must_use]
    pub fn child(&self, id: impl Into<Arc<str>>) -> Self {
        Self { id: id.into(), depth: self.depth.saturating_add(1), ..self.clone() }
    }
}

/// The states of all layers of an execution, to read.
pub(crate) trait States: Send + Sync {
    fn state_of(&self, layer: &LayerId) -> Option<Json>;
}

/// Context of a hook. All of it is a snapshot; clones are cheap.
#[derive(Clone, derive_more::Debug)]
#[non_exhaustive]
pub struct LayerCx {
    /// Execution that the hook belongs to.
    pub execution: Arc<Execution>,
    /// The transcript so far.
    pub log: Prefix,
    /// When it is asked.
    pub now: Time,
    /// Fires when the result is no longer needed.
    #[debug(skip)]
    pub cancel: Cancel,
    /// The agent at work: model, instructions, tools. `None` before the first one was prepared.
    pub prepared: Option<Arc<PreparedAgent>>,
    /// Iterations started so far in this execution.
    pub step: u32,
    /// Usage and cost of the execution so far.
    pub usage: TotalUsage,
    /// The layer's own state as it was when the hook was asked.
    pub state: Option<Json>,
    #[debug(skip)]
    counter: Arc<dyn TokenCounter>,
    #[debug(skip)]
    model: Option<Arc<dyn DynModel>>,
    #[debug(skip)]
    ledger: Ledger,
    #[debug(skip)]
    spent: Arc<Mutex<TotalUsage>>,
    #[debug(skip)]
    states: Option<Arc<dyn States>>,
}

impl LayerCx {
    /// A context for tests of layers: no state, no model, an estimate as token counter, never cancelled.
    pub fn new(execution: Arc<Execution>, log: Prefix, now: Time) -> Self {
        Self {
            execution,
            log,
            now,
            cancel: Cancel::never(),
            prepared: None,
            step: 0,
            usage: TotalUsage::default(),
            state: None,
            counter: Arc::new(CharacterCounter),
            model: None,
            ledger: Ledger::unlimited(Purpose::Layer),
            spent: Arc::default(),
            states: None,
        }
    }

    /// Sets the state of the layer.
    #[must_use]
    pub fn with_state(self, state: Option<Json>) -> Self {
        Self { state, ..self }
    }

    /// Sets the model that layers may call.
    #[must_use]
    pub fn with_model(self, model: Arc<dyn DynModel>) -> Self {
        Self { model: Some(model), ..self }
    }

    /// Sets the token counter.
    #[must_use]
    pub fn with_counter(self, counter: Arc<dyn TokenCounter>) -> Self {
        Self { counter, ..self }
    }

    pub(crate) fn with_states(self, states: Arc<dyn States>) -> Self {
        Self { states: Some(states), ..self }
    }

    /// Sets the ledger of model calls.
    #[must_use]
    pub fn with_ledger(self, ledger: Ledger) -> Self {
        Self { ledger, ..self }
    }

    pub(crate) fn with_spent(self, spent: Arc<Mutex<TotalUsage>>) -> Self {
        Self { spent, ..self }
    }

    /// The tokens of a text.
    pub fn tokenize(&self, text: &str) -> u64 {
        self.counter.count(text)
    }

    /// The layer's state as a value of yours; the default where there is none.
    ///
    /// # Errors
    /// When the state does not have the shape of `T`.
    pub fn state_as<T: serde::de::DeserializeOwned + Default>(&self) -> Result<T, MemoryError> {
        let Some(state) = &self.state else { return Ok(T::default()) };
        state
            .to()
            .map_err(|fault| MemoryError::failed(format!("the state of the layer is not readable: {fault}")))
    }

    /// The state of another layer as it is now; `None` when there is none.
    pub fn sibling(&self, layer: &LayerId) -> Option<Json> {
        self.states.as_ref()?.state_of(layer)
    }

    /// Whether there is a model that [`call_model`](Self::call_model) can ask.
    pub fn has_model(&self) -> bool {
        self.model.is_some()
    }

    /// Calls the model of the layers, by default under the name of the agent's model. The call is reserved from and
    /// charged to the budget of the run, with the purpose `layer`.
    ///
    /// # Errors
    /// `MISSING_CALL_MODEL` when layers were given no model; otherwise when the call failed, or the budget has no
    /// room for it.
    pub async fn call_model(&self, ask: AskModel) -> Result<AssistantMessage, MemoryError> {
        let Some(model) = &self.model else {
            return Err(MemoryError::config(
                "MISSING_CALL_MODEL",
                "the layer needs a model, but none was given to the layers",
            ));
        };
        let log: Transcript = ask.messages.into_iter().collect();
        let name = ask.model.or_else(|| self.prepared.as_ref().and_then(|agent| agent.model.clone()));
        let prepared = PreparedAgent::new("layer", ask.instructions.unwrap_or_else(|| Arc::from("")), [])
            .with_model(name, None);
        let mut request = ModelRequest::new(View::whole(log.prefix()), Arc::new(prepared));
        request.with_tools = false;
        request.origin = Arc::new(self.execution.origin());
        request.cancel = self.cancel.clone();
        let answer = self.ledger.call(&**model, request).await;
        let usage = answer.as_ref().ok().and_then(|answer| answer.usage.as_deref());
        let mut spent = self.spent.lock();
        spent.add_call(self.ledger.purpose(), usage, answer.is_ok());
        drop(spent);
        answer.map_err(|fault| MemoryError::failed(fault.to_string()))
    }
}

/// Model call of a layer.
#[derive(Clone, Debug, Default)]
#[non_exhaustive]
pub struct AskModel {
    /// Name of the model. `None`: the agent's.
    pub model: Option<ModelName>,
    /// System instructions.
    pub instructions: Option<Arc<str>>,
    /// Messages of the request.
    pub messages: Vec<Arc<Message>>,
}

impl AskModel {
    /// A question of one user message.
    pub fn text(text: impl Into<String>) -> Self {
        Self { messages: vec![Arc::new(Message::user(text))], ..Self::default() }
    }

    /// Sets the instructions.
    #[must_use]
    pub fn instructed(self, instructions: impl Into<Arc<str>>) -> Self {
        Self { instructions: Some(instructions.into()), ..self }
    }

    /// Sets the name of the model.
    #[must_use]
    pub fn to_model(self, model: Option<ModelName>) -> Self {
        Self { model, ..self }
    }
}
