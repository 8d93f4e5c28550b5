//! The page of the laws: each names tests that hold it. So does the page of durability for its claims.

use std::collections::BTreeSet;

use super::tree::Tree;

const PAGE: &str = "docs/design/laws.md";

/// Page with a table of claims and their tests.
const CLAIMS: &str = "docs/explanation/durability.md";

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
    problems.extend(unproved(tree));
    problems
}

/// Tests of claims that do not exist.
fn unproved(tree: &Tree) -> Vec<String> {
    let page = tree.text(CLAIMS).unwrap_or_default();
    let rows = page.lines().skip_while(|line| *line != "| claim | test |").skip(2);
    let rows = rows.take_while(|line| line.starts_with('|'));
    let tests = rows.map(|row| row.rsplit_once(" | ").map_or("", |(_, tests)| tests));
    let named = tests.flat_map(|tests| tests.split('`').skip(1).step_by(2));
    let missing = named.filter(|name| !tree.has_function(name));
    missing.map(|name| format!("{CLAIMS}: there is no test `{name}`")).collect()
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
    fn claims_name_tests_that_exist() {
        let page = "| claim | test |\n|---|---|\n| a `b` c | `works`, `fails` |\n\n| d | `e` |\n";
        let tree = Tree::of(&[(CLAIMS, page), ("crates/a/src/lib.rs", "    async fn works() {\n")]);
        assert_eq!(unproved(&tree), [format!("{CLAIMS}: there is no test `fails`")]);
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
