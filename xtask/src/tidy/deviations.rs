//! The page of differences: each rule of the product names the test that holds it.

use std::collections::BTreeSet;

use super::tree::Tree;

const PAGE: &str = "docs/design/deviations.md";

/// The section whose rows are rules, and not vectors.
const SECTION: &str = "## By rule";

/// Rows without a test, and tests that do not exist.
pub(super) fn problems(tree: &Tree) -> Vec<String> {
    let tests: BTreeSet<&str> = tree
        .files()
        .iter()
        .filter(|file| file.is_rust())
        .flat_map(|file| file.text.lines())
        .filter_map(|line| line.trim_start().trim_start_matches("async ").strip_prefix("fn "))
        .filter_map(|rest| rest.split(['(', '<']).next())
        .collect();
    let page = tree.text(PAGE).unwrap_or_default();
    let Some((_, section)) = page.split_once(SECTION) else {
        return vec![format!("{PAGE}: there is no section `{SECTION}`")];
    };
    let rows = section.lines().filter(|line| line.starts_with("| ")).skip(1);
    rows.flat_map(|row| {
        let cell = row.trim_end_matches([' ', '|']).rsplit(" | ").next().unwrap_or_default();
        let named: Vec<&str> = cell.split('`').filter(|word| word.contains("::")).collect();
        let mut problems: Vec<String> = named
            .iter()
            .filter(|name| name.rsplit("::").next().is_none_or(|last| !tests.contains(last)))
            .map(|name| format!("{PAGE}: there is no test `{name}`"))
            .collect();
        if named.is_empty() {
            problems.push(format!("{PAGE}: a rule names no test: {row}"));
        }
        problems
    })
    .collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[track_caller]
    fn check(rows: &str, problems: usize) {
        let page = format!(
            "{SECTION}\n\n| rule | a source | the product | why | test |\n|---|---|---|---|---|\n{rows}"
        );
        let source = ("crates/a/src/lib.rs", "async fn it_holds() {\n");
        let found = super::problems(&Tree::of(&[(PAGE, &page), source]));
        assert_eq!(found.len(), problems, "{found:?}");
    }

    #[test]
    fn fault_45_every_rule_names_a_test_that_exists() {
        check("| a | b | c | d | `m::it_holds` |\n", 0);
        check("| a | b | c | d | `m::it_holds`, `m::it_is_gone` |\n", 1);
        check("| a | b | c | d | none |\n", 1);
        assert_eq!(super::problems(&Tree::of(&[])).len(), 1);
    }
}
