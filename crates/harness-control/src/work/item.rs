//! Work items.

use std::fmt;

use harness_core::Time;
use harness_core::canonical::sha256_hex;
use serde::{Deserialize, Serialize};
use strum::{EnumString, IntoStaticStr, VariantArray};

/// Id of a work item: eight hexadecimal digits, counted from `00000001` in each ledger, equal in a replay.
#[derive(Clone, Debug, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(transparent)]
pub struct ItemId(String);

impl ItemId {
    pub(super) fn numbered(number: u32) -> Self {
        Self(format!("{number:08x}"))
    }

    /// Id as text.
    pub fn as_str(&self) -> &str {
        &self.0
    }
}

impl From<&str> for ItemId {
    fn from(text: &str) -> Self {
        Self(text.to_owned())
    }
}

impl fmt::Display for ItemId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

/// Status of an item.
#[derive(
    Clone,
    Copy,
    Debug,
    Default,
    PartialEq,
    Eq,
    Serialize,
    Deserialize,
    EnumString,
    IntoStaticStr,
    VariantArray,
)]
#[serde(rename_all = "snake_case")]
#[strum(serialize_all = "snake_case")]
#[non_exhaustive]
pub enum ItemStatus {
    /// Not started.
    #[default]
    Pending,
    /// Started.
    InProgress,
    /// Done.
    Done,
    /// No longer needed.
    Skipped,
}

impl ItemStatus {
    /// Every status, in order.
    pub const ALL: &'static [Self] = <Self as VariantArray>::VARIANTS;

    /// Wire name.
    pub fn as_str(self) -> &'static str {
        self.into()
    }

    /// Whether the item is done or skipped.
    pub fn is_closed(self) -> bool {
        matches!(self, Self::Done | Self::Skipped)
    }

    /// Mark in a list.
    pub fn mark(self) -> &'static str {
        match self {
            Self::Pending => "[ ]",
            Self::InProgress => "[~]",
            Self::Done => "[x]",
            Self::Skipped => "[-]",
        }
    }
}

/// Priority of an item.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, EnumString, IntoStaticStr)]
#[serde(rename_all = "snake_case")]
#[strum(serialize_all = "snake_case")]
#[non_exhaustive]
pub enum ItemPriority {
    /// Before others.
    High,
    /// Like others.
    #[default]
    Medium,
    /// After others.
    Low,
}

impl ItemPriority {
    /// Wire name.
    pub fn as_str(self) -> &'static str {
        self.into()
    }
}

/// Role of an item's artifact.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, EnumString, IntoStaticStr)]
#[serde(rename_all = "snake_case")]
#[strum(serialize_all = "snake_case")]
#[non_exhaustive]
pub enum ItemRole {
    /// Delivered to the user.
    Deliverable,
    /// Used by the agent.
    #[default]
    Working,
    /// Judges other items; see [`AuditReport`](super::AuditReport).
    Control,
}

impl ItemRole {
    /// Wire name.
    pub fn as_str(self) -> &'static str {
        self.into()
    }
}

/// Work item with its artifact.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[non_exhaustive]
pub struct WorkItem {
    /// Id of the item.
    pub id: ItemId,
    /// Title of the work.
    pub title: String,
    /// Status of the item.
    #[serde(default)]
    pub status: ItemStatus,
    /// Priority of the item.
    #[serde(default)]
    pub priority: ItemPriority,
    /// Notes; may be empty.
    #[serde(default)]
    pub notes: String,
    /// Cleaned artifact; empty until it is stored.
    #[serde(default)]
    pub artifact: String,
    /// Original artifact, if cleaning changed it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub artifact_raw: Option<String>,
    /// Number of the ledger change that stored the artifact.
    #[serde(default)]
    pub stored_at_change: u32,
    /// Role of the artifact.
    #[serde(default, deserialize_with = "known_role")]
    pub artifact_role: ItemRole,
    /// Whether a requested revision is open.
    #[serde(default)]
    pub requires_revision: bool,
    /// Id of the revised item; empty if this is not a revision.
    #[serde(default)]
    pub revision_of: String,
    /// Id of the finished revision that replaced it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub superseded_by: Option<ItemId>,
    /// Number of the ledger change that added the item.
    #[serde(default)]
    pub added_at_change: u32,
    /// Creation time.
    #[serde(default)]
    pub created_at: Time,
    /// Time of the last change.
    #[serde(default)]
    pub updated_at: Time,
}

/// Reads an unknown role as `working`.
fn known_role<'de, D: serde::Deserializer<'de>>(deserializer: D) -> Result<ItemRole, D::Error> {
    String::deserialize(deserializer).map(|word| word.parse().unwrap_or_default())
}

/// Deliverable of a run.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[non_exhaustive]
pub struct Deliverable {
    /// Id of the item.
    pub item_id: ItemId,
    /// Title of the item.
    pub title: String,
    /// Artifact of the item.
    pub content: String,
}

/// Deliverable in an event: with its content if that is small, and size and digest.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
#[non_exhaustive]
pub struct DeliverableRef {
    /// Id of the item.
    pub item_id: ItemId,
    /// Title of the item.
    pub title: String,
    /// Size of the content in bytes.
    pub bytes: u64,
    /// SHA-256 of the content in lower-case hexadecimal.
    pub sha256: String,
    /// Content; `None` above 4 KiB. The report of the run has it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub content: Option<String>,
}

impl DeliverableRef {
    /// Maximum size of content in an event, in bytes.
    pub(crate) const INLINE: usize = 4 << 10;
}

impl From<Deliverable> for DeliverableRef {
    fn from(deliverable: Deliverable) -> Self {
        let Deliverable { item_id, title, content } = deliverable;
        let sha256 = sha256_hex(&content);
        let bytes = content.len() as u64;
        Self { item_id, title, bytes, sha256, content: (content.len() <= Self::INLINE).then_some(content) }
    }
}

impl WorkItem {
    /// Whether the artifact is delivered: in that role, not empty, and not replaced by a revision.
    pub(crate) fn is_deliverable(&self) -> bool {
        self.artifact_role == ItemRole::Deliverable
            && !self.artifact.is_empty()
            && self.superseded_by.is_none()
    }
}
