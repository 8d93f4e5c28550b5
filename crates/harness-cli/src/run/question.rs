//! Approval prompt on the terminal.

use std::fmt::Write as _;

use harness::core::port::{Decision, ProposedCall};

use crate::render::line::{Line, Look, Text};
use crate::render::{not_shown, proposed_rows, visible};

/// Rows of a page that remain for the surroundings of the call.
const ROWS_AROUND: usize = 6;

/// Meaning of a typed line.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Reply {
    Decided(Decision),
    /// Show more of the call.
    View,
    /// Deny the call; the next line is the reason.
    Explain,
    /// Invalid input, with the reason.
    Again(&'static str),
}

/// A call in a prompt, and how much of it was shown.
#[derive(Debug)]
pub(super) struct Question {
    rows: Vec<String>,
    shown: usize,
    reason: String,
    page: usize,
    width: usize,
}

impl Question {
    /// Creates a prompt for a terminal of that size.
    pub(super) fn new(proposed: &ProposedCall, (columns, rows): (usize, usize)) -> Self {
        // The last column stays free, because terminals differ in what they do there.
        let width = columns.saturating_sub(3).max(8);
        let rows_of_call = proposed_rows(proposed, width);
        Self {
            rows: rows_of_call.iter().map(Line::plain).collect(),
            shown: 0,
            reason: visible(&proposed.reason).into_owned(),
            page: rows.saturating_sub(ROWS_AROUND).max(3),
            width,
        }
    }

    /// Next page of the call. The first page starts with the reason; each page ends with the number of hidden characters.
    pub(super) fn next_page(&mut self) -> String {
        let first = self.shown == 0;
        let page: Vec<&str> = self.rows.iter().skip(self.shown).take(self.page).map(String::as_str).collect();
        let indent = if first { "? " } else { "  " };
        let mut text = format!("{indent}{}\n", page.join("\n  "));
        self.shown += page.len();
        if first && !self.reason.is_empty() {
            let mut reason = Text::default();
            reason.push(&self.reason, &Look::default());
            for row in reason.wrap(self.width) {
                let _ = writeln!(text, "  {}", row.plain());
            }
        }
        let hidden = self.hidden();
        if hidden > 0 {
            let _ = writeln!(text, "  … {}", not_shown(hidden, self.rows.len() - self.shown));
        }
        text
    }

    /// Characters of the call that were not shown yet.
    fn hidden(&self) -> usize {
        self.rows.iter().skip(self.shown).map(|row| row.chars().count()).sum()
    }

    /// The prompt with the possible replies; `y` requires that the whole call was shown.
    pub(super) fn prompt(&self) -> &'static str {
        match self.hidden() {
            0 => "  run it? [y]es, [n]o, [d]eny with a reason, [l]ater: ",
            _ => "  run it? [v]iew more, [n]o, [d]eny with a reason, [l]ater: ",
        }
    }

    /// Parses a typed line.
    pub(super) fn reply(&self, line: &str) -> Reply {
        let is_whole = self.hidden() == 0;
        match line.trim().to_lowercase().as_str() {
            "y" | "yes" if is_whole => Reply::Decided(Decision::Granted),
            "y" | "yes" => Reply::Again("view the whole call first; v shows more"),
            "n" | "no" => Reply::Decided(Decision::Denied { reason: DENIED.to_owned() }),
            "l" | "later" => Reply::Decided(Decision::Later),
            "d" | "deny" => Reply::Explain,
            "v" | "view" if is_whole => Reply::Again("the whole call is shown"),
            "v" | "view" => Reply::View,
            _ => Reply::Again("invalid answer"),
        }
    }
}

/// Default reason for the model.
const DENIED: &str = "not approved";

/// A denial with a typed reason.
pub(super) fn denied(reason: &str) -> Decision {
    let reason = reason.trim();
    Decision::Denied { reason: if reason.is_empty() { DENIED } else { reason }.to_owned() }
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use harness::core::Json;
    use harness::core::message::ToolCall;
    use harness::core::tool::ToolDef;

    use super::*;

    fn question(arguments: &str) -> Question {
        let call = ToolCall::new("p1", "pay", Json::parse(arguments).unwrap());
        let proposed = ProposedCall::new(Arc::new(call), ToolDef::new("pay", "Pays"), "main".into(), 1);
        let mut question = Question::new(&proposed.held("it needs approval"), (40, 12));
        assert!(question.next_page().starts_with("? pay"));
        question
    }

    #[test]
    fn fault_02_only_what_is_offered_is_an_answer() {
        let question = question("{}");
        let denied = |reason: &str| Reply::Decided(Decision::Denied { reason: reason.to_owned() });
        assert_eq!(question.reply("Yes\n"), Reply::Decided(Decision::Granted));
        assert_eq!(question.reply("n\n"), denied("not approved"));
        assert_eq!(question.reply("l\n"), Reply::Decided(Decision::Later));
        assert_eq!(question.reply("d\n"), Reply::Explain);
        for line in ["\n", "too much\n", "yy\n", "v\n", "never\n"] {
            assert!(matches!(question.reply(line), Reply::Again(_)), "{line}");
        }
    }

    #[test]
    fn fault_01_a_long_call_runs_only_after_its_last_page() {
        let note = "x".repeat(400);
        let mut question = question(&format!(r#"{{"note":"{note}","account":"ATTACKER"}}"#));
        assert!(question.prompt().contains("[v]iew more") && !question.prompt().contains("[y]es"));
        assert!(matches!(question.reply("y\n"), Reply::Again(_)));
        let mut pages = String::new();
        while question.reply("v\n") == Reply::View {
            pages.push_str(&question.next_page());
        }
        assert!(pages.contains("ATTACKER"), "{pages}");
        assert!(question.prompt().contains("[y]es"));
        assert_eq!(question.reply("y\n"), Reply::Decided(Decision::Granted));
    }
}
