//! Contracts: outputs that a run must produce before it counts as done, verified on evidence.
//!
//! A [`TaskContract`] lists required outputs, each with a [`Predicate`]. [`EvidenceIndex`] is a fold over the events
//! of a run that keeps the evidence: results of tools and texts of answers. [`TaskContract::verify`] evaluates the
//! contract on evidence, files, data and artifacts and updates a [`Coverage`]; [`TaskContract::gaps`] lists what is
//! missing. Nothing here does I/O: the caller gathers the state of files.

mod coverage;
mod evidence;
mod facts;
mod predicate;
#[cfg(test)]
mod tests;
mod verify;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

pub use coverage::{
    Coverage, CoverageStatus, Evidence, EvidenceKind, GapReport, RequirementCoverage, UnmetRequirement,
};
pub use evidence::EvidenceIndex;
pub(crate) use facts::FoundSchemas;
pub use facts::{FactsAsk, FactsFound, SchemaAsk, SchemaData};
pub(crate) use predicate::Patterns;
pub use predicate::{Predicate, PredicateFault, PredicateKind, SchemaSource, TextField};
pub use verify::{CheckResult, CustomChecks, Facts, FileFact, Verification};

/// Type of a required output, for readers; the predicate decides.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
#[non_exhaustive]
pub enum OutputType {
    /// A file or a stored artifact.
    Artifact,
    /// Part of an answer.
    #[default]
    Response,
    /// A completed action.
    Action,
}

/// Output that a run must produce.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
#[non_exhaustive]
pub struct RequiredOutput {
    /// Id, unique in the contract.
    pub id: String,
    /// Description for users and the model.
    pub description: String,
    /// Type of the output.
    #[serde(default, rename = "type")]
    pub kind: OutputType,
    /// Predicate of the output. Default `always_true`.
    #[serde(default)]
    pub predicate: Predicate,
    /// Whether the run may end without it.
    #[serde(default)]
    pub optional: bool,
}

/// Question that only the user can answer.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
#[non_exhaustive]
pub struct UserQuestion {
    /// Id, unique in the contract.
    pub id: String,
    /// Text of the question.
    pub question: String,
    /// Ids of required outputs that need the answer.
    #[serde(default)]
    pub required_for: Vec<String>,
    /// Whether it was asked.
    #[serde(default)]
    pub asked: bool,
    /// Answer of the user.
    #[serde(default)]
    pub answer: Option<String>,
}

/// Acceptance limits for the model's own report, enforced in strict automation.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields)]
#[non_exhaustive]
pub struct Acceptability {
    /// Maximum number of open questions. Default 0.
    pub max_known_unknowns: u32,
    /// Minimum confidence, from 0 to 1. Default 0.6.
    pub min_confidence: f64,
    /// Whether optional outputs may be missing, as information for the application. Default false.
    pub allow_partial: bool,
}

impl Default for Acceptability {
    fn default() -> Self {
        Self { max_known_unknowns: 0, min_confidence: 0.6, allow_partial: false }
    }
}

/// Contract: the outputs that a run must produce.
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
    /// Id of the contract. Default `contract`.
    #[serde(default = "unnamed")]
    pub id: String,
    /// Goal in one sentence.
    pub goal: String,
    /// Required outputs.
    #[serde(default)]
    pub required_outputs: Vec<RequiredOutput>,
    /// Questions for the user.
    #[serde(default)]
    pub questions: Vec<UserQuestion>,
    /// Acceptance limits.
    #[serde(default)]
    pub acceptability: Acceptability,
    /// Creation time, as written.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub created_at: Option<String>,
}

fn unnamed() -> String {
    "contract".to_owned()
}

/// Error in a contract.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum ContractFault {
    /// Two outputs or questions have the same id.
    #[error("duplicate id `{id}` in the contract")]
    Twice {
        /// Duplicate id.
        id: String,
    },
    /// A question is required for an unknown output.
    #[error("question `{question}` is required for unknown output `{output}`")]
    NoSuchOutput {
        /// Id of the question.
        question: String,
        /// Unknown id.
        output: String,
    },
    /// A predicate is invalid.
    #[error("required output `{output}`: {fault}")]
    Predicate {
        /// Id of the output.
        output: String,
        /// Error in the predicate.
        fault: PredicateFault,
    },
    /// A confidence is out of range.
    #[error("invalid `acceptability.min_confidence` {value}: expected a number between 0 and 1")]
    Confidence {
        /// Value in question.
        value: String,
    },
}

impl TaskContract {
    /// Creates an empty contract.
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

    /// Adds a required output.
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

    /// Checks the contract and returns every error. In strict automation a run does not start with one.
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
