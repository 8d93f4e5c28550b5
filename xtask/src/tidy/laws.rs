//! The page of the laws: each names tests that hold it.

use std::collections::BTreeSet;

use super::tree::Tree;

const PAGE: &str = "docs/design/laws.md";

/// This file, whose examples are no tests of laws.
const OWN: &str = "xtask/src/tidy/laws.rs";

/// How many laws there are.
const COUNT: u32 = 11;

/// Laws without a row or a test, tests that a row names and that do not exist, and tests of laws that are none.
pub(super) fn problems(tree: &Tree) -> Vec<String> {
    let page = tree.text(PAGE).unwrap_or_default();
    let tests = tree.tests_named("law_", OWN);
    let mut problems = Vec::new();
    for number in 1..=COUNT {
        let head = format!("| {number} |");
        let Some(row) = page.lines().find(|line| line.starts_with(&head)) else {
            problems.push(format!("{PAGE}: no row for law {number}"));
            continue;
        };
        let prefix = format!("law_{number}_");
        let named: BTreeSet<&str> = row.split('`').filter(|word| word.starts_with(&prefix)).collect();
        if named.is_empty() {
            problems.push(format!("{PAGE}: law {number} names no test"));
        }
        let missing = named.difference(&tests).map(|name| format!("{PAGE}: there is no test `{name}`"));
        problems.extend(missing);
    }
    let of_a_law = |name: &&&str| (1..=COUNT).any(|number| name.starts_with(&format!("law_{number}_")));
    let stray = tests.iter().filter(|name| !of_a_law(name));
    problems.extend(stray.map(|name| format!("`{name}` is named after a law that is none")));
    problems
}

#[cfg(test)]
mod tests {
    use std::fmt::Write as _;

    use super::*;

    /// The problems of a page whose first row is this, with a test for each further law.
    fn check(first: &str, source: &str) -> usize {
        let (mut page, mut source) = (first.to_owned(), source.to_owned());
        for number in 2..=COUNT {
            let _ = writeln!(page, "| {number} | | `law_{number}_a` |");
            let _ = writeln!(source, "fn law_{number}_a() {{");
        }
        problems(&Tree::of(&[(PAGE, &page), ("crates/a/src/lib.rs", &source)])).len()
    }

    #[test]
    fn page_and_tests_agree() {
        assert_eq!(check("| 1 | | `law_1_a` |\n", "fn law_1_a() {\nfn law_1_b() {\n"), 0);
        assert_eq!(check("| 1 | | `law_1_c` |\n", "fn law_1_a() {\n"), 1, "the test does not exist");
        assert_eq!(check("| 1 | | |\n", "fn law_1_a() {\n"), 1, "no test is named");
        assert_eq!(check("", "fn law_1_a() {\n"), 1, "a row is missing");
        assert_eq!(check("| 1 | | `law_1_a` |\n", "fn law_1_a() {\nfn law_12_a() {\n"), 1, "no such law");
    }
}
