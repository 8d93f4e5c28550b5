//! A public type of the libraries has a name of its own: `harness::x::Report` and `harness::y::Report` would be two things
//! of one name.

use std::collections::BTreeMap;

use super::tree::Tree;

/// Crates that the facade does not re-export.
const ABOVE: [&str; 5] =
    ["harness-acp/", "harness-cli/", "harness-conformance/", "harness-restate/", "harness-server/"];

/// Names that several crates still use. The list only shrinks. Types of written descriptors are named after their keys.
const SHARED: &[&str] = &[
    "Agent",
    "Budget",
    "Capture",
    "Change",
    "Child",
    "Condition",
    "Context",
    "Decision",
    "Difference",
    "Ending",
    "Entry",
    "Environment",
    "Evidence",
    "Execution",
    "Fault",
    "Found",
    "GateDecision",
    "Handoff",
    "Input",
    "Instructions",
    "Item",
    "Limits",
    "Metadata",
    "Mode",
    "Note",
    "OpenItem",
    "Origin",
    "Part",
    "Place",
    "Plan",
    "PolicyDecision",
    "Progress",
    "Reached",
    "Recalled",
    "Redactor",
    "Registry",
    "Report",
    "Retry",
    "RetryPolicy",
    "RunStatus",
    "Runtime",
    "Severity",
    "Shown",
    "Source",
    "Steering",
    "Stored",
    "Subject",
    "Summary",
    "Target",
    "Tool",
    "Totals",
    "Verdict",
    "Version",
];

/// Public types whose name exists elsewhere.
pub(super) fn problems(tree: &Tree) -> Vec<String> {
    let mut places: BTreeMap<&str, Vec<String>> = BTreeMap::new();
    for file in tree.files().iter().filter(|file| file.is_rust()) {
        let Some(path) = file.path.strip_prefix("crates/") else { continue };
        if !path.contains("/src/") || ABOVE.iter().any(|above| path.starts_with(above)) {
            continue;
        }
        for (number, line) in (1..).zip(file.text.lines()) {
            if let Some(name) = declared(line) {
                places.entry(name).or_default().push(format!("{}:{number}", file.path));
            }
        }
    }
    // A macro declares types without a name.
    places.retain(|name, places| !name.is_empty() && places.len() > 1 && !SHARED.contains(name));
    let shared = places.into_iter();
    shared.map(|(name, places)| format!("`{name}` is public more than once: {}", places.join(", "))).collect()
}

/// The name of the public type that a line declares.
fn declared(line: &str) -> Option<&str> {
    let kinds = ["pub struct ", "pub enum ", "pub trait ", "pub type "];
    let rest = kinds.iter().find_map(|kind| line.trim_start().strip_prefix(kind))?;
    rest.split(|c: char| !(c.is_alphanumeric() || c == '_')).next()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[track_caller]
    fn check(files: &[(&str, &str)], expected: &[&str]) {
        assert_eq!(problems(&Tree::of(files)), expected);
    }

    #[test]
    fn two_public_types_of_one_name_are_reported() {
        let one = ("crates/harness-flow/src/a.rs", "pub struct Herring;\n");
        check(
            &[one, ("crates/harness-tools/src/b.rs", "struct Herring;\npub(crate) enum Herring {}\n")],
            &[],
        );
        check(&[one, ("crates/harness-cli/src/b.rs", "pub struct Herring;\n")], &[]);
        let two = ("crates/harness-tools/src/b.rs", "\npub enum Herring<T> {}\n");
        let problem = "`Herring` is public more than once: crates/harness-flow/src/a.rs:1, crates/harness-tools/src/b.rs:2";
        check(&[one, two], &[problem]);
    }
}
