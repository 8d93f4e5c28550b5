//! Facts about one result that compaction uses.

use harness_core::Json;
use harness_core::message::{Block, ToolResultMessage};
use serde::{Deserialize, Serialize};

use super::determinism::DeterminismMetadata;
use super::fields::{KeyFields, pairs};
use super::policy::{DurabilityPolicies, ToolDurability};

/// How a call ended.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash, Serialize, Deserialize, strum::Display)]
#[serde(rename_all = "snake_case")]
#[strum(serialize_all = "snake_case")]
pub enum EnvelopeOutcome {
    /// It did what was asked.
    #[default]
    Success,
    /// It did not.
    Failure,
    /// It did a part.
    Partial,
}

/// Facts about a result that compaction uses.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
#[non_exhaustive]
pub struct ToolResultEnvelope {
    /// Name of the tool.
    pub tool_name: String,
    /// Id of the call.
    pub tool_call_id: String,
    /// How it ended.
    pub outcome: EnvelopeOutcome,
    /// Values that must outlive the result.
    pub key_fields: KeyFields,
    /// Durability of this result; `None` is that of the tool's policy.
    pub durability: Option<ToolDurability>,
    /// The source as it was when the tool ran.
    pub determinism: Option<DeterminismMetadata>,
    /// Start of the call, as RFC 3339.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub started_at: Option<String>,
    /// When it ended, as RFC 3339.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub completed_at: Option<String>,
}

const ENVELOPE: &str = "envelope";

impl ToolResultEnvelope {
    /// Makes the envelope of a result that bears none, from its message and the tool's policy.
    pub fn of(result: &ToolResultMessage, policies: &DurabilityPolicies) -> Self {
        Self {
            tool_name: result.tool_name.as_str().to_owned(),
            tool_call_id: result.tool_call_id.as_str().to_owned(),
            outcome: if result.is_error { EnvelopeOutcome::Failure } else { EnvelopeOutcome::Success },
            key_fields: policies.key_fields_of(result),
            ..Self::default()
        }
    }

    /// The envelope that a result bears, when it bears one.
    pub fn attached(result: &ToolResultMessage) -> Option<Self> {
        let mine = |block: &Block| {
            let Block::Extension(block) = block else { return None };
            let is_envelope = block.namespace == "harness" && block.name == ENVELOPE;
            if is_envelope { block.data.to().ok() } else { None }
        };
        result.content.iter().find_map(mine)
    }

    /// The envelope as a block for the result that it is about. No model is sent it.
    pub fn block(&self) -> Block {
        // A struct with named fields always has a JSON form.
        Block::extension("harness", ENVELOPE, Json::of(self).unwrap_or_default())
    }

    /// Durability of the result: its own, else that of the tool's policy, else `anchoring`.
    pub fn effective_durability(&self, policies: &DurabilityPolicies) -> ToolDurability {
        self.durability.unwrap_or_else(|| policies.policy_of(&self.tool_name).durability)
    }

    /// Current durability: a replayable result whose source has changed, as far as the tool's policy can
    /// determine, is not replayable.
    pub fn durability_now(&self, policies: &DurabilityPolicies) -> ToolDurability {
        let durability = self.effective_durability(policies);
        if durability != ToolDurability::Replayable {
            return durability;
        }
        let Some(capture) = &policies.policy_of(&self.tool_name).capture else { return durability };
        let unchanged =
            self.determinism.as_ref().zip(capture(self)).is_some_and(|(was, is)| !was.has_changed(&is));
        if unchanged { durability } else { ToolDurability::NonReplayable }
    }

    /// Placeholder for the cleared result.
    ///
    /// ```
    /// use harness_memory::compact::durability::ToolResultEnvelope;
    ///
    /// let mut envelope = ToolResultEnvelope::default();
    /// envelope.tool_name = "web_search".to_owned();
    /// assert_eq!(envelope.placeholder(), "[web_search: success]");
    /// ```
    pub fn placeholder(&self) -> String {
        let head = format!("[{}: {}]", self.tool_name, self.outcome);
        if self.key_fields.is_empty() {
            head
        } else {
            format!("{head}\nKey data: {}", pairs(&self.key_fields))
        }
    }
}

/// Text of a result.
pub(in crate::compact) fn text_of(result: &ToolResultMessage) -> String {
    result.content.iter().filter_map(Block::as_text).collect()
}
