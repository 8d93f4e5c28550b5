//! Evidence density: an answer full of details after one thin listing is made up.

use std::sync::LazyLock;

use harness_core::decide::{CheckVerdict, DynCheck, Guarded, Points, check};
use harness_core::message::Message;
use harness_core::outcome::ThinEvidence;
use harness_core::transcript::Prefix;
use regex::Regex;

/// The only reason code of thin evidence.
pub const SPARSE_EVIDENCE: &str = "sparse_tool_evidence_with_structured_claims";

/// Tools whose single short result is thin evidence.
const LISTING_TOOLS: [&str; 2] = ["workspace_list", "workspace_search"];

/// Length in UTF-16 units from which a result is sufficient evidence.
const ENOUGH: usize = 1_024;

/// Markers of structured items, with their patterns.
static MARKERS: LazyLock<Vec<(&str, Regex)>> = LazyLock::new(|| {
    let patterns = [
        ("sha_like", r"(?-u:\b)[0-9a-f]{6,40}(?-u:\b)"),
        (
            "date",
            concat!(
                r"(?:^|[^A-Za-z0-9_./-])[._-]*",
                r"(?:[0-9]{4}-[0-9]{2}-[0-9]{2}|[0-9]{1,2}/[0-9]{1,2}(?:/[0-9]{2,4})?)",
                r"[._-]*(?:$|[^A-Za-z0-9_./-])",
            ),
        ),
        ("owner_repo", r"(?:^|[^A-Za-z0-9_./-])[A-Za-z0-9_.-]+/[A-Za-z0-9_.-]"),
    ];
    compiled(patterns)
});

/// Patterns of lines: a separator row of a table, and a numbered item.
static LINES: LazyLock<Vec<(&str, Regex)>> = LazyLock::new(|| {
    compiled([
        ("separator", r"^\s*\|+\s*:?-{3,}:?\s*(?:\|\s*:?-{3,}:?\s*)*\|*\s*$"),
        ("item", r"^\s*[0-9]+\. (.*)$"),
    ])
});

fn compiled<const N: usize>(patterns: [(&'static str, &str); N]) -> Vec<(&'static str, Regex)> {
    patterns.into_iter().filter_map(|(name, pattern)| Some((name, Regex::new(pattern).ok()?))).collect()
}

/// Tool result as evidence.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct ToolOutput<'a> {
    /// Name of the tool.
    pub name: &'a str,
    /// Length of the output in UTF-16 units.
    pub chars: usize,
}

impl<'a> ToolOutput<'a> {
    /// Creates evidence from a tool and the length of its output in UTF-16 units.
    pub fn new(name: &'a str, chars: usize) -> Self {
        Self { name, chars }
    }
}

/// Returns the claims of an answer that exceed its evidence.
///
/// They do after exactly one tool call, of `workspace_list` or `workspace_search`, with an output shorter than 1,024
/// UTF-16 units, if the text has a Markdown table, or a numbered list of at least three items each with a hash, a date
/// or an `owner/repository`.
///
/// ```
/// use harness_control::checks::{ToolOutput, exceeds_evidence_budget};
///
/// let listing = [ToolOutput::new("workspace_list", 12)];
/// let thin = exceeds_evidence_budget(&listing, "| a |\n|---|\n| 1 |").expect("a table out of nothing");
/// assert_eq!(thin.claim_markers, ["markdown_table"]);
/// assert_eq!(exceeds_evidence_budget(&listing, "One file."), None);
/// ```
pub fn exceeds_evidence_budget(outputs: &[ToolOutput<'_>], text: &str) -> Option<ThinEvidence> {
    let [output] = outputs else { return None };
    if !LISTING_TOOLS.contains(&output.name) || output.chars >= ENOUGH {
        return None;
    }
    let claim_markers: Vec<_> = claim_markers(text).into_iter().map(str::to_owned).collect();
    (!claim_markers.is_empty()).then_some(ThinEvidence {
        tool_call_count: 1,
        output_chars: output.chars,
        claim_markers,
    })
}

/// Check of answers: ends the turn with `evidence_density_violation` when an answer exceeds the evidence of the tool
/// results since the last user message; see [`exceeds_evidence_budget`].
///
/// ```
/// use harness_core::driver::Ports;
/// use harness_control::checks::evidence_density;
///
/// fn checked(mut ports: Ports) -> Ports {
///     ports.checks.push(evidence_density());
///     ports
/// }
/// ```
pub fn evidence_density() -> Guarded<dyn DynCheck> {
    check::func("evidence-density", Points::ANSWER, |subject, cx| {
        let found = exceeds_evidence_budget(&outputs(&cx.log), &subject.text());
        found.map_or(CheckVerdict::Accept, |thin| CheckVerdict::Unfounded(Box::new(thin)))
    })
}

/// The last tool results since the last user message; two are enough.
fn outputs(log: &Prefix) -> Vec<ToolOutput<'_>> {
    let since_user = log.iter().rev().take_while(|message| !matches!(***message, Message::User(_)));
    let results = since_user.filter_map(|message| message.as_tool_result().map(|result| (result, message)));
    let chars = |message: &Message| message.joined_text().encode_utf16().count();
    results
        .take(2)
        .map(|(result, message)| ToolOutput::new(result.tool_name.as_str(), chars(message)))
        .collect()
}

fn claim_markers(text: &str) -> Vec<&'static str> {
    let lines: Vec<&str> = text.lines().collect();
    let mut markers = Vec::new();
    if has_table(&lines) {
        markers.push("markdown_table");
    }
    if let Some(found) = numbered_list(&lines) {
        markers.push("numbered_list");
        markers.extend(found);
    }
    markers
}

/// Whether at least two consecutive lines start with `|`, one of them a separator row.
fn has_table(lines: &[&str]) -> bool {
    let is_separator = |line: &&str| line_pattern("separator").is_some_and(|pattern| pattern.is_match(line));
    let mut tables = lines.split(|line| !line.trim().starts_with('|'));
    tables.any(|rows| rows.len() >= 2 && rows.iter().any(is_separator))
}

/// Markers of the first list of at least three numbered lines that each have one.
fn numbered_list(lines: &[&str]) -> Option<Vec<&'static str>> {
    let pattern = line_pattern("item")?;
    let markers = |line: &&str| {
        let item = pattern.captures(line).and_then(|found| found.get(1)).map_or("", |item| item.as_str());
        MARKERS.iter().map(|(_, marker)| marker.is_match(item)).collect::<Vec<_>>()
    };
    let lists = lines.split(|line| !pattern.is_match(line)).filter(|items| items.len() >= 3);
    let found = lists
        .map(|items| items.iter().map(markers).collect::<Vec<_>>())
        .find(|items| items.iter().all(|markers| markers.contains(&true)))?;
    let is_found = |at: usize| found.iter().any(|markers| markers.get(at) == Some(&true));
    Some(MARKERS.iter().enumerate().filter(|(at, _)| is_found(*at)).map(|(_, (name, _))| *name).collect())
}

fn line_pattern(name: &str) -> Option<&'static Regex> {
    LINES.iter().find(|(known, _)| *known == name).map(|(_, pattern)| pattern)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[track_caller]
    fn check(text: &str, expected: &[&str]) {
        assert_eq!(claim_markers(text), expected);
    }

    #[test]
    fn patterns_are_valid() {
        assert_eq!((MARKERS.len(), LINES.len()), (3, 2));
    }

    #[test]
    fn table_needs_two_lines_and_a_separator() {
        check("| a |\n| :--- | ---: |", &["markdown_table"]);
        check("| a |\n| b |", &[]);
        check("| a |\n\n|---|", &[]);
    }

    #[test]
    fn every_item_of_a_list_needs_a_detail() {
        let list = |items: [&str; 3]| {
            let numbered = items.iter().enumerate().map(|(at, item)| format!("{}. {item}", at + 1));
            numbered.collect::<Vec<_>>().join("\n") + "\n"
        };
        check(
            &list(["a1b2c3", "on 2024-05-01.", "see acme/rocket"]),
            &["numbered_list", "sha_like", "date", "owner_repo"],
        );
        check(&list(["3/4", "12/5/24", "_1/2_"]), &["numbered_list", "date", "owner_repo"]);
        check(&list(["a1b2c3", "nothing", "a1b2c3"]), &[]);
        check("1. a1b2c3\n2. a1b2c3\n", &[]);
    }
}
