//! One work item.

use std::fmt;
use std::str::FromStr;

use harness_core::Time;
use harness_core::canonical::sha256_hex;
use serde::{Deserialize, Serialize};

/// The name of a work item: eight hexadecimal digits, counted from `00000001` in each ledger, so that the
/// same work has the same names in a replay.
#[derive(Clone, Debug, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(transparent)]
pub struct ItemId(String);

impl ItemId {
    pub(super) fn numbered(number: u32) -> Self {
        Self(format!("{number:08x}"))
    }

    /// The name as text.
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

/// Declares an enum of wire words.
macro_rules! words {
    ($(#[$meta:meta])* $name:ident { $( $(#[$variant_meta:meta])* $variant:ident = $word:literal ),* $(,)? }) => {
        $(#[$meta])*
        #[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize)]
        #[non_exhaustive]
        pub enum $name { $( $(#[$variant_meta])* #[serde(rename = $word)] $variant ),* }

        impl $name {
            /// All of them, in order.
            pub const ALL: &[Self] = &[$( Self::$variant ),*];

            /// The wire name.
            pub fn as_str(self) -> &'static str {
                match self { $( Self::$variant => $word ),* }
            }
        }

        impl FromStr for $name {
            type Err = ();

            fn from_str(text: &str) -> Result<Self, ()> {
                match text { $( $word => Ok(Self::$variant), )* _ => Err(()) }
            }
        }
    };
}

words! {
    /// How far an item is.
    ItemStatus {
        /// Nothing was done.
        #[default]
        Pending = "pending",
        /// Somebody is at it.
        InProgress = "in_progress",
        /// Done.
        Done = "done",
        /// Not needed any more.
        Skipped = "skipped",
    }
}

impl ItemStatus {
    /// Whether nothing is left to do: done or skipped.
    pub fn is_closed(self) -> bool {
        matches!(self, Self::Done | Self::Skipped)
    }

    /// How a list marks it.
    pub fn mark(self) -> &'static str {
        match self {
            Self::Pending => "[ ]",
            Self::InProgress => "[~]",
            Self::Done => "[x]",
            Self::Skipped => "[-]",
        }
    }
}

words! {
    /// How much an item matters.
    ItemPriority {
        /// Before others.
        High = "high",
        /// As others.
        #[default]
        Medium = "medium",
        /// After others.
        Low = "low",
    }
}

words! {
    /// What an item's artifact is for.
    ItemRole {
        /// The user gets it.
        Deliverable = "deliverable",
        /// The agent needs it on the way.
        #[default]
        Working = "working",
        /// It judges other items; see [`AuditReport`](super::AuditReport).
        Control = "control",
    }
}

/// Something to do, and its result.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[non_exhaustive]
pub struct WorkItem {
    /// Its name.
    pub id: ItemId,
    /// What is to be done.
    pub title: String,
    /// How far it is.
    #[serde(default)]
    pub status: ItemStatus,
    /// How much it matters.
    #[serde(default)]
    pub priority: ItemPriority,
    /// More about it; empty when there is nothing.
    #[serde(default)]
    pub notes: String,
    /// What came of it, cleaned; empty when there is nothing yet.
    #[serde(default)]
    pub artifact: String,
    /// What came of it as it was given, when cleaning changed it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub artifact_raw: Option<String>,
    /// The number of the change of the ledger that stored the artifact; tells what came later.
    #[serde(default)]
    pub stored_at_change: u32,
    /// What the artifact is for.
    #[serde(default, deserialize_with = "known_role")]
    pub artifact_role: ItemRole,
    /// Whether a revision of it is asked for and open.
    #[serde(default)]
    pub requires_revision: bool,
    /// The item that this one revises; empty when none.
    #[serde(default)]
    pub revision_of: String,
    /// The finished revision that took its place.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub superseded_by: Option<ItemId>,
    /// The number of the change of the ledger that added it.
    #[serde(default)]
    pub added_at_change: u32,
    /// When it was added.
    #[serde(default)]
    pub created_at: Time,
    /// When it was changed last.
    #[serde(default)]
    pub updated_at: Time,
}

/// A role that this version does not know is `working`.
fn known_role<'de, D: serde::Deserializer<'de>>(deserializer: D) -> Result<ItemRole, D::Error> {
    String::deserialize(deserializer).map(|word| word.parse().unwrap_or_default())
}

/// What a run hands over.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[non_exhaustive]
pub struct Deliverable {
    /// The item.
    pub item_id: ItemId,
    /// Its title.
    pub title: String,
    /// Its artifact.
    pub content: String,
}

/// A deliverable in an event: its content when it is small, else its size and digest.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
#[non_exhaustive]
pub struct DeliverableRef {
    /// The item.
    pub item_id: ItemId,
    /// Its title.
    pub title: String,
    /// Size of the content in bytes.
    pub bytes: u64,
    /// SHA-256 of the content, as lower-case hexadecimal digits.
    pub sha256: String,
    /// The content; `None` above 4 KiB. The end of the run and the ledger have it whole.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub content: Option<String>,
}

impl DeliverableRef {
    /// Largest content that an event carries, in bytes.
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
    /// Whether its artifact goes to the user: of that role, not empty, and not replaced by a revision.
    pub(crate) fn is_deliverable(&self) -> bool {
        self.artifact_role == ItemRole::Deliverable
            && !self.artifact.is_empty()
            && self.superseded_by.is_none()
    }
}
