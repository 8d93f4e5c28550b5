//! Ready-made checks: of answers that claim more than was found, and of results that say too little or too much.

mod evidence;
mod unclear;

pub use evidence::{SPARSE_EVIDENCE, ToolOutput, evidence_density, exceeds_evidence_budget};
pub use unclear::{UnclearResults, default_question};
