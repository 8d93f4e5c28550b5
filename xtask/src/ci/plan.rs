//! Running the steps and reporting on them.

use crate::counts::TestCounts;
use crate::fault::{Fault, Result};
use crate::repo::Workspace;
use crate::stopwatch::{Stopwatch, Took};
use serde::Serialize;

use super::steps::{GATE, NIGHTLY, Step};

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

/// How a step ended, as the file of times has it.
#[derive(Debug, Serialize)]
struct Ended {
    step: &'static str,
    ok: bool,
    seconds: f64,
}

/// Runs the chosen steps of the gate in order until the first failure. The last line printed is the sum of
/// all tests run, `N passed, N failed`, whatever happened.
pub(crate) fn run(options: &Options) -> Result<()> {
    let mut progress = Progress::default();
    let done = play(GATE, options, "ci-times.json", false, &mut progress);
    if !options.list {
        println!("{}", progress.tests);
    }
    done
}

/// Runs the chosen steps of the night, all of them whatever fails.
pub(crate) fn run_nightly(options: &Options) -> Result<()> {
    play(NIGHTLY, options, "nightly-times.json", true, &mut Progress::default())
}

fn play(
    steps: &'static [Step],
    options: &Options,
    times: &str,
    go_on: bool,
    progress: &mut Progress,
) -> Result<()> {
    if options.list {
        for step in steps {
            println!("{:12} {}", step.name, step.what);
        }
        return Ok(());
    }
    let chosen = chosen(steps, options)?;
    let whole = Stopwatch::start();
    let mut ended = Vec::new();
    let mut failures = Vec::new();
    for step in chosen {
        println!("\n== {}: {}", step.name, step.what);
        let watch = Stopwatch::start();
        let result = (step.run)(progress);
        ended.push(Ended { step: step.name, ok: result.is_ok(), seconds: watch.elapsed().as_secs_f64() });
        println!("-- {}", line(step.name, result.is_ok(), watch.elapsed().as_secs_f64()));
        if let Err(fault) = result {
            failures.push(format!("step `{}`: {fault}", step.name));
            if !go_on {
                break;
            }
        }
    }
    ended.push(Ended { step: "all", ok: failures.is_empty(), seconds: whole.elapsed().as_secs_f64() });
    report(&ended, times)?;
    for failure in &failures {
        println!("{failure}");
    }
    if failures.is_empty() { Ok(()) } else { Err(Fault::Shown) }
}

/// Prints the table of times and writes it to a file below the target folder.
fn report(ended: &[Ended], file: &str) -> Result<()> {
    println!();
    for Ended { step, ok, seconds } in ended {
        println!("{}", line(step, *ok, *seconds));
    }
    let path = Workspace::load()?.target_directory.join(file);
    let json = serde_json::to_string_pretty(ended).map_err(|e| Fault::because(file, e))?;
    std::fs::write(&path, json + "\n").map_err(|e| Fault::because(path.display(), e))
}

fn line(name: &str, ok: bool, seconds: f64) -> String {
    let verdict = if ok { "ok" } else { "FAILED" };
    format!("{name:12} {verdict:6} {}", Took(std::time::Duration::from_secs_f64(seconds)))
}

fn chosen(steps: &'static [Step], options: &Options) -> Result<Vec<&'static Step>> {
    if let Some(unknown) = options.only.iter().find(|name| steps.iter().all(|step| step.name != **name)) {
        return Err(Fault::new(format!("no step `{unknown}`; `--list` names the steps")));
    }
    let wanted = |step: &&Step| options.only.is_empty() || options.only.iter().any(|name| name == step.name);
    Ok(steps.iter().filter(wanted).collect())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[track_caller]
    fn check(steps: &'static [Step], only: &[&str], expected: Result<&[&str]>) {
        let options = Options { only: only.iter().map(|&name| name.to_owned()).collect(), list: false };
        let names = chosen(steps, &options).map(|steps| steps.iter().map(|s| s.name).collect::<Vec<_>>());
        assert_eq!(names, expected.map(<[&str]>::to_vec));
    }

    #[test]
    fn steps_keep_their_order_and_unknown_names_are_refused() {
        check(GATE, &["tests", "fmt"], Ok(&["fmt", "tests"]));
        check(GATE, &["nope"], Err(Fault::new("no step `nope`; `--list` names the steps")));
    }

    #[test]
    fn all_steps_run_unless_told_otherwise() {
        let gate = ["fmt", "clippy", "tests", "docs", "features", "conformance", "deny", "readme", "e2e"];
        check(GATE, &[], Ok(&gate));
        let night = [
            "features",
            "fuzz",
            "sim",
            "release",
            "dist",
            "kills",
            "cluster",
            "agents",
            "local-model",
            "peers",
        ];
        check(NIGHTLY, &[], Ok(&night));
    }
}
