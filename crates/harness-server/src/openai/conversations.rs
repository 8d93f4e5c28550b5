//! Conversations: threads of the server under the names of OpenAI's API.

use std::sync::Arc;

use axum::Json;
use axum::extract::State;
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};
use utoipa::ToSchema;

use super::error::AnyOpenAiFault;
use super::responses::now;
use super::responses::routes::Deleted;
use crate::app::App;
use crate::body::{At, MaybeBody};
use crate::fault::Fault;

/// A new conversation.
#[derive(Debug, Default, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub(crate) struct CreateConversation {
    /// Data of the caller, repeated in the response and not stored.
    #[schema(value_type = Option<Object>)]
    metadata: Option<Map<String, Value>>,
    /// Must be empty: a conversation starts with its first response.
    #[schema(value_type = Option<Vec<Object>>)]
    items: Option<Vec<Value>>,
}

/// A conversation.
#[derive(Debug, Serialize, ToSchema)]
pub(crate) struct ConversationView {
    /// Id of the conversation, which is the id of its thread.
    id: String,
    /// `conversation`.
    object: &'static str,
    /// Time of the request in seconds since 1970.
    created_at: i64,
    /// Data of the caller.
    #[schema(value_type = Object)]
    metadata: Map<String, Value>,
}

/// Creates a conversation: a thread, for `conversation` of a response.
#[utoipa::path(
    post, path = "/v1/conversations", tag = "openai", operation_id = "createConversation",
    request_body(content = Option<CreateConversation>),
    responses((status = 200, description = "The conversation", body = ConversationView), AnyOpenAiFault)
)]
pub(crate) async fn create_conversation(
    State(app): State<Arc<App>>,
    MaybeBody(asked): MaybeBody<CreateConversation>,
) -> Result<Json<ConversationView>, Fault> {
    if asked.items.is_some_and(|items| !items.is_empty()) {
        return Err(Fault::unreadable("`items` is not supported")
            .at("items")
            .hint("send them as `input` of a response"));
    }
    let thread = app.new_thread("conv").await?;
    // Creates the session, so that the conversation survives a restart.
    thread.messages().await?;
    let (id, created_at) = (thread.id().as_str().to_owned(), now(&thread));
    let metadata = asked.metadata.unwrap_or_default();
    Ok(Json(ConversationView { id, object: "conversation", created_at, metadata }))
}

/// Returns a conversation. Threads of other routes are conversations, too.
#[utoipa::path(
    get, path = "/v1/conversations/{conversation}", tag = "openai", operation_id = "getConversation",
    params(("conversation" = String, Path, description = "Conversation id")),
    responses((status = 200, description = "The conversation", body = ConversationView), AnyOpenAiFault)
)]
pub(crate) async fn show_conversation(
    State(app): State<Arc<App>>,
    At(id): At<String>,
) -> Result<Json<ConversationView>, Fault> {
    let thread = app.thread(&id).await?;
    Ok(Json(ConversationView { id, object: "conversation", created_at: now(&thread), metadata: Map::new() }))
}

/// Deletes a conversation, its thread and its session.
#[utoipa::path(
    delete, path = "/v1/conversations/{conversation}", tag = "openai", operation_id = "deleteConversation",
    params(("conversation" = String, Path, description = "Conversation id")),
    responses((status = 200, description = "The conversation is deleted", body = Deleted), AnyOpenAiFault)
)]
pub(crate) async fn delete_conversation(
    State(app): State<Arc<App>>,
    At(id): At<String>,
) -> Result<Json<Deleted>, Fault> {
    let thread = app.thread(&id).await?;
    // The deletion continues if the client disconnects.
    let _ = tokio::spawn(async move { app.discard(&thread).await }).await;
    Ok(Json(Deleted { id, object: "conversation.deleted", is_gone: true }))
}
