//! Which crate may depend on which: the house of `ARCHITECTURE.md`.
//!
//! Core and the leaves depend on no crate of the workspace, a sibling on core and leaves alone, the
//! facade on core and its siblings, what serves a protocol on the facade, the program on these two. What
//! only tests stands apart: `harness-conformance` may look at every library below the servers, `xtask` at none, and no
//! crate of the product depends on them. Dev dependencies obey the same arrows.

use crate::repo::Package;

const CORE: &str = "harness-core";
/// Crates that know nothing of the others and that siblings share.
const LEAVES: &[&str] = &["harness-process"];
const FACADE: &str = "harness";
/// Crates that serve the facade's threads over a protocol.
const SERVERS: &[&str] = &["harness-acp", "harness-server"];
const PROGRAM: &str = "harness-cli";
const CONFORMANCE: &str = "harness-conformance";
const CHORES: &str = "xtask";

/// The storeys, lowest first; an arrow may only point to a lower one.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Storey {
    Leaf,
    Core,
    Sibling,
    Facade,
    Server,
    Program,
    Conformance,
    Chores,
}

fn storey(name: &str) -> Storey {
    match name {
        CORE => Storey::Core,
        _ if LEAVES.contains(&name) => Storey::Leaf,
        FACADE => Storey::Facade,
        _ if SERVERS.contains(&name) => Storey::Server,
        PROGRAM => Storey::Program,
        CONFORMANCE => Storey::Conformance,
        CHORES => Storey::Chores,
        _ => Storey::Sibling,
    }
}

fn allowed(from: Storey, to: Storey) -> bool {
    match from {
        Storey::Leaf | Storey::Core | Storey::Chores => false,
        Storey::Sibling => matches!(to, Storey::Leaf | Storey::Core),
        Storey::Facade => matches!(to, Storey::Core | Storey::Sibling),
        Storey::Server => to == Storey::Facade,
        Storey::Program => matches!(to, Storey::Facade | Storey::Server),
        Storey::Conformance => matches!(to, Storey::Core | Storey::Sibling | Storey::Facade),
    }
}

/// Every arrow between crates of the workspace that the house does not have.
pub(super) fn problems(packages: &[Package]) -> Vec<String> {
    let mut problems = Vec::new();
    for from in packages {
        let own = |name: &str| packages.iter().any(|p| p.name == name);
        for to in from.dependencies.iter().filter(|d| own(&d.name) && d.name != from.name) {
            if !allowed(storey(&from.name), storey(&to.name)) {
                let kind = to.kind.as_deref().map(|kind| format!(" ({kind})")).unwrap_or_default();
                problems.push(format!("{} must not depend on {}{kind}", from.name, to.name));
            }
        }
    }
    problems
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A workspace of core, a leaf, two siblings, facade, a server, program and chores, plus one arrow.
    #[track_caller]
    fn check(from: &str, to: &str, expected: &[&str]) {
        let names = [
            CORE,
            "harness-process",
            "harness-tools",
            "harness-session",
            FACADE,
            "harness-acp",
            PROGRAM,
            CONFORMANCE,
            CHORES,
        ];
        let package = |name: &str| {
            let arrow =
                if name == from { format!(r#"[{{"name":"{to}","kind":null}}]"#) } else { "[]".into() };
            let text = format!(
                r#"{{"name":"{name}","features":{{}},"dependencies":{arrow},"publish":[],"manifest_path":""}}"#
            );
            serde_json::from_str::<Package>(&text).unwrap()
        };
        assert_eq!(problems(&names.map(package)), expected);
    }

    #[test]
    fn arrows_of_the_house_are_fine() {
        check("harness-tools", CORE, &[]);
        check("harness-tools", "harness-process", &[]);
        check(FACADE, "harness-tools", &[]);
        check(FACADE, CORE, &[]);
        check("harness-acp", FACADE, &[]);
        check(PROGRAM, FACADE, &[]);
        check(PROGRAM, "harness-acp", &[]);
        check(CONFORMANCE, FACADE, &[]);
        check(CORE, "serde", &[]);
        check(CORE, CORE, &[]);
    }

    #[test]
    fn no_arrow_points_up_or_sideways() {
        check(CORE, "harness-process", &["harness-core must not depend on harness-process"]);
        check("harness-process", CORE, &["harness-process must not depend on harness-core"]);
        check(FACADE, "harness-process", &["harness must not depend on harness-process"]);
        check(CORE, "harness-tools", &["harness-core must not depend on harness-tools"]);
        check("harness-tools", "harness-session", &["harness-tools must not depend on harness-session"]);
        check("harness-tools", FACADE, &["harness-tools must not depend on harness"]);
        check(FACADE, PROGRAM, &["harness must not depend on harness-cli"]);
    }

    #[test]
    fn nobody_reaches_through_the_facade() {
        check("harness-acp", CORE, &["harness-acp must not depend on harness-core"]);
        check(FACADE, "harness-acp", &["harness must not depend on harness-acp"]);
        check(PROGRAM, CORE, &["harness-cli must not depend on harness-core"]);
        check(PROGRAM, "harness-session", &["harness-cli must not depend on harness-session"]);
        check(PROGRAM, CHORES, &["harness-cli must not depend on xtask"]);
        check(FACADE, CONFORMANCE, &["harness must not depend on harness-conformance"]);
        check(CHORES, CORE, &["xtask must not depend on harness-core"]);
    }
}
