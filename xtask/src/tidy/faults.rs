//! The page of known faults: each has a test that holds it closed.

use std::collections::BTreeSet;

use super::tree::Tree;

const PAGE: &str = "docs/design/faults.md";

/// This file, whose examples are no tests of faults.
const OWN: &str = "xtask/src/tidy/faults.rs";

/// How many faults are known.
const COUNT: u32 = 46;

/// What is missing between the page and the tests: every fault has a row that names a test or says what is open,
/// every test that a row names exists, and every test that is named after a fault is in the row of that fault.
pub(super) fn problems(tree: &Tree) -> Vec<String> {
    let page = tree.text(PAGE).unwrap_or_default();
    let tests = tree.tests_named("fault_", OWN);
    let mut problems = Vec::new();
    for number in 1..=COUNT {
        let head = format!("| F{number:02} |");
        let Some(row) = page.lines().find(|line| line.starts_with(&head)) else {
            problems.push(format!("{PAGE}: no row for F{number:02}"));
            continue;
        };
        let named: BTreeSet<&str> = row.split('`').filter(|word| word.starts_with("fault_")).collect();
        let prefix = format!("fault_{number:02}_");
        let written: BTreeSet<&str> =
            tests.iter().copied().filter(|name| name.starts_with(&prefix)).collect();
        if named.is_empty() && !row.contains("| open: ") {
            problems.push(format!("{PAGE}: F{number:02} names no test"));
        }
        let missing = named.difference(&tests).map(|name| format!("{PAGE}: there is no test `{name}`"));
        problems.extend(missing);
        let unlisted =
            written.difference(&named).map(|name| format!("{PAGE}: F{number:02} does not name `{name}`"));
        problems.extend(unlisted);
    }
    problems
}

#[cfg(test)]
mod tests {
    use std::fmt::Write as _;

    use super::*;

    /// The problems of a page with a row for each fault and these rows for the first ones.
    fn check(rows: &str, source: &str) -> Vec<String> {
        let known = u32::try_from(rows.lines().count()).unwrap_or_default();
        let (mut page, mut source) = (rows.to_owned(), source.to_owned());
        for number in known + 1..=COUNT {
            let _ = writeln!(page, "| F{number:02} | | `fault_{number:02}_a` |");
            let _ = writeln!(source, "fn fault_{number:02}_a() {{");
        }
        problems(&Tree::of(&[(PAGE, &page), ("crates/a/src/lib.rs", &source)]))
    }

    #[test]
    fn page_and_tests_agree() {
        let one = "fn fault_01_a() {\nasync fn fault_01_b() {\nfn fault_at(x: u8) {\n";
        assert_eq!(check("| F01 | | `fault_01_a`, `fault_01_b` |\n", one), Vec::<String>::new());
        assert_eq!(check("| F01 | | `fault_01_a` |\n", one).len(), 1, "a test is not listed");
        assert_eq!(check("| F01 | | `fault_01_a`, `fault_01_c` |\n", one).len(), 2, "one does not exist");
        assert_eq!(check("| F01 | | none |\n", "").len(), 1, "a row without a test");
        assert_eq!(check("| F01 | | open: not begun |\n", "").len(), 0, "a row that says what is open");
        assert_eq!(check("| F99 | | |\n", "").len(), 1, "a row is missing");
    }
}
