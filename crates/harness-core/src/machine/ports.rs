//! The ports that a driver has.

use serde::{Deserialize, Serialize};

use crate::decide::{Guard, Point};
use crate::time::Millis;

/// The ports that a driver has: a machine uses only those. [`crate::driver::drive`] sets them; a custom driver calls
/// [`Machine::with_ports`](crate::machine::Machine::with_ports).
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", default)]
#[non_exhaustive]
pub struct PortSet {
    /// The gates, in order.
    pub gates: Vec<Guard>,
    /// The checks, in order.
    pub checks: Vec<Guard>,
    /// Time limit of the fact source. Default 60 s; `None` is bounded by the run alone.
    pub facts_within: Option<Millis>,
    /// Whether there is an approver. Without one, a held call parks the turn.
    pub approver: bool,
    /// Time limit of memory layers at the end of an execution; `None` without layers.
    pub layers: Option<Millis>,
    /// Whether there is a compactor.
    pub compactor: bool,
    /// Whether there is a session for the transcript.
    pub session: bool,
    /// Whether there is a store for the state of runs.
    pub checkpoints: bool,
    /// Whether there is a steering queue.
    pub steering: bool,
    /// Whether anything listens to events. Without listeners they are numbered, and not made. Default yes.
    pub listeners: bool,
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
            listeners: true,
        }
    }
}

impl PortSet {
    /// The first gate at or after `from` that is asked at this point.
    pub(crate) fn next_gate(&self, point: Point, from: u32) -> Option<u32> {
        next(&self.gates, point, from)
    }

    /// The first check at or after `from` that is asked at this point.
    pub(crate) fn next_check(&self, point: Point, from: u32) -> Option<u32> {
        next(&self.checks, point, from)
    }
}

fn next(guards: &[Guard], point: Point, from: u32) -> Option<u32> {
    let mut guards = (0..).zip(guards).skip(from as usize);
    guards.find(|(_, guard)| guard.points.has(point)).map(|(at, _)| at)
}
