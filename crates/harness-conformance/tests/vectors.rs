//! One test for each of the project's vectors.

use std::sync::Arc;

use harness_conformance::{Suite, Verdict};
use libtest_mimic::{Arguments, Completion, Failed, Trial};

fn main() {
    let arguments = Arguments::from_args();
    let suite = match Suite::own() {
        Ok(suite) => Arc::new(suite),
        Err(fault) => panic!("{fault}"),
    };
    let vectors = suite.names().enumerate().map(|(at, (kind, id))| {
        let suite = Arc::clone(&suite);
        Trial::ignorable_test(format!("{kind}::{id}"), move || ended(suite.judge(at)))
    });
    let strays = suite.strays().to_vec();
    let overlays = Trial::test("every_overlay_has_its_vector", move || {
        if strays.is_empty() { Ok(()) } else { Err(strays.join("\n").into()) }
    });
    let trials = vectors.chain([overlays]).collect();
    libtest_mimic::run(&arguments, trials).exit();
}

fn ended(verdict: Verdict) -> Result<Completion, Failed> {
    match verdict {
        Verdict::Passed => Ok(Completion::Completed),
        Verdict::Skipped(reason) => Ok(Completion::ignored_with(reason)),
        Verdict::Failed(difference) => Err(difference.into()),
    }
}
