//! Judging one contract again and again.

use std::collections::BTreeMap;

use harness_core::tool::SchemaValidator;
use regex::Regex;
use serde_json::Value;

use super::predicate::compiled;
use super::verify::{Data, data_in, judge};
use super::{
    CheckResult, Coverage, EvidenceIndex, Facts, FactsAsk, FactsFound, PredicateKind, SchemaAsk, SchemaData,
    SchemaSource, TaskContract, TextField, Verification,
};
use crate::work::WorkLedger;

/// Judges one contract turn after turn: patterns are compiled once, and what rests on evidence that has not
/// changed is not judged anew. What comes out is what [`TaskContract::verify`] gives.
#[derive(Clone, Debug, Default)]
pub struct Verifier {
    patterns: BTreeMap<String, Regex>,
    /// Each requirement with the version of the evidence that it was judged on.
    judged: BTreeMap<String, (u64, CheckResult)>,
}

impl Verifier {
    /// [`TaskContract::verify`]. Always give the same contract, coverage and index.
    pub(crate) fn verify(
        &mut self,
        contract: &TaskContract,
        coverage: &mut Coverage,
        facts: &Facts<'_>,
    ) -> Verification {
        if self.patterns.is_empty() {
            self.compile(contract);
        }
        let facts = Facts { patterns: Some(&self.patterns), ..*facts };
        let judged = &mut self.judged;
        contract.verify_by(coverage, &facts, |id, predicate, status, coverage, facts| {
            let version = facts.index.version(predicate);
            if let Some((seen, result)) = judged.get(id)
                && version == Some(*seen)
            {
                return result.clone();
            }
            let result = judge(id, predicate, status, coverage, facts);
            if let Some(version) = version {
                judged.insert(id.to_owned(), (version, result.clone()));
            }
            result
        })
    }

    fn compile(&mut self, contract: &TaskContract) {
        for output in &contract.required_outputs {
            if let PredicateKind::ContainsText { pattern, .. } = &output.predicate.kind
                && let Ok(regex) = compiled(pattern)
            {
                self.patterns.insert(pattern.clone(), regex);
            }
        }
    }
}

impl TaskContract {
    /// What has to be found out before the contract can be judged: its files, the checks of the application,
    /// and the data that it requires a form of.
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
                        (_, Data::There(_, Ok(data))) => SchemaData::Value(data),
                        (_, Data::There(_, Err(_)) | Data::NotYet | Data::Missing) => continue,
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

/// The verdicts of a source of facts, as a validator.
pub(crate) struct FoundSchemas<'a> {
    /// What was asked.
    pub(crate) asked: &'a [SchemaAsk],
    /// What was found.
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
        let verdict = at.and_then(|at| self.found.schemas.get(at));
        verdict.cloned().unwrap_or_else(|| Err("nobody held it against the schema".to_owned()))
    }
}
