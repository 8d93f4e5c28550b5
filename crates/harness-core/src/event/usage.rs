//! Usage as a fold over events.

use super::EventKind;
use crate::outcome::{Purpose, TotalUsage};

impl TotalUsage {
    /// Counts what an event tells of usage; whether it tells any. Model calls that were cut off by an abort have
    /// no event, and are in the usage of the end alone.
    #[expect(clippy::wildcard_enum_match_arm, reason = "no other event tells of usage")]
    pub fn count(&mut self, kind: &EventKind) -> bool {
        match kind {
            EventKind::ModelStepFinished { usage, .. } => {
                self.add_call(Purpose::Answer, usage.as_deref(), true);
            }
            EventKind::ModelStepFailed { usage, .. } => {
                self.add_call(Purpose::Answer, usage.as_deref(), false);
            }
            EventKind::ModelUsageCharged { purpose, usage } => self.add(*purpose, usage),
            EventKind::ToolStarted { .. } => self.tool_calls = self.tool_calls.saturating_add(1),
            EventKind::ToolFinished { outcome, .. } | EventKind::ToolFailed { outcome, .. } => {
                let Some(usage) = &outcome.usage else { return false };
                self.add_child(usage);
            }
            _ => return false,
        }
        true
    }
}
