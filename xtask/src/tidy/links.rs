//! Every link of a page has a target, and every page is in the summary of the site.

use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;

use super::tree::{File, Tree};
use crate::markdown::{self, Link};

/// The table of contents of the site.
const SUMMARY: &str = "docs/SUMMARY.md";

/// Where the site has the documentation of the crates.
const API: &str = "api/";

/// Links without a target, and pages that the summary does not list or lists twice.
pub(super) fn problems(tree: &Tree) -> Vec<String> {
    let Some(summary) = tree.text(SUMMARY) else { return Vec::new() };
    let listed = markdown::links(summary);
    let listed = listed.iter().filter_map(|link| markdown::resolve(SUMMARY, &link.path));
    let mut places = BTreeMap::<String, usize>::new();
    for path in listed {
        *places.entry(path).or_default() += 1;
    }
    let mut pages: Vec<&File> = tree.files().iter().filter(|file| is_page(&file.path)).collect();
    pages.sort_by_key(|page| &page.path);
    let anchors: BTreeMap<&str, BTreeSet<String>> =
        pages.iter().map(|page| (page.path.as_str(), markdown::anchors(&page.text))).collect();
    let mut problems = Vec::new();
    for page in pages {
        match places.get(&page.path) {
            None if page.path != SUMMARY => problems.push(format!("{}: not listed in {SUMMARY}", page.path)),
            Some(2..) => problems.push(format!("{}: listed twice in {SUMMARY}", page.path)),
            _ => {}
        }
        let faulty = markdown::links(&page.text).into_iter().filter_map(|link| {
            let problem = problem_of(tree, &anchors, &page.path, &link)?;
            Some(format!("{}:{}: {problem}", page.path, link.line))
        });
        problems.extend(faulty);
    }
    problems
}

/// The site consists of `docs` and of the pages at the root.
fn is_page(path: &str) -> bool {
    is_markdown(path) && (path.starts_with("docs/") || !path.contains('/'))
}

fn is_markdown(path: &str) -> bool {
    Path::new(path).extension().is_some_and(|extension| extension == "md")
}

fn problem_of(
    tree: &Tree,
    anchors: &BTreeMap<&str, BTreeSet<String>>,
    page: &str,
    link: &Link,
) -> Option<String> {
    let path = link.path.as_str();
    let Some(target) = markdown::resolve(page, path) else {
        return Some(format!("`{path}` is outside of the repository"));
    };
    if let Some(generated) = target.strip_prefix(API) {
        let name = generated.split('/').next().unwrap_or_default().replace('_', "-");
        let exists = tree.text(&format!("crates/{name}/Cargo.toml")).is_some();
        return (!exists).then(|| format!("`{path}` names an unknown crate"));
    }
    if !tree.has(&target) {
        return Some(format!("`{path}` is not a file"));
    }
    if is_markdown(&target) && (target == SUMMARY || !is_page(&target)) {
        return Some(format!("`{path}` is not a page of the site"));
    }
    let anchor = link.anchor.as_ref()?;
    match anchors.get(target.as_str()) {
        Some(anchors) if anchors.contains(anchor) => None,
        Some(_) => Some(format!("`{target}` has no heading `#{anchor}`")),
        None => Some(format!("`{path}#{anchor}`: the file has no headings")),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[track_caller]
    fn check(files: &[(&str, &str)], expected: &[&str]) {
        assert_eq!(problems(&Tree::of(files)), expected);
    }

    #[test]
    fn every_link_has_a_target() {
        let summary = ("docs/SUMMARY.md", "- [A](a.md)\n- [B](../B.md)\n");
        let b = ("B.md", "# The b\n");
        let check = |text: &str, expected: &[&str]| check(&[summary, ("docs/a.md", text), b], expected);
        check("[b](../B.md#the-b)", &[]);
        check(
            "# A\n\n[b](../B.md#b), [a](#b)",
            &["docs/a.md:3: `B.md` has no heading `#b`", "docs/a.md:3: `docs/a.md` has no heading `#b`"],
        );
        check("\n[c](c.md)", &["docs/a.md:2: `c.md` is not a file"]);
        check("[c](SUMMARY.md)", &["docs/a.md:1: `SUMMARY.md` is not a page of the site"]);
        check("[c](../../c.md)", &["docs/a.md:1: `../../c.md` is outside of the repository"]);
        check("[c](../api/c/index.html)", &["docs/a.md:1: `../api/c/index.html` names an unknown crate"]);
    }

    #[test]
    fn every_page_is_in_the_summary_once() {
        let page = ("docs/a.md", "");
        check(&[("docs/SUMMARY.md", ""), page], &["docs/a.md: not listed in docs/SUMMARY.md"]);
        check(
            &[("docs/SUMMARY.md", "[a](a.md) [a](a.md)"), page],
            &["docs/a.md: listed twice in docs/SUMMARY.md"],
        );
        check(&[("docs/SUMMARY.md", "[a](a.md)"), page, ("crates/a/README.md", "[x](y)")], &[]);
    }
}
