//! Threads.

use std::collections::BTreeMap;
use std::sync::Arc;

use axum::Json;
use axum::extract::{OriginalUri, State};
use axum::http::StatusCode;
use axum::http::header::LOCATION;
use axum::response::IntoResponse;
use harness::core::ThreadId;
use harness::runtime::{Status, ThreadSummary};
use serde::Deserialize;
use serde_json::{Map, Value};
use utoipa::IntoParams;

use crate::app::{App, thread_id};
use crate::attributes;
use crate::body::{Asked, At, MaybeBody};
use crate::fault::{AnyFault, Conflict, Fault};
use crate::stored::StoredThread;
use crate::wire::{
    Compact, Compacted, CreateThread, MessageList, StatusView, ThreadLine, ThreadList, ThreadState,
    ThreadView,
};

/// Maximum number of entries on a page.
const PAGE: usize = 1_000;

/// Page of a list.
#[derive(Debug, Deserialize, IntoParams)]
#[serde(deny_unknown_fields)]
#[into_params(parameter_in = Query)]
pub(super) struct ListQuery {
    /// `next` of the previous page.
    after: Option<String>,
    /// Number of entries, at most 1,000. Default: 100.
    limit: Option<usize>,
    /// Only threads of this user.
    user: Option<String>,
    /// Only threads in this state.
    state: Option<ThreadState>,
    /// Only threads whose `metadata` has these entries: a JSON object, such as `{"ticket":7}`.
    metadata: Option<String>,
}

/// Conditions on the threads of a list.
struct Filter {
    user: Option<String>,
    state: Option<ThreadState>,
    metadata: Map<String, Value>,
}

impl Filter {
    fn of(query: &ListQuery) -> Result<Self, Fault> {
        let metadata = query.metadata.as_deref().map(serde_json::from_str).transpose().map_err(|error| {
            Fault::unreadable(format!("not a JSON object: {error}"))
                .at("metadata")
                .hint("send the entries that the metadata must have, such as {\"ticket\":7}")
        })?;
        let (user, metadata) = (query.user.clone(), metadata.unwrap_or_default());
        Ok(Self { user, state: query.state, metadata })
    }

    /// Whether it accepts every thread.
    fn is_open(&self) -> bool {
        self.user.is_none() && self.state.is_none() && self.metadata.is_empty()
    }

    fn accepts(&self, line: &ThreadLine) -> bool {
        self.user.as_deref().is_none_or(|user| line.has_user(user))
            && self.state.is_none_or(|state| line.state() == state)
            && line.has_metadata(&self.metadata)
    }
}

/// Lists the threads of this server and of stored sessions, sorted by id. A page of a filtered list has what
/// the next 1,000 threads have, so it may be short or empty: the list ends with a page without `next`.
#[utoipa::path(
    get, path = "/v1/threads", tag = "threads", operation_id = "listThreads", params(ListQuery),
    responses((status = 200, description = "A page of threads", body = ThreadList), AnyFault)
)]
pub(super) async fn list(
    State(app): State<Arc<App>>,
    Asked(query): Asked<ListQuery>,
) -> Result<Json<ThreadList>, Fault> {
    let (limit, filter) = (query.limit.unwrap_or(100).clamp(1, PAGE), Filter::of(&query)?);
    let most = if filter.is_open() { limit } else { PAGE };
    let mut rest = known(&app, query.after.map(ThreadId::from), most + 1).await?.into_iter();
    let (mut threads, mut last) = (Vec::new(), None);
    for (id, (summary, stored)) in rest.by_ref().take(most) {
        let stored = stored.unwrap_or_else(|| StoredThread::new(id.as_str()));
        threads.extend(Some(line(&app, summary, stored).await).filter(|line| filter.accepts(line)));
        last = Some(ThreadId::from(id));
        if threads.len() == limit {
            break;
        }
    }
    let next = rest.next().and(last);
    Ok(Json(ThreadList { threads, next }))
}

/// Records of a thread in the service and in the store.
type Known = (Option<ThreadSummary>, Option<StoredThread>);

/// Threads behind an id, sorted by id: at least the first `count` of them.
async fn known(app: &App, after: Option<ThreadId>, count: usize) -> Result<BTreeMap<String, Known>, Fault> {
    let listed = app.threads.list_boxed(after.as_ref(), count).await?;
    let of_service = |summary: ThreadSummary| (summary.id.as_str().to_owned(), (Some(summary), None));
    let mut known: BTreeMap<String, Known> = listed.into_iter().map(of_service).collect();
    if let Some(stored) = &app.options.stored {
        let after = after.as_ref().map(ThreadId::as_str).unwrap_or_default();
        for thread in stored.list_boxed().await?.into_iter().filter(|thread| thread.id.as_str() > after) {
            let id = thread.id.as_str().to_owned();
            known.entry(id).or_default().1 = Some(thread);
        }
    }
    Ok(known)
}

async fn line(app: &App, summary: Option<ThreadSummary>, mut stored: StoredThread) -> ThreadLine {
    let Some(summary) = summary else {
        let attributes = attributes::of_session(stored.meta.as_ref());
        return ThreadLine::new(StatusView::new(&Status::Idle, 0), attributes, stored);
    };
    stored.title = stored.title.or(summary.title);
    stored.created = stored.created.or_else(|| summary.created.map(|at| at.to_string()));
    stored.updated = stored.updated.or_else(|| summary.updated.map(|at| at.to_string()));
    if stored.title.is_none()
        && summary.messages != Some(0)
        && let Ok(snapshot) = app.threads.snapshot_boxed(&summary.id).await
    {
        stored.title = harness::StoredThread::title_of(snapshot.messages.iter());
    }
    ThreadLine::new(StatusView::new(&summary.status, summary.waiting), summary.attributes, stored)
}

/// Creates a thread and its session.
#[utoipa::path(
    post, path = "/v1/threads", tag = "threads", operation_id = "createThread",
    request_body(content = Option<CreateThread>),
    responses(
        (status = 201, description = "State of the thread", body = ThreadView, headers(("Location" = String, description = "Its path"))),
        Conflict, AnyFault,
    )
)]
pub(super) async fn create(
    State(app): State<Arc<App>>,
    OriginalUri(asked_at): OriginalUri,
    MaybeBody(mut asked): MaybeBody<CreateThread>,
) -> Result<impl IntoResponse, Fault> {
    let attributes = asked.attributes()?;
    let id = match asked.id {
        Some(name) => thread_id(&name)?,
        None => app.new_id("thread").into(),
    };
    let alone = app.creating.lock().await;
    app.room()?;
    if app.threads.exists_boxed(&id).await? || app.stored(&id).await?.is_some() {
        let message = format!("there is a thread `{id}` already");
        return Err(Fault::new(StatusCode::CONFLICT, "server.thread_exists", message)
            .hint("take another name, or none"));
    }
    app.create(&id, attributes).await?;
    drop(alone);
    let view = match view(&app, &id).await {
        Ok(view) => view,
        Err(fault) => {
            app.threads.forget_boxed(&id).await?;
            return Err(fault);
        }
    };
    Ok((StatusCode::CREATED, [(LOCATION, format!("{}/{id}", asked_at.path()))], Json(view)))
}

async fn view(app: &App, thread: &ThreadId) -> Result<ThreadView, Fault> {
    let info = app.threads.info_boxed(thread).await?;
    let snapshot = app.threads.snapshot_boxed(thread).await?;
    let approvals = app.threads.approvals_boxed(thread).await?.len();
    Ok(ThreadView::new(thread.clone(), info, snapshot, approvals))
}

/// Returns a thread.
#[utoipa::path(
    get, path = "/v1/threads/{thread}", tag = "threads", operation_id = "getThread",
    params(("thread" = String, Path, description = "Thread id")),
    responses((status = 200, description = "State of the thread", body = ThreadView), AnyFault)
)]
pub(super) async fn show(
    State(app): State<Arc<App>>,
    At(name): At<String>,
) -> Result<Json<ThreadView>, Fault> {
    let thread = app.thread(&name).await?;
    view(&app, &thread).await.map(Json)
}

/// Deletes a thread and its session: its run is aborted, its queue is discarded, and its streams end.
#[utoipa::path(
    delete, path = "/v1/threads/{thread}", tag = "threads", operation_id = "deleteThread",
    params(("thread" = String, Path, description = "Thread id")),
    responses((status = 204, description = "It is gone"), AnyFault)
)]
pub(super) async fn remove(State(app): State<Arc<App>>, At(name): At<String>) -> Result<StatusCode, Fault> {
    let thread = app.thread(&name).await?;
    // The removal goes on when the client goes away.
    let removal = tokio::spawn(async move { app.remove(&thread).await });
    let lost = |_| Fault::new(StatusCode::INTERNAL_SERVER_ERROR, "server.lost", "the removal was lost");
    removal.await.map_err(lost)??;
    Ok(StatusCode::NO_CONTENT)
}

/// Returns the status of a thread, without loading its transcript.
#[utoipa::path(
    get, path = "/v1/threads/{thread}/status", tag = "threads", operation_id = "getStatus",
    params(("thread" = String, Path, description = "Thread id")),
    responses((status = 200, description = "What it does", body = StatusView), AnyFault)
)]
pub(super) async fn status(
    State(app): State<Arc<App>>,
    At(name): At<String>,
) -> Result<Json<StatusView>, Fault> {
    let thread = app.thread(&name).await?;
    let info = app.threads.info_boxed(&thread).await?;
    Ok(Json(StatusView::new(&info.status, info.waiting)))
}

/// Range of messages.
#[derive(Debug, Deserialize, IntoParams)]
#[serde(deny_unknown_fields)]
#[into_params(parameter_in = Query)]
pub(super) struct MessagesQuery {
    /// Position of the first message, from 0. Default: the last page.
    from: Option<usize>,
    /// Number of entries, at most 1,000. Default: 100.
    limit: Option<usize>,
}

/// Returns a part of the transcript, including messages of the current run.
#[utoipa::path(
    get, path = "/v1/threads/{thread}/messages", tag = "threads", operation_id = "listMessages",
    params(("thread" = String, Path, description = "Thread id"), MessagesQuery),
    responses((status = 200, description = "A page of messages", body = MessageList), AnyFault)
)]
pub(super) async fn messages(
    State(app): State<Arc<App>>,
    At(name): At<String>,
    Asked(query): Asked<MessagesQuery>,
) -> Result<Json<MessageList>, Fault> {
    let thread = app.thread(&name).await?;
    let transcript = app.threads.snapshot_boxed(&thread).await?.messages;
    let (total, limit) = (transcript.len(), query.limit.unwrap_or(100).clamp(1, PAGE));
    let from = query.from.unwrap_or_else(|| total.saturating_sub(limit)).min(total);
    let messages = transcript.range(from..from.saturating_add(limit).min(total)).cloned().collect();
    Ok(Json(MessageList { messages, from, total }))
}

/// Compacts the transcript of an idle thread permanently. Responds when it is done.
#[utoipa::path(
    post, path = "/v1/threads/{thread}/compact", tag = "threads", operation_id = "compactThread",
    params(("thread" = String, Path, description = "Thread id")),
    request_body(content = Option<Compact>),
    responses((status = 200, description = "What was done", body = Compacted), Conflict, AnyFault)
)]
pub(super) async fn compact(
    State(app): State<Arc<App>>,
    At(name): At<String>,
    MaybeBody(asked): MaybeBody<Compact>,
) -> Result<Json<Compacted>, Fault> {
    let thread = app.thread(&name).await?;
    let note = app.threads.compact_boxed(&thread, asked.instructions).await?;
    Ok(Json(Compacted { compacted: note.is_some(), note }))
}
