//! Evidence density: an answer full of details after one thin listing was made up.

use harness_core::decide::{CheckVerdict, DynCheck, Guarded, Points, check};
use harness_core::message::Message;
use harness_core::outcome::ThinEvidence;
use harness_core::transcript::Prefix;

/// The reason code of thin evidence, the only one.
pub const SPARSE_EVIDENCE: &str = "sparse_tool_evidence_with_structured_claims";

/// Tools whose single short result proves little.
const LISTING_TOOLS: [&str; 2] = ["workspace_list", "workspace_search"];

/// The length of a result, in UTF-16 units, from which it counts as evidence.
const ENOUGH: usize = 1_024;

/// A tool result as evidence: which tool, and how much it said, in UTF-16 units.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct ToolOutput<'a> {
    /// The tool.
    pub name: &'a str,
    /// The length of its output.
    pub chars: usize,
}

impl<'a> ToolOutput<'a> {
    /// A tool and the length of its output in UTF-16 units.
    pub fn new(name: &'a str, chars: usize) -> Self {
        Self { name, chars }
    }
}

/// Whether an answer claims more than its evidence holds: there was exactly one tool call, of
/// `workspace_list` or `workspace_search`, its output was shorter than 1,024 UTF-16 units, and the text has
/// a Markdown table, or a numbered list of at least three items each with a hash, a date or an
/// `owner/repository`.
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
    let markers = claim_markers(text);
    let claim_markers: Vec<_> = markers.into_iter().map(str::to_owned).collect();
    (!claim_markers.is_empty()).then_some(ThinEvidence {
        tool_call_count: 1,
        output_chars: output.chars,
        claim_markers,
    })
}

/// A check of answers: ends the turn `evidence_density_violation` when an answer claims more than the tool results
/// since the last user message hold; see [`exceeds_evidence_budget`].
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

/// The tool results since the last user message: two are enough to know.
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
    let mut markers = Vec::new();
    if has_table(text) {
        markers.push("markdown_table");
    }
    if let Some(fields) = numbered_list(text) {
        markers.push("numbered_list");
        let named = [("sha_like", fields.sha), ("date", fields.date), ("owner_repo", fields.owner_repo)];
        markers.extend(named.iter().filter(|(_, found)| *found).map(|(name, _)| *name));
    }
    markers
}

/// A run of at least two lines that begin with `|`, one of them a separator row.
fn has_table(text: &str) -> bool {
    let (mut run, mut separated) = (0, false);
    for line in text.lines() {
        let line = line.trim();
        if line.starts_with('|') {
            run += 1;
            separated |= is_separator(line);
            if run >= 2 && separated {
                return true;
            }
        } else {
            (run, separated) = (0, false);
        }
    }
    false
}

/// Cells of three or more dashes with optional colons.
fn is_separator(line: &str) -> bool {
    let cells = line.trim_start_matches('|').trim_end_matches('|');
    cells.split('|').all(|cell| {
        let dashes = cell.trim();
        let dashes = dashes.strip_prefix(':').unwrap_or(dashes);
        let dashes = dashes.strip_suffix(':').unwrap_or(dashes);
        dashes.len() >= 3 && dashes.bytes().all(|byte| byte == b'-')
    })
}

/// The structured fields of a line or a run of lines.
#[derive(Clone, Copy, Debug, Default)]
struct FieldsSeen {
    sha: bool,
    date: bool,
    owner_repo: bool,
}

impl FieldsSeen {
    fn of(item: &str) -> Self {
        let is_name = |char: char| char.is_ascii_alphanumeric() || "_.-".contains(char);
        let words = || item.split(|char: char| !(is_name(char) || char == '/'));
        let plain = || item.split(|char: char| !(char.is_ascii_alphanumeric() || char == '_'));
        let sha = |word: &str| {
            (6..=40).contains(&word.len()) && word.bytes().all(|b| matches!(b, b'0'..=b'9' | b'a'..=b'f'))
        };
        Self {
            sha: plain().any(sha),
            date: words().any(is_date),
            owner_repo: words().any(|word| {
                word.split_once('/').is_some_and(|(owner, rest)| {
                    let name = rest.split('/').next().unwrap_or_default();
                    !owner.is_empty() && !name.is_empty()
                })
            }),
        }
    }

    fn any(self) -> bool {
        self.sha || self.date || self.owner_repo
    }

    fn or(self, other: Self) -> Self {
        Self {
            sha: self.sha || other.sha,
            date: self.date || other.date,
            owner_repo: self.owner_repo || other.owner_repo,
        }
    }
}

/// `YYYY-MM-DD`, or `D/M` with an optional year.
fn is_date(word: &str) -> bool {
    let word = word.trim_matches(['.', '-', '_']);
    let digits = |part: &str, sizes: std::ops::RangeInclusive<usize>| {
        sizes.contains(&part.len()) && part.bytes().all(|byte| byte.is_ascii_digit())
    };
    let iso: Vec<_> = word.split('-').collect();
    if let [year, month, day] = iso[..] {
        return digits(year, 4..=4) && digits(month, 2..=2) && digits(day, 2..=2);
    }
    let parts: Vec<_> = word.split('/').collect();
    match parts[..] {
        [day, month] => digits(day, 1..=2) && digits(month, 1..=2),
        [day, month, year] => digits(day, 1..=2) && digits(month, 1..=2) && digits(year, 2..=4),
        _ => false,
    }
}

/// The fields of the first run of at least three numbered lines in which every item has one.
fn numbered_list(text: &str) -> Option<FieldsSeen> {
    let (mut run, mut fields, mut complete) = (0, FieldsSeen::default(), true);
    for line in text.lines().map(Some).chain([None]) {
        if let Some(item) = line.and_then(numbered_item) {
            let own = FieldsSeen::of(item);
            (run, fields, complete) = (run + 1, fields.or(own), complete && own.any());
            continue;
        }
        if run >= 3 && complete {
            return Some(fields);
        }
        (run, fields, complete) = (0, FieldsSeen::default(), true);
    }
    None
}

/// What follows `N. ` in a line.
fn numbered_item(line: &str) -> Option<&str> {
    let line = line.trim_start();
    let (number, item) = line.split_once(". ")?;
    (!number.is_empty() && number.bytes().all(|byte| byte.is_ascii_digit())).then_some(item)
}
