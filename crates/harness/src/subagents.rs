//! Sub-agents, modes and surroundings of a harness.

use std::path::PathBuf;
use std::sync::Arc;

use harness_core::decide::{DynCheck, Guarded, Points};
use harness_core::driver::Ports;
use harness_core::event::Fold;
use harness_core::port::{Clock, Stateful};
use harness_core::tool::{DynTool, DynToolRegistry};
use harness_tools::{
    BackgroundAgents, Keep, Modes, RunnerSlot, SUBAGENT_TOOLS, Subagent, SubagentTool, Surroundings, ToolSet,
    TurnRunner, WorkTools,
};

use crate::builder::Builder;

/// Setup of sub-agents, applied when the builder has all parts.
#[derive(Default)]
pub(crate) struct SubagentSetup {
    slots: Vec<RunnerSlot>,
    listeners: Vec<Listen>,
    modes: Option<Modes>,
    folder: Option<PathBuf>,
}

type Listen = Box<dyn FnOnce(TurnRunner) -> TurnRunner + Send>;

impl Builder {
    /// Adds agents that every agent can delegate to with the tool `task`. Each sees only its task, has separate
    /// instructions and the tools that it names, and uses its caller's budget. They have the
    /// [ports](Ports::for_child) of the conversation: the same model, gates, approver, compactor, memory, and checks but
    /// for those of the end. To the layers of memory a sub-agent's work is a child of its caller's. Default none.
    pub fn subagents(self, agents: impl IntoIterator<Item = Subagent>) -> Self {
        let slot = RunnerSlot::new();
        let tool = SubagentTool::new(agents, Arc::new(slot.clone())).map(SubagentTool::gated);
        self.common_set(&SubagentTool::set_of(tool)).runner_slot(slot)
    }

    /// Adds agents that work in the background, with the tools `background_agents_*`. Their tasks are
    /// kept for a run or for the conversation, and end with the run that started them. Default none.
    pub fn background_agents(self, agents: impl IntoIterator<Item = Subagent>, keep: Keep) -> Self {
        let slot = RunnerSlot::new();
        match BackgroundAgents::new(agents, Arc::new(slot.clone()), keep) {
            Some(agents) => self.common_set(&agents.gated().into_set()).runner_slot(slot),
            None => self,
        }
    }

    /// Connects tools that run sub-agents, such as those of a [registry file](harness_tools::Registry::runner_slot), to the
    /// runner of [`subagents`](Self::subagents).
    pub fn runner_slot(mut self, slot: RunnerSlot) -> Self {
        self.team.slots.push(slot);
        self
    }

    /// An inline listener of what sub-agents do, which a share of is given to each: `Arc<Mutex<F>>`.
    pub fn watch_subagents<F: Fold + Clone + Sync + 'static>(mut self, fold: F) -> Self {
        self.team.listeners.push(Box::new(|runner| runner.fold(fold)));
        self
    }

    /// The modes of the conversation, in place of those given before: their tools, which every agent has,
    /// their gate, and their notes before everything that waits in the steering queue. A run is interactive
    /// or strict as the mode says that it begins in. Default no modes.
    pub fn modes(mut self, modes: Modes) -> Self {
        let gate = modes.gate();
        if self.team.modes.is_some() {
            self.ports.gates.retain(|known| known.guard().name != gate.guard().name);
        }
        self.ports.gates.push(gate);
        let set = modes.tools();
        self.team.modes = Some(modes);
        self.common_set(&set)
    }

    /// Work items of tools that are given one by one, for example those of a registry file: with work items under
    /// control, a run uses the same ones. Default: separate ones.
    pub fn work_tools(mut self, work: WorkTools) -> Self {
        self.work = Some(work);
        self
    }

    /// Appends the working directory, its content, the platform and the date to the instructions of agents. Captured once
    /// per run. Default off.
    pub fn surroundings(mut self, folder: impl Into<PathBuf>) -> Self {
        self.team.folder = Some(folder.into());
        self
    }

    /// Tools that every agent has; those that a graph brings already are not there twice.
    fn common_set(mut self, set: &ToolSet) -> Self {
        for tool in set.tools() {
            if self.tools.iter().any(|known| known.tool_def().name == tool.tool_def().name) {
                self.common.push(tool.tool_def().name.clone());
            } else {
                self = self.common_tool(Arc::clone(tool));
            }
        }
        self
    }
}

impl SubagentSetup {
    /// The tools that sub-agents have: all but those that would start further ones.
    pub(crate) fn tools_of_subagents(tools: &[Arc<dyn DynTool>]) -> Vec<Arc<dyn DynTool>> {
        let starts_others =
            |tool: &&Arc<dyn DynTool>| SUBAGENT_TOOLS.contains(&tool.tool_def().name.as_str());
        tools.iter().filter(|tool| !starts_others(tool)).cloned().collect()
    }

    /// Modes of the agents.
    pub(crate) fn modes(&self) -> Option<&Modes> {
        self.modes.as_ref()
    }

    /// Adds the states of modes and work items.
    pub(crate) fn add_states(&self, work: Option<WorkTools>, ports: &mut Ports) {
        let modes = self.modes.clone().map(|modes| Arc::new(modes) as Arc<dyn Stateful>);
        let work = work.map(|work| Arc::new(work) as Arc<dyn Stateful>);
        ports.states.extend(modes.into_iter().chain(work));
    }

    /// Surroundings in the instructions of agents.
    pub(crate) fn surroundings(&self, clock: &Arc<dyn Clock>) -> Option<Surroundings> {
        let folder = self.folder.as_ref()?;
        Some(Surroundings::new(folder, Arc::clone(clock)))
    }

    /// Gives tools that wait for it a runner of sub-agents with what `ports` have.
    pub(crate) fn install(self, ports: &Ports, tools: Arc<dyn DynToolRegistry>) -> Option<Modes> {
        if !self.slots.is_empty() {
            let mut own = ports.for_child();
            own.tools = tools;
            own.checks = guardrails(ports).collect();
            let runner = TurnRunner::new(&own).without(SUBAGENT_TOOLS);
            let runner = self.listeners.into_iter().fold(runner, |runner, listen| listen(runner));
            let runner = Arc::new(runner);
            self.slots.iter().for_each(|slot| slot.fill(Arc::clone(&runner) as _));
        }
        self.modes
    }
}

/// The checks that sub-agents have: all but those of the end, which judge the run that a person asked for.
fn guardrails(ports: &Ports) -> impl Iterator<Item = Guarded<dyn DynCheck>> {
    let points = |check: &Guarded<dyn DynCheck>| check.guard().points.without(Points::END);
    let checks = ports.checks.iter().filter(move |check| !points(check).is_empty());
    checks.map(move |check| check.clone().at(points(check)))
}
