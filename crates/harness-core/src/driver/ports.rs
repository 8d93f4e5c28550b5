//! Everything that a driver reaches the outside through.

use std::fmt;
use std::sync::Arc;

use super::redact::Redactor;
use super::states::StoredStates;
use crate::decide::{DynCheck, DynFactSource, DynGate, Guarded};
use crate::event::Hub;
use crate::json::Json;
use crate::machine::PortSet;
use crate::port::{
    Clock, DynAgentSource, DynApprover, DynCheckpointStore, DynCompactor, DynContextPipeline, DynModel,
    DynSession, SingleAgent, Stateful, Steering,
};
use crate::time::Millis;
use crate::tool::{Children, DynToolRegistry, ToolUpdates, Toolbox};

/// The ports of one machine. An absent optional port costs nothing.
///
/// Ports are passed whole: a clone has the same parts and the same listeners.
///
/// ```
/// use std::sync::Arc;
///
/// use harness_core::driver::Ports;
/// use harness_core::port::{Clock, DynModel, SingleAgent};
/// use harness_core::tool::{DynTool, Toolbox};
///
/// fn ports(model: Arc<dyn DynModel>, clock: Arc<dyn Clock>, tools: Vec<Arc<dyn DynTool>>) -> Ports {
///     let mut ports = Ports::new(model, clock);
///     ports.tools = Arc::new(Toolbox::new(tools));
///     ports.agents = Arc::new(SingleAgent::new("Answer in one sentence."));
///     ports
/// }
/// # let _ = ports;
/// ```
#[derive(Clone)]
#[non_exhaustive]
pub struct Ports {
    /// Answers requests.
    pub model: Arc<dyn DynModel>,
    /// Gives the agents. Default: one agent without instructions.
    pub agents: Arc<dyn DynAgentSource>,
    /// Lists and runs the tools. Default: none.
    pub tools: Arc<dyn DynToolRegistry>,
    /// Gives the time and the timers.
    pub clock: Arc<dyn Clock>,
    /// The gates of calls and handoffs, in order.
    pub gates: Vec<Guarded<dyn DynGate>>,
    /// The checks, in order.
    pub checks: Vec<Guarded<dyn DynCheck>>,
    /// Time limit of the fact source, within that of the run; facts that are missing then are unknown. Default 60 s;
    /// `None` is bounded by the run alone.
    pub facts_within: Option<Millis>,
    /// Decides about held calls. Without an approver they park the turn.
    pub approver: Option<Arc<dyn DynApprover>>,
    /// Stores the transcript.
    pub session: Option<Arc<dyn DynSession>>,
    /// Stores the state of named runs before each turn, until the run ends as completed. A failure is an event and stops
    /// nothing.
    pub checkpoints: Option<Arc<dyn DynCheckpointStore>>,
    /// The memory layers.
    pub layers: Option<Arc<dyn DynContextPipeline>>,
    /// Tools that keep state in this process. Those of a thread are stored in its session; drivers that continue a run elsewhere
    /// journal all. Default none.
    pub states: Vec<Arc<dyn Stateful>>,
    /// States of the thread that the session holds. Default none.
    pub stored_states: StoredStates,
    /// Time limit of memory layers at the end of an execution, after a cancellation at most 2 s. Default 30 s.
    pub complete_within: Millis,
    /// Shortens views and transcripts.
    pub compactor: Option<Arc<dyn DynCompactor>>,
    /// Gathers facts from outside the run for stop decisions: files, checks, JSON Schema. Without it they are unknown.
    pub facts: Option<Arc<dyn DynFactSource>>,
    /// The queue of messages for a running turn.
    pub steering: Option<Arc<dyn Steering>>,
    /// Receives updates of tools while their calls run.
    pub updates: Option<Arc<dyn ToolUpdates>>,
    /// Host parameters, which tools see as [`ToolCx::params`](crate::tool::ToolCx::params). Default `{}`.
    pub params: Json,
    /// Runs the children of calls elsewhere. Set by drivers that do, for calls that
    /// [delegate](crate::tool::Tool::delegates). Default none.
    pub children: Option<Arc<dyn Children>>,
    /// Publishes the events.
    pub hub: Hub,
    /// Removes known secrets from everything that is emitted or stored. Default none.
    pub redactor: Option<Redactor>,
    /// Time for aborted operations to reply. Default 2 s.
    pub grace: Millis,
}

impl fmt::Debug for Ports {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Ports").field("set", &self.set()).field("hub", &self.hub).finish_non_exhaustive()
    }
}

impl Ports {
    /// A model and a clock; one agent without instructions and tools.
    pub fn new(model: Arc<dyn DynModel>, clock: Arc<dyn Clock>) -> Self {
        Self {
            model,
            agents: Arc::new(SingleAgent::new("")),
            tools: Arc::new(Toolbox::default()),
            clock,
            gates: Vec::new(),
            checks: Vec::new(),
            facts_within: PortSet::default().facts_within,
            approver: None,
            session: None,
            checkpoints: None,
            layers: None,
            states: Vec::new(),
            stored_states: StoredStates::default(),
            complete_within: Millis(30_000),
            compactor: None,
            facts: None,
            steering: None,
            updates: None,
            params: Json::empty_object(),
            children: None,
            hub: Hub::default(),
            redactor: None,
            grace: Millis(2_000),
        }
    }

    /// The ports of work that a call of this work starts, such as a sub-agent's: the same model, tools, clock, gates,
    /// checks, approver, layers, states, compactor, source of facts, parameters and redactor. Layers know a child by its
    /// [parent](crate::Origin::parent). The transcript, the events, steering and the updates of tools are the child's own,
    /// so it has no session, checkpoints and listeners here, and one agent.
    #[must_use]
    pub fn for_child(&self) -> Self {
        Self {
            agents: Arc::new(SingleAgent::new("")),
            session: None,
            stored_states: StoredStates::default(),
            checkpoints: None,
            steering: None,
            updates: None,
            children: None,
            hub: Hub::default(),
            ..self.clone()
        }
    }

    /// All that keep state of runs in this process: tools, and the memory layers.
    pub fn run_states(&self) -> impl Iterator<Item = &dyn Stateful> {
        let layers = self.layers.as_deref().and_then(DynContextPipeline::run_state_dyn);
        self.states.iter().map(|state| &**state).chain(layers)
    }

    /// The set of ports that are present.
    pub fn set(&self) -> PortSet {
        PortSet {
            gates: self.gates.iter().map(|gate| gate.guard().clone()).collect(),
            checks: self.checks.iter().map(|check| check.guard().clone()).collect(),
            facts_within: self.facts_within,
            approver: self.approver.is_some(),
            layers: self.layers.as_ref().map(|_| self.complete_within),
            compactor: self.compactor.is_some(),
            session: self.session.is_some(),
            checkpoints: self.checkpoints.is_some(),
            steering: self.steering.is_some(),
            listeners: !self.hub.is_silent(),
        }
    }
}
