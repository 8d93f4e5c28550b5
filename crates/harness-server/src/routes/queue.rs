//! Queued messages.

use std::sync::Arc;

use axum::Json;
use axum::extract::State;
use axum::http::StatusCode;
use harness::core::{EntryId, ThreadId};
use harness::runtime::{DeliveryMode, ThreadMessage};

use crate::app::App;
use crate::body::{At, Body};
use crate::fault::{AnyFault, Conflict, Fault};
use crate::wire::{EditEntry, EntryView, Queue, Queued, Say, Send};

type Accepted = (StatusCode, Json<Queued>);

async fn deliver(app: &App, name: &str, message: ThreadMessage) -> Result<Accepted, Fault> {
    let thread = app.thread(name).await?;
    let entry = app.threads.deliver_boxed(&thread, message).await?;
    Ok((StatusCode::ACCEPTED, Json(Queued { entry })))
}

async fn entries(app: &App, thread: &ThreadId) -> Result<Json<Queue>, Fault> {
    let entries = app.threads.queue_boxed(thread).await?;
    Ok(Json(Queue { entries: entries.into_iter().map(EntryView::from).collect() }))
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
    let message = ThreadMessage::new(sent.message()?, sent.delivery.into());
    let message = match sent.entry {
        Some(entry) if entry.is_empty() || entry.len() > 128 => {
            return Err(Fault::unreadable("an entry id has 1 to 128 bytes").at("entry"));
        }
        Some(entry) => message.named(entry),
        None => message,
    };
    deliver(&app, &name, message).await
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
    deliver(&app, &name, ThreadMessage::new(message, DeliveryMode::BetweenRounds).quiet()).await
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
    deliver(&app, &name, ThreadMessage::new(message, DeliveryMode::NextTurn).quiet()).await
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
    deliver(&app, &name, ThreadMessage::new(message, DeliveryMode::Interrupt)).await
}

/// Lists the queued messages in the order of their delivery.
#[utoipa::path(
    get, path = "/v1/threads/{thread}/queue", tag = "queue", operation_id = "listQueue",
    params(("thread" = String, Path, description = "Thread id")),
    responses((status = 200, description = "The queue", body = Queue), AnyFault)
)]
pub(super) async fn list(State(app): State<Arc<App>>, At(name): At<String>) -> Result<Json<Queue>, Fault> {
    let thread = app.thread(&name).await?;
    entries(&app, &thread).await
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
        app.threads.edit_boxed(&thread, &entry, message.into()).await?;
    }
    if let Some(place) = change.place {
        app.threads.reorder_boxed(&thread, &entry, place).await?;
    }
    entries(&app, &thread).await
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
    let thread = app.thread(&name).await?;
    let removed = app.threads.cancel_boxed(&thread, &EntryId::from(entry)).await?;
    Ok(Json(removed.into()))
}
