//! `harness run`.

pub(crate) mod approve;
pub(crate) mod context;
pub(crate) mod decisions;
pub(crate) mod deliverables;
mod message;
mod pending;
mod question;
mod resume;
pub(crate) mod session;
mod until;
pub(crate) mod view;

use std::io::Write as _;
use std::path::Path;
use std::sync::Arc;

use harness::control::ControlSpec;
use harness::core::message::ToolCall;
use harness::core::port::{Clock, DynModel, Loaded, ProposedCall, Session};
use harness::core::run::RunSpec;
use harness::core::{Cancel, Evidence, Json, StopReason, ThreadId};
use harness::host::process::wait_for_orphans;
use harness::record::traffic::{Recorder, Replay};
use harness::runtime::{Prompt, Report, ResumeFrom, RuntimeError};
use harness::session::checkpoint::FileCheckpoints;
#[cfg(feature = "postgres")]
use harness::session::checkpoint::PostgresCheckpoints;
use harness::session::{FileSession, Location};
use harness::system::SystemClock;
use harness::{BoundGraph, Builder, Harness};

use self::approve::CommandLineApprover;
use self::decisions::Decisions;
use self::pending::PendingCalls;
use self::until::{RunDetails, Until};
use crate::agents::{Agents, has_output_schema};
use crate::args::{Approve, BackendArgs, LimitArgs, MessageArg, ModelArgs, RunArgs};
use crate::bind::{self, Bound, Needs};
use crate::error::CliError;
use crate::exit::Exit;
use crate::model::{self, Source};
use crate::records::recording::recording;
use crate::render::{
    AnswerOn, CostNotice, Human, JsonLines, NothingToResume, Render, RenderControl, Rendering, Status, Tagged,
};
use crate::signal::Signals;
use crate::terminal::{self, Stream};
use crate::{backend, descriptor, output, outputs};

pub(crate) use self::resume::resume;

/// Maximum number of events that wait for a slow reader of the output. Beyond it, deltas are dropped first, then the
/// oldest events, with a notice.
const WAITING: usize = 65_536;

/// Runs a graph and shows it.
pub(crate) fn run(args: &RunArgs) -> Result<Exit, CliError> {
    let (descriptor, message) = descriptor::of_run(args)?;
    run_descriptor(args, &descriptor, message.as_ref())
}

/// Runs the graph of this descriptor and shows it.
fn run_descriptor(args: &RunArgs, descriptor: &Path, message: Option<&MessageArg>) -> Result<Exit, CliError> {
    block_on(run_here(args, descriptor, message))
}

/// Runs a future to completion in a new runtime.
pub(crate) fn block_on<T>(future: impl Future<Output = Result<T, CliError>>) -> Result<T, CliError> {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build();
    let runtime = runtime.map_err(|source| CliError::Io { action: "start the runtime", source })?;
    let done = runtime.block_on(Box::pin(future));
    // What still reads a terminal or waits for a name service must not hold up the end.
    runtime.shutdown_background();
    done
}

async fn run_here(args: &RunArgs, descriptor: &Path, message: Option<&MessageArg>) -> Result<Exit, CliError> {
    let clock: Arc<dyn Clock> = Arc::new(SystemClock::new());
    let bound = bind::bind(descriptor, args.registry.as_deref(), &clock)?;
    let message = message::message(message, args.resume)?;
    let overrides = context::overrides(&args.options.context)?;
    let schema = args.options.output_schema.as_deref().map(context::output_schema).transpose()?;
    check_outputs(args)?;
    let session = open_session(args, descriptor, &bound.graph, &*clock).await?;
    let decisions = decisions(args, &bound.graph, session.as_ref()).await?;
    let thread = session.as_ref().and_then(Session::id);
    let thread = thread.map(|id| ThreadId::from(id.as_str()));
    let choose = || model::choose(&args.options.model, Some(&bound.graph), bound.registry.as_ref(), &clock);
    let source = answers(&args.options.model, &args.options.backend, thread, &clock, choose)?;
    let hash = bound.graph.hash();
    let Bound { graph, registry } = bound;
    let until = Until::of(&args.options.until, graph.graph().run(), descriptor)?;
    let controlled_by = until.control().cloned();
    let texts = Texts {
        are_controlled: controlled_by.is_some(),
        are_validated: schema.is_some() || has_output_schema(graph.graph()),
    };
    let (control, commands) = RenderControl::new();
    let approver = CommandLineApprover::new(args.options.approvals.policy().unwrap_or(Approve::Ask));
    let approver = approver.beside(control.clone()).with_decisions(decisions);
    let (graph, needs, file) = (Some(graph), Needs::of(registry.as_ref()), args.session.as_deref());
    let agents = Agents { graph, needs, overrides, source: &source, clock: &clock, session: file };
    let builder =
        agents.builder(&args.options.limits, &args.options.view, &args.options.spans, approver.clone())?;
    let mut builder = of_one_run(builder, args, until, descriptor, session)?;
    let seen = builder.subscribe(WAITING);
    let harness = builder.build()?;
    let spec = harness.thread().config().run;

    let stop = Cancel::new();
    let rendering = Rendering::start(seen, commands, renderer(args, &spec, texts), stop.clone())
        .map_err(|source| CliError::Io { action: "start the output", source })?;
    let signals = Signals::listen().map_err(|source| CliError::Io { action: "listen for Ctrl-C", source })?;
    let mut prompt = prompt(&harness, args, message).await?;
    prompt.options.output = schema;
    let report = tokio::select! {
        biased;
        report = harness.prompt(prompt.cancel_with(stop.clone())) => report,
        // The run is dropped, and with it every program that it has started.
        () = signals.watch_beside(stop, &control) => return Ok(Exit::Cancelled),
    };
    // The renderer ends when nobody can tell it anything more.
    drop(harness);
    if let Some(registry) = &registry {
        registry.close().await;
    }
    let report = match report {
        Err(error @ RuntimeError::NothingToResume { .. }) => {
            return nothing_to_resume(&error, args.options.json);
        }
        report => report?,
    };
    let proposed = approver.pending();
    let run = Ran { descriptor, hash: &hash, control: controlled_by.as_ref(), proposed: &proposed };
    finish(args, &report, &run, rendering, source.replay.as_deref())
}

/// Reports that the run was complete before: no model was called, and no tool ran.
fn nothing_to_resume(error: &RuntimeError, json: bool) -> Result<Exit, CliError> {
    let _ = writeln!(terminal::messages(), "{error}");
    if !json {
        return Ok(Exit::Completed);
    }
    let line = Tagged { r#type: "nothing_to_resume", fields: NothingToResume { message: error.to_string() } };
    output::print_lines(&[line], Exit::Completed)
}

/// Fails if an output file of the run cannot be written.
fn check_outputs(args: &RunArgs) -> Result<(), CliError> {
    let until = &args.options.until;
    let run_record = args.options.recorded.run_record.as_deref();
    let run_folder = run_record.filter(|path| path.is_dir());
    run_folder.map_or(Ok(()), outputs::check_folder)?;
    let run_file = run_record.filter(|path| !path.is_dir());
    let files = [&args.session, &args.options.model.record, &until.report].map(Option::as_deref);
    for path in files.into_iter().chain([run_file]).flatten() {
        // A session that is to be resumed is opened, and never made.
        if !(args.resume && args.session.as_deref() == Some(path)) {
            outputs::check_session(path)?;
        }
    }
    until.deliverables.as_deref().map_or(Ok(()), outputs::check_folder)
}

/// Opens the session, if there is one.
async fn open_session(
    args: &RunArgs,
    descriptor: &Path,
    graph: &BoundGraph,
    clock: &dyn Clock,
) -> Result<Option<FileSession>, CliError> {
    let Some(path) = &args.session else { return Ok(None) };
    let session = session::open(path, graph, descriptor, args, clock.now())?;
    // Its earlier owner may have been killed: nothing that it had started works beside what follows.
    wait_for_orphans().await?;
    Ok(Some(session))
}

/// Keeps the state of runs beside their session.
fn with_checkpoints(builder: Builder, session: &Path) -> Result<Builder, CliError> {
    let place = Location::of(session);
    #[cfg(feature = "postgres")]
    if let Some(url) = place.url() {
        return Ok(builder.checkpoints(PostgresCheckpoints::open(url)?));
    }
    Ok(builder.checkpoints(FileCheckpoints::open(place.beside("runs"))?))
}

/// Settings of a run that other commands do not have.
fn of_one_run(
    mut builder: Builder,
    args: &RunArgs,
    until: Until,
    descriptor: &Path,
    session: Option<FileSession>,
) -> Result<Builder, CliError> {
    if let Some(session) = session {
        if let Some(id) = session.id() {
            builder = builder.thread(id.as_str());
        }
        builder = builder.session(session);
    }
    if let (Some(path), true) = (&args.session, until.is_on()) {
        builder = with_checkpoints(builder, path)?;
    }
    let recorded = &args.options.recorded;
    if recorded.run_record.is_some() {
        builder = builder.record(recording(recorded, descriptor, args.registry.as_deref()));
    }
    Ok(until.build(builder))
}

/// Message to the agents, or the run to resume.
async fn prompt(harness: &Harness, args: &RunArgs, message: Option<String>) -> Result<Prompt, CliError> {
    let unfinished = if args.resume { harness.thread().unfinished_run().await? } else { None };
    let prompt = match unfinished {
        Some(run) => Prompt::resuming(ResumeFrom::Checkpoint(run)),
        None => Prompt::default(),
    };
    let prompt = message.into_iter().fold(prompt, Prompt::say);
    Ok(if args.allow_changed { prompt.under_any_descriptor() } else { prompt })
}

/// Agents and model of the run.
struct Ran<'a> {
    descriptor: &'a Path,
    hash: &'a str,
    control: Option<&'a ControlSpec>,
    /// Calls that stay pending.
    proposed: &'a [ProposedCall],
}

/// Decisions of the command line about the pending calls of the session.
async fn decisions(
    args: &RunArgs,
    graph: &BoundGraph,
    session: Option<&FileSession>,
) -> Result<Decisions, CliError> {
    if !args.options.approvals.names_calls() {
        return Ok(Decisions::default());
    }
    let loaded = match session {
        Some(session) => session.load().await.map_err(RuntimeError::from)?,
        None => Loaded::default(),
    };
    let check = |call: &ToolCall, arguments: &Json| {
        let tool = graph.tools().iter().find(|tool| tool.tool_def().name == call.name);
        tool.map_or(Ok(()), |tool| tool.check_dyn(arguments).map_err(|fault| fault.to_string()))
    };
    Ok(Decisions::of(&args.options.approvals, &decisions::pending(&loaded), check)?)
}

/// Chooses the backend, or the model that `choose` finds.
pub(crate) fn answers(
    args: &ModelArgs,
    backend: &BackendArgs,
    thread: Option<ThreadId>,
    clock: &Arc<dyn Clock>,
    choose: impl FnOnce() -> Result<Source, CliError>,
) -> Result<Source, CliError> {
    let Some(backend) = backend::choose(backend, args.model.as_deref(), thread, clock)? else {
        return choose();
    };
    let model: Arc<dyn DynModel> = match &args.record {
        Some(path) => Arc::new(Recorder::create(backend, path)?),
        None => Arc::new(backend),
    };
    Ok(Source::live(model, args.model.clone()))
}

/// Reasons why a text of a run may not be its answer.
#[derive(Clone, Copy)]
struct Texts {
    /// The run has many turns.
    are_controlled: bool,
    /// An output schema may reject them.
    are_validated: bool,
}

fn renderer(args: &RunArgs, spec: &RunSpec, texts: Texts) -> Box<dyn Render> {
    let shown: Box<dyn Render> = if args.options.json {
        Box::new(JsonLines::new(terminal::json()))
    } else {
        let is_live = Stream::Err.is_terminal() && !args.options.quiet;
        let has_status = texts.are_controlled && is_live;
        let status = has_status.then(|| Status::of(spec));
        let on = AnswerOn::stdout();
        let on = if texts.are_controlled { on.at_end() } else { on };
        let on = if texts.are_validated { on.accepted() } else { on };
        let human = Human::new(on.out(), terminal::messages(), on);
        Box::new(human.with_status(status).with_waiting(is_live).quiet(args.options.quiet))
    };
    match args.options.limits.max_cost {
        Some(_) => Box::new(CostNotice::new(shown, terminal::messages())),
        None => shown,
    }
}

fn finish(
    args: &RunArgs,
    report: &Report,
    run: &Ran<'_>,
    rendering: Rendering,
    replay: Option<&Replay>,
) -> Result<Exit, CliError> {
    // What was shown, or not, is told last: the rest of what the run leaves behind is written all the same.
    let shown = rendering.finish(&report.end);
    let exit = Exit::of(report.outcome(), report.reason());
    if let Some(failed) = &report.record_failed {
        let _ = writeln!(terminal::messages(), "run record not written: {failed}");
    }
    let mut notes = terminal::messages();
    if let Some(torn) = report.torn_tail {
        let (line, bytes) = (torn.line, torn.bytes);
        let _ = writeln!(notes, "line {line} of the session is incomplete; {bytes} bytes were skipped");
    }
    for repair in report.repairs.iter() {
        let _ = writeln!(notes, "session repaired: {repair}");
    }
    let pending = PendingCalls::of(&report.end.stop.evidence, run.proposed);
    let _ = write!(terminal::questions(), "{}", pending.describe());
    let next = pending.next(args.session.as_deref(), &on_backend(args));
    let next = next.or_else(|| what_next(args, run.descriptor, exit, report));
    let details = RunDetails {
        descriptor: run.descriptor,
        descriptor_hash: run.hash,
        session: args.session.as_deref(),
        contract: run.control.and_then(|control| control.contract.as_ref()),
        next: next.as_deref(),
    };
    for line in until::leave_behind(&args.options.until, report, &details)? {
        let _ = writeln!(notes, "{line}");
    }
    if let Some(next) = &next {
        let _ = writeln!(notes, "{next}");
    }
    let unwritten = report.end.persist_failed.is_some() || report.record_failed.is_some();
    let exit = if unwritten { exit.unwritten() } else { exit };
    match replay.map_or(Ok(()), Replay::finish) {
        Err(fault) if exit == Exit::Completed => {
            let _ = writeln!(notes, "{fault}; {}", fault.hint());
            output::ended(shown, Exit::Failed)
        }
        Err(_) | Ok(()) => output::ended(shown, exit),
    }
}

/// Next steps for a deferred run with control.
fn more(report: &Report, session: &str) -> String {
    if report.reason() == StopReason::MaxTurnsReached {
        let turns = report.end.turns.saturating_mul(2);
        return format!("to continue with more turns: harness resume {session} --max-turns {turns}");
    }
    if report.reason() == StopReason::Stalled {
        return format!("to continue with guidance: harness resume {session} MESSAGE");
    }
    format!("to continue with a higher limit: harness resume {session}")
}

/// Option that selects the backend again.
fn on_backend(args: &RunArgs) -> String {
    args.options.backend.backend.as_ref().map(|backend| format!(" --backend {backend}")).unwrap_or_default()
}

/// Next steps for a run that is not complete.
fn what_next(args: &RunArgs, descriptor: &Path, exit: Exit, report: &Report) -> Option<String> {
    let evidence = &report.end.stop.evidence;
    let (descriptor, session) = (descriptor.display(), args.session.as_ref()?.display());
    let again = format!("harness run {descriptor} --session {session}{}", on_backend(args));
    match exit {
        Exit::Deferred if report.control().is_some() => Some(more(report, &session.to_string())),
        Exit::Deferred => Some(format!("resume with: {again} --resume")),
        Exit::HungUp | Exit::Cancelled | Exit::Quit | Exit::Terminated => {
            Some(format!("the session is saved; resume with: {again} --resume"))
        }
        Exit::AwaitingApproval if matches!(evidence, Evidence::Held(_)) => {
            Some(format!("approve it with: {again} --resume --approve always"))
        }
        Exit::NeedsClarification | Exit::AwaitingApproval => Some(format!("reply with: {again} MESSAGE")),
        Exit::Completed | Exit::Failed | Exit::Refused | Exit::Unwritten | Exit::OutputClosed => None,
    }
}

/// Limits of one turn and of the whole run.
pub(crate) fn set_limits(spec: &mut RunSpec, args: &LimitArgs) {
    let (turn, run) = (&mut spec.turn.limits, &mut spec.limits);
    if let Some(iterations) = args.max_iterations {
        (turn.iterations, run.amount.iterations) = (iterations, iterations);
    }
    run.turns = args.max_turns.unwrap_or(run.turns);
    if let Some(calls) = args.max_tool_calls {
        (turn.tool_calls, run.amount.tool_calls) = (calls, calls);
    }
    if let Some(tokens) = args.max_tokens {
        (turn.tokens, run.amount.tokens) = (tokens, tokens);
    }
    if let Some(cost) = args.max_cost {
        (turn.cost, run.amount.cost) = (cost, cost);
    }
    if args.timeout.is_some() {
        (turn.elapsed, run.elapsed) = (args.timeout, args.timeout);
    }
}
