//! Inputs and results of the hooks of layers.

use std::sync::Arc;

use harness_core::Json;
use harness_core::message::{Message, SystemMessage, ToolCall};
use harness_core::port::AppendSource;
use harness_core::tool::ToolDef;
use harness_core::transcript::Prefix;
use serde::{Deserialize, Serialize};

use super::cx::Execution;
use super::def::RerenderTiming;
use crate::MemoryError;

/// Change of a layer's state by a hook.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub enum Update {
    /// It stays. The default.
    #[default]
    Keep,
    /// It is this from now on.
    Set(Json),
    /// It is forgotten, where it is stored, too; the layer stays at work.
    Clear,
}

impl Update {
    /// A new state from a value of yours.
    ///
    /// # Errors
    /// When the value has no JSON form.
    pub fn set<T: Serialize + ?Sized>(state: &T) -> Result<Self, MemoryError> {
        Json::of(state)
            .map(Self::Set)
            .map_err(|fault| MemoryError::failed(format!("the state has no JSON form: {fault}")))
    }
}

/// Messages that are about to enter the transcript.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub struct AppendAsk {
    /// Where they come from.
    pub source: AppendSource,
    /// The messages, as the layers before left them.
    pub items: Vec<Arc<Message>>,
}

/// Messages that enter the transcript.
#[derive(Clone, Debug, Default)]
#[non_exhaustive]
pub struct Appended {
    /// Messages in order.
    pub items: Vec<Arc<Message>>,
    /// Change of the layer's state.
    pub state: Update,
    /// Asks for more recalls in the next view.
    pub rerender: Option<Rerender>,
}

impl Appended {
    /// These messages; the state stays.
    pub fn items(items: Vec<Arc<Message>>) -> Self {
        Self { items, ..Self::default() }
    }

    /// Adds a change of state.
    #[must_use]
    pub fn with_state(self, state: Update) -> Self {
        Self { state, ..self }
    }

    /// Adds a request for further recalls.
    #[must_use]
    pub fn with_rerender(self, rerender: Rerender) -> Self {
        Self { rerender: Some(rerender), ..self }
    }
}

/// Which layers are recalled once more.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
#[non_exhaustive]
pub enum RerenderScope {
    /// The layer that asks.
    #[serde(rename = "self")]
    Own,
    /// All from its slot on, those of the same slot too. The default.
    #[default]
    SlotAfter,
    /// All.
    All,
}

/// A wish for more recalls.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[non_exhaustive]
pub struct Rerender {
    /// Of which layers.
    pub scope: RerenderScope,
    /// When; `None` is what the layer's definition says.
    pub timing: Option<RerenderTiming>,
}

impl Rerender {
    /// A wish for the layers of `scope`.
    pub fn of(scope: RerenderScope) -> Self {
        Self { scope, timing: None }
    }

    /// Sets the time.
    #[must_use]
    pub fn at(self, timing: RerenderTiming) -> Self {
        Self { timing: Some(timing), ..self }
    }
}

/// Input of a recall.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub struct RecallAsk {
    /// The text of the newest user message of the turn.
    pub query: Arc<str>,
    /// Tokens that it may use; 0 when nothing is known or nothing is left.
    pub budget: u64,
}

impl RecallAsk {
    /// A question with a budget.
    pub fn new(query: impl Into<Arc<str>>, budget: u64) -> Self {
        Self { query: query.into(), budget }
    }
}

/// Content of a layer in a view.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub enum Content {
    /// Nothing. The default.
    #[default]
    Nothing,
    /// A text: one developer message. An empty text is nothing.
    Text(String),
    /// Messages. An empty list voids what the layer showed before; `Nothing` does not.
    Items(Vec<Arc<Message>>),
}

/// Result of a recall.
#[derive(Clone, Debug, Default)]
#[non_exhaustive]
pub struct Recalled {
    /// Content for the view.
    pub content: Content,
    /// The tokens by the layer's own count. They are counted again; a wrong count is reported.
    pub tokens: Option<u64>,
    /// The state. A layer that changes it here is shown after the history.
    pub state: Update,
}

impl Recalled {
    /// Nothing.
    pub fn nothing() -> Self {
        Self::default()
    }

    /// One text.
    pub fn text(text: impl Into<String>) -> Self {
        Self { content: Content::Text(text.into()), ..Self::default() }
    }

    /// Messages.
    pub fn items(items: Vec<Arc<Message>>) -> Self {
        Self { content: Content::Items(items), ..Self::default() }
    }

    /// Adds a change of state.
    #[must_use]
    pub fn with_state(self, state: Update) -> Self {
        Self { state, ..self }
    }

    /// Adds the layer's own count of tokens.
    #[must_use]
    pub fn counted(self, tokens: u64) -> Self {
        Self { tokens: Some(tokens), ..self }
    }
}

/// Decision of a layer on an answer or a tool call.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub enum Decision {
    /// No objection. The default.
    #[default]
    Allow,
    /// No.
    Deny {
        /// Reason, for the model.
        guidance: Option<String>,
    },
    /// Not like this.
    Guide {
        /// Guidance for the model.
        guidance: Option<String>,
    },
}

impl Decision {
    /// No, with words.
    pub fn deny(guidance: impl Into<String>) -> Self {
        Self::Deny { guidance: Some(guidance.into()) }
    }

    /// Not like this, with words.
    pub fn guide(guidance: impl Into<String>) -> Self {
        Self::Guide { guidance: Some(guidance.into()) }
    }

    /// The wire name.
    pub fn action(&self) -> &'static str {
        match self {
            Self::Allow => "allow",
            Self::Deny { .. } => "deny",
            Self::Guide { .. } => "guide",
        }
    }

    /// Text for the model.
    pub fn guidance(&self) -> Option<&str> {
        match self {
            Self::Allow => None,
            Self::Deny { guidance } | Self::Guide { guidance } => guidance.as_deref(),
        }
    }
}

/// A decision and the state after it.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct Decided {
    /// Decision on the answer or call.
    pub decision: Decision,
    /// The state; written whatever the decision.
    pub state: Update,
}

impl Decided {
    /// Adds a change of state.
    #[must_use]
    pub fn with_state(self, state: Update) -> Self {
        Self { state, ..self }
    }
}

impl From<Decision> for Decided {
    fn from(decision: Decision) -> Self {
        Self { decision, state: Update::Keep }
    }
}

/// A tool call that is about to run.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub struct ToolAsk {
    /// Call to be executed.
    pub call: Arc<ToolCall>,
    /// The tool, under its registered name.
    pub def: ToolDef,
}

impl ToolAsk {
    /// A call of a tool.
    pub fn new(call: Arc<ToolCall>, def: ToolDef) -> Self {
        Self { call, def }
    }
}

/// An answer that was accepted.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub struct StoreAsk {
    /// Accepted answer.
    pub answer: Arc<Message>,
    /// Messages that entered the transcript since the last call, including the answer.
    pub new_items: Vec<Arc<Message>>,
}

/// Start of a child execution.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub struct Spawned {
    /// Its state of the layer.
    pub state: Json,
    /// Messages that its transcript begins with.
    pub items: Vec<Arc<Message>>,
}

impl Spawned {
    /// A state and no messages.
    pub fn state(state: Json) -> Self {
        Self { state, items: Vec::new() }
    }

    /// Adds messages.
    #[must_use]
    pub fn with_items(self, items: Vec<Arc<Message>>) -> Self {
        Self { items, ..self }
    }
}

/// A child that succeeded.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub struct ReturnAsk {
    /// Execution of the child.
    pub child: Arc<Execution>,
    /// Its state of the layer.
    pub child_state: Json,
    /// Transcript of the child.
    pub child_log: Prefix,
    /// Text of the last answer of the child; `None` without one.
    pub result: Option<String>,
}

/// How an execution ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize, strum::Display)]
#[serde(rename_all = "snake_case")]
#[non_exhaustive]
#[strum(serialize_all = "snake_case")]
pub enum Ending {
    /// It did what was asked.
    Success,
    /// It did not.
    Failure,
    /// The caller cancelled it.
    Aborted,
    /// It waits for input or reached a limit, and can be resumed.
    Paused,
}

/// An outdated block of the anchored part.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub struct DeltaAsk {
    /// Messages in the anchored part.
    pub prev: Vec<Arc<Message>>,
    /// Current messages.
    pub next: Vec<Arc<Message>>,
    /// The state at the time of `prev`.
    pub prev_state: Option<Json>,
    /// Tokens of the layer.
    pub budget: u64,
}

impl DeltaAsk {
    /// Change from `prev` to `next`.
    pub fn new(
        prev: Vec<Arc<Message>>,
        next: Vec<Arc<Message>>,
        prev_state: Option<Json>,
        budget: u64,
    ) -> Self {
        Self { prev, next, prev_state, budget }
    }
}

/// Result of a function of a layer.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub struct Called {
    /// The result: a JSON text is shown as text, anything else as JSON.
    pub result: Json,
    /// Change of state.
    pub state: Update,
}

impl Called {
    /// A result; the state stays.
    pub fn new(result: Json) -> Self {
        Self { result, state: Update::Keep }
    }

    /// A text; the state stays.
    pub fn text(text: &str) -> Self {
        Self::new(Json::string(text))
    }

    /// Adds a change of state.
    #[must_use]
    pub fn with_state(self, state: Update) -> Self {
        Self { state, ..self }
    }
}

/// A developer message: an instruction that a layer makes.
pub fn developer(text: impl Into<String>) -> Arc<Message> {
    let mut message = SystemMessage::text(text);
    message.sent_as = Some("developer".to_owned());
    Arc::new(Message::System(message))
}

/// Whether a message is a developer message.
pub fn is_developer(message: &Message) -> bool {
    matches!(message, Message::System(system) if system.sent_as.as_deref() == Some("developer"))
}
