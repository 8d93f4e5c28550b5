//! From folders to counts.

use std::any::Any;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::path::PathBuf;

use super::discover::{self, Found};
use super::kinds::{Runner, runner_of};
use super::report::{Counts, Report};
use super::skips::Skips;
use super::verdict::Verdict;
use xtask::fault::{Fault, Result};
use xtask::repo;

/// Where the project's own copies of vectors lie.
const FIXTURES: &str = "fixtures/conformance";

/// What to run and how much to say.
#[derive(clap::Args, Debug, Default)]
pub(crate) struct Options {
    /// Folders with vectors; the project's own ones when absent.
    #[arg(value_name = "DIR")]
    folders: Vec<PathBuf>,
    /// Only vectors of this kind.
    #[arg(long)]
    kind: Option<String>,
    /// Only the vector with this id.
    #[arg(long, value_name = "ID")]
    only: Option<String>,
    /// A line for every vector, not only for failures.
    #[arg(long)]
    verbose: bool,
}

/// Runs the chore; any failed vector is a fault.
pub(crate) fn run(options: &Options) -> Result<()> {
    let skips = Skips::load(&repo::root().join(FIXTURES).join("skips.toml"))?;
    let own = [repo::root().join(FIXTURES)];
    let folders = if options.folders.is_empty() { &own } else { options.folders.as_slice() };

    let mut report = Report::new(options.verbose);
    for folder in folders {
        for found in discover::below(folder)?.iter().filter(|found| options.selects(found)) {
            judge(found, runner_of(&found.kind), options, &skips, &mut report);
        }
    }
    finish(&report, &skips)
}

fn finish(report: &Report, skips: &Skips) -> Result<()> {
    let total = report.total();
    if total == Counts::default() {
        return Err(Fault::new("no vector is selected"));
    }
    println!("{}\n{total}", report.summary(skips));
    if total.failed == 0 { Ok(()) } else { Err(Fault::Shown) }
}

impl Options {
    fn selects(&self, found: &Found) -> bool {
        self.kind.as_ref().is_none_or(|kind| *kind == found.kind)
            && found.ids.iter().any(|id| self.selects_id(id))
    }

    fn selects_id(&self, id: &str) -> bool {
        self.only.as_ref().is_none_or(|only| only == id)
    }
}

fn judge(found: &Found, runner: Option<Runner>, options: &Options, skips: &Skips, report: &mut Report) {
    let Some(runner) = runner else {
        report.unsupported(&found.kind, found.ids.iter().filter(|id| options.selects_id(id)).count());
        return;
    };
    for (id, verdict) in verdicts(found, runner) {
        if options.selects_id(&id) {
            let verdict = skips.settle(&found.kind, &id, verdict);
            if let Some(line) = report.add(&found.kind, &id, verdict) {
                println!("{line}");
            }
        }
    }
}

/// One verdict for every vector of the file: a panic fails them all, a forgotten one fails.
fn verdicts(found: &Found, runner: Runner) -> Vec<(String, Verdict)> {
    let mut verdicts = match catch_unwind(AssertUnwindSafe(|| runner(&found.path))) {
        Ok(verdicts) => verdicts,
        Err(panic) => {
            let text = format!("panicked: {}", panic_text(panic.as_ref()));
            return found.ids.iter().map(|id| (id.clone(), Verdict::Failed(text.clone()))).collect();
        }
    };
    for id in &found.ids {
        if !verdicts.iter().any(|(judged, _)| judged == id) {
            verdicts.push((id.clone(), Verdict::Failed("the runner gave no verdict".to_owned())));
        }
    }
    verdicts
}

fn panic_text(panic: &(dyn Any + Send)) -> &str {
    let text = panic.downcast_ref::<&str>().copied();
    text.or_else(|| panic.downcast_ref::<String>().map(String::as_str)).unwrap_or("no message")
}

#[cfg(test)]
mod tests {
    use std::path::Path;

    use super::*;

    fn found() -> Found {
        Found { path: "file.json".into(), kind: "turn".into(), ids: vec!["a".into(), "b".into()] }
    }

    #[track_caller]
    fn check(runner: Option<Runner>, only: Option<&str>, expected: &str) {
        let options = Options { only: only.map(str::to_owned), ..Options::default() };
        let mut report = Report::new(false);
        judge(&found(), runner, &options, &Skips::default(), &mut report);
        assert_eq!(report.total().to_string(), expected);
    }

    fn all_pass(_: &Path) -> Vec<(String, Verdict)> {
        vec![("a".into(), Verdict::Passed), ("b".into(), Verdict::Passed)]
    }

    fn forgets_one(_: &Path) -> Vec<(String, Verdict)> {
        vec![("a".into(), Verdict::Passed)]
    }

    fn panics(_: &Path) -> Vec<(String, Verdict)> {
        panic!("no luck");
    }

    #[test]
    fn every_vector_is_counted_once() {
        check(Some(all_pass), None, "2 passed, 0 failed, 0 skipped");
        check(Some(all_pass), Some("b"), "1 passed, 0 failed, 0 skipped");
        check(None, None, "0 passed, 0 failed, 2 skipped");
        check(None, Some("a"), "0 passed, 0 failed, 1 skipped");
    }

    #[test]
    fn a_runner_that_forgets_or_panics_fails_its_vectors() {
        check(Some(forgets_one), None, "1 passed, 1 failed, 0 skipped");
        check(Some(panics), None, "0 passed, 2 failed, 0 skipped");
    }

    #[test]
    fn failures_and_an_empty_selection_are_faults() {
        let mut report = Report::new(false);
        assert_eq!(finish(&report, &Skips::default()).unwrap_err().to_string(), "no vector is selected");
        report.add("turn", "a", Verdict::Failed("no".into()));
        assert_eq!(finish(&report, &Skips::default()), Err(Fault::Shown));
    }
}
