//! The words in which feedback is told.

use std::fmt::{Display, Write as _};

use super::feedback::Feedback;
use super::spec::{ControlSpec, GuidanceSpec};
use crate::work::{ItemId, ItemStatus, WorkItem, WorkLedger};

/// Facts of one kind that are told at most.
const FACTS: usize = 20;

impl Feedback {
    /// The message that the model is told: the configured or usual words, then the facts, 20 of each kind at
    /// most.
    pub(crate) fn message(&self, spec: &ControlSpec, ledger: &WorkLedger) -> String {
        let usual = self.usual(spec);
        let mut text = spec.guidance.text(self.kind().as_str(), &usual).to_owned();
        match self {
            Self::Continuation { .. } => {
                open_items(&mut text, spec, &ledger.incomplete().collect::<Vec<_>>());
            }
            Self::ContractGap { descriptions, questions, .. } => {
                list(&mut text, descriptions, FACTS);
                if !questions.is_empty() {
                    text.push_str("\nThese questions are open; ask the user what you can not answer:");
                    list(&mut text, questions, FACTS);
                }
            }
            Self::Acceptability { faults } => list(&mut text, faults, FACTS),
            Self::ControlInvariant { failed_checks, item_ids } => {
                list(&mut text, failed_checks, FACTS);
                items(&mut text, spec, ledger, item_ids);
            }
            Self::WorkItemsIncomplete { item_ids } => items(&mut text, spec, ledger, item_ids),
            Self::HookBlock { reason, .. } => {
                let _ = write!(text, "\n{}", super::state::bounded(reason));
            }
            Self::WorkCompleteMissing { .. } | Self::StallNudge { .. } => {}
        }
        text
    }

    fn usual(&self, spec: &ControlSpec) -> String {
        let signal =
            spec.signal.as_ref().map_or("an answer without tool calls", |signal| signal.tool.as_str());
        match self {
            Self::Continuation { .. } => format!(
                "You stopped without a tool call. Do not repeat what you said. If everything is done, call \
                 `{signal}`; else make the next tool call, or try another way."
            ),
            Self::WorkCompleteMissing { .. } => format!(
                "The work does not count as finished yet: when it is, call `{signal}` with a summary; when it is \
                 not, go on with it."
            ),
            Self::ContractGap { .. } => "The work is not finished: these requirements are not met.".to_owned(),
            Self::Acceptability { .. } => format!(
                "The work is not good enough yet, by your own report. Mend that, then call `{signal}` again."
            ),
            Self::ControlInvariant { .. } => "A control item failed, and nothing has answered it. Ask for a \
                                              revision of what it found wrong, and do that. The failed checks:"
                .to_owned(),
            Self::WorkItemsIncomplete { .. } => "The work is not finished: these work items are open. Do them, \
                                                 or skip those that are not needed any more."
                .to_owned(),
            Self::HookBlock { gate, .. } => format!("The work is not accepted yet, by `{gate}`:"),
            Self::StallNudge { turns } => format!(
                "The last {turns} turns changed nothing. Do something else than before: another tool, other \
                 arguments, a smaller step; or say what keeps you from going on."
            ),
        }
    }

    /// In a few words, for people.
    pub(crate) fn summary(&self) -> String {
        match self {
            Self::Continuation { count, max } => format!("no tool was called ({count} of {max})"),
            Self::WorkCompleteMissing { .. } => "the completion signal is missing".to_owned(),
            Self::ContractGap { unmet, .. } => format!("not met: {}", unmet.join(", ")),
            Self::Acceptability { faults } => faults.join("; "),
            Self::ControlInvariant { failed_checks, .. } => format!("failed: {}", failed_checks.join(", ")),
            Self::WorkItemsIncomplete { item_ids } => format!("open: {}", item_ids.join(", ")),
            Self::HookBlock { gate, reason } => format!("{gate}: {reason}"),
            Self::StallNudge { turns } => format!("{turns} turns changed nothing"),
        }
    }
}

/// Lines for facts, and how many are left out.
pub(super) fn list<T: Display>(text: &mut String, facts: &[T], most: usize) {
    for fact in facts.iter().take(most) {
        let _ = write!(text, "\n- {fact}");
    }
    if facts.len() > most {
        let _ = write!(text, "\n- and {} more", facts.len() - most);
    }
}

/// Lines for work items that are at hand.
pub(super) fn open_items(text: &mut String, spec: &ControlSpec, open: &[&WorkItem]) {
    let Some(work) = &spec.work else { return };
    list(text, open, usize::try_from(work.shown).unwrap_or(usize::MAX));
}

/// Lines for work items by their names.
fn items(text: &mut String, spec: &ControlSpec, ledger: &WorkLedger, ids: &[String]) {
    let Some(work) = &spec.work else { return };
    let items = ids.iter().map(|id| match ledger.get(&ItemId::from(id.as_str())) {
        // Only strict automation names a skipped item: a revision that lacks its reason.
        Ok(item) if item.status == ItemStatus::Skipped && !item.requires_revision => {
            format!("{item}: skipped without a note; say in `notes` why the revision is not needed")
        }
        Ok(item) => item.to_string(),
        Err(_) => id.clone(),
    });
    list(text, &items.collect::<Vec<_>>(), usize::try_from(work.shown).unwrap_or(usize::MAX));
}

impl GuidanceSpec {
    /// What opens and closes the guidance of a request, so that a model does not take it for the user's words.
    pub(super) const MARKS: (&'static str, &'static str) = ("<harness-guidance>", "</harness-guidance>");
}
