//! `harness regress`.

use harness::record::{Case, CaseRunner, CaseStatus, NoJudge, RunRecord, Suite, run_suite};

use super::again::{How, again};
use crate::args::{LiveArgs, RegressArgs, RunRecordArgs};
use crate::error::CliError;
use crate::exit::Exit;
use crate::output;
use crate::run::block_on;

/// Runs a suite and reports the results of its cases.
pub(crate) fn regress(args: &RegressArgs) -> Result<Exit, CliError> {
    let suite = Suite::read(&args.suite)?;
    let runner = Runner { live: &args.model };
    let report = block_on(async { Ok(run_suite(&suite, &runner, None::<&NoJudge>).await) })?;
    let exit = if report.status == CaseStatus::Fail { Exit::Failed } else { Exit::Completed };
    if args.json { output::print_json(&report, exit) } else { output::print_long(&report.text(), exit) }
}

/// Runs each case with the settings of the suite and the command line.
struct Runner<'a> {
    live: &'a LiveArgs,
}

impl CaseRunner for Runner<'_> {
    async fn run(&self, case: &Case, baseline: &RunRecord) -> Result<RunRecord, String> {
        let how = How {
            descriptor: case.descriptor.clone(),
            registry: case.registry.clone(),
            mode: case.mode,
            input: case.input,
            answers: self.live.answers().unwrap_or(case.answers),
            live: self.live,
            context: &[],
            recorded: &RunRecordArgs::default(),
        };
        match Box::pin(again(baseline, how)).await {
            Ok(again) => Ok(RunRecord::clone(&again.record)),
            Err(error) => Err(error.to_string()),
        }
    }
}
