//! Data of a session outside the transcript.

use std::sync::Arc;

use harness_core::message::{Message, UserMessage};
use harness_core::{EntryId, Json};
use serde::ser::SerializeMap;
use serde::{Deserialize, Serialize};

/// A line of a session that is not a message and belongs to no run.
///
/// Models receive a branch summary as text of the user, and never the others.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum Note {
    /// Summary of an abandoned branch.
    BranchSummary {
        /// The last entry of that branch.
        from: EntryId,
        /// Text of the summary.
        summary: String,
        /// The caller's data.
        details: Option<Json>,
    },
    /// Something of the application.
    Custom {
        /// The application's word for it.
        custom_type: String,
        /// Data of the application.
        data: Option<Json>,
    },
    /// Configuration of model calls from here on.
    ConfigChange {
        /// Selected model.
        model: Option<ModelRef>,
        /// How long it is to think.
        thinking_level: Option<String>,
        /// The tools that may be called, by name.
        active_tools: Option<Vec<String>>,
    },
    /// A name for an entry.
    Label {
        /// Id of the labelled entry.
        target: EntryId,
        /// Label; `None` removes it.
        label: Option<String>,
    },
    /// Name of the session.
    SessionInfo {
        /// Human-readable name; the last one applies.
        name: Option<String>,
        /// The caller's data.
        meta: Option<Json>,
    },
}

/// A model and its provider.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct ModelRef {
    /// The provider, where it is known.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub provider: Option<String>,
    /// The model, as its provider calls it.
    pub id: String,
}

impl Note {
    /// Gives an entry a name.
    pub fn label(target: EntryId, label: impl Into<String>) -> Self {
        Self::Label { target, label: Some(label.into()) }
    }

    /// Takes the name of an entry away.
    pub fn no_label(target: EntryId) -> Self {
        Self::Label { target, label: None }
    }

    /// The type of its line.
    pub fn kind(&self) -> &'static str {
        match self {
            Self::BranchSummary { .. } => "branch_summary",
            Self::Custom { .. } => "custom",
            Self::ConfigChange { .. } => "config_change",
            Self::Label { .. } => "label",
            Self::SessionInfo { .. } => "session_info",
        }
    }

    /// The entry that it speaks of.
    pub(crate) fn target(&self) -> Option<&EntryId> {
        match self {
            Self::Label { target, .. } => Some(target),
            Self::BranchSummary { from, .. } => Some(from),
            Self::Custom { .. } | Self::ConfigChange { .. } | Self::SessionInfo { .. } => None,
        }
    }

    /// Reads a line of type `kind`; `None` when it is none of these.
    pub(crate) fn read(kind: &str, text: &str) -> Option<Result<Self, serde_json::Error>> {
        Some(match kind {
            "branch_summary" => serde_json::from_str(text).map(|line: BranchSummaryLine| {
                Self::BranchSummary { from: line.from_id, summary: line.summary, details: line.details }
            }),
            "custom" => serde_json::from_str(text)
                .map(|line: CustomLine| Self::Custom { custom_type: line.custom_type, data: line.data }),
            "config_change" => serde_json::from_str(text).map(|line: ConfigLine| Self::ConfigChange {
                model: line.model,
                thinking_level: line.thinking_level,
                active_tools: line.active_tools,
            }),
            "label" => serde_json::from_str(text)
                .map(|line: LabelLine| Self::Label { target: line.target_id, label: line.label }),
            "session_info" => serde_json::from_str(text)
                .map(|line: InfoLine| Self::SessionInfo { name: line.name, meta: line.meta }),
            _ => return None,
        })
    }

    /// Writes the part of the line that is its own.
    pub(crate) fn write<M: SerializeMap>(&self, map: &mut M) -> Result<(), M::Error> {
        match self {
            Self::BranchSummary { from, summary, details } => {
                map.serialize_entry("from_id", from)?;
                map.serialize_entry("summary", summary)?;
                some(map, "details", details.as_ref())
            }
            Self::Custom { custom_type, data } => {
                map.serialize_entry("custom_type", custom_type)?;
                some(map, "data", data.as_ref())
            }
            Self::ConfigChange { model, thinking_level, active_tools } => {
                some(map, "model", model.as_ref())?;
                some(map, "thinking_level", thinking_level.as_ref())?;
                some(map, "active_tools", active_tools.as_ref())
            }
            Self::Label { target, label } => {
                map.serialize_entry("target_id", target)?;
                some(map, "label", label.as_ref())
            }
            Self::SessionInfo { name, meta } => {
                some(map, "name", name.as_ref())?;
                some(map, "meta", meta.as_ref())
            }
        }
    }
}

/// The message that stands for a branch that was left.
pub(crate) fn branch_summary(summary: &str) -> Arc<Message> {
    summarized("What was tried on another branch, in short:", summary)
}

/// The message that stands for what a summary is of.
pub(crate) fn summarized(lead: &str, summary: &str) -> Arc<Message> {
    let text = format!("{lead}\n\n<summary>\n{summary}\n</summary>");
    Arc::new(UserMessage::text(text).from_origin("summary").into())
}

fn some<M: SerializeMap, T: Serialize>(map: &mut M, key: &str, value: Option<&T>) -> Result<(), M::Error> {
    value.map_or(Ok(()), |value| map.serialize_entry(key, value))
}

#[derive(Deserialize)]
struct BranchSummaryLine {
    from_id: EntryId,
    summary: String,
    #[serde(default)]
    details: Option<Json>,
}

#[derive(Deserialize)]
struct CustomLine {
    custom_type: String,
    #[serde(default)]
    data: Option<Json>,
}

#[derive(Deserialize)]
struct ConfigLine {
    #[serde(default)]
    model: Option<ModelRef>,
    #[serde(default)]
    thinking_level: Option<String>,
    #[serde(default)]
    active_tools: Option<Vec<String>>,
}

#[derive(Deserialize)]
struct LabelLine {
    target_id: EntryId,
    #[serde(default)]
    label: Option<String>,
}

#[derive(Deserialize)]
struct InfoLine {
    #[serde(default)]
    name: Option<String>,
    #[serde(default)]
    meta: Option<Json>,
}
