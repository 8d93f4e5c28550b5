//! Removing a model's commentary from the ends of artifacts.

use std::sync::LazyLock;

use regex::Regex;

/// Number of lines at each end that are cleaned.
const ZONE: usize = 5;

/// Artifact without commentary.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct Cleaned {
    /// Text of the artifact.
    pub text: String,
    /// Removed lines in order; empty for a clean artifact.
    pub removed: Vec<String>,
}

/// Compiles a pattern. A test proves that the patterns are valid.
fn talk(patterns: &str) -> Option<Regex> {
    regex::RegexBuilder::new(&format!(r"^\s*(?:{patterns})\b")).case_insensitive(true).build().ok()
}

static BEFORE: LazyLock<Option<Regex>> = LazyLock::new(|| {
    talk(concat!(
        "I will now|I'll (?:create|write|document|generate|produce|build|prepare)|Let me|Now I'll",
        "|Here is the|Here's the|Below is|I'm going to|The following is",
    ))
});

static AFTER: LazyLock<Option<Regex>> = LazyLock::new(|| {
    talk(concat!(
        "I've (?:stored|saved|recorded|created|written|documented)|I'll now (?:move|proceed|continue)",
        "|Next,? I'll|Moving on to|This has been (?:stored|saved|recorded)|The above has been",
    ))
});

/// Removes lines in which a model comments on its work, from the first and the last five lines. Fenced code is not
/// changed, nor is an artifact that would become empty.
pub fn clean_artifact(artifact: &str) -> Cleaned {
    let clean = || Cleaned { text: artifact.to_owned(), removed: Vec::new() };
    let lines: Vec<&str> = artifact.split('\n').collect();
    let mut fenced = false;
    let (mut kept, mut removed) = (Vec::new(), Vec::new());
    for (at, line) in lines.iter().enumerate() {
        let is_fence = line.trim_start().starts_with("```") || line.trim_start().starts_with("~~~");
        let is_code = fenced || is_fence;
        fenced ^= is_fence;
        let says = |pattern: &Option<Regex>| pattern.as_ref().is_some_and(|pattern| pattern.is_match(line));
        let is_talk = (at < ZONE && says(&BEFORE)) || (at + ZONE >= lines.len() && says(&AFTER));
        if is_talk && !is_code {
            removed.push((*line).to_owned());
        } else {
            kept.push(*line);
        }
    }
    if removed.is_empty() {
        return clean();
    }
    let is_text = |line: &&str| !line.trim().is_empty();
    let (Some(first), Some(last)) = (kept.iter().position(is_text), kept.iter().rposition(is_text)) else {
        return clean();
    };
    let text = kept.get(first..=last).map(|lines| lines.join("\n")).unwrap_or_default();
    Cleaned { text, removed }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[track_caller]
    fn check(artifact: &str, expected: &str, removed: &[&str]) {
        let cleaned = clean_artifact(artifact);
        assert_eq!(
            (cleaned.text.as_str(), cleaned.removed),
            (expected, removed.iter().map(ToString::to_string).collect())
        );
    }

    #[test]
    fn the_patterns_are_regular_expressions() {
        assert!(BEFORE.is_some() && AFTER.is_some());
    }

    #[test]
    fn talk_at_both_ends_goes() {
        check(
            "Let me begin.\n\n# Title\nBody\n\nNext, I'll check it.\n",
            "# Title\nBody",
            &["Let me begin.", "Next, I'll check it."],
        );
    }

    #[test]
    fn a_pattern_ends_at_a_word() {
        check("I'll sing a song\nla", "I'll sing a song\nla", &[]);
        check("Here is thermal data\nla", "Here is thermal data\nla", &[]);
        check("  HERE IS THE list\nla", "la", &["  HERE IS THE list"]);
    }

    #[test]
    fn the_middle_is_never_touched() {
        let text = format!("{}Let me explain.\n{}", "row\n".repeat(6), "row\n".repeat(6));
        check(&text, &text, &[]);
    }

    #[test]
    fn code_is_never_touched() {
        check("```\nLet me = 1\n```\nend", "```\nLet me = 1\n```\nend", &[]);
        check("Let me show:\n~~~\nHere is the\n~~~", "~~~\nHere is the\n~~~", &["Let me show:"]);
    }

    #[test]
    fn nothing_is_cleaned_to_nothing() {
        check("Let me think.\n\nI've stored the result.", "Let me think.\n\nI've stored the result.", &[]);
        check("", "", &[]);
    }
}
