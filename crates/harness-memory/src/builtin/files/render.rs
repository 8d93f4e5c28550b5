//! How files look in the view.

use super::tracked::{Content, Tracked};
use crate::layer::LayerCx;

/// Parts of a hundred of the lines that a cut file keeps at its head; the others are kept at its end.
const HEAD_SHARE: usize = 60;

/// The heading above all files.
pub(super) const HEADING: &str = "# Referenced Files";

/// The section of a file, whole.
pub(super) fn section(file: &Tracked, content: &Content) -> String {
    match content {
        Content::Text(text) => fenced(&file.reference, text),
        Content::Missing => format!("## {}\n\n[FILE DELETED: {}]", file.reference, file.path),
        Content::Failed(error) => format!("## {}\n\n[FILE ERROR: {error}]", file.reference),
    }
}

/// The section of a file in at most `budget` tokens, cut between its lines; `None` when not even its end and
/// its beginning fit.
pub(super) fn fitted(file: &Tracked, content: &Content, budget: u64, cx: &LayerCx) -> Option<String> {
    let whole = section(file, content);
    if cx.tokenize(&whole) <= budget {
        return Some(whole);
    }
    let Content::Text(text) = content else { return None };
    let lines: Vec<&str> = text.lines().collect();
    let (mut fits, mut too_many) = (0, lines.len());
    let mut best = None;
    // The most lines that fit: each more makes the section longer.
    while fits + 1 < too_many {
        let kept = usize::midpoint(fits, too_many);
        let section = fenced(&file.reference, &cut(&lines, kept));
        if cx.tokenize(&section) <= budget {
            best = Some(section);
            fits = kept;
        } else {
            too_many = kept;
        }
    }
    best
}

/// `kept` of the lines, from both ends, and how many are missing.
fn cut(lines: &[&str], kept: usize) -> String {
    let head = (kept * HEAD_SHARE).div_ceil(100);
    let tail = kept.saturating_sub(head);
    let missing = lines.len().saturating_sub(kept);
    let mark = format!("... [truncated {missing} lines] ...");
    let ends = lines.iter().skip(lines.len().saturating_sub(tail));
    lines.iter().take(head).chain([&mark.as_str()]).chain(ends).copied().collect::<Vec<_>>().join("\n")
}

/// A fence that is longer than any in the text, so that the text cannot end it.
fn fenced(reference: &str, text: &str) -> String {
    let mut longest = 0;
    let mut run = 0;
    for c in text.chars() {
        run = if c == '`' { run + 1 } else { 0 };
        longest = longest.max(run);
    }
    let fence = "`".repeat(3.max(longest + 1));
    let fence = if longest < 3 { "```" } else { &fence };
    format!("## {reference}\n\n{fence}\n{text}\n{fence}")
}
