//! The trace page of a thread.

use std::sync::Arc;

use axum::extract::State;
use axum::http::header::{CACHE_CONTROL, CONTENT_TYPE, REFERRER_POLICY, X_CONTENT_TYPE_OPTIONS};
use axum::response::IntoResponse;
use harness::record::{RunRecord, render_runs_html};

use crate::app::App;
use crate::body::At;
use crate::fault::{AnyFault, Fault};

/// Returns the runs of a thread in this server process as a trace page: one HTML document that works offline.
///
/// A run in progress is shown as it is now. The page has no runs if the server does not keep them.
#[utoipa::path(
    get, path = "/v1/threads/{thread}/trace", tag = "threads", operation_id = "getTrace",
    params(("thread" = String, Path, description = "Thread id")),
    responses((status = 200, description = "The page", body = String, content_type = "text/html"), AnyFault)
)]
pub(super) async fn trace(
    State(app): State<Arc<App>>,
    At(name): At<String>,
) -> Result<impl IntoResponse, Fault> {
    let thread = app.thread(&name).await?;
    let now = thread.config().ports.clock.now();
    let runs = app.options.recent_runs.as_ref().map(|runs| runs.of_thread(thread.id(), now));
    let runs: Vec<Arc<RunRecord>> = runs.unwrap_or_default();
    let headers = [
        (CONTENT_TYPE, "text/html; charset=utf-8"),
        (X_CONTENT_TYPE_OPTIONS, "nosniff"),
        (REFERRER_POLICY, "no-referrer"),
        (CACHE_CONTROL, "no-store"),
    ];
    Ok((headers, render_runs_html(runs.iter().map(|run| &**run))))
}
