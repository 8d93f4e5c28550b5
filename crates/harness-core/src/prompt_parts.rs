//! Ready-made parts of instructions: against invented facts, for good use of tools, and what a workspace is
//! connected to.
//!
//! Each is a text of its own, to be joined with an agent's instructions as the host likes.

use std::borrow::Cow;
use std::collections::BTreeSet;

use crate::canonical::sha256_hex;

/// Every factual claim names where it comes from.
pub const CITE_PATHS: &str =
    "For each fact that you state from the workspace, name the path of the file that it comes from.";

/// Nothing is said to be nothing.
pub const ADMIT_EMPTY: &str = "When a tool finds nothing, say plainly that nothing was found. Do not fill the \
     gap with what you remember from elsewhere.";

/// A failure is shown, not covered up.
pub const SHOW_TOOL_ERRORS: &str =
    "When a tool fails, give its name and its error as they are. Never make up what it might have returned.";

/// The clauses against invented facts.
pub const HALLUCINATION_PREVENTION: [&str; 3] = [CITE_PATHS, ADMIT_EMPTY, SHOW_TOOL_ERRORS];

/// A listing is a step, not a goal.
pub const DRILL_INTO_HITS: &str =
    "When a listing or a search shows what you need, open that entry next instead of listing again.";

/// A schema tells of values, and is none.
pub const SCHEMAS_ARE_NOT_VALUES: &str = "The descriptions in a tool's schema say what a value means. They are \
     not values: never answer with them, and never pass them as arguments.";

/// The clauses for good use of tools.
pub const TOOL_DISCIPLINE: [&str; 2] = [DRILL_INTO_HITS, SCHEMAS_ARE_NOT_VALUES];

/// A clause for hosts with a tool that looks at public repositories.
pub fn outside_repositories(tool: &str) -> String {
    format!("For a repository that is not in the workspace, use `{tool}`; the workspace tools cannot see it.")
}

/// How to use the workspace tools, and where what lies.
pub const WORKSPACE_SKILL: &str = "\
# The workspace
What you can look at lies in one tree of files. `workspace_list` shows a folder, `workspace_search` finds
text or names below a path, `workspace_read` shows a file (in pages, when it is long), and
`workspace_read_json` shows one value of a JSON file without changing its numbers.

Begin at the root that fits the question, narrow down with a search, then read. Paths are absolute.

- `/github/repos`: a folder for each repository, with its files, issues and pull requests
- `/slack/channels`: a folder for each channel, with its messages by day
- `/notion/databases`: a folder for each database, with its pages";

/// What is connected on GitHub.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct GithubSurface {
    /// Organisations.
    pub orgs: Vec<String>,
    /// Repositories.
    pub repo_names: Vec<String>,
}

/// What a workspace is connected to; `None` is not connected.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct Integrations {
    /// GitHub.
    pub github: Option<GithubSurface>,
    /// Slack channels.
    pub slack: Option<Vec<String>>,
    /// Notion databases.
    pub notion: Option<Vec<String>>,
}

impl Integrations {
    /// Nothing is connected.
    pub fn new() -> Self {
        Self::default()
    }

    /// The same with GitHub.
    #[must_use]
    pub fn github<T: Into<String>>(
        mut self,
        orgs: impl IntoIterator<Item = T>,
        repo_names: impl IntoIterator<Item = T>,
    ) -> Self {
        let texts = |names: &mut dyn Iterator<Item = T>| names.map(Into::into).collect();
        let orgs = texts(&mut orgs.into_iter());
        self.github = Some(GithubSurface { orgs, repo_names: texts(&mut repo_names.into_iter()) });
        self
    }

    /// The same with Slack.
    #[must_use]
    pub fn slack<T: Into<String>>(mut self, channels: impl IntoIterator<Item = T>) -> Self {
        self.slack = Some(channels.into_iter().map(Into::into).collect());
        self
    }

    /// The same with Notion.
    #[must_use]
    pub fn notion<T: Into<String>>(mut self, databases: impl IntoIterator<Item = T>) -> Self {
        self.notion = Some(databases.into_iter().map(Into::into).collect());
        self
    }
}

/// Which names stand for a long list.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Sample {
    /// By a hash of the name: the same names on every machine, from all over the list.
    #[default]
    StableHash,
    /// The first ones.
    First,
}

/// How long lists are shown.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct LayerOptions {
    /// Names that are listed in full at most. Default 8.
    pub max_inline_items: usize,
    /// Names that stand for a longer list. Default 5.
    pub max_sample_items: usize,
    /// Which. Default by hash.
    pub sample: Sample,
}

impl Default for LayerOptions {
    fn default() -> Self {
        Self { max_inline_items: 8, max_sample_items: 5, sample: Sample::default() }
    }
}

/// Organisations that are named.
const NAMED_ORGS: usize = 3;

/// One line for each connected surface; `None` when nothing is connected.
///
/// ```
/// use harness_core::prompt_parts::{Integrations, LayerOptions, integrations_layer};
///
/// let connected = Integrations::new().github(["acme"], ["shop", " shop ", "docs"]).slack(["#help"]);
/// let text = integrations_layer(&connected, LayerOptions::default());
/// assert_eq!(
///     text.as_deref(),
///     Some("- GitHub (organisation acme): 2 repositories: shop, docs\n- Slack: 1 channel: #help"),
/// );
/// ```
pub fn integrations_layer(connected: &Integrations, options: LayerOptions) -> Option<String> {
    let mut lines = Vec::new();
    if let Some(github) = &connected.github {
        let orgs = distinct(&github.orgs);
        let named: Vec<&str> = orgs.iter().take(NAMED_ORGS).copied().collect();
        let more = if orgs.len() > NAMED_ORGS { ", and more" } else { "" };
        let surface = match orgs.len() {
            0 => Cow::Borrowed("GitHub"),
            1 => format!("GitHub (organisation {})", named.join(", ")).into(),
            _ => format!("GitHub (organisations {}{more})", named.join(", ")).into(),
        };
        let nouns = ("repository", "repositories");
        lines.push(line(&surface, nouns, &github.repo_names, "/github/repos", options));
    }
    if let Some(channels) = &connected.slack {
        lines.push(line("Slack", ("channel", "channels"), channels, "/slack/channels", options));
    }
    if let Some(databases) = &connected.notion {
        lines.push(line("Notion", ("database", "databases"), databases, "/notion/databases", options));
    }
    (!lines.is_empty()).then(|| lines.join("\n"))
}

fn line(
    surface: &str,
    (one, many): (&str, &str),
    items: &[String],
    root: &str,
    options: LayerOptions,
) -> String {
    let mut items = distinct(items);
    let count = items.len();
    let noun = if count == 1 { one } else { many };
    if count == 0 {
        return format!("- {surface}: connected, no {many} yet");
    }
    if count <= options.max_inline_items {
        return format!("- {surface}: {count} {noun}: {}", items.join(", "));
    }
    if options.sample == Sample::StableHash {
        items.sort_by_cached_key(|name| (sha256_hex(name).chars().take(8).collect::<String>(), *name));
    }
    items.truncate(options.max_sample_items);
    let sample = if items.is_empty() { String::new() } else { format!(", among them {}", items.join(", ")) };
    format!("- {surface}: {count} {noun}{sample}. This list is not complete: list {root} for all of them")
}

/// Trimmed, without empty and repeated names, in their order.
fn distinct(items: &[String]) -> Vec<&str> {
    let mut seen = BTreeSet::new();
    items.iter().map(|item| item.trim()).filter(|item| !item.is_empty() && seen.insert(*item)).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[track_caller]
    fn check(connected: Integrations, options: LayerOptions, expected: Option<&str>) {
        assert_eq!(integrations_layer(&connected, options).as_deref(), expected);
    }

    fn numbered(count: usize) -> Vec<String> {
        (1..=count).map(|n| format!("r{n}")).collect()
    }

    #[test]
    fn nothing_connected_is_no_layer() {
        check(Integrations::new(), LayerOptions::default(), None);
        let empty = Integrations::new().notion(["", "  "]);
        check(empty, LayerOptions::default(), Some("- Notion: connected, no databases yet"));
    }

    #[test]
    fn short_lists_are_complete_and_long_ones_say_that_they_are_not() {
        let all = "- Slack: 8 channels: r1, r2, r3, r4, r5, r6, r7, r8";
        check(Integrations::new().slack(numbered(8)), LayerOptions::default(), Some(all));
        let first = LayerOptions { sample: Sample::First, max_sample_items: 2, ..LayerOptions::default() };
        let some = "- Slack: 9 channels, among them r1, r2. This list is not complete: list /slack/channels for all of them";
        check(Integrations::new().slack(numbered(9)), first, Some(some));
    }

    #[test]
    fn a_sample_by_hash_does_not_depend_on_the_order() {
        let options = LayerOptions::default();
        let layer = |names: Vec<String>| integrations_layer(&Integrations::new().slack(names), options);
        let backwards: Vec<String> = numbered(30).into_iter().rev().collect();
        assert_eq!(layer(numbered(30)), layer(backwards));
        let shown = layer(numbered(30)).unwrap_or_default();
        let mut by_hash = numbered(30);
        by_hash.sort_by_key(|name| sha256_hex(name));
        let expected = by_hash.get(..5).unwrap_or_default().join(", ");
        assert!(shown.contains(&format!("among them {expected}.")), "{shown}");
    }

    #[test]
    fn three_organisations_are_named() {
        let many = Integrations::new().github(["a", "b", "c", "d"], ["r"]);
        let expected = "- GitHub (organisations a, b, c, and more): 1 repository: r";
        check(many, LayerOptions::default(), Some(expected));
    }
}
