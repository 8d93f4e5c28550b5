//! Ready-made checks: of answers without evidence, and of unclear results.

mod evidence;
mod unclear;

pub use evidence::{SPARSE_EVIDENCE, ToolOutput, evidence_density, exceeds_evidence_budget};
pub use unclear::{UnclearResults, default_question};
