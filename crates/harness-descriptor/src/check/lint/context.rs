//! Context paths that are declared or set, but not read.

use std::collections::{HashMap, HashSet};

use harness_diagnostics::document::{Document, Entry, Kind, NodeId};

use super::finder::Finder;
use crate::field::{Form, PathUse};
use crate::graph::{ContextPath, Placeholder, placeholders};

/// Errors that skip texts or gates, so that the paths they read are unknown.
const LOSES_READS: &[&str] = &[
    "descriptor.bad_context_path",
    "descriptor.exclusive_forms",
    "descriptor.gate_type",
    "descriptor.inline_beside_files",
    "descriptor.io",
    "descriptor.item_kinds",
    "descriptor.outside_root",
    "descriptor.path_rule",
    "descriptor.prompt_map_required",
    "descriptor.prompt_missing",
    "descriptor.undeclared",
    "descriptor.unknown_part",
    "descriptor.wrong_type",
];

pub(super) fn check(finder: &mut Finder<'_>, faulty: &dyn Fn(&[&str]) -> bool) {
    let declared = declared(finder);
    let reads = Reads::of(finder);
    for (path, entry) in &declared {
        if reads.gates.contains(path.as_str()) && is_optional(finder.document, entry.value) {
            let message =
                format!("a gate reads `{path}`, but a gate fails where an optional value is missing");
            let warning = finder.at_key("lint.optional_gate", message, entry);
            finder.push(warning.hint("give it a default under `context.fields`, and leave `optional` out"));
        }
    }
    if !faulty(LOSES_READS) {
        for (path, entry) in &declared {
            if !reads.gates.contains(path.as_str()) && !reads.texts.contains(path.as_str()) {
                let message =
                    format!("context path `{path}` is declared, but read by no instructions and no gate");
                finder.push(
                    finder.at_key("lint.unused_reference", message, entry).hint("remove it, or read it"),
                );
            }
        }
        fields(finder, &declared);
    }
    field_paths(finder);
}

/// The declarations that count, in order.
fn declared<'a>(finder: &mut Finder<'a>) -> Vec<(ContextPath, &'a Entry)> {
    let mut declared: Vec<(ContextPath, &Entry)> = Vec::new();
    let mut position: HashMap<ContextPath, usize> = HashMap::new();
    for entry in finder.entries(&["context", "references"]) {
        if matches!(finder.document.kind(entry.value), Kind::Bool(false)) {
            continue;
        }
        let Ok(path) = ContextPath::parse(finder.key(entry), || PathUse::Reference) else { continue };
        if let Some((_, earlier)) = position.get(&path).and_then(|at| declared.get_mut(*at)) {
            let message = format!("context path `{path}` is declared twice; this declaration counts");
            let warning = finder.at_key("lint.duplicate_reference", message, entry);
            let first = finder.key_place(earlier);
            finder.push(warning.hint("remove one of them").relate(first, "declared first here"));
            *earlier = entry;
        } else {
            position.insert(path.clone(), declared.len());
            declared.push((path, entry));
        }
    }
    declared
}

fn is_optional(document: &Document, reference: NodeId) -> bool {
    let optional = document.get(reference, "optional");
    optional.is_some_and(|optional| matches!(document.kind(optional), Kind::Bool(true)))
}

/// The context paths that instructions and gates read, in normal form.
#[derive(Default)]
struct Reads {
    texts: HashSet<String>,
    gates: HashSet<String>,
}

impl Reads {
    fn of(finder: &Finder<'_>) -> Self {
        let mut reads = Self::default();
        let document = finder.document;
        let defaults = document.get(finder.root, "agent_defaults");
        let default = defaults.and_then(|defaults| document.get(defaults, Form::Inline.key()));
        for agent in finder.entries(&["agents"]) {
            let own = finder.present(agent.value, Form::Inline.key());
            if let Some(instructions) = own.or(default) {
                reads.instructions(document, instructions);
            }
            for handoff in finder.items(agent.value, "handoffs") {
                reads.gate(document, *handoff);
            }
        }
        reads
    }

    fn instructions(&mut self, document: &Document, instructions: NodeId) {
        if let Some(text) = document.string(instructions) {
            self.text(text);
        }
        for part in document.list(instructions).unwrap_or_default() {
            let text = document.get(*part, "text").and_then(|text| document.string(text));
            self.text(text.unwrap_or_default());
            self.gate(document, *part);
        }
    }

    fn text(&mut self, text: &str) {
        self.texts.extend(placeholders(text).filter_map(|Placeholder { path, .. }| normal(text.get(path)?)));
    }

    fn gate(&mut self, document: &Document, owner: NodeId) {
        let path = document.get_path(owner, &["where", "context"]);
        self.gates.extend(path.and_then(|path| normal(document.string(path)?)));
    }
}

fn normal(path: &str) -> Option<String> {
    ContextPath::parse(path, || PathUse::Reference).ok().map(|path| path.as_str().to_owned())
}

/// Fields that no declared path reads, whole or in part.
fn fields(finder: &mut Finder<'_>, declared: &[(ContextPath, &Entry)]) {
    for entry in finder.entries(&["context", "fields"]) {
        let field = plain(finder.key(entry));
        let is_read = declared.iter().any(|(path, _)| {
            let path = path.as_str();
            path == field || is_below(path, &field) || is_below(&field, path)
        });
        if !is_read && !field.is_empty() && !is_input(finder.document, entry.value) {
            let message = format!(
                "context field `{field}` is declared by no reference, so no text and no gate reads it"
            );
            let hint = "declare it under `context.references` and read it, or leave it if only tools use it";
            finder.push(finder.at_key("lint.unused_field", message, entry).hint(hint));
        }
    }
}

/// Whether a field records the message or the time of a run, of which tools make use.
fn is_input(document: &Document, field: NodeId) -> bool {
    let default = document.get(field, "default").and_then(|default| document.string(default));
    matches!(default, Some("{{input.message}}" | "{{runtime.now_iso}}"))
}

/// A field's path without its empty segments; fields are not trimmed as references are.
fn plain(key: &str) -> String {
    key.split('.').filter(|segment| !segment.is_empty()).collect::<Vec<_>>().join(".")
}

fn is_below(path: &str, parent: &str) -> bool {
    path.strip_prefix(parent).is_some_and(|rest| rest.starts_with('.'))
}

/// Fields whose path no placeholder and no gate can name.
fn field_paths(finder: &mut Finder<'_>) {
    for entry in finder.entries(&["context", "fields"]) {
        let field = plain(finder.key(entry));
        if !field.is_empty() && normal(&field).is_none_or(|normal| normal != field) {
            let message = format!("no placeholder and no gate can read the context field `{field}`");
            let hint = "use letters, digits, `_` and `-`, with dots between segments";
            finder.push(finder.at_key("lint.field_path", message, entry).hint(hint));
        }
    }
}
