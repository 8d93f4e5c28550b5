//! Which crate may depend on which: the picture in `ARCHITECTURE.md`.
//!
//! Crates stand in rows, and an arrow only leads to a lower row; within a row there is one, from control to host. What
//! serves a protocol depends on the facade alone, the program on these two. What only tests stands apart:
//! `harness-conformance` may look at every library below the servers and at the durable driver, `xtask` at none, and no crate of the product
//! depends on them. Dev dependencies obey the same arrows. Some crates must not know what their row permits
//! ([`BANS`]), and some see core's messages and ports but not its loop ([`BLIND`]).

use super::tree::Tree;
use crate::repo::{Dependency, Package};

/// The rows, lowest first.
const ROWS: &[&[&str]] = &[
    &["harness-core"],
    &["harness-diagnostics"],
    &["harness-control", "harness-record", "harness-host"],
    &[
        "harness-descriptor",
        "harness-memory",
        "harness-session",
        "harness-adapters",
        "harness-tools",
        "harness-runtime",
        "harness-flow",
        "harness-telemetry",
    ],
    &["harness-relay"],
    &[FACADE],
    &["harness-server", "harness-acp", "harness-restate"],
    &["harness-cli"],
];

const FACADE: &str = "harness";
const CONFORMANCE: &str = "harness-conformance";
const DURABLE: &str = "harness-restate";
const CHORES: &str = "xtask";

/// The one arrow within a row.
const WITHIN: &[(&str, &str)] = &[("harness-control", "harness-host")];

/// What a crate must not depend on outside of its tests, although its row permits it.
const BANS: &[(&str, &[&str])] = &[
    (
        "harness-core",
        &["reqwest", "hyper", "rusqlite", "rustix", "tempfile", "serde_yaml", "granit-parser", "rand"],
    ),
    ("harness-control", &["tokio"]),
    ("harness-runtime", &["reqwest", "hyper", "rustix", "tempfile"]),
    ("harness-relay", &["harness-descriptor"]),
];

/// Crates that must not know the loop, by the modules of core that are the loop.
const BLIND: &[&str] = &["harness-adapters", "harness-host"];
const LOOP: &[&str] = &["driver", "machine", "run", "turn"];

fn row(name: &str) -> Option<usize> {
    ROWS.iter().position(|row| row.contains(&name))
}

fn allowed(from: &str, to: &str) -> bool {
    let facade = row(FACADE);
    match (row(from), row(to)) {
        _ if WITHIN.contains(&(from, to)) => true,
        (Some(above), Some(below)) if Some(above) > facade => above > below && Some(below) >= facade,
        (Some(above), Some(below)) => above > below,
        (None, Some(_)) => from == CONFORMANCE && (row(to) <= facade || to == DURABLE),
        (_, None) => false,
    }
}

/// Every arrow between crates of the workspace that the picture does not have, and every use of what a crate must not
/// know.
pub(super) fn problems(packages: &[Package], tree: &Tree) -> Vec<String> {
    let known = |name: &str| row(name).is_some() || name == CONFORMANCE || name == CHORES;
    let lost = packages.iter().filter(|package| !known(&package.name));
    let lost = lost.map(|package| format!("{} has no row in xtask/src/tidy/arrows.rs", package.name));
    let own = |name: &str| packages.iter().any(|package| package.name == name);
    let arrows = packages.iter().flat_map(|package| package.dependencies.iter().map(move |to| (package, to)));
    let wrong = arrows.filter(|(from, to)| {
        own(&to.name) && to.name != from.name && !allowed(&from.name, &to.name) || banned(&from.name, to)
    });
    let wrong = wrong.map(|(from, to)| {
        let kind = to.kind.as_deref().map(|kind| format!(" ({kind})")).unwrap_or_default();
        format!("{} must not depend on {}{kind}", from.name, to.name)
    });
    lost.chain(wrong).chain(seen_loops(tree)).collect()
}

fn banned(from: &str, to: &Dependency) -> bool {
    to.kind.as_deref() != Some("dev")
        && BANS.iter().any(|(name, bans)| *name == from && bans.contains(&to.name.as_str()))
}

/// Files of crates that must not know the loop, and use it.
fn seen_loops(tree: &Tree) -> Vec<String> {
    let mut problems = Vec::new();
    for file in tree.files().iter().filter(|file| file.is_rust()) {
        if !BLIND.iter().any(|name| file.path.starts_with(&format!("crates/{name}/src/"))) {
            continue;
        }
        let code = file.text.split("#[cfg(test)]").next().unwrap_or_default();
        let lines = code.lines().filter(|line| !line.trim_start().starts_with("//"));
        let used = lines.flat_map(|line| line.split("harness_core::").skip(1));
        let names =
            used.filter_map(|path| path.split(|c: char| !(c.is_ascii_lowercase() || c == '_')).next());
        problems.extend(
            names.filter(|name| LOOP.contains(name)).map(|name| {
                format!("{}: must not know the loop, and uses `harness_core::{name}`", file.path)
            }),
        );
    }
    problems
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A workspace of all crates, plus one arrow.
    #[track_caller]
    fn check_kind(from: &str, to: &str, kind: &str, expected: &[&str]) {
        let package = |name: &str| {
            let arrow =
                if name == from { format!(r#"[{{"name":"{to}","kind":{kind}}}]"#) } else { "[]".into() };
            let text = format!(
                r#"{{"name":"{name}","features":{{}},"dependencies":{arrow},"publish":[],"manifest_path":""}}"#
            );
            serde_json::from_str::<Package>(&text).unwrap()
        };
        let names = ROWS.iter().copied().flatten().chain(&[CONFORMANCE, CHORES]);
        let packages: Vec<Package> = names.map(|name| package(name)).collect();
        assert_eq!(problems(&packages, &Tree::of(&[])), expected);
    }

    #[track_caller]
    fn fine(from: &str, to: &str) {
        check_kind(from, to, "null", &[]);
    }

    #[track_caller]
    fn refused(from: &str, to: &str) {
        check_kind(from, to, "null", &[&format!("{from} must not depend on {to}")]);
    }

    #[test]
    fn arrows_to_lower_rows_are_fine() {
        fine("harness-tools", "harness-core");
        fine("harness-tools", "harness-host");
        fine("harness-session", "harness-record");
        fine("harness-relay", "harness-adapters");
        fine("harness-control", "harness-host");
        fine(FACADE, "harness-relay");
        fine(FACADE, "harness-core");
        fine("harness-acp", FACADE);
        fine("harness-cli", FACADE);
        fine("harness-cli", "harness-acp");
        fine(CONFORMANCE, FACADE);
        fine(CONFORMANCE, DURABLE);
        fine("harness-core", "serde");
        fine("harness-core", "harness-core");
    }

    #[test]
    fn no_arrow_points_up_or_sideways() {
        refused("harness-core", "harness-host");
        refused("harness-host", "harness-control");
        refused("harness-record", "harness-host");
        refused("harness-record", "harness-session");
        refused("harness-tools", "harness-session");
        refused("harness-flow", "harness-runtime");
        refused("harness-adapters", "harness-relay");
        refused("harness-tools", FACADE);
        refused(FACADE, "harness-cli");
        check_kind(
            "harness-tools",
            "harness-session",
            "\"dev\"",
            &["harness-tools must not depend on harness-session (dev)"],
        );
    }

    #[test]
    fn nobody_reaches_through_the_facade() {
        refused("harness-acp", "harness-core");
        refused("harness-acp", "harness-server");
        refused(FACADE, "harness-acp");
        refused("harness-cli", "harness-core");
        refused("harness-cli", "harness-session");
        refused("harness-cli", CHORES);
        refused(FACADE, CONFORMANCE);
        refused(CONFORMANCE, "harness-server");
        refused(CHORES, "harness-core");
    }

    #[test]
    fn what_a_crate_must_not_know_is_refused() {
        refused("harness-relay", "harness-descriptor");
        refused("harness-control", "tokio");
        check_kind("harness-control", "tokio", "\"dev\"", &[]);
        refused("harness-core", "reqwest");
    }

    #[test]
    fn a_crate_without_a_row_is_named() {
        let text = r#"{"name":"new","features":{},"dependencies":[],"publish":[],"manifest_path":""}"#;
        let package = serde_json::from_str::<Package>(text).unwrap();
        assert_eq!(problems(&[package], &Tree::of(&[])), ["new has no row in xtask/src/tidy/arrows.rs"]);
    }

    #[test]
    fn an_adapter_does_not_see_the_loop() {
        let check = |source: &str| seen_loops(&Tree::of(&[("crates/harness-adapters/src/a.rs", source)]));
        assert_eq!(check("use harness_core::port::Model;\n"), Vec::<String>::new());
        assert_eq!(check("/// [`harness_core::run`]\n"), Vec::<String>::new());
        assert_eq!(
            check("use harness_core::driver::drive;\n"),
            ["crates/harness-adapters/src/a.rs: must not know the loop, and uses `harness_core::driver`"]
        );
    }
}
