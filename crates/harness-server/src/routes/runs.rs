//! Runs: beginning them, waiting for them, stopping them.

use std::sync::Arc;

use axum::Json;
use axum::extract::State;
use axum::http::StatusCode;
use axum::response::{IntoResponse as _, Response};
use harness::core::ThreadId;
use harness::runtime::{Prompt, ResumeFrom};
use serde::Deserialize;
use utoipa::IntoParams;

use crate::app::App;
use crate::body::{Asked, At, Body, MaybeBody};
use crate::fault::{AnyFault, Conflict, Fault};
use crate::wire::{AbortThread, Aborted, ReportView, StartRun, Started};

/// Whether the response waits for the end of the run.
#[derive(Debug, Deserialize, IntoParams)]
#[serde(deny_unknown_fields)]
#[into_params(parameter_in = Query)]
pub(super) struct WaitQuery {
    /// `true` responds with the report at the end of the run; the run continues if the client
    /// disconnects. Default: `false`, which responds when the run has started.
    #[serde(default)]
    #[param(inline)]
    wait: Wait,
}

/// A switch: `true`, `false`, or `?wait` alone for `true`.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Deserialize, utoipa::ToSchema)]
#[serde(rename_all = "snake_case")]
enum Wait {
    #[serde(alias = "")]
    True,
    #[default]
    False,
}

/// Sends a prompt to an idle thread and starts a run.
#[utoipa::path(
    post, path = "/v1/threads/{thread}/prompt", tag = "runs", operation_id = "prompt",
    params(("thread" = String, Path, description = "Thread id"), WaitQuery),
    request_body = StartRun,
    responses((status = 202, description = "The run has started", body = Started), (status = 200, description = "The run has ended", body = ReportView), Conflict, AnyFault)
)]
pub(super) async fn prompt(
    State(app): State<Arc<App>>,
    At(name): At<String>,
    Asked(query): Asked<WaitQuery>,
    Body(start): Body<StartRun>,
) -> Result<Response, Fault> {
    let prompt = start.prompt()?;
    let thread = app.thread(&name).await?;
    respond(&app, &thread, prompt, query.wait).await
}

/// Continues at the end of the transcript: settles unfinished and pending calls, and calls the
/// model.
#[utoipa::path(
    post, path = "/v1/threads/{thread}/continue", tag = "runs", operation_id = "continueRun",
    params(("thread" = String, Path, description = "Thread id"), WaitQuery),
    responses((status = 202, description = "The run has started", body = Started), (status = 200, description = "The run has ended", body = ReportView), Conflict, AnyFault)
)]
pub(super) async fn continue_run(
    State(app): State<Arc<App>>,
    At(name): At<String>,
    Asked(query): Asked<WaitQuery>,
) -> Result<Response, Fault> {
    let thread = app.thread(&name).await?;
    respond(&app, &thread, Prompt::resuming(ResumeFrom::Transcript), query.wait).await
}

async fn respond(app: &App, thread: &ThreadId, prompt: Prompt, wait: Wait) -> Result<Response, Fault> {
    if wait == Wait::True {
        let report = app.threads.run_boxed(thread, prompt).await?;
        return Ok(Json(ReportView::from(&report)).into_response());
    }
    let run = app.threads.start_boxed(thread, prompt).await?;
    Ok((StatusCode::ACCEPTED, Json(Started { run })).into_response())
}

/// Returns the result of the messages so far: responds when the queue is empty, or when a run did
/// not complete; immediately if no run is in progress.
#[utoipa::path(
    get, path = "/v1/threads/{thread}/response", tag = "runs", operation_id = "getResponse",
    params(("thread" = String, Path, description = "Thread id")),
    responses(
        (status = 200, description = "The run has ended", body = ReportView),
        (status = 204, description = "The thread has no run in this server process"),
        Conflict, AnyFault,
    )
)]
pub(super) async fn response(State(app): State<Arc<App>>, At(name): At<String>) -> Result<Response, Fault> {
    let thread = app.thread(&name).await?;
    match app.threads.response_boxed(&thread).await? {
        Some(report) => Ok(Json(ReportView::from(&report)).into_response()),
        None => Ok(StatusCode::NO_CONTENT.into_response()),
    }
}

/// Whether the response waits for the end of the abort.
#[derive(Debug, Deserialize, IntoParams)]
#[serde(deny_unknown_fields)]
#[into_params(parameter_in = Query)]
pub(super) struct AbortQuery {
    /// `true` responds when the run has ended. Default: `false`, which responds immediately.
    #[serde(default)]
    #[param(inline)]
    wait: Wait,
}

/// Stops the current run, or ends parked calls. Finished work is kept; queued messages start the next run.
#[utoipa::path(
    post, path = "/v1/threads/{thread}/abort", tag = "runs", operation_id = "abort",
    params(("thread" = String, Path, description = "Thread id"), AbortQuery),
    request_body(content = Option<AbortThread>),
    responses((status = 202, description = "The run is being aborted", body = Aborted), AnyFault)
)]
pub(super) async fn abort(
    State(app): State<Arc<App>>,
    At(name): At<String>,
    Asked(query): Asked<AbortQuery>,
    MaybeBody(asked): MaybeBody<AbortThread>,
) -> Result<(StatusCode, Json<Aborted>), Fault> {
    let thread = app.thread(&name).await?;
    let reason = asked.reason.unwrap_or_else(|| "client".to_owned());
    let stopped = app.threads.abort_boxed(&thread, reason.into(), query.wait == Wait::True).await?;
    Ok((StatusCode::ACCEPTED, Json(Aborted { stopped })))
}
