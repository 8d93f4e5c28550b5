//! Messages that wait.

use std::sync::Arc;

use axum::Json;
use axum::extract::State;
use axum::http::StatusCode;
use harness::core::EntryId;

use crate::app::App;
use crate::body::{At, Body};
use crate::fault::{AnyFault, Conflict, Fault};
use crate::wire::{EditEntry, EntryView, Queue, Queued, Say, Send};

type Accepted = (StatusCode, Json<Queued>);

fn accepted(entry: EntryId) -> Accepted {
    (StatusCode::ACCEPTED, Json(Queued { entry }))
}

/// Says something to a thread that may be at work; an idle one begins with it at once.
#[utoipa::path(
    post, path = "/v1/threads/{thread}/messages", tag = "queue", operation_id = "sendMessage",
    params(("thread" = String, Path, description = "The thread's name")),
    request_body = Send,
    responses((status = 202, description = "It was taken", body = Queued), Conflict, AnyFault)
)]
pub(super) async fn send(
    State(app): State<Arc<App>>,
    At(name): At<String>,
    Body(mut sent): Body<Send>,
) -> Result<Accepted, Fault> {
    let message = sent.message()?;
    let thread = app.thread(&name).await?;
    let entry = match sent.entry {
        Some(entry) if entry.is_empty() || entry.len() > 128 => {
            return Err(Fault::unreadable("the name of an entry has 1 to 128 bytes").at("entry"));
        }
        Some(entry) => thread.execute_as(entry, message, sent.delivery.into())?,
        None => thread.execute(message, sent.delivery.into())?,
    };
    Ok(accepted(entry))
}

/// Steers the run at hand: the message comes before its next model call. An idle thread stays idle.
#[utoipa::path(
    post, path = "/v1/threads/{thread}/steer", tag = "queue", operation_id = "steer",
    params(("thread" = String, Path, description = "The thread's name")),
    request_body = Say,
    responses((status = 202, description = "It was taken", body = Queued), Conflict, AnyFault)
)]
pub(super) async fn steer(
    State(app): State<Arc<App>>,
    At(name): At<String>,
    Body(say): Body<Say>,
) -> Result<Accepted, Fault> {
    let message = say.message("steering")?;
    Ok(accepted(app.thread(&name).await?.steer(message)?))
}

/// Queues a message that follows when the work at hand is completed. An idle thread stays idle.
#[utoipa::path(
    post, path = "/v1/threads/{thread}/follow-up", tag = "queue", operation_id = "followUp",
    params(("thread" = String, Path, description = "The thread's name")),
    request_body = Say,
    responses((status = 202, description = "It was taken", body = Queued), Conflict, AnyFault)
)]
pub(super) async fn follow_up(
    State(app): State<Arc<App>>,
    At(name): At<String>,
    Body(say): Body<Say>,
) -> Result<Accepted, Fault> {
    let message = say.message("queue")?;
    Ok(accepted(app.thread(&name).await?.follow_up(message)?))
}

/// Ends the run at hand for a message, which begins the next run.
#[utoipa::path(
    post, path = "/v1/threads/{thread}/interrupt", tag = "queue", operation_id = "interrupt",
    params(("thread" = String, Path, description = "The thread's name")),
    request_body = Say,
    responses((status = 202, description = "It was taken", body = Queued), Conflict, AnyFault)
)]
pub(super) async fn interrupt(
    State(app): State<Arc<App>>,
    At(name): At<String>,
    Body(say): Body<Say>,
) -> Result<Accepted, Fault> {
    let message = say.message("queue")?;
    Ok(accepted(app.thread(&name).await?.interrupt(message)?))
}

/// The messages that wait, in the order of their delivery.
#[utoipa::path(
    get, path = "/v1/threads/{thread}/queue", tag = "queue", operation_id = "listQueue",
    params(("thread" = String, Path, description = "The thread's name")),
    responses((status = 200, description = "The queue", body = Queue), AnyFault)
)]
pub(super) async fn list(State(app): State<Arc<App>>, At(name): At<String>) -> Result<Json<Queue>, Fault> {
    let entries = app.thread(&name).await?.queue().into_iter().map(EntryView::from).collect();
    Ok(Json(Queue { entries }))
}

/// Changes what a waiting message says, or its place.
#[utoipa::path(
    patch, path = "/v1/threads/{thread}/queue/{entry}", tag = "queue", operation_id = "editEntry",
    params(
        ("thread" = String, Path, description = "The thread's name"),
        ("entry" = String, Path, description = "The message's name in the queue"),
    ),
    request_body = EditEntry,
    responses((status = 200, description = "The queue", body = Queue), AnyFault)
)]
pub(super) async fn edit(
    State(app): State<Arc<App>>,
    At((name, entry)): At<(String, String)>,
    Body(mut change): Body<EditEntry>,
) -> Result<Json<Queue>, Fault> {
    let message = change.message()?;
    let thread = app.thread(&name).await?;
    let entry = EntryId::from(entry);
    if let Some(message) = message {
        thread.edit(&entry, message)?;
    }
    if let Some(place) = change.place {
        thread.reorder(&entry, place)?;
    }
    let entries = thread.queue().into_iter().map(EntryView::from).collect();
    Ok(Json(Queue { entries }))
}

/// Takes a waiting message out of the queue: it is not delivered.
#[utoipa::path(
    delete, path = "/v1/threads/{thread}/queue/{entry}", tag = "queue", operation_id = "cancelEntry",
    params(
        ("thread" = String, Path, description = "The thread's name"),
        ("entry" = String, Path, description = "The message's name in the queue"),
    ),
    responses((status = 200, description = "It is not delivered", body = EntryView), AnyFault)
)]
pub(super) async fn cancel(
    State(app): State<Arc<App>>,
    At((name, entry)): At<(String, String)>,
) -> Result<Json<EntryView>, Fault> {
    let removed = app.thread(&name).await?.cancel(&EntryId::from(entry))?;
    Ok(Json(removed.into()))
}
