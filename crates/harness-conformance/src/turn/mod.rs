//! Vectors of kinds `turn` and `turn-ext`: turns of source 001, through the real machine and driver.
//!
//! Profiles: [`harness_core::turn::TurnSpec::source_001`] and, for `turn-ext`,
//! [`harness_core::turn::TurnSpec::source_001_later`]. Each turn is driven on a clock that only
//! scripted steps move, its result and trace are brought into the source's form by
//! [`harness_core::event`], and everything that the vector expects is compared.

pub(super) mod compare;
pub(super) mod convert;
mod extras;
pub(super) mod hooks;
mod play;
mod seen;

use serde_json::Value;

use self::convert::Payloads;
use crate::vector::Vector;
use crate::verdict::Verdict;

/// Vectors that the suite's README reads as weaknesses of the source, whatever their file says.
const ALSO_WEAKNESSES: &[&str] = &[
    "lim-budget-model-over",
    "err-retry-over-budget-continues",
    "lim-budget-negative-cost",
    "tool-foreign-callid",
    "tool-duplicate-definitions",
];

/// The page that lists every deviation.
const DEVIATIONS: &str = include_str!("../../../../docs/design/deviations.md");

/// Runs the one vector of the file.
pub(crate) fn run(vector: &Vector) -> Verdict {
    judge(vector)
}

fn judge(vector: &Vector) -> Verdict {
    let Vector { id, value, .. } = vector;
    let compared = Payloads::of(vector).and_then(|payloads| play::check(value, &payloads));
    let class = value.get("conformance").and_then(Value::as_str).unwrap_or("required");
    match (class, compared) {
        ("upstream-bug", Err(_)) => Verdict::Passed,
        ("upstream-bug", Ok(())) => Verdict::Failed("a bug of the source is reproduced".to_owned()),
        (class, Err(_)) if may_differ(class, id) && DEVIATIONS.contains(&format!("`{id}`")) => {
            Verdict::Skipped("deviation".to_owned())
        }
        (class, Err(difference)) if may_differ(class, id) => {
            Verdict::Failed(format!("not listed in docs/design/deviations.md: {difference}"))
        }
        (_, compared) => compared.into(),
    }
}

fn may_differ(class: &str, id: &str) -> bool {
    class == "upstream-weakness" || ALSO_WEAKNESSES.contains(&id)
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
        assert_eq!(format!("{:?}", judge(&vector.with(value))), expected);
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

    #[test]
    fn bugs_must_not_be_reproduced_and_a_deviation_has_to_be_listed() {
        check("red-hash-collision", |_| {}, "Passed");
        check("sink-turn-started", |_| {}, r#"Skipped("deviation")"#);
        let unlisted = |v: &mut Value| {
            v["conformance"] = "upstream-weakness".into();
            v["turns"][0]["expect"]["result"]["outcome"] = "failed".into();
        };
        check(
            "tool-one",
            unlisted,
            r#"Failed("not listed in docs/design/deviations.md: turn 1, result.outcome: expected \"failed\", got \"completed\"")"#,
        );
        let as_bug = |v: &mut Value| v["conformance"] = "upstream-bug".into();
        check("tool-one", as_bug, r#"Failed("a bug of the source is reproduced")"#);
    }
}
