//! Vectors of kinds `turn` and `turn-ext`: turns through the real machine and driver.
//!
//! Each turn is driven on a clock that only
//! scripted steps move, its result and events are brought into the source's form, and everything that the vector
//! expects is compared.

pub(super) mod compare;
pub(super) mod convert;
mod extras;
mod flat;
pub(super) mod hooks;
mod play;
mod result;
mod seen;
pub(super) mod spec;
pub(super) mod words;

use harness_core::{Json, Origin};
use serde_json::Value;

use crate::Done;
use crate::driver::Driver;
use crate::vector::Vector;
use crate::verdict::Verdict;

/// Runs the one vector of the file.
pub(crate) fn run(vector: &Vector, driver: &dyn Driver) -> Verdict {
    checked(vector, driver).into()
}

fn checked(vector: &Vector, driver: &dyn Driver) -> Done<()> {
    play::check(vector.parse()?, driver)
}

/// The id of a turn; a turn of a run without an id is named `RUN.N`.
fn turn_id(origin: &Origin, turn: u32) -> String {
    match (&origin.turn, &origin.run) {
        (Some(id), _) => id.to_string(),
        (None, Some(run)) => format!("{run}.{turn}"),
        (None, None) => turn.to_string(),
    }
}

/// A value of the product as JSON.
fn json_of(value: &impl serde::Serialize) -> Value {
    Json::of(value).and_then(|json| json.to()).unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The verdict on one of the project's vectors after `change`.
    #[track_caller]
    fn check(id: &str, change: impl FnOnce(&mut Value), expected: &str) {
        let vector = Vector::own("turn", id);
        let mut value = vector.value.clone();
        change(&mut value);
        assert_eq!(format!("{:?}", crate::runner::run(&vector.with(value))), expected);
    }

    #[test]
    fn a_vector_passes_as_it_is_and_fails_when_anything_else_is_expected() {
        check("tool-one", |_| {}, "Passed");
        check(
            "tool-one",
            |v| v["turns"][0]["expect"]["result"]["outcome"] = "failed".into(),
            r#"Failed("turn 1, result.outcome: expected \"failed\", got \"completed\"")"#,
        );
        check(
            "tool-one",
            |v| v["turns"][0]["expect"]["events"][0]["type"] = "turn_began".into(),
            r#"Failed("turn 1, events[0].type: expected \"turn_began\", got \"turn_started\"")"#,
        );
        check(
            "tool-one",
            |v| v["turns"][0]["expect"]["unusedModelSteps"] = 1.into(),
            r#"Failed("turn 1, unusedModelSteps: expected 1, got 0")"#,
        );
    }
}
