//! Pending calls.

use std::sync::Arc;

use axum::Json;
use axum::extract::State;
use axum::http::header::IF_MATCH;
use axum::http::{HeaderMap, StatusCode};
use harness::core::{ApprovalId, CallDigest, ThreadId};
use harness::runtime::{ApprovalDecision, PendingApproval, RuntimeError};

use crate::app::App;
use crate::body::{At, Body};
use crate::fault::{AnyFault, Conflict, ErrorBody, Fault};
use crate::wire::{Answer, ApprovalList, ApprovalView, decision};

fn view(thread: ThreadId, PendingApproval { proposed, is_parked }: PendingApproval) -> ApprovalView {
    if is_parked { ApprovalView::parked(thread, proposed) } else { ApprovalView::held(thread, proposed) }
}

/// Lists the pending calls in the runs of all threads. Parked calls are listed by their threads.
#[utoipa::path(
    get, path = "/v1/approvals", tag = "approvals", operation_id = "listAllApprovals",
    responses((status = 200, description = "Pending calls", body = ApprovalList), AnyFault)
)]
pub(super) async fn of_all(State(app): State<Arc<App>>) -> Result<Json<ApprovalList>, Fault> {
    let held = app.threads.held_boxed().await?.into_iter();
    let approvals = held.filter_map(|call| Some(view(call.proposed.origin.thread.clone()?, call)));
    Ok(Json(ApprovalList { approvals: approvals.collect() }))
}

/// Lists the pending calls of a thread: those held by its run or, while it is idle, those that an earlier run
/// left open.
#[utoipa::path(
    get, path = "/v1/threads/{thread}/approvals", tag = "approvals", operation_id = "listApprovals",
    params(("thread" = String, Path, description = "Thread id")),
    responses((status = 200, description = "Pending calls", body = ApprovalList), AnyFault)
)]
pub(super) async fn of_one(
    State(app): State<Arc<App>>,
    At(name): At<String>,
) -> Result<Json<ApprovalList>, Fault> {
    let thread = app.thread(&name).await?;
    let pending = app.threads.approvals_boxed(&thread).await?.into_iter();
    Ok(Json(ApprovalList { approvals: pending.map(|call| view(thread.clone(), call)).collect() }))
}

/// Decides on a call: `granted`, `edited` with other arguments, `denied` with a reason, or `later`.
/// For a parked call, the thread resumes and the decision is applied when the call is pending
/// again.
///
/// The decision names the digest of the call that was shown, in the body or as `If-Match`, and
/// applies to this call only. It may be repeated; a different decision on the same approval is
/// rejected.
#[utoipa::path(
    post, path = "/v1/threads/{thread}/approvals/{approval}", tag = "approvals", operation_id = "answerApproval",
    params(
        ("thread" = String, Path, description = "Thread id"),
        ("approval" = String, Path, description = "Approval id"),
        ("If-Match" = Option<String>, Header, description = "The digest of the call, in double quotes"),
    ),
    request_body = Answer,
    responses(
        (status = 204, description = "The decision is recorded"),
        (status = 412, description = "`If-Match` names the digest of another call", body = ErrorBody),
        Conflict, AnyFault
    )
)]
pub(super) async fn answer(
    State(app): State<Arc<App>>,
    At((name, approval)): At<(String, String)>,
    headers: HeaderMap,
    Body(answer): Body<Answer>,
) -> Result<StatusCode, Fault> {
    let matched = if_match(&headers)?;
    let given = answer.digest.clone();
    let decision = decision(answer)?;
    let thread = app.thread(&name).await?;
    let approval = ApprovalId::from(approval);
    let digest = match (&matched, given) {
        (Some(matched), Some(given)) if *matched != given => {
            return Err(Fault::unreadable("`digest` and `If-Match` differ").at("digest"));
        }
        (Some(digest), _) => digest.clone(),
        (None, Some(digest)) => digest,
        (None, None) => return Err(no_digest(&approval)),
    };
    match app.threads.decide_boxed(&thread, ApprovalDecision { approval, digest, decision }).await {
        Err(error @ RuntimeError::OtherCall { .. }) if matched.is_some() => {
            Err(Fault::from(error).with_status(StatusCode::PRECONDITION_FAILED))
        }
        decided => Ok(decided.map(|()| StatusCode::NO_CONTENT)?),
    }
}

fn no_digest(approval: &ApprovalId) -> Fault {
    let message = format!("the decision about `{approval}` does not name the digest of the call");
    Fault::new(StatusCode::CONFLICT, "request.no_digest", message)
        .hint("send the `digest` from the list of approvals, in the body or as `If-Match`")
        .at("digest")
}

/// Parses the digest in `If-Match`; `None` without the header.
fn if_match(headers: &HeaderMap) -> Result<Option<CallDigest>, Fault> {
    let Some(value) = headers.get(IF_MATCH) else { return Ok(None) };
    let tag = value.to_str().ok().map(str::trim);
    let tag = tag.and_then(|tag| tag.strip_prefix('"')?.strip_suffix('"'));
    let digest = tag.filter(|tag| !tag.is_empty() && !tag.contains('"')).ok_or_else(|| {
        let message = "`If-Match` must be one digest in double quotes";
        Fault::new(StatusCode::BAD_REQUEST, "request.if_match", message)
    })?;
    Ok(Some(CallDigest::from(digest)))
}
