//! The reference page of stop reasons, which repeats what the code says.

use harness_core::StopReason;

use super::tree::Tree;

const PAGE: &str = "docs/reference/stops.md";

/// Stop reasons that the page has not, or with another outcome, and rows of the page that the
/// code has not.
pub(super) fn problems(tree: &Tree) -> Vec<String> {
    let page = tree.text(PAGE).unwrap_or_default();
    let expected: Vec<_> = StopReason::ALL.iter().map(|reason| row(*reason)).collect();
    let missing = expected.iter().filter(|row| !page.lines().any(|line| line.starts_with(row.as_str())));
    let rows = page.lines().filter(|line| line.starts_with("| `"));
    let unknown = rows.filter(|line| !expected.iter().any(|row| line.starts_with(row.as_str())));
    let missing = missing.map(|row| format!("{PAGE}: has no row {row}"));
    missing.chain(unknown.map(|line| format!("{PAGE}: the code does not know {line}"))).collect()
}

/// The columns of a row that the code determines; its meaning follows.
fn row(reason: StopReason) -> String {
    format!("| `{}` | `{}` |", reason.as_str(), reason.outcome().as_str())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[track_caller]
    fn check(page: &str, expected: usize) {
        assert_eq!(problems(&Tree::of(&[(PAGE, page)])).len(), expected);
    }

    #[test]
    fn the_page_has_the_rows_of_the_code() {
        let rows: Vec<_> = StopReason::ALL.iter().map(|reason| format!("{} text |", row(*reason))).collect();
        let page = rows.join("\n");
        check(&page, 0);
        check(&page.replacen("`completed`", "`failed`", 1), 2);
        check(&format!("{page}\n| `unheard_of` | `failed` | text |"), 1);
        check("", StopReason::ALL.len());
    }
}
