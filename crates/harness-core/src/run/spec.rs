//! The settings of a run.

use serde::{Deserialize, Serialize};

use crate::limits::Amount;
use crate::message::Cost;
use crate::outcome::StopMode;
use crate::time::Millis;
use crate::turn::{SpecFault, TurnSpec};

/// The limits of a run, over all its turns. Finite by default.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct RunLimits {
    /// Turns. Default 50.
    pub turns: u32,
    /// Iterations, tool calls, tokens and cost of all turns together. Default 1,000 iterations, 4,000
    /// calls, 20 million tokens, 100 units of cost.
    pub amount: Amount,
    /// Time of all turns together. Default 4 hours; `None` is unlimited.
    pub elapsed: Option<Millis>,
}

impl Default for RunLimits {
    fn default() -> Self {
        Self {
            turns: 50,
            amount: Amount {
                iterations: 1_000,
                tool_calls: 4_000,
                tokens: 20_000_000,
                cost: Cost(100_000_000_000),
            },
            elapsed: Some(Millis(4 * 3_600_000)),
        }
    }
}

impl RunLimits {
    /// No limit at all, for callers who bound the work themselves.
    pub fn unlimited() -> Self {
        Self { turns: u32::MAX, amount: Amount::UNLIMITED, elapsed: None }
    }
}

/// The settings of a run.
///
/// ```
/// use harness_core::Millis;
/// use harness_core::outcome::StopMode;
/// use harness_core::run::{RunLimits, RunSpec};
///
/// let mut limits = RunLimits::default();
/// limits.elapsed = Some(Millis(60_000));
/// let mut spec = RunSpec::default();
/// (spec.limits, spec.mode) = (limits, StopMode::StrictAutomation);
/// assert!(spec.check().is_empty());
/// ```
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct RunSpec {
    /// The settings of each turn.
    pub turn: TurnSpec,
    /// The limits of all turns together.
    pub limits: RunLimits,
    /// How an unsatisfied check of the end is treated. Default interactive.
    pub mode: StopMode,
    /// Turns in a row that checks of the end may ask for before an interactive run accepts. Default 3.
    pub nudges: u32,
    /// Whether the compactor may shorten the transcript itself before a turn. The session keeps all its entries. Skipped
    /// while calls are open, while something could not be stored, and when the turn resumes earlier work. Default off:
    /// only views are shortened.
    pub compact_between_turns: bool,
}

impl Default for RunSpec {
    fn default() -> Self {
        Self {
            turn: TurnSpec::default(),
            limits: RunLimits::default(),
            mode: StopMode::default(),
            nudges: 3,
            compact_between_turns: false,
        }
    }
}

impl RunSpec {
    /// Validates the settings. Returns all errors.
    pub fn check(&self) -> Vec<SpecFault> {
        let mut faults = self.turn.check();
        if self.limits.turns == 0 {
            faults.push(SpecFault {
                field: "limits.turns",
                value: "0".into(),
                expected: "it must be at least 1",
            });
        }
        faults
    }
}
