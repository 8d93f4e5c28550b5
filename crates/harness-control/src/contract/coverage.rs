//! What of a contract is met, and on which evidence.

use std::collections::BTreeMap;

use harness_core::Time;
use serde::{Deserialize, Serialize};

use super::TaskContract;

/// How many pieces of evidence are kept for one requirement; the latest stay.
const MOST_EVIDENCE: usize = 20;

/// What sort of thing proves something.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
#[non_exhaustive]
pub enum EvidenceKind {
    /// A file or a stored artifact.
    Artifact,
    /// An answer.
    Response,
    /// The result of a tool.
    ToolResult,
    /// The user said so.
    UserConfirmation,
}

/// Something that proves something.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[non_exhaustive]
pub struct Evidence {
    /// The event that it lies in, by its number; a word (`file_check`, …) where there is none.
    pub event_ref: String,
    /// What it is.
    pub kind: EvidenceKind,
    /// What it says, for people, with the name of what it proves before it.
    pub value: String,
    /// When it was found.
    #[serde(default)]
    pub timestamp: Time,
}

/// How far a requirement is met.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
#[non_exhaustive]
pub enum CoverageStatus {
    /// Not at all.
    #[default]
    Unmet,
    /// Wholly.
    Met,
    /// In part; counts as unmet.
    PartiallyMet,
    /// Somebody who may do so let it go; counts as met, and a result says so.
    Skipped,
}

impl CoverageStatus {
    /// The wire name.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Unmet => "unmet",
            Self::Met => "met",
            Self::PartiallyMet => "partially_met",
            Self::Skipped => "skipped",
        }
    }

    /// Whether nothing is missing.
    pub fn is_satisfied(self) -> bool {
        matches!(self, Self::Met | Self::Skipped)
    }
}

/// How far one requirement is met.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
#[non_exhaustive]
pub struct RequirementCoverage {
    /// The requirement.
    pub requirement_id: String,
    /// How far.
    pub status: CoverageStatus,
    /// On which evidence, the latest last; what was found earlier stays.
    pub evidence: Vec<Evidence>,
    /// A word for people: why it was let go.
    pub notes: String,
}

/// The coverage ledger of a contract: how far it is met.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
#[non_exhaustive]
pub struct Coverage {
    /// The contract.
    pub contract_id: String,
    /// Each requirement by its name.
    pub coverage: BTreeMap<String, RequirementCoverage>,
}

impl Coverage {
    /// Nothing is met yet.
    pub fn of(contract: &TaskContract) -> Self {
        let mut coverage = Self { contract_id: contract.id.clone(), coverage: BTreeMap::new() };
        coverage.complete(contract);
        coverage
    }

    /// Adds what the contract requires and this does not know.
    pub(super) fn complete(&mut self, contract: &TaskContract) {
        for output in &contract.required_outputs {
            let entry = self.coverage.entry(output.id.clone()).or_default();
            entry.requirement_id.clone_from(&output.id);
        }
    }

    /// How far a requirement is met.
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

    /// Notes a failed check. A requirement that the application called partially met stays so: that counts as
    /// unmet, too, and a failed check does not contradict it.
    pub(super) fn miss(&mut self, requirement: &str) {
        let entry = self.coverage.entry(requirement.to_owned()).or_default();
        if entry.status != CoverageStatus::PartiallyMet {
            entry.status = CoverageStatus::Unmet;
        }
    }

    /// Marks a requirement as partially met, with a note on what is missing. Returns whether the contract has
    /// this requirement. Counts as unmet until a check passes.
    pub fn meet_partially(&mut self, requirement: &str, notes: impl Into<String>) -> bool {
        let Some(entry) = self.coverage.get_mut(requirement) else { return false };
        entry.status = CoverageStatus::PartiallyMet;
        entry.notes = notes.into();
        true
    }

    /// Lets a requirement go, for a reason that results show. Returns whether there is such a requirement.
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

/// A requirement that is not met.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[non_exhaustive]
pub struct UnmetRequirement {
    /// Its name.
    pub id: String,
    /// What it is.
    pub description: String,
}

/// What is missing.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[non_exhaustive]
pub struct GapReport {
    /// Required outputs that are not optional and not met.
    pub unmet_requirements: Vec<UnmetRequirement>,
    /// Questions that were not asked, or not answered.
    pub unanswered_questions: Vec<String>,
    /// What to do, in sentences.
    pub suggestions: Vec<String>,
}

impl TaskContract {
    /// What is missing, as a coverage has it.
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
