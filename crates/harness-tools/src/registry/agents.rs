//! Sub-agents of an entry, and what of a registry the program itself must know.

use super::bound::Registry;
use super::entry::{Fields, MAX_NAME, child, is_name_char, unknown_keys};
use super::faults::Faults;
use super::yaml::{Node, Step};
use crate::modes::Modes;
use crate::subagent::{RunnerSlot, Subagent};
use crate::work::WorkTools;

const KEYS: [&str; 7] =
    ["description", "instructions", "tools", "max_turns", "max_iterations", "max_tool_calls", "max_tokens"];

/// The most that a number of an agent may be.
const MOST: u64 = 1_000_000_000;

const FORM: &str = "write `NAME: { description: …, instructions: … }` for each agent";

/// Reads the agents of the entry at `path`.
pub(super) fn read(entries: &[(String, Node)], path: &[Step], faults: &mut Faults<'_>) -> Vec<Subagent> {
    let at = child(path, "agents");
    let Some((_, node)) = entries.iter().find(|(key, _)| key == "agents") else {
        faults.key(path, "`agents` is missing", Some(FORM.to_owned()));
        return Vec::new();
    };
    let Some(agents) = node.as_map().filter(|agents| !agents.is_empty()) else {
        faults.value(
            &at,
            format!("expected a mapping of agents, found {}", node.kind()),
            Some(FORM.to_owned()),
        );
        return Vec::new();
    };
    agents.iter().filter_map(|(name, node)| agent(name, node, &child(&at, name), faults)).collect()
}

fn agent(name: &str, node: &Node, path: &[Step], faults: &mut Faults<'_>) -> Option<Subagent> {
    if name.is_empty() || name.len() > MAX_NAME || !name.chars().all(is_name_char) {
        let hint = format!("use 1 to {MAX_NAME} letters, digits, `_` and `-`");
        faults.key(path, format!("`{name}` is no name that models can write"), Some(hint));
    }
    let Some(keys) = node.as_map() else {
        faults.value(path, format!("expected a mapping, found {}", node.kind()), Some(FORM.to_owned()));
        return None;
    };
    unknown_keys(keys, &KEYS, path, faults);
    let mut fields = Fields::new(keys, path, faults);
    let description = fields.required("description", "say for the model what the agent is good for");
    let instructions = fields.required("instructions", "write the agent's instructions");
    let mut agent = Subagent::new(name, description, instructions);
    if fields.get("tools").is_some() {
        agent.tools = Some(fields.texts("tools"));
    }
    let mut whole = |key: &str, default: u32| {
        let value = fields.whole(key, 1, MOST).and_then(|number| u32::try_from(number).ok());
        value.unwrap_or(default)
    };
    agent.max_turns = whole("max_turns", agent.max_turns);
    agent.max_iterations = whole("max_iterations", agent.max_iterations);
    agent.max_tool_calls = whole("max_tool_calls", agent.max_tool_calls);
    agent.max_tokens = fields.whole("max_tokens", 1, MOST).unwrap_or(agent.max_tokens);
    Some(agent)
}

/// What the entries of a file ask of the program that uses their tools.
#[derive(Default)]
pub(super) struct Wanted {
    pub(super) runner: Option<RunnerSlot>,
    pub(super) modes: Option<Modes>,
    pub(super) work: Option<WorkTools>,
}

impl Wanted {
    /// The place of the runner of all sub-agents.
    pub(super) fn runner(&mut self) -> RunnerSlot {
        self.runner.get_or_insert_default().clone()
    }
}

impl Registry {
    /// The place for who runs the sub-agents of the file; `None` when it has none. Until it is filled they
    /// fail.
    pub fn runner_slot(&self) -> Option<&RunnerSlot> {
        self.wanted.runner.as_ref()
    }

    /// The modes of the file; `None` when it has none. The tools alone forbid nothing: that takes their gate.
    pub fn modes(&self) -> Option<&Modes> {
        self.wanted.modes.as_ref()
    }

    /// Work items of the file; `None` when it has none. `harness::Builder::work_tools` shares them with the control of
    /// runs.
    pub fn work_tools(&self) -> Option<&WorkTools> {
        self.wanted.work.as_ref()
    }
}
