//! Work that runs beside a flow.

use std::fmt;
use std::panic::AssertUnwindSafe;
use std::sync::Arc;

use futures_util::FutureExt as _;
use harness_core::limits::Amount;
use harness_core::{Cancel, Json, Millis};
use parking_lot::Mutex;
use tokio::runtime::Handle;
use tokio::sync::watch;
use tokio::task::JoinSet;

use super::context::StepCx;
use super::dispatch::panic_text;
use super::ended::{Ended, within};
use super::error::FlowError;
use super::execution::Shared;
use super::shared_budget::SharedBudget;
use super::spawn::SpawnSpec;
use super::step::Step;

/// Detached tasks of an execution, aborted on drop.
#[derive(Debug, Default)]
pub(super) struct Tasks(Mutex<JoinSet<()>>);

type Outcome = Result<Json, FlowError>;

/// Handle of work that runs beside a flow. Clones share it; dropping every handle does not stop the work.
#[derive(Clone)]
pub struct Detached {
    id: Arc<str>,
    shared: Arc<Shared>,
    cancel: Cancel,
    outcome: watch::Receiver<Option<Outcome>>,
}

impl fmt::Debug for Detached {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Detached").field("id", &self.id).finish_non_exhaustive()
    }
}

impl Detached {
    /// Path of the starting step, with the detached step's id and number.
    pub fn id(&self) -> &Arc<str> {
        &self.id
    }

    /// Outcome of the work; `None` while it runs.
    pub fn result(&self) -> Option<Result<Json, FlowError>> {
        self.outcome.borrow().clone()
    }

    /// Aborts the work.
    pub fn abort(&self, reason: impl Into<Arc<str>>) {
        self.cancel.cancel_with(reason);
    }

    /// Waits for the outcome; without a timeout, as long as it takes.
    ///
    /// # Errors
    /// The error of the work, or [`FlowError::StepFailed`] on a timeout, which leaves the work running.
    pub async fn wait(&self, timeout: Option<Millis>) -> Result<Json, FlowError> {
        let mut outcome = self.outcome.clone();
        let ended = async {
            let ended = outcome.wait_for(Option::is_some).await;
            ended.ok().and_then(|outcome| outcome.clone()).unwrap_or_else(|| Err(gone()))
        };
        match within(ended, self.shared.clock(), timeout, &Cancel::never()).await {
            Ended::Done(outcome) => outcome,
            Ended::TimedOut | Ended::Cancelled(_) => {
                let timeout = timeout.unwrap_or_default();
                Err(FlowError::failed(&self.id, format!("detached work timed out after {timeout}")))
            }
        }
    }
}

fn gone() -> FlowError {
    FlowError::Cancelled { reason: "the execution was dropped".into() }
}

pub(super) fn start(cx: &StepCx, step: Step, input: Json, spec: &SpawnSpec) -> Result<Detached, FlowError> {
    let shared = Arc::clone(cx.shared());
    let tasks = shared.tasks.upgrade().ok_or_else(gone)?;
    let no_runtime = |_| FlowError::failed(step.id(), "detached work needs a tokio runtime");
    let runtime = Handle::try_current().map_err(no_runtime)?;
    let id: Arc<str> = format!("{}/&{}#{}", cx.path(), step.id(), shared.next_detached()).into();
    // It may outlive the step that starts it, but not the execution.
    let cancel = shared.cancel.child();
    let budget = SharedBudget::new(Amount::UNLIMITED, Some(Arc::clone(cx.shared_budget())));
    let context = cx.context().child(Arc::clone(&id), false, spec);
    let inner = StepCx::new(context, Arc::clone(&id), cancel.clone(), budget);
    let (done, outcome) = watch::channel(None);
    let mut tasks = tasks.0.lock();
    while tasks.try_join_next().is_some() {}
    let work = async move {
        let ended = AssertUnwindSafe(step.perform(input, &inner)).catch_unwind().await;
        let outcome = ended.unwrap_or_else(|panic| {
            Err(FlowError::failed(step.id(), format!("it panicked: {}", panic_text(&*panic))))
        });
        done.send_replace(Some(outcome));
    };
    tasks.spawn_on(work, &runtime);
    Ok(Detached { id, shared, cancel, outcome })
}
