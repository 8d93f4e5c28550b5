//! Agents, handoffs and tools that do nothing, or not what they seem to.

use harness_diagnostics::Severity;
use std::collections::{HashMap, HashSet, VecDeque};

use harness_diagnostics::document::{Entry, Kind, NodeId};

use super::finder::Finder;
use crate::number::is_blank;

pub(super) fn check(finder: &mut Finder<'_>, faulty: &dyn Fn(&[&str]) -> bool) {
    let is_object = |entry: &&Entry| finder.document.object(entry.value).is_some();
    let agents: Vec<&Entry> = finder.entries(&["agents"]).iter().filter(is_object).collect();
    for agent in &agents {
        model(finder, agent);
        repeated_tools(finder, agent.value);
        let handoffs = handoffs(finder, agent.value);
        self_and_repeated(finder, finder.key(agent), &handoffs);
    }
    if !faulty(&["descriptor.unknown_tool", "descriptor.wrong_type"]) {
        unused_tools(finder, &agents);
    }
    if !faulty(&["descriptor.unknown_handoff", "descriptor.unknown_entry_agent", "descriptor.wrong_type"]) {
        unreachable(finder, &agents);
    }
}

fn model(finder: &mut Finder<'_>, agent: &Entry) {
    let document = finder.document;
    let defaults = document.get(finder.root, "agent_defaults");
    let model = finder
        .present(agent.value, "model")
        .or_else(|| finder.present(defaults?, "model"))
        .map(|model| (model, document.kind(model)));
    let id = finder.key(agent);
    match model {
        Some((_, Kind::Text(text))) if !is_blank(document.resolve(text)) => {}
        Some((model, kind)) if !matches!(kind, Kind::Text(_)) => {
            let message = format!("`model` takes a string, not {}", kind.name());
            let mut diagnostic = finder.at("descriptor.wrong_type", message, model);
            diagnostic.severity = Severity::Error;
            finder.push(diagnostic);
        }
        Some(_) | None => {
            let warning = finder.at_key("descriptor.no_model", format!("agent `{id}` has no model"), agent);
            finder.push(
                warning.hint("set `model` on the agent or in `agent_defaults`, or name one for each run"),
            );
        }
    }
}

fn repeated_tools(finder: &mut Finder<'_>, agent: NodeId) {
    let mut first: HashMap<String, NodeId> = HashMap::new();
    for item in finder.items(agent, "tools") {
        let id = finder.document.display_text(*item);
        if let Some(first) = first.get(&id) {
            let message = format!("tool `{id}` is listed twice");
            let warning = finder.at("lint.duplicate_tool", message, *item);
            finder.push(warning.hint("remove it").relate(finder.document.place(*first), "listed first here"));
        } else {
            first.insert(id, *item);
        }
    }
}

struct Handoff<'a> {
    to: &'a str,
    /// The node of the target's id.
    node: NodeId,
    gate: Option<&'a str>,
}

fn handoffs<'a>(finder: &Finder<'a>, agent: NodeId) -> Vec<Handoff<'a>> {
    let document = finder.document;
    let handoff = |item: &NodeId| {
        let node = document.get(*item, "agent").unwrap_or(*item);
        let gate = document.get_path(*item, &["where", "context"]).and_then(|path| document.string(path));
        Some(Handoff { to: document.string(node)?, node, gate })
    };
    finder.items(agent, "handoffs").iter().filter_map(handoff).collect()
}

fn self_and_repeated(finder: &mut Finder<'_>, id: &str, handoffs: &[Handoff<'_>]) {
    for (at, handoff) in handoffs.iter().enumerate() {
        let Handoff { to, node, gate } = handoff;
        if *to == id {
            let warning = finder.at("lint.self_handoff", format!("agent `{id}` hands off to itself"), *node);
            finder.push(warning.hint("remove the handoff; an agent continues by answering or calling tools"));
        }
        // Two handoffs to one agent behind different gates mean: behind either of them.
        let earlier = handoffs.iter().take(at).find(|earlier| {
            earlier.to == *to && (earlier.gate == *gate || earlier.gate.is_none() || gate.is_none())
        });
        if let Some(earlier) = earlier {
            let message = format!("agent `{id}` hands off to `{to}` twice");
            let warning = finder.at("lint.duplicate_handoff", message, *node);
            let hint = "remove one of them; of several open handoffs to one agent the first is offered";
            finder.push(warning.hint(hint).relate(finder.document.place(earlier.node), "first here"));
        }
    }
}

fn unused_tools(finder: &mut Finder<'_>, agents: &[&Entry]) {
    let listed: HashSet<String> = agents
        .iter()
        .flat_map(|agent| finder.items(agent.value, "tools"))
        .map(|item| finder.document.display_text(*item))
        .collect();
    for entry in finder.entries(&["tools"]) {
        let id = finder.key(entry);
        if !listed.contains(id) {
            let warning =
                finder.at_key("lint.unused_tool", format!("tool `{id}` is listed by no agent"), entry);
            finder.push(warning.hint("add it to the `tools` of an agent, or remove it"));
        }
    }
}

fn unreachable(finder: &mut Finder<'_>, agents: &[&Entry]) {
    let document = finder.document;
    let entry = document.get_path(finder.root, &["runtime", "entry_agent"]);
    let Some(entry) = entry.and_then(|entry| document.string(entry)) else { return };
    let by_id: HashMap<&str, NodeId> = agents.iter().map(|agent| (finder.key(agent), agent.value)).collect();
    let mut reached = HashSet::from([entry]);
    let mut waiting = VecDeque::from([entry]);
    while let Some(id) = waiting.pop_front() {
        for handoff in by_id.get(id).map(|agent| handoffs(finder, *agent)).unwrap_or_default() {
            if reached.insert(handoff.to) {
                waiting.push_back(handoff.to);
            }
        }
    }
    for agent in agents {
        let id = finder.key(agent);
        if !reached.contains(id) {
            let message = format!("no handoffs lead from the entry agent `{entry}` to agent `{id}`");
            let warning = finder.at_key("lint.unreachable_agent", message, agent);
            finder.push(warning.hint("hand off to it from an agent that is reached, or remove it"));
        }
    }
}
