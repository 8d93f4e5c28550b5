//! Routes of responses.

use std::sync::Arc;

use axum::Json;
use axum::extract::State;
use axum::http::StatusCode;
use axum::response::{IntoResponse as _, Response};
use serde::Serialize;
use serde_json::{Map, Value};
use utoipa::ToSchema;

use super::super::error::{AnyOpenAiFault, without_retry};
use super::super::events::ResponseEvent;
use super::request::{Asked, ResponseRequest};
use super::stream::Running;
use super::target::Target;
use super::view::ResponseView;
use crate::app::App;
use crate::body::{At, Body};
use crate::drive::{self, Job};
use crate::fault::Fault;
use crate::routes::Client;

/// Answers an input with the agent graph, in the form of OpenAI's responses.
///
/// A response is a run of a thread: a new one, that of `previous_response_id`, or that of `conversation`. The server
/// runs the tools of the agents, which are items `mcp_call`. A call that requires approval is an item
/// `mcp_approval_request`; continue the response with an item `mcp_approval_response`. Honored: `model`, `input`,
/// `instructions`, `previous_response_id`, `conversation`, `store`, `stream`, `text.format`, `metadata`, `user`,
/// `safety_identifier`. Ignored: sampling, token limits, reasoning options, caching, `include`. Rejected: `tools`,
/// `max_tool_calls`, `background`, `prompt`, and unknown fields.
#[utoipa::path(
    post, path = "/v1/responses", tag = "openai", operation_id = "createResponse",
    request_body = ResponseRequest,
    responses(
        (status = 200, description = "The response; with `stream`, its typed events as server-sent events, with the schema of one event", content(
            (ResponseView = "application/json"), (ResponseEvent = "text/event-stream")
        )),
        AnyOpenAiFault
    )
)]
pub(crate) async fn create_response(
    State(app): State<Arc<App>>,
    client: Client,
    Body(body): Body<Map<String, Value>>,
) -> Result<Response, Fault> {
    let mut asked = Asked::read(&app, body)?;
    let place = asked.stream.then(|| app.begin_stream(client.address())).transpose()?;
    let mut target = Target::of(&app, &mut asked).await?;
    let view = ResponseView::new(&app, &asked, &target);
    let running = Running::new(&app, view, &target, asked.stream);
    let (prompt, decisions) = (std::mem::take(&mut target.prompt), std::mem::take(&mut target.decisions));
    let job = Job::start(&app, target.thread, prompt, decisions, target.is_ephemeral).await?;
    let (out, frames) = drive::outlet();
    let run = tokio::spawn(async move { running.run(job, &out).await });
    if let Some(place) = place {
        return Ok(drive::sse(&app, frames, place));
    }
    let ended = run.await.unwrap_or_else(|_| Err(Fault::stopping()));
    drop(frames);
    Ok(match ended {
        Ok(view) => Json(view).into_response(),
        Err(fault) => without_retry(fault),
    })
}

fn not_found(id: &str) -> Fault {
    let shown: String = id.chars().take(128).collect();
    Fault::new(StatusCode::NOT_FOUND, "response_not_found", format!("the response `{shown}` was not found"))
}

/// Returns a stored response.
#[utoipa::path(
    get, path = "/v1/responses/{response}", tag = "openai", operation_id = "getResponseById",
    params(("response" = String, Path, description = "Response id")),
    responses((status = 200, description = "The response", body = ResponseView), AnyOpenAiFault)
)]
pub(crate) async fn show_response(
    State(app): State<Arc<App>>,
    At(id): At<String>,
) -> Result<Json<Value>, Fault> {
    let stored = app.responses.get(&id).ok_or_else(|| not_found(&id))?;
    Ok(Json(Value::clone(&stored.body)))
}

/// A deleted response or conversation.
#[derive(Debug, Serialize, ToSchema)]
pub(crate) struct Deleted {
    /// Id of what was deleted.
    pub(in crate::openai) id: String,
    /// `response` or `conversation.deleted`.
    pub(in crate::openai) object: &'static str,
    /// `true`.
    #[serde(rename = "deleted")]
    pub(in crate::openai) is_gone: bool,
}

/// Deletes a stored response, and its thread if no other response or conversation needs it.
#[utoipa::path(
    delete, path = "/v1/responses/{response}", tag = "openai", operation_id = "deleteResponse",
    params(("response" = String, Path, description = "Response id")),
    responses((status = 200, description = "The response is deleted", body = Deleted), AnyOpenAiFault)
)]
pub(crate) async fn delete_response(
    State(app): State<Arc<App>>,
    At(id): At<String>,
) -> Result<Json<Deleted>, Fault> {
    let (existed, orphan) = app.responses.remove(&id);
    if !existed {
        return Err(not_found(&id));
    }
    if let Some(thread) = orphan {
        // The deletion continues if the client disconnects.
        let _ = tokio::spawn(async move { app.discard(&thread).await }).await;
    }
    Ok(Json(Deleted { id, object: "response", is_gone: true }))
}
