//! Concurrent steps.

use std::fmt;
use std::num::NonZeroUsize;
use std::sync::Arc;

use futures_util::StreamExt as _;
use futures_util::stream::FuturesUnordered;
use harness_core::Cancel;
use harness_core::Json;

use super::context::{Context, StepCx};
use super::error::FlowError;
use super::step::{Kind, Step};

/// Result of one path of a parallel step that settles.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct PathResult {
    /// Id of the path's step.
    pub step: Arc<str>,
    /// Output or error of the path.
    pub outcome: Result<Json, FlowError>,
}

type Merge = Box<dyn Fn(Vec<Json>) -> Result<Json, String> + Send + Sync>;
type SettleMerge = Box<dyn Fn(Vec<PathResult>) -> Result<Json, String> + Send + Sync>;

enum Mode {
    All(Merge),
    Settle(SettleMerge),
    Race,
}

pub(super) struct Join {
    pub(super) paths: Vec<Step>,
    mode: Mode,
    concurrency: usize,
}

/// Concurrent steps with one input, each on a copy of messages and state.
///
/// - *all*: every path must succeed. The first failure aborts the others and skips those not started.
/// - *settle*: every path runs to its end; the step itself does not fail.
/// - *race*: the first success wins and aborts the others; its state is adopted.
///
/// Paths run in one task, at most [`Parallel::concurrency`] at a time. Their usage is charged at once.
///
/// ```
/// use harness_flow::{Parallel, Step};
///
/// let ask = |id: &str| Step::run(id.to_owned(), async |n: u64, _| Ok::<_, String>(n + 1));
/// let both = Parallel::all("both", [ask("a"), ask("b")]).concurrency(2);
/// let step = Step::from(both);
/// # let _ = step;
/// ```
#[must_use]
pub struct Parallel {
    id: Arc<str>,
    join: Join,
}

impl fmt::Debug for Parallel {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Parallel")
            .field("id", &self.id)
            .field("paths", &self.join.paths)
            .finish_non_exhaustive()
    }
}

impl Parallel {
    fn new(id: impl Into<Arc<str>>, paths: impl IntoIterator<Item = Step>, mode: Mode) -> Self {
        let join = Join { paths: paths.into_iter().collect(), mode, concurrency: usize::MAX };
        Self { id: id.into(), join }
    }

    /// Requires every path to succeed; the output is the list of their outputs, in order.
    pub fn all(id: impl Into<Arc<str>>, paths: impl IntoIterator<Item = Step>) -> Self {
        let list = |outputs: Vec<Json>| Json::of(&outputs).map_err(|error| error.to_string());
        Self::new(id, paths, Mode::All(Box::new(list)))
    }

    /// Requires every path to succeed; `merge` combines their outputs, in order.
    pub fn all_merged(
        id: impl Into<Arc<str>>,
        paths: impl IntoIterator<Item = Step>,
        merge: impl Fn(Vec<Json>) -> Result<Json, String> + Send + Sync + 'static,
    ) -> Self {
        Self::new(id, paths, Mode::All(Box::new(merge)))
    }

    /// Runs every path to its end; `merge` combines their results, in order.
    pub fn settle(
        id: impl Into<Arc<str>>,
        paths: impl IntoIterator<Item = Step>,
        merge: impl Fn(Vec<PathResult>) -> Result<Json, String> + Send + Sync + 'static,
    ) -> Self {
        Self::new(id, paths, Mode::Settle(Box::new(merge)))
    }

    /// Takes the output of the first path that succeeds.
    pub fn race(id: impl Into<Arc<str>>, paths: impl IntoIterator<Item = Step>) -> Self {
        Self::new(id, paths, Mode::Race)
    }

    /// Limits the number of paths that run at a time. Default all; at least 1.
    pub fn concurrency(mut self, most: usize) -> Self {
        self.join.concurrency = NonZeroUsize::new(most).map_or(1, NonZeroUsize::get);
        self
    }
}

impl From<Parallel> for Step {
    fn from(parallel: Parallel) -> Self {
        Self::new(parallel.id, Kind::Parallel(Arc::new(parallel.join)))
    }
}

/// Results of the paths.
struct Paths {
    outcomes: Vec<Option<Result<Json, FlowError>>>,
    winner: Option<Arc<Context>>,
}

pub(super) async fn perform(id: &Arc<str>, join: &Join, input: Json, cx: &StepCx) -> Result<Json, FlowError> {
    let paths = Box::pin(walk(join, &input, cx)).await;
    if let Some(reason) = cx.cancel().reason() {
        return Err(FlowError::Cancelled { reason });
    }
    let skipped = || FlowError::Cancelled { reason: "it did not start".into() };
    let outcomes = paths.outcomes.into_iter().map(|outcome| outcome.unwrap_or_else(|| Err(skipped())));
    let named = join.paths.iter().map(|path| Arc::clone(path.id())).zip(outcomes);
    let merged = match &join.mode {
        Mode::Settle(merge) => merge(named.map(|(step, outcome)| PathResult { step, outcome }).collect()),
        Mode::All(merge) => {
            let (succeeded, failed) = split(named);
            if !failed.is_empty() {
                return Err(FlowError::ForkPartial { step: Arc::clone(id), succeeded, failed });
            }
            merge(succeeded.into_iter().map(|(_, output)| output).collect())
        }
        Mode::Race => {
            let (succeeded, failed) = split(named);
            let Some(winner) = paths.winner else {
                return Err(FlowError::ForkPartial { step: Arc::clone(id), succeeded: Vec::new(), failed });
            };
            cx.context().take_over(&winner);
            return succeeded.into_iter().map(|(_, output)| output).next().ok_or_else(skipped);
        }
    };
    merged.map_err(|problem| FlowError::failed(id, format!("the outputs cannot be merged: {problem}")))
}

/// Successes and failures, by step id.
type Halves = (Vec<(Arc<str>, Json)>, Vec<(Arc<str>, FlowError)>);

fn split(named: impl Iterator<Item = (Arc<str>, Result<Json, FlowError>)>) -> Halves {
    let (mut succeeded, mut failed) = (Vec::new(), Vec::new());
    for (step, outcome) in named {
        match outcome {
            Ok(output) => succeeded.push((step, output)),
            Err(error) => failed.push((step, error)),
        }
    }
    (succeeded, failed)
}

/// Runs the paths until all started ones have ended.
async fn walk(join: &Join, input: &Json, cx: &StepCx) -> Paths {
    let siblings = cx.cancel().child();
    let mut waiting = join.paths.iter().enumerate();
    let mut running = FuturesUnordered::new();
    let mut paths = Paths { outcomes: vec![None; join.paths.len()], winner: None };
    loop {
        while running.len() < join.concurrency && !siblings.is_cancelled() {
            let Some((at, path)) = waiting.next() else { break };
            running.push(walk_one(at, path, input.clone(), cx, &siblings));
        }
        let Some((at, outcome, context)) = running.next().await else { return paths };
        match (&join.mode, &outcome) {
            (Mode::All(_), Err(error)) if !error.is_cancelled() => {
                siblings.cancel_with("a path beside it failed");
            }
            (Mode::Race, Ok(_)) if paths.winner.is_none() => {
                paths.winner = Some(context);
                siblings.cancel_with("another path was first");
            }
            // A path that succeeds after the winner is late.
            (Mode::Race, Ok(_)) => continue,
            _ => {}
        }
        if let Some(place) = paths.outcomes.get_mut(at) {
            *place = Some(outcome);
        }
    }
}

async fn walk_one(
    at: usize,
    path: &Step,
    input: Json,
    cx: &StepCx,
    siblings: &Cancel,
) -> (usize, Result<Json, FlowError>, Arc<Context>) {
    let key: Arc<str> = format!("{}[{at}]", cx.path()).into();
    let context = cx.context().path(Arc::clone(&key));
    let inner = cx.inside(Arc::clone(&context), key, siblings.clone(), Arc::clone(cx.shared_budget()));
    (at, path.perform(input, &inner).await, context)
}
