//! Coverage of contracts, with evidence.

use std::collections::BTreeMap;

use harness_core::Time;
use serde::{Deserialize, Serialize};

use super::TaskContract;

/// Maximum evidence per requirement; the latest stays.
const MOST_EVIDENCE: usize = 20;

/// Kind of evidence.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
#[non_exhaustive]
pub enum EvidenceKind {
    /// A file or a stored artifact.
    Artifact,
    /// Text of an answer.
    Response,
    /// The result of a tool.
    ToolResult,
    /// A confirmation of the user.
    UserConfirmation,
}

/// Evidence for a requirement.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[non_exhaustive]
pub struct Evidence {
    /// Number of its event, or a word such as `file_check`.
    pub event_ref: String,
    /// Kind of the evidence.
    pub kind: EvidenceKind,
    /// Human-readable text, prefixed with the id of the requirement.
    pub value: String,
    /// Time of the verification.
    #[serde(default)]
    pub timestamp: Time,
}

/// Status of a requirement.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, strum::IntoStaticStr)]
#[serde(rename_all = "snake_case")]
#[strum(serialize_all = "snake_case")]
#[non_exhaustive]
pub enum CoverageStatus {
    /// Not met.
    #[default]
    Unmet,
    /// Met.
    Met,
    /// Partially met; counts as unmet.
    PartiallyMet,
    /// Waived by the application; counts as met, and the report shows it.
    Skipped,
}

impl CoverageStatus {
    /// Wire name.
    pub fn as_str(self) -> &'static str {
        self.into()
    }

    /// Whether the requirement is met or waived.
    pub fn is_satisfied(self) -> bool {
        matches!(self, Self::Met | Self::Skipped)
    }
}

/// Coverage of one requirement.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
#[non_exhaustive]
pub struct RequirementCoverage {
    /// Id of the requirement.
    pub requirement_id: String,
    /// Status of the requirement.
    pub status: CoverageStatus,
    /// Evidence, oldest first.
    pub evidence: Vec<Evidence>,
    /// Human-readable note, for example the reason of a waiver.
    pub notes: String,
}

/// Coverage of a contract.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
#[non_exhaustive]
pub struct Coverage {
    /// Id of the contract.
    pub contract_id: String,
    /// Requirements by id.
    pub coverage: BTreeMap<String, RequirementCoverage>,
}

impl Coverage {
    /// Creates the coverage of a contract, with every requirement unmet.
    pub fn of(contract: &TaskContract) -> Self {
        let mut coverage = Self { contract_id: contract.id.clone(), coverage: BTreeMap::new() };
        coverage.complete(contract);
        coverage
    }

    /// Adds missing requirements of the contract.
    pub(super) fn complete(&mut self, contract: &TaskContract) {
        for output in &contract.required_outputs {
            let entry = self.coverage.entry(output.id.clone()).or_default();
            entry.requirement_id.clone_from(&output.id);
        }
    }

    /// Status of a requirement.
    pub fn status(&self, requirement: &str) -> CoverageStatus {
        self.coverage.get(requirement).map(|entry| entry.status).unwrap_or_default()
    }

    pub(super) fn meet(&mut self, requirement: &str, evidence: Evidence) {
        let entry = self.coverage.entry(requirement.to_owned()).or_default();
        entry.status = CoverageStatus::Met;
        if entry
            .evidence
            .last()
            .is_none_or(|last| (&last.event_ref, &last.value) != (&evidence.event_ref, &evidence.value))
        {
            entry.evidence.push(evidence);
        }
        if entry.evidence.len() > MOST_EVIDENCE {
            entry.evidence.remove(0);
        }
    }

    /// Records a failed check. A partially met requirement keeps its status, which counts as unmet, too.
    pub(super) fn miss(&mut self, requirement: &str) {
        let entry = self.coverage.entry(requirement.to_owned()).or_default();
        if entry.status != CoverageStatus::PartiallyMet {
            entry.status = CoverageStatus::Unmet;
        }
    }

    /// Marks a requirement as partially met; it counts as unmet until a check passes. Returns whether the
    /// requirement exists.
    pub fn meet_partially(&mut self, requirement: &str, notes: impl Into<String>) -> bool {
        let Some(entry) = self.coverage.get_mut(requirement) else { return false };
        entry.status = CoverageStatus::PartiallyMet;
        entry.notes = notes.into();
        true
    }

    /// Waives a requirement, for a reason that the report shows. Returns whether the requirement exists.
    pub fn waive(&mut self, requirement: &str, reason: impl Into<String>) -> bool {
        let Some(entry) = self.coverage.get_mut(requirement) else { return false };
        entry.status = CoverageStatus::Skipped;
        entry.notes = reason.into();
        true
    }

    /// Percentage of the contract's required outputs that are met or waived. Optional outputs do not count;
    /// 100 without required ones.
    #[expect(clippy::cast_precision_loss, reason = "a contract has some dozen requirements")]
    pub fn percent(&self, contract: &TaskContract) -> f64 {
        let required = || contract.required_outputs.iter().filter(|output| !output.optional);
        let total = required().count();
        if total == 0 {
            return 100.0;
        }
        let met = required().filter(|output| self.status(&output.id).is_satisfied()).count();
        met as f64 / total as f64 * 100.0
    }
}

/// Unmet requirement.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[non_exhaustive]
pub struct UnmetRequirement {
    /// Id of the requirement.
    pub id: String,
    /// Description of the requirement.
    pub description: String,
}

/// Gaps of a contract.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[non_exhaustive]
pub struct GapReport {
    /// Unmet requirements that are not optional.
    pub unmet_requirements: Vec<UnmetRequirement>,
    /// Questions that were not asked or not answered.
    pub unanswered_questions: Vec<String>,
    /// Suggestions in sentences.
    pub suggestions: Vec<String>,
}

impl TaskContract {
    /// Lists the gaps of a coverage.
    pub fn gaps(&self, coverage: &Coverage) -> GapReport {
        let unmet: Vec<_> = self
            .required_outputs
            .iter()
            .filter(|output| !output.optional && !coverage.status(&output.id).is_satisfied())
            .map(|output| UnmetRequirement { id: output.id.clone(), description: output.description.clone() })
            .collect();
        let questions: Vec<_> = self
            .questions
            .iter()
            .filter(|question| !question.asked || question.answer.is_none())
            .map(|question| question.question.clone())
            .collect();
        let mut suggestions = Vec::new();
        if !unmet.is_empty() {
            suggestions.push(format!("Complete {} remaining requirement(s)", unmet.len()));
        }
        if !questions.is_empty() {
            suggestions.push(format!("Ask {} clarifying question(s)", questions.len()));
        }
        GapReport { unmet_requirements: unmet, unanswered_questions: questions, suggestions }
    }
}
