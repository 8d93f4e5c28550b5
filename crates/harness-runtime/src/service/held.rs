//! Pending calls: held by a run, or parked in a session by an earlier run.

use std::collections::HashSet;
use std::pin::pin;
use std::sync::Arc;
use std::time::Duration;

use futures_util::FutureExt as _;
use futures_util::future::join_all;
use harness_core::machine::{CallDecision, Resume};
use harness_core::message::{AssistantMessage, FinishReason, ToolCall};
use harness_core::port::{Decision, ProposedCall};
use harness_core::tool::ToolDef;
use harness_core::{ApprovalId, Cancel, Origin, ThreadId};

use super::types::ApprovalDecision;
use crate::approvals::Approvals;
use crate::error::RuntimeError;
use crate::prompt::{Prompt, ResumeFrom};
use crate::report::Report;
use crate::runtime::Runtime;
use crate::thread::{Status, Thread};

/// Maximum time between the announcement of a call and its hold.
const ANNOUNCED: Duration = Duration::from_secs(1);

/// Starts a run, which continues when its future is dropped.
pub(super) fn begin(run: impl Future<Output = Result<Report, RuntimeError>>) -> Result<(), RuntimeError> {
    Box::pin(run).now_or_never().transpose().map(drop)
}

/// Status of a thread; a thread whose sub-agent awaits a decision awaits it, too.
pub(super) fn status(status: Status, held: usize) -> Status {
    if let Status::Generating { run, since } = &status
        && held > 0
    {
        return Status::AwaitingApproval { run: run.clone(), since: *since };
    }
    status
}

/// Calls that the run of a thread holds. A call is announced just before it is held: a list after the announcement
/// contains it, unless it has been decided.
pub(super) async fn held(thread: &Thread, approvals: &Approvals) -> Vec<ProposedCall> {
    let announced = async {
        loop {
            let mut changed = pin!(approvals.changed());
            // From here on no change is missed.
            let _ = changed.as_mut().now_or_never();
            let held = approvals.held(thread.id());
            let announced = thread.awaiting_approval();
            if announced.iter().all(|call| held.iter().any(|held| held.call.id == *call)) {
                return held;
            }
            changed.await;
        }
    };
    tokio::time::timeout(ANNOUNCED, announced).await.unwrap_or_default()
}

/// Calls that a thread holds, for a follower that knows of none at first.
#[derive(Debug)]
pub(super) struct HeldCalls {
    approvals: Approvals,
    thread: ThreadId,
    known: Vec<ApprovalId>,
}

impl HeldCalls {
    pub(super) fn new(approvals: Approvals, thread: ThreadId) -> Self {
        Self { approvals, thread, known: Vec::new() }
    }

    /// Waits until other calls are held, and returns them; without any, forever.
    ///
    /// # Cancel safety
    /// No change is lost.
    pub(super) async fn changed(held: Option<&mut Self>) -> Vec<ProposedCall> {
        let Some(held) = held else { return std::future::pending().await };
        loop {
            let mut changed = pin!(held.approvals.changed());
            // From here on no change is missed.
            let _ = changed.as_mut().now_or_never();
            let calls = held.approvals.held(&held.thread);
            let now: Vec<_> = calls.iter().map(ProposedCall::id).collect();
            if now != held.known {
                held.known = now;
                return calls;
            }
            changed.await;
        }
    }
}

/// Pending calls at the end of an idle thread's transcript, which the thread settles when it
/// resumes. Their tools are known only by name.
pub(super) async fn parked(thread: &Thread) -> Result<Vec<ProposedCall>, RuntimeError> {
    if thread.status() == Status::Idle { open(thread).await } else { Ok(Vec::new()) }
}

/// Calls at the end of the transcript that have no result, as an idle thread shows them.
async fn open(thread: &Thread) -> Result<Vec<ProposedCall>, RuntimeError> {
    let messages = thread.messages().await?;
    let mut answered = HashSet::new();
    for message in messages.iter().rev() {
        if let Some(result) = message.as_tool_result() {
            answered.insert(&result.tool_call_id);
            continue;
        }
        let whole = |reason: &FinishReason| !matches!(reason, FinishReason::Error | FinishReason::Aborted);
        let Some(answer) = message.as_assistant().filter(|answer| whole(&answer.stop_reason)) else { break };
        let open = answer.tool_calls().filter(|call| !answered.contains(&call.id));
        return Ok(open.map(|call| proposed(thread, answer, call)).collect());
    }
    Ok(Vec::new())
}

fn proposed(thread: &Thread, answer: &AssistantMessage, call: &Arc<ToolCall>) -> ProposedCall {
    let mut origin = Origin::default();
    origin.thread = Some(thread.id().clone());
    let agent = answer.agent.clone().unwrap_or_else(|| "main".into());
    let def = ToolDef::new(call.name.clone(), "");
    let proposed =
        ProposedCall { origin: Arc::new(origin), ..ProposedCall::new(Arc::clone(call), def, agent, 0) };
    match thread.pending_work(&call.id) {
        Some((_, asked)) => proposed.held(asked),
        None => proposed,
    }
}

/// Decides on a call. For a parked call, the thread resumes until it holds the call again; that may be a run that another
/// decision has resumed.
pub(super) async fn decide(
    thread: &Thread,
    approvals: &Approvals,
    decided: &ApprovalDecision,
) -> Result<(), RuntimeError> {
    let ApprovalDecision { approval, digest, decision } = decided;
    let parked = open(thread).await?.into_iter().find(|parked| parked.id() == *approval);
    let is_idle = thread.status() == Status::Idle;
    let Some(parked) = parked else {
        return approvals.decide(thread.id(), approval, digest, decision.clone());
    };
    if parked.digest() != *digest {
        return Err(other_call(decided, &parked));
    }
    if is_idle {
        if let Some((continuation, _)) = thread.pending_work(&parked.call.id) {
            let about = CallDecision::new(parked.call.id.clone(), decision.clone());
            begin(thread.resume(ResumeFrom::continuation(continuation, Resume::decided([about]))))?;
            approvals.note_decided(thread.id(), approval, digest, decision);
            return Ok(());
        }
        match begin(thread.resume(ResumeFrom::Transcript)) {
            // Another decision has resumed it meanwhile.
            Ok(()) | Err(RuntimeError::Busy { .. }) => {}
            Err(error) => return Err(error),
        }
    } else {
        // It may be decided already.
        let given = approvals.decide(thread.id(), approval, digest, decision.clone());
        let Err(RuntimeError::NotHeld { .. }) = given else { return given };
    }
    let mut idle = pin!(thread.wait_idle());
    loop {
        let mut changed = pin!(approvals.changed());
        // From here on no change is missed.
        let _ = changed.as_mut().now_or_never();
        let held = approvals.held(thread.id()).into_iter().find(|held| held.call.id == parked.call.id);
        if let Some(held) = held {
            // The pending call must be the one that was shown.
            if !same_call(&parked, &held) {
                return Err(other_call(decided, &held));
            }
            approvals.decide(thread.id(), &held.id(), &held.digest(), decision.clone())?;
            approvals.note_decided(thread.id(), approval, digest, decision);
            return Ok(());
        }
        tokio::select! {
            () = changed => {}
            () = idle.as_mut() => {
                let (thread, approval) = (thread.id().clone(), approval.clone());
                return Err(RuntimeError::NotHeld { thread, approval });
            }
        }
    }
}

/// Ends an idle thread's pending calls with an abort: the thread resumes to be stopped at once, so each of them gets a result.
/// Returns whether there were any.
pub(super) async fn abort(thread: &Thread, reason: Arc<str>, wait: bool) -> Result<bool, RuntimeError> {
    if parked(thread).await?.is_empty() {
        return Ok(false);
    }
    let stopped = Cancel::new();
    stopped.cancel();
    let resumed = Prompt::resuming(ResumeFrom::Transcript).cancel_with(stopped);
    match begin(thread.prompt(resumed)) {
        // A decision has resumed it meanwhile.
        Ok(()) | Err(RuntimeError::Busy { .. }) => {}
        Err(error) => return Err(error),
    }
    let stopping = thread.abort(reason);
    if wait {
        stopping.ended().await;
    }
    Ok(true)
}

/// Whether a held call is the one that was shown: a gate may have changed its arguments.
fn same_call(shown: &ProposedCall, held: &ProposedCall) -> bool {
    let (shown, held) = (&shown.call, &held.call);
    shown.id == held.id && shown.name == held.name && shown.arguments == held.arguments
}

fn other_call(decided: &ApprovalDecision, call: &ProposedCall) -> RuntimeError {
    let (approval, seen) = (decided.approval.clone(), decided.digest.clone());
    RuntimeError::OtherCall { approval, seen, held: call.digest() }
}

/// Ends the runs that wait for decisions, with their calls parked.
pub(super) async fn park_all(runtime: &Runtime, approvals: &Approvals) {
    let waiting: HashSet<_> =
        approvals.all().into_iter().filter_map(|held| held.origin.thread.clone()).collect();
    let threads = waiting.iter().filter_map(|id| runtime.existing(id));
    join_all(threads.map(|thread| park(thread, approvals))).await;
}

/// Puts off every call that a thread holds, until its run has ended: a run may hold one call after the other. Other calls of
/// the same answer may still be at work; they have as long as aborted work has.
async fn park(thread: Thread, approvals: &Approvals) {
    let parked = async {
        let mut idle = pin!(thread.wait_idle());
        loop {
            let mut changed = pin!(approvals.changed());
            // From here on no change is missed.
            let _ = changed.as_mut().now_or_never();
            for held in approvals.held(thread.id()) {
                // One that was decided meanwhile needs nothing.
                let _ = approvals.decide(thread.id(), &held.id(), &held.digest(), Decision::Later);
            }
            tokio::select! {
                () = idle.as_mut() => return,
                () = changed => {}
            }
        }
    };
    let _ = tokio::time::timeout(thread.config().ports.grace.duration(), parked).await;
}
