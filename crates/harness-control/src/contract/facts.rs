//! Facts from outside the run: requests for them, and findings.

use std::collections::BTreeMap;

use harness_core::tool::SchemaValidator;
use serde::{Deserialize, Serialize};
use serde_json::Value;

use super::verify::{Data, data_in};
use super::{
    CustomChecks, EvidenceIndex, Facts, FileFact, PredicateKind, SchemaSource, TaskContract, TextField,
};
use crate::work::WorkLedger;

/// Request to validate data against a JSON Schema.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct SchemaAsk {
    /// JSON Schema.
    pub schema: Value,
    /// Data to validate.
    pub data: SchemaData,
}

/// Data to validate against a schema.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub enum SchemaData {
    /// Data of the run.
    Value(Value),
    /// Data of the application, by name.
    Named(String),
}

/// Facts that a decision needs.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", default)]
#[non_exhaustive]
pub struct FactsAsk {
    /// Paths of files, as written in the contract.
    pub files: Vec<String>,
    /// Names of checks of the application.
    pub checks: Vec<String>,
    /// Data to validate.
    pub schemas: Vec<SchemaAsk>,
    /// Names of data of the application.
    pub data: Vec<String>,
}

impl FactsAsk {
    /// Whether no facts are needed.
    pub fn is_empty(&self) -> bool {
        self.files.is_empty() && self.checks.is_empty() && self.schemas.is_empty() && self.data.is_empty()
    }
}

/// Findings about requested facts. A missing fact counts as unmet.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", default)]
#[non_exhaustive]
pub struct FactsFound {
    /// Files by requested path.
    pub files: BTreeMap<String, FileFact>,
    /// Results of checks by name.
    pub checks: CustomChecks,
    /// Results of validations in the order of the request; an error is the first violation.
    pub schemas: Vec<Result<(), String>>,
    /// Data of the application by name.
    pub data: BTreeMap<String, Value>,
}

impl TaskContract {
    /// Collects the facts that the contract needs: files, checks of the application, and validations.
    pub(crate) fn asks(&self, index: &EvidenceIndex, work: &WorkLedger) -> FactsAsk {
        let facts = Facts { work, ..Facts::new(index) };
        let mut ask = FactsAsk::default();
        for output in &self.required_outputs {
            match &output.predicate.kind {
                PredicateKind::FileExists { path } => ask.files.push(path.clone()),
                PredicateKind::Custom { check: Some(check) } => ask.checks.push(check.clone()),
                PredicateKind::JsonSchemaValid { schema, source } => {
                    let data = match (source, data_in(source, &facts)) {
                        (SchemaSource::Data(name), _) => SchemaData::Named(name.clone()),
                        (_, Data::Found(_, Ok(data))) => SchemaData::Value(data),
                        (_, Data::Found(_, Err(_)) | Data::NotYet | Data::Missing) => continue,
                    };
                    ask.schemas.push(SchemaAsk { schema: schema.clone(), data });
                }
                PredicateKind::ContainsText { field: TextField::Data(name), .. } => {
                    ask.data.push(name.clone());
                }
                PredicateKind::AlwaysTrue
                | PredicateKind::ContainsText { .. }
                | PredicateKind::ToolResultSuccess { .. }
                | PredicateKind::Custom { check: None } => {}
            }
        }
        ask
    }
}

/// Validator that answers from findings.
pub(crate) struct FoundSchemas<'a> {
    pub(crate) asked: &'a [SchemaAsk],
    pub(crate) found: &'a FactsFound,
}

impl SchemaValidator for FoundSchemas<'_> {
    fn check(&self, schema: &Value, data: &Value) -> Result<(), String> {
        let is_it = |ask: &SchemaAsk| {
            let value = match &ask.data {
                SchemaData::Value(value) => Some(value),
                SchemaData::Named(name) => self.found.data.get(name),
            };
            ask.schema == *schema && value == Some(data)
        };
        let at = self.asked.iter().position(is_it);
        let result = at.and_then(|at| self.found.schemas.get(at));
        result.cloned().unwrap_or_else(|| Err("it was not validated".to_owned()))
    }
}
