//! Queued messages.

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

/// Sends a message to a thread. An idle thread starts a run with it.
#[utoipa::path(
    post, path = "/v1/threads/{thread}/messages", tag = "queue", operation_id = "sendMessage",
    params(("thread" = String, Path, description = "Thread id")),
    request_body = Send,
    responses((status = 202, description = "The message is queued", body = Queued), Conflict, AnyFault)
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
            return Err(Fault::unreadable("an entry id has 1 to 128 bytes").at("entry"));
        }
        Some(entry) => thread.execute_as(entry, message, sent.delivery.into())?,
        None => thread.execute(message, sent.delivery.into())?,
    };
    Ok(accepted(entry))
}

/// Steers the current run: the message is delivered before its next model call. An idle thread stays idle.
#[utoipa::path(
    post, path = "/v1/threads/{thread}/steer", tag = "queue", operation_id = "steer",
    params(("thread" = String, Path, description = "Thread id")),
    request_body = Say,
    responses((status = 202, description = "The message is queued", body = Queued), Conflict, AnyFault)
)]
pub(super) async fn steer(
    State(app): State<Arc<App>>,
    At(name): At<String>,
    Body(say): Body<Say>,
) -> Result<Accepted, Fault> {
    let message = say.message("steering")?;
    Ok(accepted(app.thread(&name).await?.steer(message)?))
}

/// Queues a message for delivery after the current run. An idle thread stays idle.
#[utoipa::path(
    post, path = "/v1/threads/{thread}/follow-up", tag = "queue", operation_id = "followUp",
    params(("thread" = String, Path, description = "Thread id")),
    request_body = Say,
    responses((status = 202, description = "The message is queued", body = Queued), Conflict, AnyFault)
)]
pub(super) async fn follow_up(
    State(app): State<Arc<App>>,
    At(name): At<String>,
    Body(say): Body<Say>,
) -> Result<Accepted, Fault> {
    let message = say.message("queue")?;
    Ok(accepted(app.thread(&name).await?.follow_up(message)?))
}

/// Interrupts the current run and starts the next run with the message.
#[utoipa::path(
    post, path = "/v1/threads/{thread}/interrupt", tag = "queue", operation_id = "interrupt",
    params(("thread" = String, Path, description = "Thread id")),
    request_body = Say,
    responses((status = 202, description = "The message is queued", body = Queued), Conflict, AnyFault)
)]
pub(super) async fn interrupt(
    State(app): State<Arc<App>>,
    At(name): At<String>,
    Body(say): Body<Say>,
) -> Result<Accepted, Fault> {
    let message = say.message("queue")?;
    Ok(accepted(app.thread(&name).await?.interrupt(message)?))
}

/// Lists the queued messages in the order of their delivery.
#[utoipa::path(
    get, path = "/v1/threads/{thread}/queue", tag = "queue", operation_id = "listQueue",
    params(("thread" = String, Path, description = "Thread id")),
    responses((status = 200, description = "The queue", body = Queue), AnyFault)
)]
pub(super) async fn list(State(app): State<Arc<App>>, At(name): At<String>) -> Result<Json<Queue>, Fault> {
    let entries = app.thread(&name).await?.queue().into_iter().map(EntryView::from).collect();
    Ok(Json(Queue { entries }))
}

/// Changes the content or the position of a queued message.
#[utoipa::path(
    patch, path = "/v1/threads/{thread}/queue/{entry}", tag = "queue", operation_id = "editEntry",
    params(
        ("thread" = String, Path, description = "Thread id"),
        ("entry" = String, Path, description = "Id of the queue entry"),
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

/// Removes a message from the queue before it is delivered.
#[utoipa::path(
    delete, path = "/v1/threads/{thread}/queue/{entry}", tag = "queue", operation_id = "cancelEntry",
    params(
        ("thread" = String, Path, description = "Thread id"),
        ("entry" = String, Path, description = "Id of the queue entry"),
    ),
    responses((status = 200, description = "The removed message", body = EntryView), AnyFault)
)]
pub(super) async fn cancel(
    State(app): State<Arc<App>>,
    At((name, entry)): At<(String, String)>,
) -> Result<Json<EntryView>, Fault> {
    let removed = app.thread(&name).await?.cancel(&EntryId::from(entry))?;
    Ok(Json(removed.into()))
}
