//! Conversations: threads of the server under the names of OpenAI's API.

use std::sync::Arc;

use axum::extract::State;
use harness::core::{Json, ThreadId, Time};
use serde::{Deserialize, Serialize};
use serde_json::Value;
use utoipa::ToSchema;

use super::error::AnyOpenAiFault;
use super::responses::now;
use super::responses::routes::Deleted;
use crate::app::App;
use crate::attributes;
use crate::body::{At, MaybeBody};
use crate::fault::Fault;

/// A new conversation.
#[derive(Debug, Default, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub(crate) struct CreateConversation {
    /// Data of the caller, up to 16 KiB, kept with the conversation.
    #[schema(value_type = Option<Object>)]
    metadata: Option<Json>,
    /// Must be empty: a conversation starts with its first response.
    #[schema(value_type = Option<Vec<Object>>)]
    items: Option<Vec<Value>>,
}

/// A thread under the name of OpenAI's API.
#[derive(Debug, Serialize, ToSchema)]
pub(crate) struct ConversationView {
    /// Id of the conversation, which is the id of its thread.
    id: String,
    /// `conversation`.
    object: &'static str,
    /// Time of its creation in seconds since 1970; without stored sessions the time of the request.
    created_at: i64,
    /// Data of the caller.
    #[schema(value_type = Object)]
    metadata: Json,
}

impl ConversationView {
    async fn of(app: &App, thread: &ThreadId) -> Result<Self, Fault> {
        let stored = app.stored(thread).await?;
        let created = stored.and_then(|stored| Time::parse_iso(&stored.created?));
        Ok(Self {
            id: thread.as_str().to_owned(),
            object: "conversation",
            created_at: created.map_or_else(|| now(app), |created| created.0.div_euclid(1_000)),
            metadata: app.threads.info_boxed(thread).await?.attributes.metadata.unwrap_or_else(no_metadata),
        })
    }
}

fn no_metadata() -> Json {
    Json::of(&serde_json::Map::new()).unwrap_or_else(|_| Json::null())
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
) -> Result<axum::Json<ConversationView>, Fault> {
    if asked.items.is_some_and(|items| !items.is_empty()) {
        return Err(Fault::unreadable("`items` is not supported")
            .at("items")
            .hint("send them as `input` of a response"));
    }
    // Attributes create the session, so that the conversation survives a restart.
    let metadata = asked.metadata.unwrap_or_else(no_metadata);
    let thread = app.new_thread("conv", attributes::checked(None, None, Some(metadata))?).await?;
    ConversationView::of(&app, &thread).await.map(axum::Json)
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
) -> Result<axum::Json<ConversationView>, Fault> {
    let thread = app.thread(&id).await?;
    ConversationView::of(&app, &thread).await.map(axum::Json)
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
) -> Result<axum::Json<Deleted>, Fault> {
    let thread = app.thread(&id).await?;
    // The deletion continues if the client disconnects.
    let _ = tokio::spawn(async move { app.discard(&thread).await }).await;
    Ok(axum::Json(Deleted { id, object: "conversation.deleted", is_gone: true }))
}
