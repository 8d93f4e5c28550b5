//! `harness engine`: for the person on call.

use harness::core::ThreadId;
use harness::runtime::RuntimeError;
use harness_restate::engine::restate::{DurableThreads, EngineStatus, RunAtWork, RunFilter, RunState};
use serde::Serialize;

use super::report::{runs, status};
use super::worker::not_registered;
use super::{open, open_admin};
use crate::args::{
    EngineCommandArgs, EngineRegisterArgs, EngineResumeArgs, EngineSettleArgs, EngineStatusArgs, EngineVerb,
};
use crate::error::CliError;
use crate::exit::Exit;
use crate::output;
use crate::run::block_on;
use crate::secrets;

/// Runs that are resumed at once, at most.
const MOST: u32 = 1_000;

/// Carries out a command of an operator.
pub(crate) fn engine(args: &EngineCommandArgs) -> Result<Exit, CliError> {
    match &args.verb {
        EngineVerb::Status(args) => engine_status(args),
        EngineVerb::Stuck(args) => engine_stuck(args),
        EngineVerb::Resume(args) => engine_resume(args),
        EngineVerb::Register(args) => engine_register(args),
        EngineVerb::Settle(args) => engine_settle(args),
    }
}

#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct StatusReport {
    #[serde(flatten)]
    status: EngineStatus,
    at_work: Vec<RunAtWork>,
}

#[derive(Serialize)]
struct StuckReport {
    stuck: Vec<RunAtWork>,
}

#[derive(Serialize)]
struct ResumeReport {
    resumed: usize,
}

#[derive(Serialize)]
struct RegisterReport<'r> {
    registered: &'r str,
}

#[derive(Serialize)]
struct SettleReport {
    thread: String,
    run: String,
    reason: String,
}

fn engine_status(args: &EngineStatusArgs) -> Result<Exit, CliError> {
    let (found, at_work, now) = block_on(async {
        let engine = open_admin(&args.admin)?;
        let found = engine.status().await?;
        Ok((found, engine.runs(RunFilter::All, args.limit).await?, engine.time().await?))
    })?;
    if args.json {
        return output::print_json(&StatusReport { status: found, at_work }, Exit::Completed);
    }
    output::print(&format!("{}{}", status(&found, now), runs(&at_work, now)), Exit::Completed)
}

fn engine_stuck(args: &EngineStatusArgs) -> Result<Exit, CliError> {
    let (stuck, now) = block_on(async {
        let engine = open_admin(&args.admin)?;
        // Another build may have been stopped, or the URL may be wrong: then nothing is known.
        engine.version().await?;
        Ok((engine.runs(RunFilter::Stuck, args.limit).await?, engine.time().await?))
    })?;
    let exit = if stuck.is_empty() { Exit::Completed } else { Exit::Failed };
    if args.json {
        return output::print_json(&StuckReport { stuck }, exit);
    }
    if stuck.is_empty() {
        return output::print("no run is stuck\n", exit);
    }
    let next = "\nresume a paused run: harness engine resume THREAD\nend a run without an end: harness engine settle THREAD\n";
    output::print(&format!("{}{next}", runs(&stuck, now)), exit)
}

fn engine_resume(args: &EngineResumeArgs) -> Result<Exit, CliError> {
    let resumed = block_on(async {
        let engine = open_admin(&args.admin)?;
        let threads: Vec<ThreadId> = match &args.thread {
            Some(thread) => vec![thread.as_str().into()],
            None => paused(engine.runs(RunFilter::Stuck, MOST).await?),
        };
        let mut resumed = 0;
        for thread in &threads {
            resumed += engine.resume(thread, args.latest).await?;
        }
        match &args.thread {
            Some(thread) if resumed == 0 => Err(nothing_to_resume(thread)),
            Some(_) | None => Ok(resumed),
        }
    })?;
    if args.json {
        return output::print_json(&ResumeReport { resumed }, Exit::Completed);
    }
    let runs = if resumed == 1 { "run" } else { "runs" };
    output::print(&format!("{resumed} {runs} resumed\n"), Exit::Completed)
}

fn paused(runs: Vec<RunAtWork>) -> Vec<ThreadId> {
    runs.into_iter().filter(|run| run.state == RunState::Paused).map(|run| run.thread).collect()
}

fn nothing_to_resume(thread: &str) -> CliError {
    CliError::Part {
        kind: "cli.nothing_paused".to_owned(),
        message: format!("thread `{thread}` has no paused run"),
        hint: Some("list paused runs with `harness engine stuck`".to_owned()),
    }
}

fn engine_register(args: &EngineRegisterArgs) -> Result<Exit, CliError> {
    let workers = &*args.workers;
    block_on(async {
        let registered = open_admin(&args.admin)?.register_again(workers).await;
        registered.map_err(|error| not_registered(workers, error))
    })?;
    if args.json {
        return output::print_json(&RegisterReport { registered: workers }, Exit::Completed);
    }
    output::print(&format!("new work goes to {workers}\n"), Exit::Completed)
}

fn engine_settle(args: &EngineSettleArgs) -> Result<Exit, CliError> {
    let thread = ThreadId::from(args.thread.as_str());
    let run = block_on(async {
        let engine = open(&args.engine)?;
        let of_thread = engine.runs(RunFilter::Thread(&thread), MOST).await?;
        let is_at_work = |run: &RunAtWork| {
            matches!(run.state, RunState::Queued | RunState::Running | RunState::Waiting)
                && run.failures.is_empty()
        };
        if !args.force && of_thread.iter().any(is_at_work) {
            return Err(at_work(&args.thread));
        }
        let threads = DurableThreads::new(engine).redactor(secrets::redactor());
        let why = format!("cut_off: {}", args.reason);
        threads.settle(&thread, &why).await.map_err(|error| not_settled(&args.thread, error))
    })?;
    if args.json {
        let report = SettleReport {
            thread: args.thread.clone(),
            run: run.as_str().to_owned(),
            reason: args.reason.clone(),
        };
        return output::print_json(&report, Exit::Completed);
    }
    let text = format!(
        "run {run} is settled: thread `{}` is free, and its next run begins with a repair of the transcript\n",
        args.thread
    );
    output::print(&text, Exit::Completed)
}

fn at_work(thread: &str) -> CliError {
    CliError::Part {
        kind: "cli.at_work".to_owned(),
        message: format!("the run of thread `{thread}` is at work"),
        hint: Some("abort it at the front end, which ends it in good order, or pass `--force`".to_owned()),
    }
}

fn not_settled(thread: &str, error: RuntimeError) -> CliError {
    if error.kind() == "engine.not_running" {
        return CliError::Part {
            kind: "cli.no_run".to_owned(),
            message: format!("thread `{thread}` has no run"),
            hint: Some("check the name of the thread; `harness engine status` lists runs at work".to_owned()),
        };
    }
    error.into()
}
