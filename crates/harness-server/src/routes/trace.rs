//! The trace page of a thread.

use std::collections::HashSet;
use std::sync::Arc;

use axum::extract::State;
use axum::http::header::{CACHE_CONTROL, CONTENT_TYPE, REFERRER_POLICY, X_CONTENT_TYPE_OPTIONS};
use axum::response::IntoResponse;
use harness::core::ThreadId;
use harness::record::{RecordError, RunRecord, ThreadRecords, render_runs_html};

use crate::app::App;
use crate::body::At;
use crate::fault::{AnyFault, Fault};

/// Returns the runs of a thread as a trace page: one HTML document that works offline.
///
/// A run in progress is shown as it is now. Runs of earlier server processes are shown if the server has their run
/// records. The page says which runs are missing, and why.
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
    let recorded = recorded(&app, &thread).await?;
    let runs = all(&recorded, recent(&app, &thread));
    let note = note(&app, &thread, &recorded, &runs).await?;
    let headers = [
        (CONTENT_TYPE, "text/html; charset=utf-8"),
        (X_CONTENT_TYPE_OPTIONS, "nosniff"),
        (REFERRER_POLICY, "no-referrer"),
        (CACHE_CONTROL, "no-store"),
    ];
    Ok((headers, render_runs_html(runs.iter().map(|run| &**run), note.as_deref())))
}

/// Runs of this process.
fn recent(app: &App, thread: &ThreadId) -> Vec<Arc<RunRecord>> {
    let now = app.threads.service_time();
    let runs = app.options.recent_runs.as_ref().map(|runs| runs.of_thread(thread, now));
    runs.unwrap_or_default()
}

/// Stored records of a thread, without those of a deleted thread of the same name.
async fn recorded(app: &App, thread: &ThreadId) -> Result<Result<ThreadRecords, RecordError>, Fault> {
    let none = ThreadRecords::default();
    let Some(source) = &app.options.recorded_runs else { return Ok(Ok(none)) };
    let Some(session) = app.stored(thread).await? else { return Ok(Ok(none)) };
    let mut found = source.of_thread_boxed(thread).await;
    if let (Ok(found), Some(created)) = (&mut found, session.created) {
        let all = found.records.len();
        found.records.retain(|run| run.completed_at >= created);
        if found.records.len() < all {
            found.omitted = 0;
        }
    }
    Ok(found)
}

/// Stored records, and runs of this process that are not among them.
fn all(recorded: &Result<ThreadRecords, RecordError>, recent: Vec<Arc<RunRecord>>) -> Vec<Arc<RunRecord>> {
    let mut runs = recorded.as_ref().map(|found| found.records.clone()).unwrap_or_default();
    let key = |run: &RunRecord| (run.run_id.clone(), run.started_at.clone());
    let known: HashSet<_> = runs.iter().map(|run| key(run)).collect();
    runs.extend(recent.into_iter().filter(|run| !known.contains(&key(run))));
    runs.sort_by(|a, b| a.started_at.cmp(&b.started_at));
    runs
}

/// Says which runs are missing, and why.
async fn note(
    app: &App,
    thread: &ThreadId,
    recorded: &Result<ThreadRecords, RecordError>,
    runs: &[Arc<RunRecord>],
) -> Result<Option<String>, Fault> {
    let found = match recorded {
        Ok(found) => found,
        Err(error) => return Ok(Some(format!("Only runs of this server process are shown: {error}"))),
    };
    let mut notes = Vec::new();
    if found.invalid > 0 {
        notes.push(format!("{} run records of this thread are invalid or cannot be read.", found.invalid));
    }
    if found.omitted > 0 {
        let all = "`harness inspect DIR --html FILE` shows all records of a directory";
        notes.push(format!("{} older runs are not shown: {all}.", found.omitted));
    } else if starts_late(app, thread, runs).await? {
        notes.push(missing(app).to_owned());
    }
    Ok(Some(notes.join(" ")).filter(|note| !note.is_empty()))
}

/// Whether the thread has messages of runs before the first one.
async fn starts_late(app: &App, thread: &ThreadId, runs: &[Arc<RunRecord>]) -> Result<bool, Fault> {
    match runs.first() {
        Some(run) => Ok(run.earlier_item_count > 0 || run.unknown_item_count > 0),
        None => Ok(!app.threads.snapshot_boxed(thread).await?.messages.is_empty()),
    }
}

/// Reason why earlier runs are missing.
fn missing(app: &App) -> &'static str {
    let (recent, recorded) = (&app.options.recent_runs, &app.options.recorded_runs);
    match (recent, recorded) {
        (_, Some(_)) => {
            "Earlier runs of this thread have no run record: they were not recorded, or their records were removed."
        }
        (Some(_), None) => {
            "Earlier runs of this thread are not shown: the server has no run records, and remembers only its last runs \
             since its start. `harness serve --run-record DIR` keeps records."
        }
        (None, None) => "Runs are not shown: the server does not keep them.",
    }
}
