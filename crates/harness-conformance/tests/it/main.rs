//! One test for each of the project's vectors, and for one that runs turns one for each driver.
#![expect(clippy::print_stdout, reason = "the counts by rule go beside the output of the tests")]

use std::collections::BTreeMap;
use std::process::ExitCode;
use std::sync::Arc;

use harness_conformance::{Suite, Verdict};
use libtest_mimic::{Arguments, Completion, Failed, Trial};

fn main() -> Result<ExitCode, String> {
    let arguments = Arguments::from_args();
    let suite = Arc::new(Suite::own()?);
    let vectors = suite.vectors().iter().flat_map(|vector| {
        suite.drivers(vector).map(|driver| {
            let (suite, vector) = (Arc::clone(&suite), vector.clone());
            let group = driver.name();
            let group = if group.is_empty() { String::new() } else { format!("{group}::") };
            let name = format!("{group}{}::{}", vector.kind(), vector.id());
            Trial::ignorable_test(name, move || ended(suite.judge_under(&vector, driver)))
        })
    });
    let strays = suite.strays().to_vec();
    let overlays = Trial::test("every_overlay_has_its_vector", move || {
        if strays.is_empty() { Ok(()) } else { Err(strays.join("\n").into()) }
    });
    let conclusion = libtest_mimic::run(&arguments, vectors.chain([overlays]).collect());
    if !arguments.list {
        for (rule, vectors) in by_rule(&suite) {
            println!("differ by rule {rule}: {vectors}");
        }
    }
    Ok(conclusion.exit_code())
}

fn ended(verdict: Verdict) -> Result<Completion, Failed> {
    match verdict {
        Verdict::Passed => Ok(Completion::Completed),
        Verdict::Skipped(reason) => Ok(Completion::ignored_with(reason)),
        Verdict::Failed(difference) => Err(difference.into()),
    }
}

fn by_rule(suite: &Suite) -> BTreeMap<&str, usize> {
    let mut counts = BTreeMap::new();
    for rule in suite.vectors().iter().filter_map(|vector| suite.rule(vector)) {
        *counts.entry(rule).or_default() += 1;
    }
    counts
}
