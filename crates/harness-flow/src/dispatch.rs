//! One step, from its place in the ledger to its record.

use std::collections::BTreeMap;
use std::panic::AssertUnwindSafe;
use std::sync::Arc;

use futures_util::FutureExt as _;
use futures_util::future::{Either, select};
use harness_core::Json;
use harness_core::limits::Amount;
use harness_core::port::BoxFuture;
use tracing::Instrument as _;

use super::context::StepCx;
use super::error::FlowError;
use super::hooks::{FlowEvent, StepInfo};
use super::shared_budget::SharedBudget;
use super::spawn::SpawnSpec;
use super::step::{Body, Kind, Route, Step};
use crate::ended::{Ended, within};

/// Maximum number of nested spawns.
const MAX_DEPTH: u32 = 64;
/// Maximum number of nested steps; each uses some of the stack.
const MAX_NESTING: u32 = 150;

impl Step {
    /// Performs the step inside `parent`.
    pub(super) fn perform<'a>(
        &'a self,
        input: Json,
        parent: &'a StepCx,
    ) -> BoxFuture<'a, Result<Json, FlowError>> {
        Box::pin(dispatch(self, input, parent))
    }
}

async fn dispatch(step: &Step, input: Json, parent: &StepCx) -> Result<Json, FlowError> {
    let depth = parent.depth();
    if depth >= MAX_DEPTH {
        let cause = format!("spawns are nested {depth} levels deep; the limit is {MAX_DEPTH}");
        return Err(FlowError::failed(step.id(), cause));
    }
    if parent.nesting() >= MAX_NESTING {
        let cause = format!("steps are nested too deep; the limit is {MAX_NESTING} levels");
        return Err(FlowError::failed(step.id(), cause));
    }
    if let Some(reason) = parent.cancel().reason() {
        return Err(FlowError::Cancelled { reason });
    }
    let (shared, context) = (parent.shared(), parent.context());
    shared.count_step();
    let path: Arc<str> = format!("{}/{}#{}", parent.path(), step.id(), parent.number_of(step.id())).into();
    let info = StepInfo { path, id: Arc::clone(step.id()), kind: step.kind() };
    if let Some(output) = shared.ledger.as_ref().and_then(|ledger| ledger.replay(&info, context)) {
        parent.succeeded(step.id());
        shared.emit(&FlowEvent::StepReplayed(info));
        return Ok(output);
    }
    context.log.lock().forget(|path| *path == *info.path);
    let cx = enter(step, &info, parent);
    shared.emit(&FlowEvent::StepStarted(info.clone()));
    let span = tracing::info_span!("step", id = %info.id, kind = %info.kind, path = %info.path);
    let done = around(step, &info, input, &cx).instrument(span).await;
    record(step, &info, &cx, &done).await;
    match &done {
        Ok(_) => {
            parent.succeeded(step.id());
            shared.emit(&FlowEvent::StepCompleted(info));
        }
        Err(error) => shared.emit(&FlowEvent::StepFailed(info, error.clone())),
    }
    done
}

/// Creates the context of a step, with a separate budget and cancellation signal only if it needs them.
fn enter(step: &Step, info: &StepInfo, parent: &StepCx) -> StepCx {
    let (options, context) = (step.options(), parent.context());
    let shared_budget = match options.budget {
        None => Arc::clone(parent.shared_budget()),
        Some(most) => {
            let shared_budget = SharedBudget::new(most, Some(Arc::clone(parent.shared_budget())));
            let ledger = context.shared.ledger.as_ref();
            shared_budget.remember(ledger.map(|ledger| ledger.spent_at(&info.path)).unwrap_or_default());
            shared_budget
        }
    };
    let cancel = if options.timeout.is_some() { parent.cancel().child() } else { parent.cancel().clone() };
    parent.inside(Arc::clone(context), Arc::clone(&info.path), cancel, shared_budget)
}

/// Performs the step between its hooks.
async fn around(step: &Step, info: &StepInfo, input: Json, cx: &StepCx) -> Result<Json, FlowError> {
    let Some(hooks) = &cx.shared().runner.hooks else { return timed(step, input, cx).await };
    let allowed = hooks.before_boxed(info, &input, cx).await;
    let done = match allowed {
        Ok(()) => timed(step, input, cx).await,
        Err(problem) => Err(FlowError::failed(step.id(), format!("its before hook failed: {problem}"))),
    };
    if let Err(problem) = hooks.after_boxed(info, &done, cx).await {
        tracing::warn!(path = %info.path, "the after hook of a step failed: {problem}");
        cx.shared().emit(&FlowEvent::HookFailed(info.clone(), problem));
    }
    done
}

/// Performs the step within its timeout. An output that arrives after the abort counts.
async fn timed(step: &Step, input: Json, cx: &StepCx) -> Result<Json, FlowError> {
    let work = attempts(step, input, cx);
    let Some(timeout) = step.options().timeout else { return work.await };
    let clock = cx.shared().clock();
    let late = clock.sleep_until(clock.now().after(timeout));
    match select(work, late).await {
        Either::Left((done, _)) => done,
        Either::Right(((), work)) => {
            let aborted = cx.cancel().cancel_with("timeout");
            match work.await {
                Err(error) if aborted && error.is_cancelled() => {
                    Err(FlowError::failed(step.id(), format!("timeout of {timeout} exceeded")))
                }
                done => done,
            }
        }
    }
}

fn attempts<'a>(step: &'a Step, input: Json, cx: &'a StepCx) -> BoxFuture<'a, Result<Json, FlowError>> {
    if step.options().retry.max_attempts > 1 {
        Box::pin(tried(step, input, cx))
    } else {
        once(step, input, cx)
    }
}

/// Performs the step until it succeeds or has no attempts left.
async fn tried(step: &Step, input: Json, cx: &StepCx) -> Result<Json, FlowError> {
    let (retry, shared) = (step.options().retry, cx.shared());
    let mut attempt = 1;
    loop {
        let error = match once(step, input.clone(), cx).await {
            Err(error) if error.may_be_retried() => error,
            done => return done,
        };
        if attempt >= retry.max_attempts {
            return Err(error.exhausted());
        }
        let wait = shared.clock().sleep_until(shared.clock().now().after(retry.delay(attempt)));
        if let Ended::Cancelled(reason) = within(wait, shared.clock(), None, cx.cancel()).await {
            return Err(FlowError::Cancelled { reason });
        }
        cx.reset_numbers(BTreeMap::new());
        attempt += 1;
    }
}

/// Creates the future of one attempt. It is not `async`, so that nested steps do not need stack for the futures
/// of all kinds.
fn once<'a>(step: &'a Step, input: Json, cx: &'a StepCx) -> BoxFuture<'a, Result<Json, FlowError>> {
    let id = step.id();
    match step.what() {
        Kind::Run(body) => Box::pin(run(id, body, input, cx)),
        Kind::Model(agent, form) => Box::pin(super::model::perform(id, agent, form, input, cx)),
        Kind::Tool(tool, fixed) => Box::pin(super::tool::perform(id, tool, fixed, input, cx)),
        Kind::Parallel(join) => Box::pin(super::parallel::perform(id, join, input, cx)),
        Kind::Loop(rounds) => Box::pin(super::repeat::perform(id, rounds, input, cx)),
        Kind::Branch(route) => Box::pin(branch(id, route, input, cx)),
        Kind::Spawn(child, spec) => Box::pin(spawn(child, spec, input, cx)),
    }
}

async fn spawn(child: &Step, spec: &SpawnSpec, input: Json, cx: &StepCx) -> Result<Json, FlowError> {
    let context = cx.context().child(Arc::clone(cx.path()), true, spec);
    let shared_budget = SharedBudget::new(Amount::UNLIMITED, Some(Arc::clone(cx.shared_budget())));
    let inner = cx.inside(context, Arc::clone(cx.path()), cx.cancel().child(), shared_budget);
    child.perform(input, &inner).await
}

async fn branch(id: &Arc<str>, route: &Route, input: Json, cx: &StepCx) -> Result<Json, FlowError> {
    match choose(id, route, input.clone(), cx).await? {
        Some(chosen) => chosen.perform(input, cx).await,
        None => Ok(input),
    }
}

fn choose<'a>(
    id: &'a Arc<str>,
    route: &'a Route,
    input: Json,
    cx: &'a StepCx,
) -> BoxFuture<'a, Result<Option<Step>, FlowError>> {
    Box::pin(async move {
        let asked = AssertUnwindSafe(async { route(input, cx.clone()).await }).catch_unwind();
        finished(id, within(asked, cx.shared().clock(), None, cx.cancel()).await)
    })
}

async fn run(id: &Arc<str>, body: &Body, input: Json, cx: &StepCx) -> Result<Json, FlowError> {
    let work = AssertUnwindSafe(async { body(input, cx.clone()).await }).catch_unwind();
    let done = finished(id, within(work, cx.shared().clock(), None, cx.cancel()).await);
    // An error after an abort is a cancellation.
    match (done, cx.cancel().reason()) {
        (Err(_), Some(reason)) => Err(FlowError::Cancelled { reason }),
        (done, _) => done,
    }
}

/// Converts the end of user code into an output or an error.
fn finished<T>(
    id: &Arc<str>,
    ended: Ended<Result<Result<T, String>, Box<dyn std::any::Any + Send>>>,
) -> Result<T, FlowError> {
    match ended {
        Ended::Done(Ok(Ok(value))) => Ok(value),
        Ended::Done(Ok(Err(cause))) => Err(FlowError::failed(id, cause)),
        Ended::Done(Err(panic)) => {
            Err(FlowError::failed(id, format!("it panicked: {}", panic_text(&*panic))))
        }
        Ended::Cancelled(reason) => Err(FlowError::Cancelled { reason }),
        Ended::TimedOut => Err(FlowError::failed(id, "timeout")),
    }
}

pub(super) fn panic_text(panic: &(dyn std::any::Any + Send)) -> String {
    let text = panic.downcast_ref::<&str>().map(|text| (*text).to_owned());
    text.or_else(|| panic.downcast_ref::<String>().cloned()).unwrap_or_else(|| "no message".to_owned())
}

/// Records the output of a step, or only its usage when it failed.
async fn record(step: &Step, info: &StepInfo, cx: &StepCx, done: &Result<Json, FlowError>) {
    let (spent, context) = (cx.take_spent(), cx.context());
    let Some(ledger) = context.shared.ledger.as_ref().filter(|_| context.recorded) else { return };
    let recorded = match done {
        Ok(output) if step.options().recorded => ledger.record(info, context, output, spent).await,
        Ok(_) => {
            ledger.record_spent(info, context, spent).await;
            Err("the step is declared unrecorded".to_owned())
        }
        Err(_) => {
            ledger.record_spent(info, context, spent).await;
            return;
        }
    };
    if let Err(problem) = recorded {
        tracing::debug!(path = %info.path, "a step is not recorded: {problem}");
        context.shared.emit(&FlowEvent::NotRecorded(info.clone(), problem));
    }
}
