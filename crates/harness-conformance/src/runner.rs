//! From vectors to verdicts.

use std::any::Any;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::path::Path;

use crate::Done;
use crate::driver::Driver;
use crate::excuse;
use crate::kinds;
use crate::overlay::Overlays;
use crate::vector::{self, Vector};
use crate::verdict::Verdict;

/// Vectors with what is ours in them.
#[derive(Debug)]
pub struct Suite {
    vectors: Vec<Vector>,
    pub(crate) overlays: Overlays,
    strays: Vec<String>,
}

impl Suite {
    /// The project's own vectors.
    ///
    /// # Errors
    /// A file that cannot be read.
    pub fn own() -> Done<Self> {
        Self::below(&crate::own_directory())
    }

    /// The vectors below a directory, with the overlays of its directory `overlays` and with the project's own.
    ///
    /// # Errors
    /// A file that cannot be read, and a directory without vectors.
    pub fn below(directory: &Path) -> Done<Self> {
        let vectors = vector::below(directory)?;
        let overlays = Overlays::load(directory)?;
        let strays = overlays.strays(&vectors);
        let own = crate::own_directory();
        let is_own = directory.canonicalize().is_ok_and(|path| path == own);
        let overlays = if is_own { overlays } else { overlays.and(Overlays::load(&own)?) };
        Ok(Self { vectors, overlays, strays })
    }

    /// The vectors, in order.
    pub fn vectors(&self) -> &[Vector] {
        &self.vectors
    }

    /// Overlays beside the vectors that no vector has.
    pub fn strays(&self) -> &[String] {
        &self.strays
    }

    /// The drivers that a vector runs under, and those that skip it.
    pub fn drivers(&self, vector: &Vector) -> impl Iterator<Item = &'static dyn Driver> {
        kinds::drivers_of(vector)
    }

    /// Returns the worst verdict on a vector under all its drivers.
    pub fn judge(&self, vector: &Vector) -> Verdict {
        under_each(vector, |driver| self.judge_under(vector, driver))
    }

    /// Returns the verdict on a vector under one driver.
    pub fn judge_under(&self, vector: &Vector, driver: &dyn Driver) -> Verdict {
        if let Some(reason) = driver.skips(vector) {
            return Verdict::Skipped(reason.to_owned());
        }
        let run = |vector: &Vector| run_under(vector, driver);
        let Some(overlay) = self.overlays.of(vector) else {
            return excuse::settle(vector, run(vector));
        };
        if run(vector) == Verdict::Passed {
            return Verdict::Failed(format!(
                "passes without its overlay of rule `{}`: remove it",
                overlay.rule
            ));
        }
        overlay.apply(vector).map_or_else(Verdict::Failed, |ours| run(&ours))
    }

    /// The rule by which the product differs from a vector.
    pub fn rule(&self, vector: &Vector) -> Option<&str> {
        self.overlays.of(vector).map(|overlay| overlay.rule.as_str())
    }
}

/// Returns the worst verdict under the drivers that run a vector.
fn under_each(vector: &Vector, judge: impl Fn(&dyn Driver) -> Verdict) -> Verdict {
    let mut worst = Verdict::Passed;
    for driver in kinds::drivers_of(vector).filter(|driver| driver.skips(vector).is_none()) {
        match judge(driver) {
            Verdict::Failed(difference) if driver.name() == "" => return Verdict::Failed(difference),
            Verdict::Failed(difference) => {
                return Verdict::Failed(format!("{}: {difference}", driver.name()));
            }
            skipped @ Verdict::Skipped(_) => worst = skipped,
            Verdict::Passed => {}
        }
    }
    worst
}

/// Runs a vector under each of its drivers.
#[cfg(test)]
pub(crate) fn run(vector: &Vector) -> Verdict {
    under_each(vector, |driver| run_under(vector, driver))
}

/// Runs a vector under a driver; a panic fails it.
fn run_under(vector: &Vector, driver: &dyn Driver) -> Verdict {
    let judged = catch_unwind(AssertUnwindSafe(|| kinds::judge(vector, driver)))
        .unwrap_or_else(|panic| Some(Verdict::Failed(format!("panicked: {}", panic_text(panic.as_ref())))));
    judged.unwrap_or_else(|| Verdict::Failed(format!("nothing runs vectors of kind `{}`", vector.kind)))
}

fn panic_text(panic: &(dyn Any + Send)) -> &str {
    let text = panic.downcast_ref::<&str>().copied();
    text.or_else(|| panic.downcast_ref::<String>().map(String::as_str)).unwrap_or("no message")
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    /// A directory with one vector of kind `prompt-template` and an overlay.
    #[track_caller]
    fn check(expected_text: &str, overlay: Option<&str>, expected: &str) {
        let directory = tempfile::tempdir().unwrap();
        let write = |name: &str, value: serde_json::Value| {
            std::fs::write(directory.path().join(name), value.to_string()).unwrap();
        };
        let input = json!({ "content": "say $1", "args": ["hello"] });
        let expect = json!({ "text": expected_text });
        write("one.json", json!({ "kind": "prompt-template", "id": "a", "input": input, "expect": expect }));
        if let Some(ours) = overlay {
            std::fs::create_dir(directory.path().join("overlays")).unwrap();
            let one = json!({ "id": "a", "rule": "r", "reason": "so", "ours": { "/expect/text": ours } });
            let file = json!({
                "version": 1, "kind": "prompt-template", "rules": { "r": "It is so." }, "vectors": [one]
            });
            write("overlays/prompt-template.json", file);
        }
        let suite = Suite::below(directory.path()).unwrap();
        let verdict = match suite.judge(&suite.vectors()[0]) {
            Verdict::Failed(text) | Verdict::Skipped(text) => text,
            Verdict::Passed => "passed".to_owned(),
        };
        assert_eq!(verdict, expected);
    }

    #[test]
    fn a_vector_with_an_overlay_passes_by_it_alone() {
        check("say hello", None, "passed");
        check("say hallo", None, r#"expect.text: expected "say hallo", got "say hello""#);
        check("say hallo", Some("say hello"), "passed");
        check("say hallo", Some("say bye"), r#"expect.text: expected "say bye", got "say hello""#);
        check("say hello", Some("say bye"), "passes without its overlay of rule `r`: remove it");
    }

    #[test]
    fn kinds_that_nothing_runs_fail() {
        let verdict = run(&Vector::made("mood", json!({ "id": "a" })));
        assert_eq!(verdict, Verdict::Failed("nothing runs vectors of kind `mood`".to_owned()));
    }
}
