//! Work beside a flow.

use std::fmt;
use std::panic::AssertUnwindSafe;
use std::sync::{Arc, Mutex};

use futures_util::FutureExt as _;
use harness_core::{Cancel, Json, Millis};
use tokio::sync::Notify;
use tokio::task::JoinSet;

use super::context::{StepCx, lock};
use super::dispatch::panic_text;
use super::error::FlowError;
use super::execution::Shared;
use super::shared_budget::SharedBudget;
use super::spawn::SpawnSpec;
use super::step::Step;
use crate::ended::{Ended, within};

/// The work beside an execution. It ends when this is dropped.
#[derive(Debug, Default)]
pub(super) struct Tasks(Mutex<JoinSet<()>>);

/// How detached work stands.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum DetachedStatus {
    /// It is at work.
    Running,
    /// It has an output.
    Completed,
    /// It ended without one.
    Failed,
}

/// Work beside a flow. Clones are handles of the same; dropping them all does not end it.
#[derive(Clone)]
pub struct Detached {
    id: Arc<str>,
    shared: Arc<Shared>,
    cancel: Cancel,
    slot: Arc<Slot>,
}

#[derive(Default)]
struct Slot {
    result: Mutex<Option<Result<Json, FlowError>>>,
    done: Notify,
}

impl fmt::Debug for Detached {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Detached")
            .field("id", &self.id)
            .field("status", &self.status())
            .finish_non_exhaustive()
    }
}

impl Detached {
    /// Its place: that of the step which started it, and its own name.
    pub fn id(&self) -> &Arc<str> {
        &self.id
    }

    /// How it stands now.
    pub fn status(&self) -> DetachedStatus {
        match &*lock(&self.slot.result) {
            None => DetachedStatus::Running,
            Some(Ok(_)) => DetachedStatus::Completed,
            Some(Err(_)) => DetachedStatus::Failed,
        }
    }

    /// What came of it, once it has ended.
    pub fn result(&self) -> Option<Result<Json, FlowError>> {
        lock(&self.slot.result).clone()
    }

    /// Tells it to stop.
    pub fn abort(&self, reason: impl Into<Arc<str>>) {
        self.cancel.cancel_with(reason);
    }

    /// Waits for its end, so long at most; `None` waits as long as it takes.
    ///
    /// # Errors
    /// Its own, or [`FlowError::StepFailed`] when it takes longer: it goes on then.
    pub async fn wait(&self, timeout: Option<Millis>) -> Result<Json, FlowError> {
        let ended = async {
            loop {
                let changed = self.slot.done.notified();
                if let Some(result) = self.result() {
                    return result;
                }
                changed.await;
            }
        };
        match within(ended, self.shared.clock(), timeout, &Cancel::new()).await {
            Ended::Done(result) => result,
            Ended::TimedOut | Ended::Cancelled(_) => {
                let timeout = timeout.unwrap_or_default();
                Err(FlowError::failed(&self.id, format!("Detached spawn timed out after {}ms", timeout.0)))
            }
        }
    }
}

pub(super) fn start(cx: &StepCx, step: Step, input: Json, spec: &SpawnSpec) -> Result<Detached, FlowError> {
    let shared = Arc::clone(cx.shared());
    let Some(tasks) = shared.tasks.upgrade() else {
        return Err(FlowError::Cancelled { reason: "the execution is gone".into() });
    };
    let id: Arc<str> = format!("{}/&{}#{}", cx.path(), step.id(), shared.next_detached()).into();
    // It may outlive the step that starts it, but not the execution.
    let cancel = shared.cancel.child();
    let shared_budget =
        SharedBudget::new(harness_core::limits::Amount::UNLIMITED, Some(Arc::clone(cx.shared_budget())));
    let context = cx.context().child(Arc::clone(&id), false, spec);
    let inner = StepCx::new(context, Arc::clone(&id), cancel.clone(), shared_budget);
    let slot = Arc::new(Slot::default());
    let handle = Detached { id, shared, cancel, slot: Arc::clone(&slot) };
    let mut tasks = lock(&tasks.0);
    while tasks.try_join_next().is_some() {}
    tasks.spawn(async move {
        let done = AssertUnwindSafe(step.perform(input, &inner)).catch_unwind().await;
        let result = done.unwrap_or_else(|panic| {
            Err(FlowError::failed(step.id(), format!("it panicked: {}", panic_text(&*panic))))
        });
        *lock(&slot.result) = Some(result);
        slot.done.notify_waiters();
    });
    Ok(handle)
}
