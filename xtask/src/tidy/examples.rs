//! Public types of the facade show how they are used.

use super::tree::{File, Tree};

/// Sources of the facade.
const FACADE: &str = "crates/harness/src/";

/// Public types of the facade whose documentation has no example.
pub(super) fn problems(tree: &Tree) -> Vec<String> {
    let is_facade = |file: &&File| file.is_rust() && file.path.starts_with(FACADE);
    tree.files().iter().filter(is_facade).flat_map(problems_of).collect()
}

fn problems_of(file: &File) -> Vec<String> {
    let mut has_example = false;
    let mut problems = Vec::new();
    for (number, line) in (1..).zip(file.text.lines()) {
        if let Some(name) = public_type(line)
            && !has_example
        {
            problems.push(format!("{}:{number}: `{name}` has no example in its documentation", file.path));
        }
        let is_of_item = line.starts_with("///") || line.starts_with('#') || line.starts_with([' ', ')']);
        has_example = is_of_item && (has_example || line.starts_with("/// ```"));
    }
    problems
}

/// The name of the public type that a line declares.
fn public_type(line: &str) -> Option<&str> {
    let kinds = ["pub struct ", "pub enum ", "pub trait "];
    let rest = kinds.iter().find_map(|kind| line.strip_prefix(kind))?;
    rest.split(|c: char| !(c.is_alphanumeric() || c == '_')).next()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[track_caller]
    fn check(path: &str, text: &str, expected: &[&str]) {
        assert_eq!(problems(&Tree::of(&[(path, text)])), expected);
    }

    #[test]
    fn types_without_an_example_are_named() {
        let path = "crates/harness/src/a.rs";
        check(path, "/// A.\n///\n/// ```\n/// x();\n/// ```\n#[derive(Debug)]\npub struct A;\n", &[]);
        let missing = "crates/harness/src/a.rs:2: `A` has no example in its documentation";
        check(path, "/// A.\npub struct A<'a>(&'a str);\n", &[missing]);
        let later = "crates/harness/src/a.rs:4: `B` has no example in its documentation";
        check(path, "/// ```\npub struct A;\n/// B.\npub enum B {}\n", &[later]);
        check(path, "/// A.\npub(crate) struct A;\n", &[]);
        check("crates/harness-core/src/a.rs", "/// A.\npub struct A;\n", &[]);
    }
}
