//! Keys that nothing reads.

use super::finder::Finder;
use super::known;
use crate::check::suggest::closest;
use crate::document::NodeId;
use crate::field::Form;

const CODE: &str = "lint.unknown_key";

pub(super) fn check(finder: &mut Finder<'_>, compat: bool) {
    let document = finder.document;
    level(finder, Some(finder.root), "a descriptor", if compat { known::ROOT_000 } else { known::ROOT });
    let runtime = if compat { known::RUNTIME_000 } else { known::RUNTIME };
    level(finder, document.get(finder.root, "runtime"), "runtime", runtime);
    level(finder, document.get(finder.root, "context"), "context", known::CONTEXT);
    for (path, name, keys) in [
        (&["context", "fields"][..], "a context field", known::FIELD),
        (&["context", "references"], "a context reference", known::REFERENCE),
        (&["tools"], "a tool", known::TOOL),
    ] {
        for entry in finder.entries(path) {
            level(finder, Some(entry.value), name, keys);
        }
    }
    if let Some(defaults) = document.get(finder.root, "agent_defaults") {
        level(finder, Some(defaults), "agent_defaults", known::DEFAULTS);
        instructions(finder, defaults);
    }
    for entry in finder.entries(&["agents"]) {
        level(finder, Some(entry.value), "an agent", known::AGENT);
        instructions(finder, entry.value);
        for handoff in finder.items(entry.value, "handoffs") {
            level(finder, Some(*handoff), "a handoff", known::HANDOFF);
            gate(finder, *handoff);
        }
    }
}

fn instructions(finder: &mut Finder<'_>, owner: NodeId) {
    for item in finder.items(owner, Form::Sequence.key()) {
        level(finder, Some(*item), "an item of instructions_sequence", known::ITEM);
        gate(finder, *item);
    }
    for part in finder.items(owner, Form::Inline.key()) {
        level(finder, Some(*part), "a part of instructions", known::PART);
        gate(finder, *part);
    }
}

fn gate(finder: &mut Finder<'_>, owner: NodeId) {
    level(finder, finder.document.get(owner, "where"), "where", known::WHERE);
}

/// Looks at the keys of one mapping. Keys that begin with `x-` are notes.
fn level(finder: &mut Finder<'_>, node: Option<NodeId>, name: &str, keys: &[&'static str]) {
    for entry in node.and_then(|node| finder.document.object(node)).unwrap_or_default() {
        let key = finder.key(entry);
        if keys.contains(&key) || key.starts_with("x-") {
            continue;
        }
        let warning = finder.at_key(CODE, format!("{name} has no key `{key}`, so nothing reads it"), entry);
        let hint = match closest(key, keys.iter().copied()) {
            Some(near) => format!("did you mean `{near}`?"),
            None if name == "agent_defaults" && known::AGENT.contains(&key) => {
                format!("`{key}` has no default, set it on each agent")
            }
            None => "a key that begins with `x-` is taken for a note of yours".to_owned(),
        };
        finder.push(warning.hint(hint));
    }
}
