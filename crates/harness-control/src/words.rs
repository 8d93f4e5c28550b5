//! Texts of feedback.

use std::fmt::{Display, Write as _};

use super::feedback::Feedback;
use super::spec::{ControlSpec, GuidanceSpec};
use crate::work::{ItemId, ItemStatus, WorkItem, WorkLedger};

/// Maximum number of facts of one kind.
const FACTS: usize = 20;

impl Feedback {
    /// Builds the message for the model: the configured or default text, then at most 20 facts of each kind.
    pub(crate) fn message(&self, spec: &ControlSpec, ledger: &WorkLedger) -> String {
        let default = self.default_text(spec);
        let mut text = spec.guidance.text(self.kind().as_str(), &default).to_owned();
        match self {
            Self::Continuation { .. } => {
                open_items(&mut text, spec, &ledger.incomplete().collect::<Vec<_>>());
            }
            Self::ContractGap { descriptions, questions, .. } => {
                list(&mut text, descriptions, FACTS);
                if !questions.is_empty() {
                    text.push_str("\nThese questions are open; ask the user those you cannot answer:");
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

    fn default_text(&self, spec: &ControlSpec) -> String {
        let signal =
            spec.signal.as_ref().map_or("an answer without tool calls", |signal| signal.tool.as_str());
        match self {
            Self::Continuation { .. } => format!(
                "You stopped without a tool call. Do not repeat yourself. If everything is done, call `{signal}`; \
                 otherwise make the next tool call, or try a different approach."
            ),
            Self::WorkCompleteMissing { .. } => format!(
                "The work does not count as finished yet. If it is finished, call `{signal}` with a summary; \
                 otherwise continue."
            ),
            Self::ContractGap { .. } => {
                "The work is not finished: these requirements are not met.".to_owned()
            }
            Self::Acceptability { .. } => format!(
                "By your own report, the work is not acceptable yet. Fix that, then call `{signal}` again."
            ),
            Self::ControlInvariant { .. } => {
                "An audit failed, and no revision has answered it. Request a revision \
                                              of the audited items, and complete it. Failed checks:"
                    .to_owned()
            }
            Self::WorkItemsIncomplete { .. } => {
                "The work is not finished: these work items are open. Complete \
                                                 them, or skip those that are no longer needed."
                    .to_owned()
            }
            Self::HookBlock { gate, .. } => format!("`{gate}` did not accept the work yet:"),
            Self::StallNudge { turns } => format!(
                "The last {turns} turns made no progress. Do something different: another tool, other arguments, \
                 a smaller step; or explain what blocks you."
            ),
        }
    }

    /// Human-readable summary.
    pub(crate) fn summary(&self) -> String {
        match self {
            Self::Continuation { count, max } => format!("no tool was called ({count} of {max})"),
            Self::WorkCompleteMissing { .. } => "the completion signal is missing".to_owned(),
            Self::ContractGap { unmet, .. } => format!("not met: {}", unmet.join(", ")),
            Self::Acceptability { faults } => faults.join("; "),
            Self::ControlInvariant { failed_checks, .. } => format!("failed: {}", failed_checks.join(", ")),
            Self::WorkItemsIncomplete { item_ids } => format!("open: {}", item_ids.join(", ")),
            Self::HookBlock { gate, reason } => format!("{gate}: {reason}"),
            Self::StallNudge { turns } => format!("no progress in {turns} turns"),
        }
    }
}

/// Appends one line per fact, and the number of omitted ones.
pub(super) fn list<T: Display>(text: &mut String, facts: &[T], most: usize) {
    for fact in facts.iter().take(most) {
        let _ = write!(text, "\n- {fact}");
    }
    if facts.len() > most {
        let _ = write!(text, "\n- and {} more", facts.len() - most);
    }
}

/// Appends one line per work item.
pub(super) fn open_items(text: &mut String, spec: &ControlSpec, open: &[&WorkItem]) {
    let Some(work) = &spec.work else { return };
    list(text, open, usize::try_from(work.shown).unwrap_or(usize::MAX));
}

/// Appends one line per work item, by id.
fn items(text: &mut String, spec: &ControlSpec, ledger: &WorkLedger, ids: &[String]) {
    let Some(work) = &spec.work else { return };
    let items = ids.iter().map(|id| match ledger.get(&ItemId::from(id.as_str())) {
        // Only strict automation lists a skipped item: a revision without a reason.
        Ok(item) if item.status == ItemStatus::Skipped && !item.requires_revision => {
            format!("{item}: skipped without a note; explain in `notes` why the revision is not needed")
        }
        Ok(item) => item.to_string(),
        Err(_) => id.clone(),
    });
    list(text, &items.collect::<Vec<_>>(), usize::try_from(work.shown).unwrap_or(usize::MAX));
}

impl GuidanceSpec {
    /// Marks around the guidance of a request, which set it apart from the user's text.
    pub(super) const MARKS: (&'static str, &'static str) = ("<harness-guidance>", "</harness-guidance>");
}
