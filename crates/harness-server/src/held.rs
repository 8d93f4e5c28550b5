//! Calls that wait for a decision: held by a run, or parked in a session by an earlier one.

use std::collections::HashSet;
use std::pin::pin;
use std::sync::Arc;

use futures_util::FutureExt as _;
use harness::core::CallId;
use harness::core::message::{AssistantMessage, FinishReason, ToolCall};
use harness::core::port::Decision;
use harness::runtime::{Approvals, Report, Runtime, RuntimeError, Status, Thread};

/// Begins a run, which goes on when its future is dropped.
pub(crate) fn begin(run: impl Future<Output = Result<Report, RuntimeError>>) -> Result<(), RuntimeError> {
    Box::pin(run).now_or_never().transpose().map(drop)
}

/// The calls that an idle thread's transcript ends with and that have no result: the thread settles them when it
/// goes on.
pub(crate) async fn parked(thread: &Thread) -> Result<Vec<Arc<ToolCall>>, RuntimeError> {
    if thread.status() != Status::Idle {
        return Ok(Vec::new());
    }
    let messages = thread.messages().await?;
    let mut answered = HashSet::new();
    for message in messages.iter().rev() {
        if let Some(result) = message.as_tool_result() {
            answered.insert(&result.tool_call_id);
        } else {
            let answer = message.as_assistant();
            let whole =
                |reason: &FinishReason| !matches!(reason, FinishReason::Error | FinishReason::Aborted);
            let answer = answer.filter(|answer| whole(&answer.stop_reason));
            let calls = answer.into_iter().flat_map(AssistantMessage::tool_calls);
            return Ok(calls.filter(|call| !answered.contains(&call.id)).cloned().collect());
        }
    }
    Ok(Vec::new())
}

/// Decides about a call. For one that is parked, the thread goes on until it holds the call again.
pub(crate) async fn decide(
    thread: &Thread,
    approvals: &Approvals,
    call: &CallId,
    decision: Decision,
) -> Result<(), RuntimeError> {
    let not_held = match decide_held(thread, approvals, call, decision.clone()) {
        Err(error @ RuntimeError::NotHeld { .. }) => error,
        decided => return decided,
    };
    if !parked(thread).await?.iter().any(|parked| parked.id == *call) {
        return Err(not_held);
    }
    begin(thread.continue_run())?;
    let mut idle = pin!(thread.wait_idle());
    loop {
        let mut changed = pin!(approvals.changed());
        // From here on no change is missed.
        let _ = changed.as_mut().now_or_never();
        match decide_held(thread, approvals, call, decision.clone()) {
            Err(RuntimeError::NotHeld { .. }) => {}
            decided => return decided,
        }
        tokio::select! {
            () = changed => {}
            () = idle.as_mut() => return Err(not_held),
        }
    }
}

fn decide_held(
    thread: &Thread,
    approvals: &Approvals,
    call: &CallId,
    decision: Decision,
) -> Result<(), RuntimeError> {
    let held = approvals.held(thread.id()).into_iter().find(|held| held.call.id == *call);
    let Some(held) = held else {
        return Err(RuntimeError::NotHeld { thread: thread.id().clone(), approval: call.as_str().into() });
    };
    approvals.decide(thread.id(), &held.id(), &held.digest(), decision)
}

/// Ends the runs that wait for decisions, with their calls parked.
pub(crate) async fn park_all(runtime: &Runtime, approvals: &Approvals) {
    let mut parked = Vec::new();
    for held in approvals.all() {
        let Some(thread) = held.origin.thread.as_ref().and_then(|id| runtime.existing(id)) else { continue };
        if approvals.decide(thread.id(), &held.id(), &held.digest(), Decision::Later).is_ok() {
            parked.push(thread);
        }
    }
    for thread in parked {
        // Other calls of the same answer may still be at work: they have as long as aborted work has.
        let grace = thread.config().grace.duration();
        let _ = tokio::time::timeout(grace, thread.wait_idle()).await;
    }
}
