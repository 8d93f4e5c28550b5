//! Sub-agents of an entry, and the parts of a registry that the program connects.

use harness_diagnostics::Fields;

use super::bound::Registry;
use super::entry::{MAX_NAME, is_tool_name};
use crate::modes::Modes;
use crate::subagent::{RunnerSlot, Subagent};
use crate::work::WorkTools;

const KEYS: [&str; 7] =
    ["description", "instructions", "tools", "max_turns", "max_iterations", "max_tool_calls", "max_tokens"];

/// Maximum of a limit of an agent.
const MAX_LIMIT: u64 = 1_000_000_000;

const FORM: &str = "write `NAME: { description: …, instructions: … }` for each agent";

/// Reads the agents of an entry.
pub(super) fn read(fields: &Fields<'_>) -> Vec<Subagent> {
    if !fields.has("agents") {
        fields.missing("agents", FORM);
        return Vec::new();
    }
    let Some(agents) = fields.section("agents", FORM) else { return Vec::new() };
    if agents.keys().next().is_none() {
        fields.error("agents", "there are no agents", FORM);
    }
    agents.keys().filter_map(|name| agent(name, &agents)).collect()
}

fn agent(name: &str, agents: &Fields<'_>) -> Option<Subagent> {
    if !is_tool_name(name) {
        let hint = format!("use 1 to {MAX_NAME} letters, digits, `_` and `-`");
        agents.key_error(name, format!("invalid agent name `{name}`"), hint);
    }
    let fields = agents.section(name, FORM)?;
    fields.known(&KEYS);
    let description = fields.required("description", "describe for the model what the agent is good for");
    let instructions = fields.required("instructions", "write the agent's instructions");
    let mut agent = Subagent::new(name, description, instructions);
    if fields.has("tools") {
        agent.tools = Some(fields.texts("tools"));
    }
    let whole = |key: &str, default: u32| {
        let value = fields.whole(key, 1, MAX_LIMIT).and_then(|number| u32::try_from(number).ok());
        value.unwrap_or(default)
    };
    agent.max_turns = whole("max_turns", agent.max_turns);
    agent.max_iterations = whole("max_iterations", agent.max_iterations);
    agent.max_tool_calls = whole("max_tool_calls", agent.max_tool_calls);
    agent.max_tokens = fields.whole("max_tokens", 1, MAX_LIMIT).unwrap_or(agent.max_tokens);
    Some(agent)
}

/// Parts of the tools that the program has to connect.
#[derive(Default)]
pub(super) struct Wanted {
    pub(super) runner: Option<RunnerSlot>,
    pub(super) modes: Option<Modes>,
    pub(super) work: Option<WorkTools>,
}

impl Wanted {
    /// The slot for the runner of all sub-agents.
    pub(super) fn runner(&mut self) -> RunnerSlot {
        self.runner.get_or_insert_default().clone()
    }
}

impl Registry {
    /// The slot for the runner of the file's sub-agents; `None` if the file has none. Until it is filled,
    /// sub-agents fail.
    pub fn runner_slot(&self) -> Option<&RunnerSlot> {
        self.wanted.runner.as_ref()
    }

    /// The modes of the file; `None` if it has none. Only their gate denies calls, the tools do not.
    pub fn modes(&self) -> Option<&Modes> {
        self.wanted.modes.as_ref()
    }

    /// Work items of the file; `None` when it has none. `harness::Builder::work_tools` shares them with the control of
    /// runs.
    pub fn work_tools(&self) -> Option<&WorkTools> {
        self.wanted.work.as_ref()
    }
}
