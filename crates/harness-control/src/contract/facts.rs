//! What a contract has to know from outside of its run, and what was found.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

use super::{CustomChecks, FileFact};

/// Something to be held against a JSON Schema.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct SchemaAsk {
    /// The schema.
    pub schema: serde_json::Value,
    /// What.
    pub data: SchemaData,
}

/// What is held against a schema.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub enum SchemaData {
    /// Data of the run.
    Value(serde_json::Value),
    /// Data of the application, by name.
    Named(String),
}

/// What a decision needs to know.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", default)]
#[non_exhaustive]
pub struct FactsAsk {
    /// Files, as the contract writes them.
    pub files: Vec<String>,
    /// Checks of the application, by name.
    pub checks: Vec<String>,
    /// Data that the contract requires a form of.
    pub schemas: Vec<SchemaAsk>,
    /// Data of the application, by name.
    pub data: Vec<String>,
}

impl FactsAsk {
    /// Whether nothing is asked.
    pub fn is_empty(&self) -> bool {
        self.files.is_empty() && self.checks.is_empty() && self.schemas.is_empty() && self.data.is_empty()
    }
}

/// What was found. What is left out is not known, and counts as not met.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", default)]
#[non_exhaustive]
pub struct FactsFound {
    /// The files, by the names that they were asked for.
    pub files: BTreeMap<String, FileFact>,
    /// How the checks came out.
    pub checks: CustomChecks,
    /// How each of the schemas came out, in the order in which they were asked: the first thing that does
    /// not fit.
    pub schemas: Vec<Result<(), String>>,
    /// Data of the application, by name, for predicates that look for a text or for data in it.
    pub data: BTreeMap<String, serde_json::Value>,
}
