//! Turns with little around them, so that a script says all that it tests.

use harness_core::Millis;
use harness_core::turn::{Execution, OnToolFailure, TurnSpec};

use crate::script::check_turn_with;

/// A turn of 6 iterations, 8 calls and 30 s, calls one after another, no closing step.
pub(crate) fn bare() -> TurnSpec {
    let mut spec = TurnSpec::default();
    (spec.limits.iterations, spec.limits.tool_calls) = (6, 8);
    spec.limits.elapsed = Some(Millis(30_000));
    spec.execution = Execution::Sequential;
    spec.on_tool_failure = OnToolFailure::EndOnFault;
    spec.closing_step = false;
    spec
}

/// The same, and every failure of a call ends it.
pub(crate) fn strict() -> TurnSpec {
    let mut spec = bare();
    spec.on_tool_failure = OnToolFailure::EndOnError;
    spec
}

/// [`check_turn_with`] of a bare turn.
#[track_caller]
pub(crate) fn check_turn(script: &str, expected: &str) {
    check_turn_with(bare(), script, expected);
}
