//! How a compactor knows its own messages again, after a restart, too.

use harness_core::Json;
use harness_core::message::{Block, Message, ToolResultMessage};
use serde::{Deserialize, Serialize};

/// Change of a message.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub(super) enum Form {
    /// As it was.
    Whole,
    /// Stored elsewhere; an excerpt is left.
    Stored,
    /// A line is left of a result.
    Cleared,
    /// One line is left of calls and results.
    Collapsed,
    /// It stands for many.
    Summary,
}

/// The data of the block that marks a message. No model is sent it.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub(super) struct Mark {
    pub(super) form: Form,
    /// How many messages a summary stands for.
    #[serde(default, skip_serializing_if = "is_zero")]
    pub(super) covers: usize,
    /// The summary without what surrounds it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(super) text: Option<String>,
    /// The summary's structure.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(super) data: Option<Json>,
}

#[expect(clippy::trivially_copy_pass_by_ref, reason = "serde hands a reference")]
fn is_zero(number: &usize) -> bool {
    *number == 0
}

impl Mark {
    pub(super) fn new(form: Form) -> Self {
        Self { form, covers: 0, text: None, data: None }
    }

    pub(super) fn block(&self) -> Block {
        // A struct with named fields always has a JSON form.
        Block::extension("harness", "compacted", Json::of(self).unwrap_or_default())
    }

    /// The mark that a message bears.
    pub(super) fn of(message: &Message) -> Option<Self> {
        // The mark is the last block, so that looking for it costs nothing.
        let Some(Block::Extension(block)) = message.content().last() else { return None };
        if block.namespace == "harness" && block.name == "compacted" { block.data.to().ok() } else { None }
    }
}

impl Mark {
    /// Whether something was already left out of a result.
    pub(super) fn is_on(result: &ToolResultMessage) -> bool {
        matches!(result.content.last(), Some(Block::Extension(block)) if block.name == "compacted")
    }
}
