//! Values of the wrong type where nothing but the eye would notice.

use harness_diagnostics::document::{Kind, NodeId};
use harness_diagnostics::suggest::did_you_mean;

use super::finder::Finder;
use crate::known;

pub(super) fn check(finder: &mut Finder<'_>) {
    version(finder);
    renamed(finder);
    for entry in finder.entries(&["agents"]) {
        for key in ["name", "handoffDescription"] {
            let value = finder.present(entry.value, key);
            wrong_type(finder, value, key, "a string", |kind| matches!(kind, Kind::Text(_)));
        }
    }
    for path in [&["context", "fields"], &["context", "references"]] {
        for entry in finder.entries(path) {
            for flag in ["optional", "mutable", "redact"] {
                let value = finder.document.get(entry.value, flag);
                wrong_type(finder, value, flag, "`true` or `false`", |kind| matches!(kind, Kind::Bool(_)));
            }
            type_name(finder, entry.value);
        }
    }
    for entry in finder.entries(&["context", "fields"]) {
        default(finder, entry.value);
    }
}

fn version(finder: &mut Finder<'_>) {
    let Some(node) = finder.document.get(finder.root, "descriptor_version") else { return };
    if finder.document.string(node) != Some(known::VERSION) {
        let message =
            "descriptor_version names no version that is known; the descriptor is read all the same";
        let warning = finder.at("lint.descriptor_version", message, node);
        finder.push(warning.hint(format!("write `{}`, or leave it out", known::VERSION)));
    }
}

/// The alias reads as turns and limits iterations.
fn renamed(finder: &mut Finder<'_>) {
    let Some(runtime) = finder.document.get(finder.root, "runtime") else { return };
    let entries = finder.document.object(runtime).unwrap_or_default();
    let Some(entry) = entries.iter().find(|entry| finder.key(entry) == "max_turns") else { return };
    let message = "`max_turns` limits iterations, which are model calls, and is called `max_iterations` now";
    let warning = finder.at_key("lint.renamed_key", message, entry);
    finder.push(warning.hint("write `max_iterations`; the old key is still read"));
}

fn wrong_type(
    finder: &mut Finder<'_>,
    value: Option<NodeId>,
    key: &str,
    expected: &str,
    fits: impl FnOnce(&Kind) -> bool,
) {
    if let Some(value) = value
        && !fits(finder.document.kind(value))
    {
        let found = finder.document.kind(value).name();
        let message = format!("`{key}` takes {expected}, not {found}");
        finder.push(finder.at("lint.value_type", message, value));
    }
}

fn type_name(finder: &mut Finder<'_>, owner: NodeId) {
    let Some(node) = finder.document.get(owner, "type") else { return };
    let Some(name) = finder.document.string(node) else {
        return wrong_type(finder, Some(node), "type", "a string", |_| false);
    };
    if !known::TYPES.contains(&name) {
        let warning = finder.at("lint.type_name", format!("unknown type `{name}`"), node);
        let short = known::TYPES.iter().find(|known| name.len() > 2 && known.starts_with(name));
        let near = short.map(|known| format!("did you mean `{known}`?"));
        let near = near.or_else(|| did_you_mean(name, known::TYPES.iter().copied()));
        finder
            .push(warning.hint(near.unwrap_or_else(|| format!("the types are {}", known::TYPES.join(", ")))));
    }
}

/// The default of a field: of its type, and a placeholder only as a whole.
fn default(finder: &mut Finder<'_>, field: NodeId) {
    let document = finder.document;
    let Some(node) = document.get(field, "default") else { return };
    if let Some(text) = document.string(node) {
        let spaceless: String = text.split_whitespace().collect();
        for placeholder in ["{{input.message}}", "{{runtime.now_iso}}"] {
            if text == placeholder {
                return;
            }
            if spaceless.contains(placeholder) {
                let message = format!("a default is filled in only if it is exactly `{placeholder}`");
                let warning = finder.at("lint.default_placeholder", message, node);
                return finder.push(warning.hint("without anything before, behind or between"));
            }
        }
    }
    let Some(name) = document.get(field, "type").and_then(|name| document.string(name)) else { return };
    let kind = document.kind(node);
    let fits = match name {
        "boolean" => matches!(kind, Kind::Bool(_)),
        "number" => matches!(kind, Kind::Number(_)),
        "integer" => matches!(kind, Kind::Number(number) if number.fract() == 0.0),
        "string" => matches!(kind, Kind::Text(_) | Kind::Instant(_)),
        "object" => matches!(kind, Kind::Map(_)),
        "array" | "list" => matches!(kind, Kind::List(_)),
        _ => true,
    };
    if !fits && !matches!(kind, Kind::Null) {
        let message = format!("this default is {}, but the field's type is {name}", finder.kind_name(node));
        finder.push(finder.at("lint.default_type", message, node));
    }
}
