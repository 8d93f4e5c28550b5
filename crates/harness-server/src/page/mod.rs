//! The page: threads, chat and approvals in a browser, embedded in the program, and the client for programs.

mod docs;

use axum::extract::Path;
use axum::http::header::{
    CACHE_CONTROL, CONTENT_SECURITY_POLICY, CONTENT_TYPE, REFERRER_POLICY, X_CONTENT_TYPE_OPTIONS,
};
use axum::response::{IntoResponse, Response};
use axum::routing::get;
use axum::{Extension, Router};
use harness::record::{TRACE_SCRIPT, TRACE_STYLE};

use crate::fault::Fault;
use crate::routes::service::DescriptionText;

/// Rules for the browser: only files of this server, no code and no style in the page, no frames.
const POLICY: &str = "default-src 'none'; script-src 'self'; style-src 'self'; connect-src 'self'; img-src 'self' data:; \
    base-uri 'none'; form-action 'none'; frame-ancestors 'none'";

const HTML: &str = "text/html; charset=utf-8";
const SCRIPT: &str = "text/javascript; charset=utf-8";
const TYPES: &str = "text/plain; charset=utf-8";
const STYLE: &str = "text/css; charset=utf-8";

/// Files of the page: name, media type and content.
const FILES: [(&str, &str, &str); 13] = [
    ("style.css", STYLE, include_str!("assets/style.css")),
    ("docs.css", STYLE, include_str!("assets/docs.css")),
    ("app.js", SCRIPT, include_str!("assets/app.js")),
    ("api.js", SCRIPT, include_str!("assets/api.js")),
    ("approvals.js", SCRIPT, include_str!("assets/approvals.js")),
    ("dom.js", SCRIPT, include_str!("assets/dom.js")),
    ("markdown.js", SCRIPT, include_str!("assets/markdown.js")),
    ("live.js", SCRIPT, include_str!("assets/live.js")),
    ("thread.js", SCRIPT, include_str!("assets/thread.js")),
    ("trace.css", STYLE, TRACE_STYLE),
    ("trace.js", SCRIPT, TRACE_SCRIPT),
    ("try.js", SCRIPT, include_str!("assets/try.js")),
    ("transcript.js", SCRIPT, include_str!("assets/transcript.js")),
];

/// Whether a path is one of the page, which has no data of threads and requires no authentication.
pub(crate) fn is_page(path: &str) -> bool {
    matches!(path, "/" | "/docs" | "/trace" | "/client.js" | "/client.d.ts") || path.starts_with("/ui/")
}

/// Routes of the page.
pub(crate) fn routes<S: Clone + Send + Sync + 'static>() -> Router<S> {
    Router::new()
        .route("/", get(|| async { file(HTML, include_str!("assets/index.html")) }))
        .route("/docs", get(documentation))
        .route("/trace", get(|| async { file(HTML, include_str!("assets/trace.html")) }))
        .route("/ui/{file}", get(asset))
        .route("/client.js", get(|| async { file(SCRIPT, include_str!("../client/client.js")) }))
        .route("/client.d.ts", get(|| async { file(TYPES, include_str!("../client/client.d.ts")) }))
}

async fn documentation(Extension(text): Extension<DescriptionText>) -> Response {
    file(HTML, docs::page(&text.0))
}

async fn asset(Path(name): Path<String>) -> Result<Response, Fault> {
    let found = FILES.iter().find(|(known, ..)| *known == name);
    let (_, kind, text) = found.ok_or_else(|| Fault::no_route(&format!("/ui/{name}")))?;
    Ok(file(kind, *text))
}

fn file(kind: &'static str, text: impl IntoResponse) -> Response {
    let headers = [
        (CONTENT_TYPE, kind),
        (CONTENT_SECURITY_POLICY, POLICY),
        (X_CONTENT_TYPE_OPTIONS, "nosniff"),
        (REFERRER_POLICY, "no-referrer"),
        (CACHE_CONTROL, "no-cache"),
    ];
    (headers, text).into_response()
}
