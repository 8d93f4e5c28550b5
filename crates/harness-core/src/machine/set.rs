//! Which ports there are.

use serde::{Deserialize, Serialize};

use crate::decide::{Guard, Point};
use crate::time::Millis;

/// Which ports there are, so that a machine asks only those. A driver tells its machine of its own:
/// [`crate::driver::drive`] does, and a driver of your own calls
/// [`Machine::with_ports`](crate::machine::Machine::with_ports).
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", default)]
#[non_exhaustive]
pub struct PortSet {
    /// The tool gates in the order in which they are asked.
    pub gates: Vec<Guard>,
    /// The checks in the order in which they are asked.
    pub checks: Vec<Guard>,
    /// How long the source of facts may take. Default 60 s; `None` is bounded by the run alone.
    pub facts_within: Option<Millis>,
    /// Whether somebody approves held calls. Without, a held call parks the turn.
    pub approver: bool,
    /// How long memory layers may take at the end of an execution; `None` when there are none.
    pub layers: Option<Millis>,
    /// Whether there is a compactor.
    pub compactor: bool,
    /// Whether the transcript is kept in a session.
    pub session: bool,
    /// Whether the state of runs is kept.
    pub checkpoints: bool,
    /// Whether there is a steering queue.
    pub steering: bool,
}

impl Default for PortSet {
    fn default() -> Self {
        Self {
            gates: Vec::new(),
            checks: Vec::new(),
            facts_within: Some(Millis(60_000)),
            approver: false,
            layers: None,
            compactor: false,
            session: false,
            checkpoints: false,
            steering: false,
        }
    }
}

impl PortSet {
    /// The first gate from that place on that is asked at this point.
    pub(crate) fn next_gate(&self, point: Point, from: u32) -> Option<u32> {
        next(&self.gates, point, from)
    }

    /// The first check from that place on that is asked at this point.
    pub(crate) fn next_check(&self, point: Point, from: u32) -> Option<u32> {
        next(&self.checks, point, from)
    }
}

fn next(guards: &[Guard], point: Point, from: u32) -> Option<u32> {
    let mut guards = (0..).zip(guards).skip(from as usize);
    guards.find(|(_, guard)| guard.points.has(point)).map(|(at, _)| at)
}
