//! The report as Markdown.

use std::fmt::Write as _;

use harness::control::contract::CoverageStatus;
use harness::control::{GateJudgement, RunStatus};
use harness::core::display::shortened;

use super::{Requirement, RunReport};
use crate::render::harmless;

impl RunReport<'_> {
    /// Renders the report as Markdown.
    pub(super) fn markdown(&self) -> String {
        let mut page = String::new();
        self.head(&mut page);
        self.requirements_table(&mut page);
        self.gates_table(&mut page);
        self.work(&mut page);
        self.completion_part(&mut page);
        self.usage_part(&mut page);
        self.next_part(&mut page);
        page
    }

    fn head(&self, page: &mut String) {
        let _ = writeln!(page, "# Run report: {}\n", self.outcome);
        let _ = writeln!(
            page,
            "**Why it stopped:** {} (`{}`).",
            self.meaning.trim_end_matches('.'),
            self.stop_reason
        );
        let waived = self.gates.iter().any(|gate| gate.judgement == GateJudgement::Waived);
        if let Some(status) = self.status {
            let told = if waived { "A gate that did not accept was waived." } else { status_text(status) };
            let _ = writeln!(page, "{told}");
        }
        let _ = writeln!(page, "\nDescriptor `{}`, `{}`.", self.descriptor.display(), self.descriptor_hash);
        if let Some(answer) = self.answer.filter(|answer| !answer.trim().is_empty()) {
            let _ = writeln!(page, "\n## Answer\n\n{}", harmless(answer).trim());
        }
    }

    fn requirements_table(&self, page: &mut String) {
        if self.requirements.is_empty() {
            return;
        }
        page.push_str("\n## Evidence\n\n| requirement | status | proof |\n|---|---|---|\n");
        for one in &self.requirements {
            let optional = if one.optional { " (optional)" } else { "" };
            let _ = writeln!(
                page,
                "| {}: {}{optional} | {} | {} |",
                cell(one.id),
                cell(one.description),
                one.status.as_str(),
                proof(one),
            );
        }
    }

    fn gates_table(&self, page: &mut String) {
        if self.gates.is_empty() {
            return;
        }
        page.push_str("\n## Gates\n\n| gate | judgement | why |\n|---|---|---|\n");
        for gate in self.gates {
            let why = gate.why.as_deref().map(cell).unwrap_or_default();
            let stands_out = matches!(gate.judgement, GateJudgement::Waived | GateJudgement::Refused);
            let mark = if stands_out { "**" } else { "" };
            let judgement = gate.judgement.as_str();
            let _ = writeln!(page, "| {} | {mark}{judgement}{mark} | {why} |", cell(gate.gate.as_str()));
        }
    }

    fn work(&self, page: &mut String) {
        if let Some(items) = self.items {
            let _ = writeln!(
                page,
                "\n## Work items\n\n{} of {} done, {} skipped.",
                items.done, items.total, items.skipped
            );
            for item in &items.open {
                let revise = if item.to_revise { ", to be revised" } else { "" };
                let _ = writeln!(page, "- [ ] {} ({}{revise})", cell(&item.title), item.status.as_str());
            }
        }
        if self.deliverables.is_empty() {
            return;
        }
        page.push_str("\n## Deliverables\n\n");
        for one in &self.deliverables {
            let file = one.file.map(|file| format!(": `{}`", file.display())).unwrap_or_default();
            let note = one.note.map(|note| format!(" ({})", cell(note))).unwrap_or_default();
            let _ = writeln!(page, "- {}{file}, {} bytes{note}", cell(one.title), one.bytes);
        }
    }

    fn completion_part(&self, page: &mut String) {
        let Some(completion) = self.completion else { return };
        let _ = writeln!(page, "\n## What the model reported\n\n{}", harmless(&completion.summary).trim());
        if let Some(confidence) = completion.confidence {
            let _ = writeln!(page, "\nConfidence: {confidence}.");
        }
        if !completion.open_questions.is_empty() {
            page.push_str("\nOpen questions:\n\n");
            for question in &completion.open_questions {
                let _ = writeln!(page, "- {}", cell(question));
            }
        }
    }

    fn usage_part(&self, page: &mut String) {
        let usage = self.usage;
        let count = |n: Option<u64>| n.map_or_else(|| "unknown".to_owned(), |n| n.to_string());
        page.push_str("\n## Usage\n\n| turns | model calls | tool calls | input tokens | output tokens | cost | time |\n");
        page.push_str("|---|---|---|---|---|---|---|\n");
        let _ = writeln!(
            page,
            "| {} | {} | {} | {} | {} | {} | {} |",
            self.turns,
            usage.model_calls,
            usage.tool_calls,
            count(usage.input_tokens),
            count(usage.output_tokens),
            usage.cost.map_or_else(|| "unknown".to_owned(), |cost| cost.to_string()),
            self.elapsed,
        );
    }

    fn next_part(&self, page: &mut String) {
        if let Some(next) = self.next {
            let _ = writeln!(page, "\n## What to do next\n\n{next}");
        }
    }
}

fn status_text(status: RunStatus) -> &'static str {
    match status {
        RunStatus::Done => "Every gate accepted the end.",
        RunStatus::Exhausted => "A limit was reached before the work was done.",
        RunStatus::Stalled => "The last turns made no progress.",
        RunStatus::AwaitingInput => "The run is waiting for input or an approval.",
        RunStatus::Failed => "A turn failed.",
        RunStatus::Cancelled => "The run was cancelled.",
        _ => "",
    }
}

/// Evidence of a requirement, or the reason for its absence.
fn proof(requirement: &Requirement<'_>) -> String {
    let latest = requirement.proof.last().filter(|_| requirement.status == CoverageStatus::Met);
    match latest {
        Some(proof) if proof.event.bytes().all(|byte| byte.is_ascii_digit()) => {
            format!("event {}: {}", proof.event, cell(proof.value))
        }
        Some(proof) => format!("{}: {}", cell(proof.event), cell(proof.value)),
        None => cell(requirement.notes),
    }
}

/// Escapes a text for a cell of a table or an item of a list.
fn cell(text: &str) -> String {
    const SHOWN: usize = 300;
    let one = harmless(text).split_whitespace().collect::<Vec<_>>().join(" ").replace('|', "\\|");
    shortened(&one, SHOWN)
}
