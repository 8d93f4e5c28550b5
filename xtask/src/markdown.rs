//! Reads what the chores need of a Markdown page: its links and the anchors of its headings.

use std::collections::{BTreeMap, BTreeSet};

use pulldown_cmark::{Event, LinkType, Options, Parser, Tag, TagEnd};

/// A link to a file or to a place of a page; links to other sites are omitted.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Link {
    /// The path as the page has it, without the anchor; empty for a place of the same page.
    pub(crate) path: String,
    /// The part after `#`, if there is one.
    pub(crate) anchor: Option<String>,
    /// Line, from 1.
    pub(crate) line: usize,
}

/// The links and images of a page, in order.
pub(crate) fn links(text: &str) -> Vec<Link> {
    let events = Parser::new_ext(text, Options::ENABLE_TABLES).into_offset_iter();
    let links = events.filter_map(|(event, range)| {
        let Event::Start(Tag::Link { link_type, dest_url, .. } | Tag::Image { link_type, dest_url, .. }) =
            event
        else {
            return None;
        };
        let is_local = !matches!(link_type, LinkType::Autolink | LinkType::Email) && !dest_url.contains(':');
        let line = text.get(..range.start)?.matches('\n').count() + 1;
        let (path, anchor) =
            dest_url.split_once('#').map_or((&*dest_url, None), |(path, anchor)| (path, Some(anchor)));
        is_local.then(|| Link { path: path.to_owned(), anchor: anchor.map(str::to_owned), line })
    });
    links.collect()
}

/// The anchors of a page's headings, as GitHub and mdBook derive them.
pub(crate) fn anchors(text: &str) -> BTreeSet<String> {
    let mut anchors = BTreeSet::new();
    let mut uses = BTreeMap::<String, usize>::new();
    let mut heading: Option<String> = None;
    for event in Parser::new_ext(text, Options::ENABLE_TABLES) {
        if let Event::Start(Tag::Heading { .. }) = event {
            heading = Some(String::new());
        } else if let (Event::Text(part) | Event::Code(part), Some(heading)) = (&event, &mut heading) {
            heading.push_str(part);
        } else if let Event::End(TagEnd::Heading(_)) = event {
            let base = anchor_of(&heading.take().unwrap_or_default());
            let count = uses.entry(base.clone()).or_default();
            anchors.insert(if *count == 0 { base } else { format!("{base}-{count}") });
            *count += 1;
        }
    }
    anchors
}

fn anchor_of(heading: &str) -> String {
    let kept = heading.chars().filter_map(|c| match c {
        _ if c.is_alphanumeric() || c == '_' || c == '-' => Some(c),
        _ if c.is_whitespace() => Some('-'),
        _ => None,
    });
    kept.flat_map(char::to_lowercase).collect()
}

/// The path that a link of the page `from` names, relative to the tree; `None` when it leaves the tree.
pub(crate) fn resolve(from: &str, path: &str) -> Option<String> {
    if path.is_empty() {
        return Some(from.to_owned());
    }
    let mut parts: Vec<&str> = from.split('/').collect();
    parts.pop();
    for part in path.split('/') {
        match part {
            "" | "." => {}
            ".." => {
                parts.pop()?;
            }
            name => parts.push(name),
        }
    }
    Some(parts.join("/"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn links_have_a_path_an_anchor_and_a_line() {
        let page = "See [a](b/c.md#d) and\n[e](#f), `[x](y)`.\n\n```text\n[g](h)\n```\n\n| [i](j.png) |\n|---|\n\n[k](https://l.org)\n";
        let link = |path: &str, anchor: Option<&str>, line| Link {
            path: path.to_owned(),
            anchor: anchor.map(str::to_owned),
            line,
        };
        assert_eq!(
            links(page),
            [link("b/c.md", Some("d"), 1), link("", Some("f"), 2), link("j.png", None, 8)]
        );
    }

    #[test]
    fn headings_have_the_anchors_of_the_sites_that_show_them() {
        let page = "# `harness run --report FILE.json`\n## Stop, in order!\n## Stop in order\n";
        let expected = ["harness-run---report-filejson", "stop-in-order", "stop-in-order-1"];
        assert_eq!(anchors(page), BTreeSet::from(expected.map(str::to_owned)));
    }

    #[track_caller]
    fn check(from: &str, path: &str, expected: Option<&str>) {
        assert_eq!(resolve(from, path).as_deref(), expected);
    }

    #[test]
    fn paths_are_relative_to_the_page() {
        check("docs/cookbook/a.md", "b.md", Some("docs/cookbook/b.md"));
        check("docs/cookbook/a.md", "../../README.md", Some("README.md"));
        check("docs/a.md", "", Some("docs/a.md"));
        check("README.md", "../a.md", None);
        check("README.md", "docs/", Some("docs"));
    }
}
