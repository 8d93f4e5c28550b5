//! Agents: instructions, tools, handoffs.

use std::sync::Arc;

use serde::{Deserialize, Serialize};

use crate::ids::{AgentId, ModelName, ToolName};
use crate::json::Json;
use crate::origin::Origin;
use crate::outcome::Fault;
use crate::tool::ToolDef;
use crate::transcript::Prefix;
use crate::twin;

/// Request to an [`AgentSource`].
#[derive(Clone, Debug)]
pub struct PrepareAsk {
    /// Agent; `None` requests the entry agent.
    pub agent: Option<AgentId>,
    /// Origin of the turn.
    pub origin: Arc<Origin>,
    /// Iteration, starting at 1.
    pub iteration: u32,
    /// Transcript so far, including the prompt.
    pub log: Prefix,
}

/// Settings of an agent in a turn.
#[derive(Clone, Debug, Default)]
#[non_exhaustive]
pub struct AgentConfig {
    /// Agent id.
    pub agent: AgentId,
    /// Instructions, resolved for this turn; may be empty.
    pub instructions: Arc<str>,
    /// Names of its tools, in order; `None` offers all tools of the registry.
    pub tools: Option<Arc<[ToolName]>>,
    /// Open handoffs, offered as tools after the agent's own.
    pub handoffs: Vec<ToolDef>,
    /// Requested model.
    pub model: Option<ModelName>,
    /// Settings for the model (such as temperature), passed to the adapter unchanged.
    pub settings: Option<Json>,
    /// JSON Schema that its answers must match. Sent to models with structured output; `check::output` validates the
    /// answers. Default none: answers are text.
    pub output: Option<Json>,
    /// Provider of the model, if known, to mark a message without a response.
    pub provider: Option<Arc<str>>,
    /// Protocol of the model, if known, to mark a message without a response.
    pub protocol: Option<Arc<str>>,
    /// Whether the agent may change between iterations: then it is prepared before each, not only at the start of a turn
    /// and after a handoff. Default false.
    pub changes: bool,
}

impl AgentConfig {
    /// Creates an agent with instructions, all tools and no handoffs.
    pub fn new(agent: impl Into<AgentId>, instructions: impl Into<Arc<str>>) -> Self {
        Self { agent: agent.into(), instructions: instructions.into(), ..Self::default() }
    }
}

/// Agent with its tools looked up, as a model receives it.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, schemars::JsonSchema)]
#[serde(rename_all = "camelCase")]
#[non_exhaustive]
pub struct PreparedAgent {
    /// Agent id.
    pub agent: AgentId,
    /// Instructions.
    pub instructions: Arc<str>,
    /// Tools, then open handoffs.
    pub tools: Arc<[ToolDef]>,
    /// Requested model.
    pub model: Option<ModelName>,
    /// Settings for the model.
    pub settings: Option<Json>,
    /// JSON Schema that its answers must match.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub output: Option<Json>,
    /// Provider of the model, if known.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub provider: Option<Arc<str>>,
    /// Protocol of the model, if known.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub protocol: Option<Arc<str>>,
    /// Whether it is prepared before each iteration.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub changes: bool,
}

impl PreparedAgent {
    /// Creates an agent with instructions and tools.
    pub fn new(
        agent: impl Into<AgentId>,
        instructions: impl Into<Arc<str>>,
        tools: impl Into<Arc<[ToolDef]>>,
    ) -> Self {
        let (agent, instructions, tools) = (agent.into(), instructions.into(), tools.into());
        Self { agent, instructions, tools, ..Self::default() }
    }

    /// Sets the model and its settings.
    #[must_use]
    pub fn with_model(mut self, model: Option<ModelName>, settings: Option<Json>) -> Self {
        self.model = model;
        self.settings = settings;
        self
    }
}

/// Source of the agents of a graph. Called at the start of a turn and after each handoff, and before each iteration if the
/// agent [changes](AgentConfig::changes).
///
/// ```
/// use harness_core::Fault;
/// use harness_core::port::{AgentConfig, AgentSource, PrepareAsk};
///
/// struct Personal;
///
/// impl AgentSource for Personal {
///     async fn prepare(&self, ask: &PrepareAsk) -> Result<AgentConfig, Fault> {
///         let user = ask.origin.user.as_deref().unwrap_or("the user");
///         Ok(AgentConfig::new("main", format!("You help {user}.")))
///     }
/// }
/// ```
pub trait AgentSource: Send + Sync {
    /// Returns the current settings of an agent.
    ///
    /// # Errors
    /// An error (an unknown agent, a missing context value) ends the turn with `runtime_error`.
    fn prepare(&self, ask: &PrepareAsk) -> impl Future<Output = Result<AgentConfig, Fault>> + Send;
}

twin! {
    DynAgentSource of AgentSource {
        async fn prepare_boxed = prepare(ask: &'a PrepareAsk) -> Result<AgentConfig, Fault>;
    }
}

/// Source of one agent that never changes.
#[derive(Clone, Debug)]
pub struct SingleAgent(AgentConfig);

impl SingleAgent {
    /// Creates an agent named `main` with all tools.
    pub fn new(instructions: impl Into<Arc<str>>) -> Self {
        Self(AgentConfig::new("main", instructions))
    }

    /// Creates the source of an agent.
    pub fn of(config: AgentConfig) -> Self {
        Self(config)
    }
}

impl AgentSource for SingleAgent {
    async fn prepare(&self, _: &PrepareAsk) -> Result<AgentConfig, Fault> {
        Ok(self.0.clone())
    }
}
