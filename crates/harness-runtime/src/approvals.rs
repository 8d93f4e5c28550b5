//! Calls that wait for a decision.

use std::collections::{BTreeMap, VecDeque};
use std::fmt;
use std::sync::Arc;

use harness_core::port::{ApprovalAsk, Approver, Decision, ProposedCall};
use harness_core::{ApprovalId, CallDigest, Json, ThreadId, canonical};
use parking_lot::Mutex;
use tokio::sync::{Notify, oneshot};

use crate::error::RuntimeError;

/// Calls that may wait at once; those that come when so many do are left parked in their runs.
const MOST: usize = 10_000;

/// Decisions that are remembered, so that a repeated one is recognized; the oldest goes first.
const MOST_DECIDED: usize = 10_000;

/// An approver of many threads who waits for decisions that come from elsewhere: another task, a request over
/// a network. Clones share what waits. Up to 10,000 calls wait at once.
///
/// A thread emits `approval_requested` when a call is held, and `approval_decided` when it is decided. A
/// call whose run is aborted waits no longer.
///
/// A decision names the approval and the digest of the call that was shown, so it never applies to another
/// call, nor to a call of another run. The same decision may be given again: a client whose response was
/// lost can repeat it. The last 10,000 decisions are remembered for this.
///
/// ```
/// use std::sync::Arc;
///
/// use harness_core::message::ToolCall;
/// use harness_core::port::{ApprovalAsk, Approver, Decision, ProposedCall};
/// use harness_core::tool::ToolDef;
/// use harness_core::{Cancel, Json, Origin};
/// use harness_runtime::Approvals;
///
/// # tokio::runtime::Builder::new_current_thread().build()?.block_on(async {
/// let approvals = Approvals::new();
/// let mut origin = Origin::default();
/// origin.thread = Some("support-17".into());
/// let call = Arc::new(ToolCall::new("call-1", "refund", Json::empty_object()));
/// let refund = ProposedCall::new(call, ToolDef::new("refund", "Pays back"), "main".into(), 1);
/// let refund = ProposedCall { origin: Arc::new(origin), ..refund }.held("it moves money");
/// let ask = ApprovalAsk { proposed: refund, cancel: Cancel::never() };
///
/// let person = async {
///     let held = &approvals.held(&"support-17".into())[0];
///     approvals.decide(&"support-17".into(), &held.id(), &held.digest(), Decision::Granted)
/// };
/// let (decision, found) = tokio::join!(approvals.decide_call(ask), person);
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
    calls: BTreeMap<u64, Held>,
    held: u64,
    /// Oldest first.
    decided: VecDeque<Decided>,
}

/// A call that waits.
struct Held {
    id: ApprovalId,
    digest: CallDigest,
    proposed: ProposedCall,
    sender: oneshot::Sender<Decision>,
}

/// A decision that was given.
struct Decided {
    thread: ThreadId,
    id: ApprovalId,
    digest: CallDigest,
    /// The decision by its hash, since edited arguments may be long; `None` when the run ended without one.
    decision: Option<String>,
}

impl fmt::Debug for Approvals {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Approvals").field("held", &self.0.waiting.lock().calls.len()).finish()
    }
}

impl Approvals {
    /// Nothing waits.
    pub fn new() -> Self {
        Self::default()
    }

    /// The calls of a thread that wait, in the order in which they were held.
    pub fn held(&self, thread: &ThreadId) -> Vec<ProposedCall> {
        self.0.waiting.lock().of(thread).map(|(_, held)| held.proposed.clone()).collect()
    }

    /// All calls that wait, in the order in which they were held.
    pub fn all(&self) -> Vec<ProposedCall> {
        self.0.waiting.lock().calls.values().map(|held| held.proposed.clone()).collect()
    }

    /// Decides about the call that was shown under this approval and digest. A decision that was given before
    /// may be repeated and has no further effect.
    ///
    /// # Errors
    /// [`RuntimeError::NotHeld`] when no such call is pending, [`RuntimeError::OtherCall`] when the digest
    /// is that of another call, and [`RuntimeError::Decided`] when another decision was given before.
    pub fn decide(
        &self,
        thread: &ThreadId,
        approval: &ApprovalId,
        digest: &CallDigest,
        decision: Decision,
    ) -> Result<(), RuntimeError> {
        let mut waiting = self.0.waiting.lock();
        let found = waiting.of(thread).find(|(_, held)| held.id == *approval);
        let Some((at, held)) = found else {
            return waiting.repeated(thread, approval, digest, &decision);
        };
        if held.digest != *digest {
            let (approval, held) = (approval.clone(), held.digest.clone());
            return Err(RuntimeError::OtherCall { approval, seen: digest.clone(), held });
        }
        let Some(held) = waiting.calls.remove(&at) else { return Ok(()) };
        waiting.remember(thread, approval, digest, Some(&decision));
        drop(waiting);
        let sent = held.sender.send(decision);
        self.0.changed.notify_waiters();
        sent.map_err(|_| RuntimeError::NotHeld { thread: thread.clone(), approval: approval.clone() })
    }

    /// Remembers a decision that was given under another approval, so that a repeat of it is recognized: for
    /// hosts that show a parked call before a run holds it.
    pub fn note_decided(
        &self,
        thread: &ThreadId,
        approval: &ApprovalId,
        digest: &CallDigest,
        decision: &Decision,
    ) {
        self.0.waiting.lock().remember(thread, approval, digest, Some(decision));
    }

    /// Completes when calls were held, decided or dropped after this was called: call it, look at what is
    /// [held](Self::held), and await it then.
    pub fn changed(&self) -> impl Future<Output = ()> + Send + '_ {
        self.0.changed.notified()
    }

    /// Holds a call until it is decided; `Later` when its run is cancelled.
    pub async fn decide_call(&self, ask: ApprovalAsk) -> Decision {
        let Some((place, decided)) = self.hold(ask.proposed) else { return Decision::Later };
        let decision = tokio::select! {
            decision = decided => decision.unwrap_or(Decision::Later),
            () = ask.cancel.cancelled() => Decision::Later,
        };
        drop(place);
        decision
    }

    fn hold(&self, proposed: ProposedCall) -> Option<(Place, oneshot::Receiver<Decision>)> {
        let (sender, decided) = oneshot::channel();
        let digest = proposed.digest();
        let held = Held { id: digest.approval(), digest, proposed, sender };
        let mut waiting = self.0.waiting.lock();
        if waiting.calls.len() >= MOST {
            return None;
        }
        // Asked again, it is decided again.
        waiting.decided.retain(|decided| decided.id != held.id);
        waiting.held += 1;
        let at = waiting.held;
        waiting.calls.insert(at, held);
        drop(waiting);
        self.0.changed.notify_waiters();
        Some((Place { approvals: self.clone(), at }, decided))
    }
}

impl Waiting {
    fn of(&self, thread: &ThreadId) -> impl Iterator<Item = (u64, &Held)> {
        let all = self.calls.iter().map(|(at, held)| (*at, held));
        all.filter(move |(_, held)| held.proposed.origin.thread.as_ref() == Some(thread))
    }

    fn remember(
        &mut self,
        thread: &ThreadId,
        approval: &ApprovalId,
        digest: &CallDigest,
        decision: Option<&Decision>,
    ) {
        if self.decided.len() >= MOST_DECIDED {
            self.decided.pop_front();
        }
        self.decided.push_back(Decided {
            thread: thread.clone(),
            id: approval.clone(),
            digest: digest.clone(),
            decision: decision.map(named),
        });
    }

    /// A decision about an approval that waits no longer: a repeat, or too late.
    fn repeated(
        &self,
        thread: &ThreadId,
        approval: &ApprovalId,
        digest: &CallDigest,
        decision: &Decision,
    ) -> Result<(), RuntimeError> {
        let before = self.decided.iter().rev().find(|decided| decided.id == *approval);
        match before.filter(|decided| decided.thread == *thread) {
            None => Err(RuntimeError::NotHeld { thread: thread.clone(), approval: approval.clone() }),
            Some(decided) if decided.digest != *digest => {
                let (approval, held) = (approval.clone(), decided.digest.clone());
                Err(RuntimeError::OtherCall { approval, seen: digest.clone(), held })
            }
            Some(decided) if decided.decision.as_ref() != Some(&named(decision)) => {
                Err(RuntimeError::Decided { approval: approval.clone() })
            }
            Some(_) => Ok(()),
        }
    }
}

/// Names a decision by what it says.
fn named(decision: &Decision) -> String {
    canonical::sha256_hex(Json::of(decision).unwrap_or_default().text())
}

/// Removes a call when its run stops waiting.
struct Place {
    approvals: Approvals,
    at: u64,
}

impl Drop for Place {
    fn drop(&mut self) {
        let mut waiting = self.approvals.0.waiting.lock();
        let Some(held) = waiting.calls.remove(&self.at) else { return };
        if let Some(thread) = &held.proposed.origin.thread {
            waiting.remember(thread, &held.id, &held.digest, None);
        }
        drop(waiting);
        self.approvals.0.changed.notify_waiters();
    }
}

impl Approver for Approvals {
    async fn decide(&self, ask: ApprovalAsk) -> Decision {
        self.decide_call(ask).await
    }
}
