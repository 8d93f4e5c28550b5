//! Routing.

use axum::body::Bytes;
use axum::extract::{DefaultBodyLimit, Path};
use axum::http::StatusCode;
use axum::http::header::CONTENT_TYPE;
use axum::response::{IntoResponse as _, Response};
use axum::routing::{get, post};
use axum::{Json, Router};
use serde_json::{Value, json};
use tokio::runtime::Runtime;

use super::plan::{Asked, Say};
use super::{anthropic, chat, gemini, responses};
use crate::support::listen;

/// Bytes of a request: agents send all their instructions and tools each time.
const MOST_BODY: usize = 32 << 20;

/// Answers until the runtime is dropped; gives the server's address, without a path.
pub(crate) fn start() -> (String, Runtime) {
    let router = Router::new()
        .route(
            "/v1/messages",
            post(async |body: Bytes| said(anthropic::read(&json(&body)), anthropic::ANSWERS)),
        )
        .route("/v1/messages/count_tokens", post(async || Json(anthropic::count())))
        .route(
            "/v1/responses",
            post(async |body: Bytes| said(responses::read(&json(&body)), responses::ANSWERS)),
        )
        .route(
            "/v1/chat/completions",
            post(async |body: Bytes| said(chat::read(&json(&body)), chat::ANSWERS)),
        )
        .route("/v1/models", get(async || Json(json!({ "object": "list", "data": [], "models": [] }))))
        .route("/{version}/models/{verb}", post(generate))
        .layer(DefaultBodyLimit::max(MOST_BODY));
    listen(router)
}

/// How a protocol writes what is said.
pub(super) struct Answers {
    /// As one object.
    pub(super) whole: fn(&Asked, &Say) -> Value,
    /// As a stream of events.
    pub(super) stream: fn(&Asked, &Say) -> String,
}

fn json(body: &Bytes) -> Value {
    serde_json::from_slice(body).unwrap_or_default()
}

fn said(asked: Asked, answers: Answers) -> Response {
    let say = asked.say();
    if asked.streamed {
        ([(CONTENT_TYPE, "text/event-stream")], (answers.stream)(&asked, &say)).into_response()
    } else {
        Json((answers.whole)(&asked, &say)).into_response()
    }
}

/// Gemini's requests: the last part of the path is model and verb, such as `gemini-2.5-pro:generateContent`.
async fn generate(Path((_, verb)): Path<(String, String)>, body: Bytes) -> Response {
    let body = json(&body);
    match verb.split_once(':') {
        Some((model, "generateContent")) => said(gemini::read(model, false, &body), gemini::ANSWERS),
        Some((model, "streamGenerateContent")) => said(gemini::read(model, true, &body), gemini::ANSWERS),
        Some((_, "countTokens")) => Json(gemini::count()).into_response(),
        Some(_) | None => StatusCode::NOT_FOUND.into_response(),
    }
}

#[test]
fn every_protocol_is_answered() {
    let (url, server) = start();
    let client = reqwest::Client::builder().no_proxy().build().unwrap();
    let check = |path: &str, body: Value, expected: &str| {
        let request = client.post(format!("{url}{path}")).json(&body);
        let text = server.block_on(async { request.send().await.unwrap().text().await.unwrap() });
        assert!(text.contains(expected), "{path}: {text}");
    };
    check("/v1/messages", json!({ "stream": true, "tools": [{ "name": "Bash" }] }), "cat note.txt");
    check("/v1/responses", json!({ "stream": true }), "response.completed");
    let result = json!({ "messages": [{ "role": "tool", "content": "The note says: x" }] });
    check("/v1/chat/completions", result, "I have read it. The note says: x");
    check("/v1beta/models/m:streamGenerateContent", json!({}), "usageMetadata");
    check("/v1beta/models/m:countTokens", json!({}), "totalTokens");
}
