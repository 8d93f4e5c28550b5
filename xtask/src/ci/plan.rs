//! Running the steps and reporting on them.

use super::counts::TestCounts;
use super::steps::{STEPS, Step};
use crate::fault::{Fault, Result};
use crate::stopwatch::{Stopwatch, Took};

/// Which steps to run.
#[derive(clap::Args, Debug)]
pub(crate) struct Options {
    /// Only this step; may be given several times. `--list` names them.
    #[arg(long, value_name = "STEP")]
    only: Vec<String>,
    /// Name the steps and end.
    #[arg(long)]
    list: bool,
}

/// What the steps share.
#[derive(Debug, Default)]
pub(super) struct Progress {
    /// Tests run so far.
    pub(super) tests: TestCounts,
}

/// Runs the chosen steps in order until the first failure. The last line printed is the sum of
/// all tests run, `N passed, N failed`, whatever happened.
pub(crate) fn run(options: &Options) -> Result<()> {
    if options.list {
        for step in STEPS {
            println!("{:12} {}", step.name, step.what);
        }
        return Ok(());
    }
    let steps = chosen(options)?;
    let whole = Stopwatch::start();
    let mut progress = Progress::default();
    let mut table = Vec::new();
    let mut failure = None;
    for step in steps {
        println!("\n== {}: {}", step.name, step.what);
        let watch = Stopwatch::start();
        let result = (step.run)(&mut progress);
        let verdict = if result.is_ok() { "ok" } else { "FAILED" };
        let line = format!("{:12} {verdict:6} {}", step.name, Took(watch.elapsed()));
        println!("-- {line}");
        table.push(line);
        if let Err(fault) = result {
            failure = Some(format!("step `{}`: {fault}", step.name));
            break;
        }
    }
    println!("\n{}\n{:12} {:6} {}", table.join("\n"), "all", "", Took(whole.elapsed()));
    if let Some(failure) = &failure {
        println!("{failure}");
    }
    println!("{}", progress.tests);
    if failure.is_none() { Ok(()) } else { Err(Fault::Shown) }
}

fn chosen(options: &Options) -> Result<Vec<&'static Step>> {
    if let Some(unknown) = options.only.iter().find(|name| STEPS.iter().all(|step| step.name != **name)) {
        return Err(Fault::new(format!("no step `{unknown}`; see `cargo xtask ci --list`")));
    }
    let wanted = |step: &&Step| options.only.is_empty() || options.only.iter().any(|name| name == step.name);
    Ok(STEPS.iter().filter(wanted).collect())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[track_caller]
    fn check(only: &[&str], expected: Result<&[&str]>) {
        let options = Options { only: only.iter().map(|&name| name.to_owned()).collect(), list: false };
        let names = chosen(&options).map(|steps| steps.iter().map(|s| s.name).collect::<Vec<_>>());
        assert_eq!(names, expected.map(<[&str]>::to_vec));
    }

    #[test]
    fn steps_keep_their_order_and_unknown_names_are_refused() {
        check(&["tests", "fmt"], Ok(&["fmt", "tests"]));
        check(&["fmt", "nope"], Err(Fault::new("no step `nope`; see `cargo xtask ci --list`")));
    }

    #[test]
    fn all_steps_run_unless_told_otherwise() {
        check(
            &[],
            Ok(&["fmt", "clippy", "tests", "docs", "alone", "conformance", "fuzz", "deny", "readme", "e2e"]),
        );
    }
}
