//! How long a function may be: one that does more than one thing is split where a reader would.

use super::tree::{File, Tree};

/// Lines from `fn` to the closing brace, at most.
const MOST_LINES: usize = 60;

/// Functions outside tests that are too long.
pub(super) fn problems(tree: &Tree) -> Vec<String> {
    let is_test = |file: &File| file.path.contains("/tests/") || file.path.ends_with("/tests.rs");
    tree.files().iter().filter(|file| file.is_rust() && !is_test(file)).flat_map(problems_of).collect()
}

/// The source is formatted: what begins at an indentation ends with the brace at the same one.
fn problems_of(file: &File) -> Vec<String> {
    let lines: Vec<&str> = file.text.lines().collect();
    let mut problems = Vec::new();
    let mut at = 0;
    while let Some(line) = lines.get(at) {
        let rest = lines.get(at..).unwrap_or_default();
        if line.trim() == "#[cfg(test)]" {
            at += item(rest);
        } else if let Some(name) = name(line) {
            let length = item(rest);
            if length > MOST_LINES {
                let number = at + 1;
                problems.push(format!(
                    "{}:{number}: `{name}` has {length} lines, at most {MOST_LINES}",
                    file.path
                ));
            }
        }
        at += 1;
    }
    problems
}

/// The name of the function that begins in a line.
fn name(line: &str) -> Option<&str> {
    let (before, after) = line.split_once("fn ")?;
    let is_qualifier =
        |word: &str| matches!(word, "async" | "const" | "unsafe" | "default") || word.starts_with("pub");
    let name = after.split(|c: char| !(c.is_alphanumeric() || c == '_')).next()?;
    let is_begin =
        before.split_whitespace().all(is_qualifier) && (before.is_empty() || before.ends_with(' '));
    (is_begin && !name.is_empty()).then_some(name)
}

/// The lines of the item that begins in the first line: up to its closing brace, or 1 when it has no body.
fn item(lines: &[&str]) -> usize {
    let indentation = |line: &str| line.len() - line.trim_start().len();
    let own = lines.first().map_or(0, |line| indentation(line));
    let begin =
        lines.iter().position(|line| line.ends_with(['{', ';', '}']) && !line.trim_start().starts_with("//"));
    let Some(begin) = begin.filter(|at| lines.get(*at).is_some_and(|line| line.ends_with('{'))) else {
        return 1;
    };
    let end = lines.iter().skip(begin + 1).position(|line| line.trim() == "}" && indentation(line) == own);
    end.map_or(1, |end| begin + 1 + end + 1)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[track_caller]
    fn check(path: &str, text: &str, expected: &[&str]) {
        assert_eq!(problems(&Tree::of(&[(path, text)])), expected);
    }

    #[test]
    fn long_functions_are_named() {
        let function =
            |head: &str, lines: usize| format!("{head} {{\n{}}}\n", "    x();\n".repeat(lines - 2));
        check("a/src/a.rs", &function("pub(crate) async fn run()", 60), &[]);
        let long = function("pub(crate) async fn run()", 61);
        check("a/src/a.rs", &format!("\n{long}"), &["a/src/a.rs:2: `run` has 61 lines, at most 60"]);
        check("a/tests/it/a.rs", &long, &[]);
        check("a/src/a/tests.rs", &long, &[]);
        check("a/src/a.rs", &format!("#[cfg(test)]\n{long}"), &[]);
        check(
            "a/src/a.rs",
            &function("fn run(\n    a: u8,\n)", 59),
            &["a/src/a.rs:1: `run` has 61 lines, at most 60"],
        );
        check(
            "a/src/a.rs",
            &format!("trait A {{\n    fn a();\n}}\nstruct B {{\n{}}}\n", "x\n".repeat(99)),
            &[],
        );
    }
}
