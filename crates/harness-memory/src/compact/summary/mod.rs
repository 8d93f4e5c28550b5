//! Structured summaries: what is left of a part of a conversation, by kind, so that nothing of a kind is
//! lost when a summary is summarized again.

mod check;
mod merge;
mod parse;
mod render;
mod types;

pub use check::Replaced;
pub use types::{
    ArtifactReference, Decision, OpenItem, Priority, SpanReference, StructuredSummary, ToolOutcomeSummary,
};

/// The form of the summaries that are written now.
pub const SCHEMA_VERSION: &str = "v1.0";
