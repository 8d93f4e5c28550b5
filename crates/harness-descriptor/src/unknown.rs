//! Unknown keys.
//!
//! A misspelled key (`whre` for `where`) would open a gate, or leave an agent without instructions,
//! so a graph is not built from a descriptor that has one. The user's own keys start with `x-`, at
//! every level, and data of other programs belongs in the mapping `extensions`.

use std::collections::HashSet;

use harness_diagnostics::Place;
use harness_diagnostics::document::{Document, Entry, NodeId};
use harness_diagnostics::suggest::closest;

use crate::error::{DescriptorError, Fault};
use crate::field::{Expected, Field, Form};
use crate::known;

/// More are not listed.
const MAX_KEYS: usize = 100;

/// A key that nothing reads.
#[derive(Clone, Debug)]
pub(crate) struct UnknownKey {
    /// Owner of the key.
    pub(crate) owner: &'static str,
    pub(crate) key: String,
    pub(crate) place: Place,
    pub(crate) hint: String,
}

impl UnknownKey {
    /// Converts the key to an error.
    pub(crate) fn error(&self) -> DescriptorError {
        let fault = Fault::UnknownKey { owner: self.owner, key: self.key.clone() };
        DescriptorError::new(fault, Some(self.place.clone())).with_suggestion(self.hint.clone())
    }
}

/// The unknown keys of a descriptor as it is written, each once.
pub(crate) fn keys(document: &Document, root: NodeId) -> Vec<UnknownKey> {
    let mut finder = Finder { document, found: Vec::new(), seen: HashSet::new() };
    finder.descriptor(root);
    finder.found
}

/// Error of a value `extensions` that is not a mapping.
pub(crate) fn extensions(document: &Document, root: NodeId) -> Result<(), DescriptorError> {
    match document.get(root, "extensions") {
        Some(node) if document.object(node).is_none() => {
            let fault = Fault::WrongType { field: Field::Section("extensions"), expected: Expected::Object };
            Err(DescriptorError::new(fault, Some(document.place(node))))
        }
        Some(_) | None => Ok(()),
    }
}

struct Finder<'a> {
    document: &'a Document,
    found: Vec<UnknownKey>,
    /// Places of reported keys: a value that aliases repeat is visited again.
    seen: HashSet<(u32, u32)>,
}

impl Finder<'_> {
    fn descriptor(&mut self, root: NodeId) {
        let document = self.document;
        self.level(Some(root), "a descriptor", known::ROOT);
        self.level(document.get(root, "runtime"), "runtime", known::RUNTIME);
        self.level(document.get(root, "context"), "context", known::CONTEXT);
        for (path, name, keys) in [
            (&["context", "fields"][..], "a context field", known::FIELD),
            (&["context", "references"], "a context reference", known::REFERENCE),
            (&["tools"], "a tool", known::TOOL),
        ] {
            for entry in self.entries(root, path) {
                self.level(Some(entry.value), name, keys);
            }
        }
        if let Some(defaults) = document.get(root, "agent_defaults") {
            self.level(Some(defaults), "agent_defaults", known::DEFAULTS);
            self.instructions(defaults);
        }
        for entry in self.entries(root, &["agents"]) {
            self.level(Some(entry.value), "an agent", known::AGENT);
            self.instructions(entry.value);
            for handoff in self.items(entry.value, "handoffs") {
                self.level(Some(handoff), "a handoff", known::HANDOFF);
                self.gate(handoff);
            }
        }
    }

    fn instructions(&mut self, owner: NodeId) {
        for item in self.items(owner, Form::Sequence.key()) {
            self.level(Some(item), "an item of instructions_sequence", known::ITEM);
            self.gate(item);
        }
        for part in self.items(owner, Form::Inline.key()) {
            self.level(Some(part), "a part of instructions", known::PART);
            self.gate(part);
        }
    }

    fn gate(&mut self, owner: NodeId) {
        self.level(self.document.get(owner, "where"), "where", known::WHERE);
    }

    fn entries(&self, root: NodeId, path: &[&str]) -> Vec<Entry> {
        let section = self.document.get_path(root, path);
        section.and_then(|id| self.document.object(id)).unwrap_or_default().to_vec()
    }

    fn items(&self, owner: NodeId, key: &str) -> Vec<NodeId> {
        self.document.get(owner, key).and_then(|id| self.document.list(id)).unwrap_or_default().to_vec()
    }

    /// Looks at the keys of one mapping.
    fn level(&mut self, node: Option<NodeId>, owner: &'static str, keys: &[&'static str]) {
        let document = self.document;
        for entry in node.and_then(|node| document.object(node)).unwrap_or_default() {
            let key = document.resolve(&entry.key);
            let is_known = keys.contains(&key) || key.starts_with("x-");
            if is_known || self.found.len() >= MAX_KEYS {
                continue;
            }
            let at = (entry.key_bytes.start, entry.key_bytes.end);
            if self.seen.insert(at) {
                let (key, hint) = (key.to_owned(), hint(owner, key, keys));
                let place = document.place_of(entry.key_bytes);
                self.found.push(UnknownKey { owner, key, place, hint });
            }
        }
    }
}

fn hint(owner: &str, key: &str, keys: &[&'static str]) -> String {
    match closest(key, keys.iter().copied()) {
        Some(near) => format!("did you mean `{near}`?"),
        None if owner == "agent_defaults" && known::AGENT.contains(&key) => {
            format!("`{key}` has no default, set it on each agent")
        }
        None => "your own keys start with `x-`; data of other programs belongs in `extensions`".to_owned(),
    }
}
