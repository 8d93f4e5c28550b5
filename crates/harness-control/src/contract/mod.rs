//! Contracts: what a run must have produced before it may be called done, judged on evidence.
//!
//! A [`TaskContract`] lists required outputs, each with a [`Predicate`]. [`EvidenceIndex`] is a fold over
//! the events of a run that keeps what predicates ask for: the results of tools, the texts of answers.
//! [`TaskContract::verify`] judges the whole contract on it, on files, on data and on artifacts, notes the
//! outcome in a [`Coverage`], and [`TaskContract::gaps`] says what is missing. Nothing here does I/O: who
//! verifies gathers the state of files first.

mod coverage;
mod evidence;
mod facts;
mod predicate;
#[cfg(test)]
mod tests;
mod verifier;
mod verify;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

pub use coverage::{
    Coverage, CoverageStatus, Evidence, EvidenceKind, GapReport, RequirementCoverage, UnmetRequirement,
};
pub use evidence::EvidenceIndex;
pub use facts::{FactsAsk, FactsFound, SchemaAsk, SchemaData};
pub use predicate::{Predicate, PredicateFault, PredicateKind, SchemaSource, TextField};
pub(crate) use verifier::FoundSchemas;
pub use verifier::Verifier;
pub use verify::{CheckResult, CustomChecks, Facts, FileFact, Verification};

/// What sort of thing is required. For people: the predicate decides.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
#[non_exhaustive]
pub enum OutputType {
    /// A file or a stored artifact.
    Artifact,
    /// Something in an answer.
    #[default]
    Response,
    /// Something done.
    Action,
}

/// Something that a run must have produced.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
#[non_exhaustive]
pub struct RequiredOutput {
    /// Its name within the contract.
    pub id: String,
    /// What it is, for people and for the model.
    pub description: String,
    /// What sort of thing it is.
    #[serde(default, rename = "type")]
    pub kind: OutputType,
    /// How it is judged. Default: not at all (`always_true`).
    #[serde(default)]
    pub predicate: Predicate,
    /// Whether the run may end without it.
    #[serde(default)]
    pub optional: bool,
}

/// Something that only the user can answer.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
#[non_exhaustive]
pub struct UserQuestion {
    /// Its name within the contract.
    pub id: String,
    /// The question.
    pub question: String,
    /// The required outputs that need the answer.
    #[serde(default)]
    pub required_for: Vec<String>,
    /// Whether it was asked.
    #[serde(default)]
    pub asked: bool,
    /// The answer.
    #[serde(default)]
    pub answer: Option<String>,
}

/// What is good enough. Enforced in strict automation, against the model's own report.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields)]
#[non_exhaustive]
pub struct Acceptability {
    /// Open questions at most. Default 0.
    pub max_known_unknowns: u32,
    /// How sure the model must be, 0 to 1. Default 0.6.
    pub min_confidence: f64,
    /// Whether optional outputs may stay open, for the application: a run never waits for them. Default false.
    pub allow_partial: bool,
}

impl Default for Acceptability {
    fn default() -> Self {
        Self { max_known_unknowns: 0, min_confidence: 0.6, allow_partial: false }
    }
}

/// The outputs that a run must have produced.
///
/// ```
/// use harness_control::contract::TaskContract;
///
/// let contract: TaskContract = serde_json::from_str(
///     r#"{"id": "c", "goal": "Ship it", "required_outputs": [
///         {"id": "R1", "description": "the tests passed",
///          "predicate": {"type": "tool_result_success", "args": {"tool_name": "test"}}}]}"#,
/// )?;
/// assert!(contract.check().is_empty());
/// # Ok::<(), serde_json::Error>(())
/// ```
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
#[non_exhaustive]
pub struct TaskContract {
    /// Its name. Default `contract`.
    #[serde(default = "unnamed")]
    pub id: String,
    /// What it is about.
    pub goal: String,
    /// What is required.
    #[serde(default)]
    pub required_outputs: Vec<RequiredOutput>,
    /// What only the user can answer.
    #[serde(default)]
    pub questions: Vec<UserQuestion>,
    /// What is good enough.
    #[serde(default)]
    pub acceptability: Acceptability,
    /// When it was made, as it was written.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub created_at: Option<String>,
}

fn unnamed() -> String {
    "contract".to_owned()
}

/// Something in a contract that can not be meant.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum ContractFault {
    /// Two outputs or two questions have one name.
    #[error("`{id}` names two things of the contract")]
    Twice {
        /// The name.
        id: String,
    },
    /// A question is for an output that is not there.
    #[error("question `{question}` is required for `{output}`, which the contract does not have")]
    NoSuchOutput {
        /// The question.
        question: String,
        /// The name.
        output: String,
    },
    /// A predicate can not be judged.
    #[error("required output `{output}`: {fault}")]
    Predicate {
        /// The output.
        output: String,
        /// Why.
        fault: PredicateFault,
    },
    /// A share that is none.
    #[error("`acceptability.min_confidence` is {value}, and must be between 0 and 1")]
    Confidence {
        /// What was given.
        value: String,
    },
}

impl TaskContract {
    /// A contract with nothing in it.
    pub fn new(id: impl Into<String>, goal: impl Into<String>) -> Self {
        Self {
            id: id.into(),
            goal: goal.into(),
            required_outputs: Vec::new(),
            questions: Vec::new(),
            acceptability: Acceptability::default(),
            created_at: None,
        }
    }

    /// One more thing that is required.
    #[must_use]
    pub fn require(
        mut self,
        id: impl Into<String>,
        description: impl Into<String>,
        predicate: PredicateKind,
    ) -> Self {
        self.required_outputs.push(RequiredOutput {
            id: id.into(),
            description: description.into(),
            kind: OutputType::default(),
            predicate: predicate.into(),
            optional: false,
        });
        self
    }

    /// Checks the contract; gives every problem. In strict automation a run does not start with one.
    pub fn check(&self) -> Vec<ContractFault> {
        let mut faults = Vec::new();
        let mut seen = std::collections::BTreeSet::new();
        let outputs = self.required_outputs.iter().map(|output| &output.id);
        for id in outputs.chain(self.questions.iter().map(|question| &question.id)) {
            if !seen.insert(id) {
                faults.push(ContractFault::Twice { id: id.clone() });
            }
        }
        for output in &self.required_outputs {
            if let Err(fault) = output.predicate.kind.check() {
                faults.push(ContractFault::Predicate { output: output.id.clone(), fault });
            }
        }
        for question in &self.questions {
            for output in &question.required_for {
                if !self.required_outputs.iter().any(|known| known.id == *output) {
                    let (question, output) = (question.id.clone(), output.clone());
                    faults.push(ContractFault::NoSuchOutput { question, output });
                }
            }
        }
        let confidence = self.acceptability.min_confidence;
        if !(0.0..=1.0).contains(&confidence) {
            faults.push(ContractFault::Confidence { value: confidence.to_string() });
        }
        faults
    }
}
