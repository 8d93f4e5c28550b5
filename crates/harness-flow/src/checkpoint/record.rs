//! What lies in the storage.

use std::sync::Arc;

use harness_core::limits::Amount;
use harness_core::message::Message;
use harness_core::{Json, RunId, ThreadId, Time};
use serde::{Deserialize, Deserializer, Serialize};

use crate::StepKind;
use crate::context::Data;
use crate::log::Logged;

/// The version of all records.
pub(super) const VERSION: u64 = 1;

/// What an execution began with.
#[derive(Clone, Debug, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub(crate) struct Beginning {
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) thread: Option<ThreadId>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) resource: Option<Arc<str>>,
    pub(crate) data: Data,
    #[serde(default)]
    pub(crate) messages: Vec<Arc<Message>>,
    pub(crate) budget: Amount,
    pub(crate) at: Time,
}

/// The record of the beginning, as it is written.
#[derive(Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub(super) struct Start<B> {
    pub(super) schema_version: u64,
    pub(super) beginning: B,
}

/// The version of a record, whatever else it holds.
#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
pub(super) struct Version {
    pub(super) schema_version: u64,
}

/// What one step gave, or only what it spent.
#[derive(Clone, Debug, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub(crate) struct Record {
    pub(super) path: Arc<str>,
    /// Where the context begins that the step belongs to.
    pub(super) context: Arc<str>,
    pub(super) kind: StepKind,
    pub(super) at: Time,
    /// A call had begun, and nothing more is known here.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub(super) begun: bool,
    #[serde(default, skip_serializing_if = "Option::is_none", deserialize_with = "present")]
    pub(super) output: Option<Json>,
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub(super) messages: Vec<Logged>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(super) data: Option<Data>,
    #[serde(default)]
    pub(super) spent: Amount,
}

/// An output of `null` is an output.
fn present<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Option<Json>, D::Error> {
    Json::deserialize(deserializer).map(Some)
}

/// What the keys of an execution begin with. A name with a colon cannot reach into another's keys.
pub(super) fn prefix(id: &RunId) -> String {
    format!("flow:{}:", id.as_str().replace('%', "%25").replace(':', "%3A"))
}
