//! Whether a summary may stand for what it summarizes.

use super::types::StructuredSummary;
use crate::compact::error::CompactError;

/// Requirements of a summary.
#[derive(Clone, Copy, Debug, Default)]
pub struct Replaced<'a> {
    /// How many messages.
    pub messages: usize,
    /// Their tokens.
    pub tokens: u64,
    /// Facts that must be in the summary.
    pub preserve: &'a [String],
    /// The summary among them, whose open items and artifacts must be in the new one.
    pub earlier: Option<&'a StructuredSummary>,
}

impl StructuredSummary {
    /// Checks that the summary, of so many tokens, may stand for `replaced`: it says something, keeps what
    /// must be kept, and is smaller.
    ///
    /// # Errors
    /// The first of these that does not hold.
    pub fn check(&self, tokens: u64, replaced: &Replaced<'_>) -> Result<(), CompactError> {
        if self.is_empty() {
            return Err(CompactError::EmptySummary { messages: replaced.messages });
        }
        let lost = |what, lost: &str| CompactError::SummaryLost { what, lost: lost.to_owned() };
        for fact in replaced.preserve {
            if !self.facts.contains(fact) {
                return Err(lost("the fact", fact));
            }
        }
        for item in replaced.earlier.iter().flat_map(|earlier| &earlier.open_items) {
            if !self.open_items.iter().any(|kept| kept.description == item.description) {
                return Err(lost("the open item", &item.description));
            }
        }
        for artifact in replaced.earlier.iter().flat_map(|earlier| &earlier.artifacts) {
            if !self.artifacts.iter().any(|kept| kept.artifact_id == artifact.artifact_id) {
                return Err(lost("the artifact", &artifact.artifact_id));
            }
        }
        if tokens >= replaced.tokens {
            return Err(CompactError::SummaryTooLarge { tokens, replaced: replaced.tokens });
        }
        Ok(())
    }
}
