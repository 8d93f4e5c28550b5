//! A durable engine: its servers, workers and clock, and the runs that need a person.

use std::time::Duration;

use harness::core::Millis;
use harness::core::port::Clock;
use harness_restate::engine::restate::{Deployment, Engine, EngineError, RunAtWork, RunFilter, RunState};

use super::finding::{Area, Finding, Status};
use crate::args::DoctorArgs;
use crate::error::CliError;

/// Runs that are listed.
const RUNS: u32 = 20;
/// How far the clocks of workers and engine may differ.
const CLOCKS: i64 = 1_000;

/// Checks the engine that the arguments name.
pub(super) async fn findings(args: &DoctorArgs, clock: &dyn Clock) -> Vec<Finding> {
    let limit = args.timeout.duration();
    let mut findings = Vec::new();
    for url in &args.engine {
        findings.push(ingress(url, limit).await);
    }
    if let Some(admin) = &args.admin {
        let engine = Engine::new(admin).and_then(|engine| engine.admin(admin));
        match engine {
            Ok(engine) => findings.extend(of_admin(&engine, admin, limit, clock).await),
            Err(error) => findings.push(failed("admin", error)),
        }
    }
    findings
}

fn finding(name: &str, status: Status, message: impl Into<String>) -> Finding {
    Finding::new(Area::Engine, name, status, message)
}

fn failed(name: &str, error: EngineError) -> Finding {
    let error = CliError::from(error);
    let found = finding(name, Status::Fault, error.to_string());
    match error.hint() {
        Some(hint) => found.fix(hint),
        None => found,
    }
}

/// Waits for an engine, at most so long.
async fn within<T>(
    limit: Duration,
    url: &str,
    asked: impl Future<Output = Result<T, EngineError>>,
) -> Result<T, EngineError> {
    let late =
        |_| EngineError::Unreachable { url: url.to_owned(), why: format!("no answer within {limit:?}") };
    tokio::time::timeout(limit, asked).await.map_err(late)?
}

async fn ingress(url: &str, limit: Duration) -> Finding {
    let checked = async { Engine::new(url)?.check().await };
    match within(limit, url, checked).await {
        Ok(()) => finding("ingress", Status::Ok, format!("the ingress {url} responds")),
        Err(error) => failed("ingress", error),
    }
}

async fn of_admin(engine: &Engine, url: &str, limit: Duration, clock: &dyn Clock) -> Vec<Finding> {
    let status = match within(limit, url, engine.status()).await {
        Ok(status) => status,
        Err(error) => return vec![failed("admin", error)],
    };
    let mut findings = vec![version(url, &status.version)];
    findings.push(match clock_of(engine, url, limit, clock).await {
        Ok((ahead, exact)) => clocks(ahead, exact),
        Err(error) => failed("clock", error),
    });
    if status.deployments.is_empty() {
        let none = finding("workers", Status::Fault, "no workers are registered, so no run starts");
        findings.push(none.fix("start one: harness worker --register"));
    }
    for deployment in &status.deployments {
        let reached = engine.reach(deployment, limit).await;
        findings.push(workers(deployment, reached.err().as_ref()));
    }
    match within(limit, url, engine.runs(RunFilter::Stuck, RUNS)).await {
        Ok(runs) if runs.is_empty() => findings.push(finding("runs", Status::Ok, "no run needs a person")),
        Ok(runs) => findings.extend(runs.iter().map(stuck)),
        Err(error) => findings.push(failed("runs", error)),
    }
    findings
}

fn version(url: &str, version: &str) -> Finding {
    let tested = Engine::TESTED;
    let message = format!("engine {version} at {url}");
    if version.strip_prefix(tested).is_some_and(|rest| rest.is_empty() || rest.starts_with('.')) {
        return finding("version", Status::Ok, message);
    }
    finding("version", Status::Warning, format!("{message}: tested with {tested}"))
        .fix(format!("use a server of version {tested}, or try yours outside of production first"))
}

/// How far the engine's clock is ahead of this machine's in milliseconds, and how exactly that is known.
async fn clock_of(
    engine: &Engine,
    url: &str,
    limit: Duration,
    clock: &dyn Clock,
) -> Result<(i64, i64), EngineError> {
    let before = clock.now();
    let there = within(limit, url, engine.time()).await?;
    let exact = (clock.now().0 - before.0).max(0) / 2;
    Ok((there.0 - before.0 - exact, exact))
}

fn clocks(ahead: i64, exact: i64) -> Finding {
    let differ = ahead.saturating_abs();
    if differ.saturating_sub(exact) > CLOCKS {
        let how = if ahead > 0 { "ahead of" } else { "behind" };
        let message = format!(
            "the clock of the engine is {} {how} that of this machine",
            Millis(differ.unsigned_abs())
        );
        return finding("clock", Status::Fault, message)
            .fix("synchronize the clocks: they must agree to 1 s");
    }
    if differ.saturating_add(exact) > CLOCKS {
        let message = "the engine responds too slowly to compare its clock with that of this machine";
        return finding("clock", Status::Warning, message).fix("check that the clocks agree to 1 s");
    }
    finding("clock", Status::Ok, "the clocks of the engine and of this machine agree to 1 s")
}

fn workers(deployment: &Deployment, unreachable: Option<&EngineError>) -> Finding {
    let Deployment { id, url, runs, is_latest, .. } = deployment;
    let name = format!("workers.{id}");
    let runs = crate::render::counted(usize::try_from(*runs).unwrap_or(usize::MAX), "run");
    let is_needed = *is_latest || deployment.runs > 0;
    match (unreachable, is_latest) {
        (None, true) => finding(&name, Status::Ok, format!("workers at {url} respond: latest, {runs}")),
        (None, false) if is_needed => finding(
            &name,
            Status::Warning,
            format!("workers at {url} are not the latest, and {runs} stay with them"),
        )
        .fix("keep them until `harness engine status` shows no runs there"),
        (None, false) => finding(
            &name,
            Status::Ok,
            format!("workers at {url} are not the latest and have no runs: they can be stopped"),
        ),
        (Some(why), _) if is_needed => {
            let what = if *is_latest { "new runs wait" } else { "its runs wait" };
            finding(&name, Status::Fault, format!("no worker responds at {url}, so {what} ({runs}): {why}"))
                .fix("start a worker there, or register others and move the runs: harness engine resume --all --latest")
        }
        (Some(_), _) => {
            finding(&name, Status::Ok, format!("workers at {url} were stopped, and have no runs"))
        }
    }
}

fn stuck(run: &RunAtWork) -> Finding {
    let thread = &run.thread;
    let why = run.failures.iter().find_map(|failure| failure.error.as_deref());
    let why = why.and_then(|why| why.lines().next()).map(|why| format!(": {why}")).unwrap_or_default();
    let found = finding(
        &format!("runs.{thread}"),
        Status::Fault,
        format!("run of thread `{thread}`: {}{why}", run.state),
    );
    match run.state {
        RunState::Paused => found.fix(format!("correct the cause, then: harness engine resume {thread}")),
        RunState::Lost => found.fix(format!("free the thread: harness engine settle {thread}")),
        RunState::Queued | RunState::Running | RunState::Waiting | RunState::BackingOff | _ => {
            found.fix("correct the cause; the engine tries again by itself")
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[track_caller]
    fn check(found: &Finding, status: Status, message: &str) {
        assert_eq!((found.status, &*found.message), (status, message));
        assert_eq!(found.fix.is_none(), status == Status::Ok, "{found:?}");
    }

    #[test]
    fn the_tested_versions_are_named() {
        let url = "http://e:9070";
        check(&version(url, "1.7.12"), Status::Ok, "engine 1.7.12 at http://e:9070");
        check(&version(url, "1.70.0"), Status::Warning, "engine 1.70.0 at http://e:9070: tested with 1.7");
        check(&version(url, "1.6.2"), Status::Warning, "engine 1.6.2 at http://e:9070: tested with 1.7");
    }

    #[test]
    fn clocks_agree_to_a_second_as_far_as_that_can_be_told() {
        let agree = "the clocks of the engine and of this machine agree to 1 s";
        check(&clocks(900, 100), Status::Ok, agree);
        check(&clocks(-900, 100), Status::Ok, agree);
        let slow = "the engine responds too slowly to compare its clock with that of this machine";
        check(&clocks(900, 101), Status::Warning, slow);
        check(&clocks(1_100, 100), Status::Warning, slow);
        check(
            &clocks(2_000, 100),
            Status::Fault,
            "the clock of the engine is 2.0 s ahead of that of this machine",
        );
        check(
            &clocks(-2_000, 100),
            Status::Fault,
            "the clock of the engine is 2.0 s behind that of this machine",
        );
    }
}
