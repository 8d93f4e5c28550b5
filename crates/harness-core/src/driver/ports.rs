//! Everything that a driver reaches the outside through.

use std::fmt;
use std::sync::Arc;

use super::redact::Redactor;
use crate::decide::{DynCheck, DynFactSource, DynGate, Guarded};
use crate::event::Hub;
use crate::machine::PortSet;
use crate::port::{
    Clock, DynAgentSource, DynApprover, DynCheckpointStore, DynCompactor, DynContextPipeline, DynModel,
    DynSession, SingleAgent, Steering,
};
use crate::time::Millis;
use crate::tool::{DynToolRegistry, ToolUpdates, Toolbox};

/// The ports of one machine. Whatever is optional costs nothing when it is absent.
///
/// They are passed whole: a clone is another handle to the same parts, with the listeners that there are.
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
    /// The model.
    pub model: Arc<dyn DynModel>,
    /// The agents.
    pub agents: Arc<dyn DynAgentSource>,
    /// The tools.
    pub tools: Arc<dyn DynToolRegistry>,
    /// The clock.
    pub clock: Arc<dyn Clock>,
    /// The tool gates, in the order in which they are asked.
    pub gates: Vec<Guarded<dyn DynGate>>,
    /// The checks in the order in which they are asked.
    pub checks: Vec<Guarded<dyn DynCheck>>,
    /// How long the source of facts may take, within the run's own time; what it has not answered by then is not known.
    /// Default 60 s; `None` is bounded by the run alone.
    pub facts_within: Option<Millis>,
    /// Who decides about held calls.
    pub approver: Option<Arc<dyn DynApprover>>,
    /// Where the transcript is kept.
    pub session: Option<Arc<dyn DynSession>>,
    /// Where the state of runs that have a name is kept: before each turn of a run, until
    /// it has ended as completed. A failure is an event and stops nothing.
    pub checkpoints: Option<Arc<dyn DynCheckpointStore>>,
    /// Memory layers.
    pub layers: Option<Arc<dyn DynContextPipeline>>,
    /// How long memory layers may take at the end of an execution; the end waits for them so long, after a
    /// cancellation at most 2 s. Default 30 s.
    pub complete_within: Millis,
    /// The compactor.
    pub compactor: Option<Arc<dyn DynCompactor>>,
    /// What lies outside of a run and its stop decisions rest on: files, checks, JSON Schema. Without it
    /// nothing of that is known.
    pub facts: Option<Arc<dyn DynFactSource>>,
    /// The steering queue.
    pub steering: Option<Arc<dyn Steering>>,
    /// Who hears what tools tell while their calls run.
    pub updates: Option<Arc<dyn ToolUpdates>>,
    /// Who listens.
    pub hub: Hub,
    /// Known secrets, which nothing that is emitted or stored holds. Default none.
    pub redactor: Option<Redactor>,
    /// How long aborted work may still answer. Default 2 s.
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
            complete_within: Millis(30_000),
            compactor: None,
            facts: None,
            steering: None,
            updates: None,
            hub: Hub::default(),
            redactor: None,
            grace: Millis(2_000),
        }
    }

    /// The ports of work that a call of this work starts, such as a sub-agent's: the same model, tools, clock, gates,
    /// checks, approver, layers, compactor, source of facts and redactor. Layers know a child by its
    /// [parent](crate::Origin::parent). The transcript, the events, steering and the updates of tools are the child's own,
    /// so it has no session, checkpoints and listeners here, and one agent.
    #[must_use]
    pub fn for_child(&self) -> Self {
        Self {
            agents: Arc::new(SingleAgent::new("")),
            session: None,
            checkpoints: None,
            steering: None,
            updates: None,
            hub: Hub::default(),
            ..self.clone()
        }
    }

    /// Which of them there are.
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
        }
    }
}
