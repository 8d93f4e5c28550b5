//! The modules of `harness-core` in reading order: a module uses only those above it.

use std::collections::BTreeSet;

use super::tree::Tree;

const SOURCE: &str = "crates/harness-core/src/";

/// The modules, in reading order; those of `base` one by one.
const ORDER: &[&str] = &[
    "base",
    "time",
    "fault",
    "cancel",
    "twin",
    "wire",
    "display",
    "json",
    "object",
    "indent",
    "redact",
    "canonical",
    "stored",
    "schema",
    "ids",
    "clock",
    "origin",
    "message",
    "limits",
    "transcript",
    "outcome",
    "tool",
    "port",
    "decide",
    "event",
    "machine",
    "turn",
    "run",
    "driver",
    "testing",
];

/// Arrows from a module to one below it.
pub(super) fn problems(tree: &Tree) -> Vec<String> {
    let problem = |arrow: String| {
        format!(
            "{SOURCE}: the arrow `{arrow}` leads down the order of modules: turn it round or move what is used"
        )
    };
    down(tree).into_iter().map(problem).collect()
}

/// The arrows from a module to one below it, and modules that have no place.
fn down(tree: &Tree) -> BTreeSet<String> {
    let mut arrows = BTreeSet::new();
    for file in tree.files().iter().filter(|file| file.is_rust()) {
        let Some(rest) = file.path.strip_prefix(SOURCE) else { continue };
        let rest = rest.strip_prefix("base/").unwrap_or(rest);
        let from = rest.split('/').next().unwrap_or_default().trim_end_matches(".rs");
        if matches!(from, "lib" | "mod") {
            continue;
        }
        let Some(here) = place(from) else {
            arrows.insert(format!("{from} (not in the order)"));
            continue;
        };
        let code = file.text.split("#[cfg(test)]").next().unwrap_or_default();
        let lines = code.lines().filter(|line| !line.trim_start().starts_with("//"));
        for to in lines.flat_map(|line| line.split("crate::").skip(1)) {
            let to = to.split(|c: char| !(c.is_ascii_lowercase() || c == '_')).next().unwrap_or_default();
            if place(to).is_some_and(|below| below > here) {
                arrows.insert(format!("{from} {to}"));
            }
        }
    }
    arrows
}

fn place(module: &str) -> Option<usize> {
    ORDER.iter().position(|name| *name == module)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_arrow_leads_up() {
        let check = |source: &str| down(&Tree::of(&[("crates/harness-core/src/port/gate.rs", source)]));
        assert_eq!(check("use crate::message::Message;\n"), BTreeSet::new());
        assert_eq!(check("use crate::driver::Ports;\n"), BTreeSet::from(["port driver".to_owned()]));
        assert_eq!(check("/// [`crate::driver::Ports`]\n"), BTreeSet::new());
        assert_eq!(check("#[cfg(test)]\nuse crate::driver::Ports;\n"), BTreeSet::new());
        let other = down(&Tree::of(&[("crates/harness-core/src/new.rs", "")]));
        assert_eq!(other, BTreeSet::from(["new (not in the order)".to_owned()]));
    }
}
