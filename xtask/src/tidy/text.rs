//! What no file may contain, and how long it may be.

use super::tree::{File, Tree};

/// Files above this length hold more than one concept.
const MOST_LINES: usize = 900;

/// Data that others wrote, or that a program generates.
const NOT_OURS: &[&str] = &[
    "Cargo.lock",
    "crates/harness-server/src/client/client.d.ts",
    "docs/reference/command-line.md",
    "docs/reference/descriptor.schema.json",
    "docs/reference/events.md",
    "docs/reference/events.schema.json",
    "docs/reference/openapi.json",
    "docs/reference/thread-events.schema.json",
    "fixtures/conformance/",
    "fixtures/recordings/",
];

/// This file names what it forbids.
const SELF: &str = "xtask/src/tidy/text.rs";

/// A text that must not occur.
struct Ban {
    text: &'static str,
    /// How the path of a file has to end for the ban to hold in it.
    suffix: &'static str,
    why: &'static str,
}

const BANS: &[Ban] = &[
    Ban { text: "/home/", suffix: "", why: "a path of one machine" },
    Ban { text: "/Users/", suffix: "", why: "a path of one machine" },
    Ban { text: "/.cargo/", suffix: "", why: "a path of one machine" },
    Ban { text: "#[allow(", suffix: ".rs", why: "use #[expect(…, reason = …)]" },
    Ban { text: "#![allow(", suffix: ".rs", why: "use #![expect(…, reason = …)]" },
    Ban { text: "#[ignore", suffix: ".rs", why: "a test runs or goes" },
    Ban { text: "TODO", suffix: ".rs", why: "finish it or write an issue" },
    Ban { text: "<<<<<<< ", suffix: "", why: "choose one version" },
    Ban { text: "FIXME", suffix: ".rs", why: "finish it or write an issue" },
];

/// Long files and forbidden texts.
pub(super) fn problems(tree: &Tree) -> Vec<String> {
    let ours = |file: &&File| !NOT_OURS.iter().any(|prefix| file.path.starts_with(prefix));
    tree.files().iter().filter(ours).flat_map(problems_of).collect()
}

fn problems_of(file: &File) -> Vec<String> {
    let mut problems = Vec::new();
    let lines = file.text.lines().count();
    let data = file.path.starts_with("fixtures/") || file.path.contains("/fixtures/");
    if lines > MOST_LINES && !data {
        problems.push(format!("{}: {lines} lines, at most {MOST_LINES}", file.path));
    }
    if file.path == SELF {
        return problems;
    }
    for ban in BANS.iter().filter(|ban| file.path.ends_with(ban.suffix)) {
        for (line, number) in file.text.lines().zip(1..) {
            if line.contains(ban.text) {
                problems.push(format!("{}:{number}: `{}`: {}", file.path, ban.text, ban.why));
            }
        }
    }
    problems
}

#[cfg(test)]
mod tests {
    use super::*;

    #[track_caller]
    fn check(path: &str, text: &str, expected: &[&str]) {
        assert_eq!(problems(&Tree::of(&[(path, text)])), expected);
    }

    #[test]
    fn long_files_are_named() {
        check("a.rs", &"x\n".repeat(900), &[]);
        check("a.rs", &"x\n".repeat(901), &["a.rs: 901 lines, at most 900"]);
        check("fixtures/recordings/long.jsonl", &"x\n".repeat(901), &[]);
        check("crates/a/tests/fixtures/long.json", &"x\n".repeat(901), &[]);
    }

    #[test]
    fn forbidden_texts_are_named_with_their_line() {
        check("a.md", "fine\nsee /home/me/x\n", &["a.md:2: `/home/`: a path of one machine"]);
        check("a.rs", "#[allow(dead_code)]", &["a.rs:1: `#[allow(`: use #[expect(…, reason = …)]"]);
        check("a.md", "#[allow(dead_code)]", &[]);
        check("Cargo.lock", "see /home/me/x", &[]);
    }
}
