//! How a run treats an end that is doubted.

use serde::{Deserialize, Serialize};

/// How a run treats a check of its end that is not satisfied.
///
/// ```
/// use harness_core::outcome::StopMode;
/// use harness_core::run::RunSpec;
///
/// let mut spec = RunSpec::default();
/// spec.mode = StopMode::StrictAutomation;
/// ```
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum StopMode {
    /// Liveness first: after the permitted nudges the end is accepted, and the result says so.
    #[default]
    Interactive,
    /// Never accepted; the run goes on until the check is satisfied or a limit is reached.
    StrictAutomation,
}
