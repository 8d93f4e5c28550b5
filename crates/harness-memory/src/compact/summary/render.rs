//! A summary as text for a model.

use std::fmt::Write as _;

use super::types::{OpenItem, Priority, StructuredSummary, ToolOutcomeSummary};
use crate::compact::durability::{EnvelopeOutcome, pairs};

impl StructuredSummary {
    /// The summary as text: sections in a fixed order, entries sorted, so that the same summary is always
    /// the same text. Empty when nothing is said.
    pub fn render(&self) -> String {
        let mut facts: Vec<&String> = self.facts.iter().collect();
        facts.sort();
        let mut decisions: Vec<_> = self.decisions.iter().collect();
        decisions.sort_by_key(|decision| decision.turn_number);
        let mut items: Vec<_> = self.open_items.iter().collect();
        items.sort_by(|a, b| (a.priority, &a.description).cmp(&(b.priority, &b.description)));
        let mut artifacts: Vec<_> = self.artifacts.iter().collect();
        artifacts.sort_by(|a, b| a.artifact_id.cmp(&b.artifact_id));

        let sections = [
            section("**Key Facts:**", facts.into_iter().map(|fact| format!("- {fact}"))),
            section(
                "**Decisions Made:**",
                decisions.into_iter().map(|decision| {
                    let line = format!("- [Turn {}] {}", decision.turn_number, decision.decision);
                    match decision.rationale.as_str() {
                        "" => line,
                        rationale => format!("{line}\n  Rationale: {rationale}"),
                    }
                }),
            ),
            section("**Open Items:**", items.into_iter().map(item)),
            section(
                "**Externalized Content:**",
                artifacts.into_iter().map(|artifact| {
                    let (id, hint) = (&artifact.artifact_id, &artifact.rehydrate_hint);
                    format!("- [{id}] {}\n  Hint: {hint}", artifact.description)
                }),
            ),
            section("**Tool Results:**", self.tool_outcomes.iter().map(outcome)),
            self.current_task
                .as_deref()
                .filter(|task| !task.is_empty())
                .map_or_else(String::new, |task| format!("**Current Task:** {task}")),
            section(
                "**Current Plan:**",
                (1..).zip(self.current_plan.iter().flatten()).map(|(at, step)| format!("{at}. {step}")),
            ),
        ];
        let filled: Vec<&str> =
            sections.iter().map(String::as_str).filter(|section| !section.is_empty()).collect();
        filled.join("\n\n").trim().to_owned()
    }
}

/// A heading and its lines; nothing without lines.
fn section(heading: &str, lines: impl Iterator<Item = String>) -> String {
    let mut text = String::new();
    for line in lines {
        text = if text.is_empty() { heading.to_owned() } else { text };
        let _ = write!(text, "\n{line}");
    }
    text
}

fn item(item: &OpenItem) -> String {
    let mark = match item.priority {
        Priority::High => "(!)",
        Priority::Medium => "",
        Priority::Low => "(low)",
    };
    format!("- {mark} {}", item.description).trim().to_owned()
}

fn outcome(outcome: &ToolOutcomeSummary) -> String {
    let mark = match outcome.outcome {
        EnvelopeOutcome::Success => "✓",
        EnvelopeOutcome::Failure => "✗",
        EnvelopeOutcome::Partial => "~",
    };
    let mut line = format!("- {mark} {}", outcome.tool_name);
    if !outcome.key_fields.is_empty() {
        let _ = write!(line, " ({})", pairs(&outcome.key_fields));
    }
    if let Some(error) = outcome.error_message.as_deref().filter(|error| !error.is_empty()) {
        let _ = write!(line, " Error: {error}");
    }
    line
}
