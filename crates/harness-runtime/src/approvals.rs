//! Calls that wait until somebody decides.

use std::collections::BTreeMap;
use std::fmt;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use harness_core::message::ToolCall;
use harness_core::port::{ApprovalAsk, Approver, Decision};
use harness_core::{CallId, RunId, ThreadId};
use tokio::sync::{Notify, oneshot};

use crate::error::RuntimeError;

/// Calls that may wait at once; those that come when so many do are left parked in their runs.
const MOST: usize = 10_000;

/// A call that is held until somebody decides.
#[derive(Clone, Debug, PartialEq)]
#[non_exhaustive]
pub struct HeldCall {
    /// Its thread.
    pub thread: Option<ThreadId>,
    /// Its run.
    pub run: Option<RunId>,
    /// The call, with the arguments that would be executed.
    pub call: Arc<ToolCall>,
    /// Why it is held.
    pub reason: String,
}

/// An approver of many threads who waits for decisions that come from elsewhere: another task, a request over
/// a network. Clones share what waits. Up to 10,000 calls wait at once.
///
/// A thread tells by `approval_requested` that a call is held, and by `approval_decided` what became of it. A
/// call whose run is aborted waits no longer.
///
/// ```
/// use std::sync::Arc;
///
/// use harness_core::machine::Origin;
/// use harness_core::message::ToolCall;
/// use harness_core::port::{ApprovalAsk, Approver, Decision};
/// use harness_core::{Cancel, Json};
/// use harness_runtime::Approvals;
///
/// # tokio::runtime::Builder::new_current_thread().build()?.block_on(async {
/// let approvals = Approvals::new();
/// let mut origin = Origin::default();
/// origin.thread = Some("support-17".into());
/// let call = Arc::new(ToolCall::new("call-1", "refund", Json::empty_object()));
/// let ask = ApprovalAsk::new(call, "it moves money".to_owned(), Arc::new(origin), Cancel::never());
///
/// let somebody = async {
///     let held = approvals.held(&"support-17".into());
///     approvals.decide(&"support-17".into(), &held[0].call.id, Decision::Granted)
/// };
/// let (decision, found) = tokio::join!(approvals.decide_call(ask), somebody);
/// assert_eq!((decision, found), (Decision::Granted, Ok(())));
/// # });
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Clone, Default)]
pub struct Approvals(Arc<Shared>);

#[derive(Default)]
struct Shared {
    waiting: Mutex<Waiting>,
    changed: Notify,
}

#[derive(Default)]
struct Waiting {
    /// In the order in which they were held.
    calls: BTreeMap<u64, (HeldCall, oneshot::Sender<Decision>)>,
    held: u64,
}

impl fmt::Debug for Approvals {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Approvals").field("held", &self.lock().calls.len()).finish()
    }
}

impl Approvals {
    /// Nothing waits.
    pub fn new() -> Self {
        Self::default()
    }

    /// The calls of a thread that wait, in the order in which they were held.
    pub fn held(&self, thread: &ThreadId) -> Vec<HeldCall> {
        self.lock().of(thread).map(|(_, held)| held.clone()).collect()
    }

    /// All calls that wait, in the order in which they were held.
    pub fn all(&self) -> Vec<HeldCall> {
        self.lock().calls.values().map(|(held, _)| held.clone()).collect()
    }

    /// Decides about a call that waits.
    ///
    /// # Errors
    /// [`RuntimeError::NotHeld`] when no such call waits any more.
    pub fn decide(&self, thread: &ThreadId, call: &CallId, decision: Decision) -> Result<(), RuntimeError> {
        let mut waiting = self.lock();
        let at = waiting.of(thread).find(|(_, held)| held.call.id == *call).map(|(at, _)| at);
        let waiter = at.and_then(|at| waiting.calls.remove(&at));
        drop(waiting);
        let not_held = || RuntimeError::NotHeld { thread: thread.clone(), call: call.clone() };
        let (_, waiter) = waiter.ok_or_else(not_held)?;
        let sent = waiter.send(decision).map_err(|_| not_held());
        self.0.changed.notify_waiters();
        sent
    }

    /// Completes when calls were held, decided or dropped after this was called: call it, look at what is
    /// [held](Self::held), and await it then.
    pub fn changed(&self) -> impl Future<Output = ()> + Send + '_ {
        self.0.changed.notified()
    }

    /// Holds a call until it is decided; `Later` when the decision is not wanted any more.
    pub async fn decide_call(&self, ask: ApprovalAsk) -> Decision {
        let held = HeldCall {
            thread: ask.origin.thread.clone(),
            run: ask.origin.run.clone(),
            call: ask.call,
            reason: ask.reason,
        };
        let Some((place, decided)) = self.hold(held) else { return Decision::Later };
        let decision = tokio::select! {
            decision = decided => decision.unwrap_or(Decision::Later),
            () = ask.cancel.cancelled() => Decision::Later,
        };
        drop(place);
        decision
    }

    fn hold(&self, held: HeldCall) -> Option<(Place, oneshot::Receiver<Decision>)> {
        let (sender, decided) = oneshot::channel();
        let mut waiting = self.lock();
        if waiting.calls.len() >= MOST {
            return None;
        }
        waiting.held += 1;
        let at = waiting.held;
        waiting.calls.insert(at, (held, sender));
        drop(waiting);
        self.0.changed.notify_waiters();
        Some((Place { approvals: self.clone(), at }, decided))
    }

    fn lock(&self) -> MutexGuard<'_, Waiting> {
        self.0.waiting.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Waiting {
    fn of(&self, thread: &ThreadId) -> impl Iterator<Item = (u64, &HeldCall)> {
        let all = self.calls.iter().map(|(at, (held, _))| (*at, held));
        all.filter(move |(_, held)| held.thread.as_ref() == Some(thread))
    }
}

/// Takes a call out when nobody waits for its decision any more.
struct Place {
    approvals: Approvals,
    at: u64,
}

impl Drop for Place {
    fn drop(&mut self) {
        if self.approvals.lock().calls.remove(&self.at).is_some() {
            self.approvals.0.changed.notify_waiters();
        }
    }
}

impl Approver for Approvals {
    async fn decide(&self, ask: ApprovalAsk) -> Decision {
        self.decide_call(ask).await
    }
}
