//! Calls that wait for a decision.

use std::sync::Arc;

use axum::Json;
use axum::extract::State;
use axum::http::StatusCode;
use harness::core::CallId;
use harness::core::port::ProposedCall;
use harness::runtime::{Approvals, RuntimeError};

use crate::app::App;
use crate::body::{At, Body};
use crate::fault::{AnyFault, Conflict, Fault};
use crate::held;
use crate::wire::{Answer, ApprovalList, ApprovalView, decision};

fn view(held: ProposedCall) -> Option<ApprovalView> {
    let (thread, run) = (held.origin.thread.clone()?, held.origin.run.clone());
    Some(ApprovalView::held(thread, &held.call, held.reason, run))
}

/// The calls that runs of all threads hold. Calls that are parked are told by their threads.
#[utoipa::path(
    get, path = "/v1/approvals", tag = "approvals", operation_id = "listAllApprovals",
    responses((status = 200, description = "The calls", body = ApprovalList), AnyFault)
)]
pub(super) async fn of_all(State(app): State<Arc<App>>) -> Json<ApprovalList> {
    let held = app.options.approvals.as_ref().map(Approvals::all).unwrap_or_default();
    Json(ApprovalList { approvals: held.into_iter().filter_map(view).collect() })
}

/// The calls of a thread that wait for a decision: those that its run holds, and while it is idle those that an
/// earlier run left open.
#[utoipa::path(
    get, path = "/v1/threads/{thread}/approvals", tag = "approvals", operation_id = "listApprovals",
    params(("thread" = String, Path, description = "The thread's name")),
    responses((status = 200, description = "The calls", body = ApprovalList), AnyFault)
)]
pub(super) async fn of_one(
    State(app): State<Arc<App>>,
    At(name): At<String>,
) -> Result<Json<ApprovalList>, Fault> {
    let thread = app.thread(&name).await?;
    let held = app.options.approvals.as_ref().map(|held| held.held(thread.id())).unwrap_or_default();
    let mut approvals: Vec<ApprovalView> = held.into_iter().filter_map(view).collect();
    let parked = held::parked(&thread).await?;
    approvals.extend(parked.iter().map(|call| ApprovalView::parked(thread.id().clone(), call)));
    Ok(Json(ApprovalList { approvals }))
}

/// Decides about a call: `granted`, `edited` with other arguments, `denied` with a reason, or `later`. About a
/// call that is parked, the thread goes on and the decision is given when the call is held again.
#[utoipa::path(
    post, path = "/v1/threads/{thread}/approvals/{call}", tag = "approvals", operation_id = "answerApproval",
    params(
        ("thread" = String, Path, description = "The thread's name"),
        ("call" = String, Path, description = "The call's id"),
    ),
    request_body = Answer,
    responses((status = 204, description = "It is decided"), Conflict, AnyFault)
)]
pub(super) async fn answer(
    State(app): State<Arc<App>>,
    At((name, call)): At<(String, String)>,
    Body(answer): Body<Answer>,
) -> Result<StatusCode, Fault> {
    let decision = decision(answer)?;
    let thread = app.thread(&name).await?;
    let call = CallId::from(call);
    let Some(approvals) = &app.options.approvals else {
        return Err(
            RuntimeError::NotHeld { thread: thread.id().clone(), approval: call.as_str().into() }.into()
        );
    };
    held::decide(&thread, approvals, &call, decision).await?;
    Ok(StatusCode::NO_CONTENT)
}
