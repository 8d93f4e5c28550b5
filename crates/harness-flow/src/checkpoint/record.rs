//! Stored form of the ledger.

use std::sync::Arc;

use harness_core::limits::Amount;
use harness_core::message::Message;
use harness_core::{Json, RunId, ThreadId, Time};
use serde::{Deserialize, Deserializer, Serialize};

use crate::StepKind;
use crate::context::Data;
use crate::log::Logged;

/// Version of all records.
pub(super) const VERSION: u64 = 1;

/// Initial values of an execution.
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

/// Start record.
#[derive(Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub(super) struct Start<B> {
    pub(super) schema_version: u64,
    pub(super) beginning: B,
}

/// Version field of a start record.
#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
pub(super) struct Version {
    pub(super) schema_version: u64,
}

/// Result of a step, its usage, or the start of a call.
#[derive(Clone, Debug, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub(crate) struct Record {
    pub(super) path: Arc<str>,
    /// Key of the step's context.
    pub(super) context: Arc<str>,
    pub(super) kind: StepKind,
    pub(super) at: Time,
    /// Whether this is the start of a call without a result.
    #[serde(rename = "begun", default, skip_serializing_if = "std::ops::Not::not")]
    pub(super) started: bool,
    #[serde(default, skip_serializing_if = "Option::is_none", deserialize_with = "present")]
    pub(super) output: Option<Json>,
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub(super) messages: Vec<Logged>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(super) data: Option<Data>,
    #[serde(default)]
    pub(super) spent: Amount,
}

/// Reads `null` as an output.
fn present<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Option<Json>, D::Error> {
    Json::deserialize(deserializer).map(Some)
}

/// Key prefix of an execution. Colons of the id are escaped, so that executions cannot share keys.
pub(super) fn prefix(id: &RunId) -> String {
    format!("flow:{}:", id.as_str().replace('%', "%25").replace(':', "%3A"))
}
