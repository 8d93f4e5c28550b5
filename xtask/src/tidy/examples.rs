//! Public types of the facade and of core show how they are used.

use std::collections::BTreeSet;

use super::tree::{File, Tree};

/// Sources of the facade: each public type has an example of its own.
const FACADE: &str = "crates/harness/src/";

/// Sources of core: an example of the same file, or of the page of its module, names each public type.
const CORE: &str = "crates/harness-core/src/";

/// What a program of core's users sets and reads is shown; the machines themselves are for drivers, whose example is that
/// of the crate.
const MACHINES: &[&str] = &["machine/", "turn/", "run/"];

/// Public types whose documentation has no example.
pub(super) fn problems(tree: &Tree) -> Vec<String> {
    let of_facade = |file: &&File| file.is_rust() && file.path.starts_with(FACADE);
    let facade = tree.files().iter().filter(of_facade).flat_map(without_own_example);
    facade.chain(without_mention(tree)).collect()
}

fn without_own_example(file: &File) -> Vec<String> {
    let mut has_example = false;
    let mut problems = Vec::new();
    for (number, line) in (1..).zip(file.text.lines()) {
        if let Some(name) = public_type(line)
            && !has_example
        {
            problems.push(missing(file, number, name));
        }
        let is_of_item = line.starts_with("///") || line.starts_with('#') || line.starts_with([' ', ')']);
        has_example = is_of_item && (has_example || line.starts_with("/// ```"));
    }
    problems
}

fn without_mention(tree: &Tree) -> Vec<String> {
    let mut problems = Vec::new();
    for file in tree.files().iter().filter(|file| file.is_rust()) {
        let Some(path) = file.path.strip_prefix(CORE) else { continue };
        if MACHINES.iter().any(|folder| path.starts_with(folder)) {
            continue;
        }
        let page = file.path.rsplit_once('/').map(|(folder, _)| format!("{folder}/mod.rs"));
        let page = tree.files().iter().find(|other| page.as_deref() == Some(other.path.as_str()));
        let shown: BTreeSet<&str> = page.into_iter().chain([file]).flat_map(words_of_examples).collect();
        let mut is_hidden = false;
        for (number, line) in (1..).zip(file.text.lines()) {
            if let Some(name) = public_type(line)
                && !is_hidden
                && !shown.contains(name)
            {
                problems.push(missing(file, number, name));
            }
            is_hidden = line == "#[doc(hidden)]" || is_hidden && line.starts_with('#');
        }
    }
    problems
}

/// The words of the code in the documentation of a file.
fn words_of_examples(file: &File) -> impl Iterator<Item = &str> {
    let mut is_code = false;
    let code = file.text.lines().filter_map(move |line| {
        let text = line.trim_start();
        let text = text.strip_prefix("///").or_else(|| text.strip_prefix("//!"))?;
        is_code ^= text.contains("```");
        is_code.then_some(text)
    });
    code.flat_map(|line| line.split(|c: char| !(c.is_alphanumeric() || c == '_')))
}

fn missing(file: &File, line: usize, name: &str) -> String {
    format!("{}:{line}: `{name}` has no example in its documentation", file.path)
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
        check("crates/harness-tools/src/a.rs", "/// A.\npub struct A;\n", &[]);
    }

    #[test]
    fn types_of_core_are_named_in_an_example_of_their_file_or_page() {
        let path = "crates/harness-core/src/port/a.rs";
        let missing = "crates/harness-core/src/port/a.rs:4: `B` has no example in its documentation";
        check(path, "/// ```\n/// let a = A(1);\n/// ```\npub struct B;\npub struct A(u8);\n", &[missing]);
        check(path, "#[doc(hidden)]\n#[derive(Debug)]\npub struct A;\n", &[]);
        check("crates/harness-core/src/machine/a.rs", "pub struct A;\n", &[]);
        let page = ("crates/harness-core/src/port/mod.rs", "//! ```\n//! A\n//! ```\n");
        assert_eq!(problems(&Tree::of(&[(path, "pub struct A;\n"), page])), Vec::<String>::new());
    }
}
