//! Input and output of the lints.

use harness_diagnostics::{Diagnostic, Severity};
use std::collections::HashSet;
use std::ops::Range;
use std::sync::Arc;

use harness_diagnostics::Place;
use harness_diagnostics::document::{Document, Entry, Kind, NodeId};

/// Maximum number of warnings of a descriptor.
const MAX_WARNINGS: usize = 200;

/// The code of a warning, and the file and bytes it is about.
type Seen = (&'static str, Option<(Arc<str>, Range<usize>)>);

/// Warnings that were found, each once.
#[derive(Debug, Default)]
pub(in crate::check) struct Found {
    warnings: Vec<Diagnostic>,
    seen: HashSet<Seen>,
    pub(in crate::check) truncated: bool,
}

impl Found {
    pub(in crate::check) fn into_warnings(self) -> Vec<Diagnostic> {
        self.warnings
    }

    /// Adds a warning. A value that aliases repeat is reported once, where it is defined.
    fn push(&mut self, diagnostic: Diagnostic) {
        let place = diagnostic.place.as_ref().map(|place| (Arc::clone(&place.file), place.bytes.clone()));
        if self.warnings.len() >= MAX_WARNINGS {
            self.truncated = true;
            return;
        }
        if self.seen.insert((diagnostic.code, place)) {
            self.warnings.push(diagnostic);
        }
    }
}

/// A descriptor that is looked at, and what was found.
pub(super) struct Finder<'a> {
    pub(super) document: &'a Document,
    pub(super) root: NodeId,
    pub(super) found: &'a mut Found,
}

impl<'a> Finder<'a> {
    pub(super) fn push(&mut self, diagnostic: Diagnostic) {
        self.found.push(diagnostic);
    }

    /// A warning about a value.
    pub(super) fn at(&self, code: &'static str, message: impl Into<String>, node: NodeId) -> Diagnostic {
        Diagnostic::new(Severity::Warning, code, message).at(self.document.place(node))
    }

    /// A warning about a key.
    pub(super) fn at_key(&self, code: &'static str, message: impl Into<String>, entry: &Entry) -> Diagnostic {
        Diagnostic::new(Severity::Warning, code, message).at(self.key_place(entry))
    }

    pub(super) fn key_place(&self, entry: &Entry) -> Place {
        self.document.place_of(entry.key_bytes)
    }

    /// The entries of the mapping at a path of keys, none if there is no mapping.
    pub(super) fn entries(&self, path: &[&str]) -> &'a [Entry] {
        let section = self.document.get_path(self.root, path);
        section.and_then(|id| self.document.object(id)).unwrap_or_default()
    }

    pub(super) fn key(&self, entry: &'a Entry) -> &'a str {
        self.document.resolve(&entry.key)
    }

    /// The items of a list under a key, none if there is no list.
    pub(super) fn items(&self, owner: NodeId, key: &str) -> &'a [NodeId] {
        self.document.get(owner, key).and_then(|id| self.document.list(id)).unwrap_or_default()
    }

    /// Value of a key, unless it is missing or `null`.
    pub(super) fn present(&self, owner: NodeId, key: &str) -> Option<NodeId> {
        self.document.get(owner, key).filter(|id| !self.document.is_null(*id))
    }

    /// Kind of a value for messages; fractions and whole numbers are different kinds.
    pub(super) fn kind_name(&self, node: NodeId) -> &'static str {
        let kind = self.document.kind(node);
        if matches!(kind, Kind::Number(number) if number.fract() != 0.0) { "a fraction" } else { kind.name() }
    }

    /// `agent_defaults` and the agents, as far as they are mappings.
    pub(super) fn owners(&self) -> Vec<NodeId> {
        let defaults = self.document.get(self.root, "agent_defaults");
        let agents = self.entries(&["agents"]).iter().map(|entry| entry.value);
        defaults.into_iter().chain(agents).filter(|id| self.document.object(*id).is_some()).collect()
    }
}
