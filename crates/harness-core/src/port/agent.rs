//! Where agents come from: instructions, tools, handoffs.

use std::sync::Arc;

use serde::{Deserialize, Serialize};

use crate::ids::{AgentId, ModelName, ToolName};
use crate::json::Json;
use crate::origin::Origin;
use crate::outcome::Fault;
use crate::tool::ToolDef;
use crate::transcript::Prefix;
use crate::twin;

/// What is asked of an [`AgentSource`].
#[derive(Clone, Debug)]
#[non_exhaustive]
pub struct PrepareAsk {
    /// The agent; `None` asks for the entry agent.
    pub agent: Option<AgentId>,
    /// Whose turn it is.
    pub origin: Arc<Origin>,
    /// The iteration that it is for, from 1.
    pub iteration: u32,
    /// The transcript so far, with the prompt.
    pub log: Prefix,
}

impl PrepareAsk {
    /// Asks for an agent (`None`: the entry agent), in an iteration of a turn.
    pub fn new(agent: Option<AgentId>, origin: Arc<Origin>, iteration: u32) -> Self {
        Self { agent, origin, iteration, log: Prefix::default() }
    }

    /// The same, with the transcript so far.
    #[must_use]
    pub(crate) fn over(mut self, log: Prefix) -> Self {
        self.log = log;
        self
    }
}

/// What an agent is in one turn: its resolved instructions, and which tools and handoffs it has.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub struct AgentConfig {
    /// The agent.
    pub agent: AgentId,
    /// The instructions, resolved for this turn; empty when it has none.
    pub instructions: Arc<str>,
    /// The names of its tools in order; `None` offers all that the registry has.
    pub tools: Option<Arc<[ToolName]>>,
    /// Handoffs that are open now; each becomes a tool after the agent's own.
    pub handoffs: Vec<ToolDef>,
    /// The model it wants.
    pub model: Option<ModelName>,
    /// Settings for the model (temperature and the like), passed to the adapter whole.
    pub settings: Option<Json>,
    /// Who serves the model, and by which protocol, where that is known; so an answer that never came is marked.
    pub provider: Option<Arc<str>>,
    /// See [`AgentConfig::provider`].
    pub protocol: Option<Arc<str>>,
    /// Whether it may be another one in the next iteration: then it is asked for before each, not only at the start
    /// of a turn and after a handoff. Default false.
    pub changes: bool,
}

impl AgentConfig {
    /// An agent with instructions, all tools and no handoffs.
    pub fn new(agent: impl Into<AgentId>, instructions: impl Into<Arc<str>>) -> Self {
        Self {
            agent: agent.into(),
            instructions: instructions.into(),
            tools: None,
            handoffs: Vec::new(),
            model: None,
            settings: None,
            provider: None,
            protocol: None,
            changes: false,
        }
    }
}

/// An agent as it is offered to a model: the brief with its tools looked up.
///
/// ```
/// use harness_core::port::PreparedAgent;
/// use harness_core::tool::ToolDef;
///
/// let prepared = PreparedAgent::new("main", "Be brief.", [ToolDef::new("search", "Searches")]);
/// assert_eq!(prepared.tools.len(), 1);
/// ```
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
#[non_exhaustive]
pub struct PreparedAgent {
    /// The agent.
    pub agent: AgentId,
    /// Its instructions.
    pub instructions: Arc<str>,
    /// Its tools, then its open handoffs.
    pub tools: Arc<[ToolDef]>,
    /// The model it wants.
    pub model: Option<ModelName>,
    /// Settings for the model.
    pub settings: Option<Json>,
    /// Who serves the model.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub provider: Option<Arc<str>>,
    /// The protocol by which the model is asked.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub protocol: Option<Arc<str>>,
    /// Whether it is asked for anew before each iteration.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub changes: bool,
}

impl PreparedAgent {
    /// An agent with instructions and tools.
    pub fn new(
        agent: impl Into<AgentId>,
        instructions: impl Into<Arc<str>>,
        tools: impl Into<Arc<[ToolDef]>>,
    ) -> Self {
        Self {
            agent: agent.into(),
            instructions: instructions.into(),
            tools: tools.into(),
            model: None,
            settings: None,
            provider: None,
            protocol: None,
            changes: false,
        }
    }

    /// The same offer with a model and settings.
    #[must_use]
    pub fn with_model(mut self, model: Option<ModelName>, settings: Option<Json>) -> Self {
        self.model = model;
        self.settings = settings;
        self
    }
}

/// Gives the agents of a graph. Asked at the start of a turn and after each handoff; also before each
/// iteration when the agent [changes](AgentConfig::changes).
///
/// ```
/// use harness_core::Fault;
/// use harness_core::port::{AgentConfig, AgentSource, PrepareAsk};
///
/// /// Tells the agent whose user it works for.
/// struct Personal;
///
/// impl AgentSource for Personal {
///     async fn prepare(&self, ask: &PrepareAsk) -> Result<AgentConfig, Fault> {
///         let user = ask.origin.user.as_deref().unwrap_or("somebody");
///         Ok(AgentConfig::new("main", format!("You help {user}.")))
///     }
/// }
/// ```
pub trait AgentSource: Send + Sync {
    /// The agent as it is now.
    ///
    /// # Errors
    /// A fault (an unknown agent, a context value that is missing) ends the turn with `runtime_error`.
    fn prepare(&self, ask: &PrepareAsk) -> impl Future<Output = Result<AgentConfig, Fault>> + Send;
}

twin! {
    DynAgentSource of AgentSource {
        async fn prepare_boxed = prepare(ask: &'a PrepareAsk) -> Result<AgentConfig, Fault>;
    }
}

/// One agent whose instructions never change and who has every tool.
///
/// ```
/// use harness_core::port::{AgentConfig, SingleAgent};
///
/// let mut config = AgentConfig::new("clerk", "Answer in one sentence.");
/// config.model = Some("large-model".into());
/// let agent = SingleAgent::of(config);
/// # let _ = agent;
/// ```
#[derive(Clone, Debug)]
pub struct SingleAgent(AgentConfig);

impl SingleAgent {
    /// An agent named `main`.
    pub fn new(instructions: impl Into<Arc<str>>) -> Self {
        Self(AgentConfig::new("main", instructions))
    }

    /// The agent of a brief.
    pub fn of(config: AgentConfig) -> Self {
        Self(config)
    }
}

impl AgentSource for SingleAgent {
    async fn prepare(&self, _: &PrepareAsk) -> Result<AgentConfig, Fault> {
        Ok(self.0.clone())
    }
}
