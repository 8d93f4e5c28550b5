//! Which differences are excused without an overlay.
//!
//! Some vectors record what a source did and may be done otherwise. They are marked, and the page of deviations
//! has to name them, or the weakness that they show, with what the product does.

use crate::vector::Vector;
use crate::verdict::Verdict;

/// The page that lists every deviation.
const DEVIATIONS: &str = include_str!("../../../docs/design/deviations.md");

/// Verdict of a vector without an overlay.
pub(crate) fn settle(vector: &Vector, verdict: Verdict) -> Verdict {
    let said = |key: &str| vector.value.get(key).and_then(|value| value.as_str()).unwrap_or_default();
    let class = said("conformance");
    match verdict {
        Verdict::Passed if class == "upstream-bug" => {
            Verdict::Failed("a bug of the source is reproduced".to_owned())
        }
        Verdict::Failed(difference) if class == "upstream-bug" => Verdict::Skipped(difference),
        Verdict::Failed(difference) => {
            let weakness = said("upstreamDefect");
            let is_free = class == "upstream-weakness"
                || ["decision", "exotic"].contains(&said("tier"))
                || !weakness.is_empty();
            match is_free {
                true if is_listed(&vector.id) || is_listed(weakness) => Verdict::Skipped(difference),
                true => Verdict::Failed(format!("not listed in docs/design/deviations.md: {difference}")),
                false => Verdict::Failed(difference),
            }
        }
        Verdict::Passed | Verdict::Skipped(_) => verdict,
    }
}

fn is_listed(name: &str) -> bool {
    !name.is_empty() && DEVIATIONS.contains(&format!("`{name}`"))
}

#[cfg(test)]
mod tests {
    use serde_json::{Value, json};

    use super::*;

    #[track_caller]
    fn check(vector: Value, verdict: &Verdict, expected: &Verdict) {
        assert_eq!(settle(&Vector::made("turn", vector), verdict.clone()), *expected);
    }

    #[test]
    fn only_what_is_free_and_listed_is_excused() {
        let failed = |text: &str| Verdict::Failed(text.to_owned());
        let differs = failed("no");
        check(json!({ "id": "sink-turn-started" }), &differs, &differs);
        let weakness = |id: &str| json!({ "id": id, "conformance": "upstream-weakness" });
        check(weakness("sink-turn-started"), &differs, &Verdict::Skipped("no".to_owned()));
        check(weakness("other"), &differs, &failed("not listed in docs/design/deviations.md: no"));
        check(weakness("other"), &Verdict::Passed, &Verdict::Passed);
        check(json!({ "name": "x", "upstreamDefect": "W20" }), &differs, &Verdict::Skipped("no".to_owned()));
        check(
            json!({ "id": "unlisted", "tier": "decision" }),
            &differs,
            &failed("not listed in docs/design/deviations.md: no"),
        );
    }

    #[test]
    fn bugs_must_not_be_reproduced() {
        let bug = json!({ "id": "a", "conformance": "upstream-bug" });
        check(bug.clone(), &Verdict::Failed("no".to_owned()), &Verdict::Skipped("no".to_owned()));
        check(bug, &Verdict::Passed, &Verdict::Failed("a bug of the source is reproduced".to_owned()));
    }
}
