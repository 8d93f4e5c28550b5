//! Contributions of layers to a view, and omissions.

use std::sync::Arc;

use harness_core::ModelName;
use harness_core::outcome::TotalUsage;
use serde::{Deserialize, Serialize};

use super::anchor::ReanchorReason;
use super::def::{LayerId, Placement};

/// Where a layer's block came from.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
#[non_exhaustive]
pub enum Served {
    /// From its recall.
    Fresh,
    /// From the anchor, as it was when the anchor was made.
    Pinned,
}

/// One layer in a view.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
#[non_exhaustive]
pub struct LayerShare {
    /// Layer that is shown.
    pub layer_id: LayerId,
    /// Tokens of what it shows.
    pub token_count: u64,
    /// Messages that it shows.
    pub items: usize,
    /// Where: `anchor` or `live`.
    pub placement: Placement,
    /// From where.
    pub served: Served,
    /// Whether its block in the anchor is out of date.
    pub changed: bool,
    /// Changes per view.
    pub churn_rate: f64,
    /// Tokens that its changes would have billed again without the anchor.
    pub rebill_tokens: u64,
}

/// The anchor of a view.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
#[non_exhaustive]
pub struct EpochFigures {
    /// `LINEAGE#GENERATION`.
    pub id: String,
    /// Views that it served, this one included.
    pub age: u32,
    /// Tokens before the history.
    pub anchor_tokens: u64,
    /// Tokens of layers after the history.
    pub live_tokens: u64,
    /// Tokens of what brings the anchor up to date.
    pub delta_tokens: u64,
    /// Reason for it; only in its first view.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub reanchor_reason: Option<ReanchorReason>,
}

/// Reason for an omission.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
#[non_exhaustive]
pub enum DropReason {
    /// There was no room.
    Budget,
    /// A layer chose another part of the history.
    Projection,
}

/// Something that is not in a view.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
#[non_exhaustive]
pub struct Dropped {
    /// The layer; `None` is the history.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub layer_id: Option<LayerId>,
    /// Messages.
    pub items: usize,
    /// Their tokens.
    pub tokens: u64,
    /// Reason for the omission.
    pub reason: DropReason,
}

/// The view of one iteration in tokens, as it was sent.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
#[non_exhaustive]
pub struct LayerUsage {
    /// Id of the execution.
    pub execution_id: Arc<str>,
    /// The model that was asked, where one is known.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub model_id: Option<ModelName>,
    /// The layers that show something, by id.
    pub layers: Vec<LayerShare>,
    /// Tokens of the instructions.
    pub system_prompt_tokens: u64,
    /// Tokens of the tool definitions.
    pub tools_tokens: u64,
    /// Tokens of system messages of the transcript.
    pub system_tokens: u64,
    /// Tokens of layers before the history.
    pub anchor_tokens: u64,
    /// Tokens of the history that is shown.
    pub history_tokens: u64,
    /// Tokens of layers after the history.
    pub live_tokens: u64,
    /// Tokens of what brings the anchor up to date.
    pub supersede_tokens: u64,
    /// Sum of the tokens above.
    pub total_used_tokens: u64,
    /// Omissions.
    pub dropped: Vec<Dropped>,
    /// The anchor, where one is kept.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub epoch: Option<EpochFigures>,
    /// Answers that were accepted although a layer still had guidance, because it had been given too often.
    pub exhausted_guides: u32,
    /// Usage of model calls by layers so far.
    pub spent: TotalUsage,
}
