//! The parts of a summary.

use std::sync::Arc;

use serde::{Deserialize, Serialize};

use super::SCHEMA_VERSION;
use crate::compact::durability::{EnvelopeOutcome, KeyFields};
use crate::compact::error::CompactError;

/// Which messages something stands for: by name, and from where to where they lay.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[non_exhaustive]
pub struct SpanReference {
    /// The names of the messages, in order.
    pub message_ids: Vec<Arc<str>>,
    /// The position of the first.
    pub first_turn: u64,
    /// The position of the last.
    pub last_turn: u64,
}

impl SpanReference {
    /// The messages of these names.
    ///
    /// # Errors
    /// When there is none.
    pub fn new(
        message_ids: impl IntoIterator<Item = Arc<str>>,
        first_turn: u64,
        last_turn: u64,
    ) -> Result<Self, CompactError> {
        let message_ids: Vec<_> = message_ids.into_iter().collect();
        if message_ids.is_empty() {
            return Err(CompactError::EmptySpan);
        }
        Ok(Self { message_ids, first_turn, last_turn })
    }
}

/// Something that was decided.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct Decision {
    /// Decision in words.
    pub decision: String,
    /// Reason of the decision.
    pub rationale: String,
    /// In which turn.
    pub turn_number: i64,
    /// When, as RFC 3339.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub timestamp: Option<String>,
}

/// How urgent an open item is.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Priority {
    /// It comes first.
    High,
    /// As it comes.
    #[default]
    Medium,
    /// When there is time.
    Low,
}

/// Something that is still to be done.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct OpenItem {
    /// Open task.
    pub description: String,
    /// Background of the task.
    pub context: String,
    /// How urgent it is.
    pub priority: Priority,
}

/// A content that is stored elsewhere.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct ArtifactReference {
    /// Its name in the store.
    pub artifact_id: String,
    /// Description of the content.
    pub description: String,
    /// When to read it.
    pub rehydrate_hint: String,
}

/// Outcome of a tool call.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct ToolOutcomeSummary {
    /// Name of the tool.
    pub tool_name: String,
    /// How it ended.
    pub outcome: EnvelopeOutcome,
    /// Values that must be kept.
    pub key_fields: KeyFields,
    /// Error message.
    pub error_message: Option<String>,
}

/// Structured summary of a part of a conversation.
///
/// ```
/// use harness_memory::compact::summary::{SpanReference, StructuredSummary};
///
/// let span = SpanReference::new(["m1".into(), "m2".into()], 0, 1)?;
/// let reply = r#"```json
/// {"facts": ["The budget is 900."], "current_task": "pick a vendor"}
/// ```"#;
/// let summary = StructuredSummary::parse(reply, span, &["The site is Oslo.".to_owned()])?;
/// assert_eq!(
///     summary.render(),
///     "**Key Facts:**\n- The budget is 900.\n- The site is Oslo.\n\n**Current Task:** pick a vendor"
/// );
/// # Ok::<(), harness_memory::compact::CompactError>(())
/// ```
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(default)]
#[non_exhaustive]
pub struct StructuredSummary {
    /// The form of the summary; see [`SCHEMA_VERSION`].
    pub schema_version: String,
    /// Summarized messages.
    pub span: SpanReference,
    /// Known facts.
    pub facts: Vec<String>,
    /// Decisions made.
    pub decisions: Vec<Decision>,
    /// Open tasks.
    pub open_items: Vec<OpenItem>,
    /// Contents stored elsewhere.
    pub artifacts: Vec<ArtifactReference>,
    /// Outcomes of tool calls.
    pub tool_outcomes: Vec<ToolOutcomeSummary>,
    /// Current task.
    pub current_task: Option<String>,
    /// In which steps.
    pub current_plan: Option<Vec<String>>,
}

impl Default for StructuredSummary {
    fn default() -> Self {
        Self {
            schema_version: SCHEMA_VERSION.to_owned(),
            span: SpanReference::default(),
            facts: Vec::new(),
            decisions: Vec::new(),
            open_items: Vec::new(),
            artifacts: Vec::new(),
            tool_outcomes: Vec::new(),
            current_task: None,
            current_plan: None,
        }
    }
}

impl StructuredSummary {
    /// An empty summary of a span, to be filled.
    pub fn of(span: SpanReference) -> Self {
        Self { span, ..Self::default() }
    }

    /// Whether it says nothing.
    pub fn is_empty(&self) -> bool {
        self.render().is_empty()
    }
}
