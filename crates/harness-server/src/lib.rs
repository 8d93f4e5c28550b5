//! Threads of agents over HTTP, with server-sent events.
//!
//! [`router`] gives a [`ThreadService`], such as a [`Runtime`](harness::runtime::Runtime), routes under `/v1`, to be mounted in any axum program; [`serve`] is a whole
//! server around it with an orderly shutdown. Requests and responses are in `docs/reference/openapi.json`, which is
//! also served as `/openapi.json`. `docs/cookbook/serve.md` is the guide.
//!
//! | task | route |
//! |---|---|
//! | create, list, see and delete threads | `/v1/threads` |
//! | send a prompt and follow the run | `…/prompt`, `…/continue`, `…/response`, `…/abort` |
//! | send a message to a busy thread | `…/messages`, `…/steer`, `…/follow-up`, `…/interrupt`, `…/queue` |
//! | follow the events | `…/events` |
//! | use a typed client for TypeScript | `/client.js`, `/client.d.ts`, `/thread-events.schema.json` |
//! | approve or deny pending calls | `/v1/approvals`, `…/approvals` |
//! | use clients of other protocols | `/v1/chat/completions`, `/v1/responses`, `/v1/ag-ui` |
//!
//! Access: without a token, only clients on this machine ([`ServerOptions::check`]), only under its own host names
//! ([`ServerOptions::allow_host`]), and no web pages ([`ServerOptions::allow_origin`]). Limits: [`Bounds`].
//!
//! ```
//! use harness::prelude::*;
//! use harness::runtime::{ModelChoice, Runtime, ThreadConfig};
//! use harness::system::{SystemClock, SystemIds};
//! use harness_server::ServerOptions;
//! use std::sync::Arc;
//!
//! struct Echo;
//!
//! impl Model for Echo {
//!     async fn step(&self, request: ModelRequest, _: &dyn Deltas) -> Result<AssistantMessage, ModelFault> {
//!         let said = request.view.last().map(|message| message.joined_text()).unwrap_or_default();
//!         Ok(AssistantMessage::text(said))
//!     }
//! }
//!
//! # tokio::runtime::Builder::new_current_thread().enable_all().build()?.block_on(async {
//! let config = ThreadConfig::new(ModelChoice::new(Echo), Arc::new(SystemClock::new()));
//! let runtime = Runtime::builder(config, Arc::new(SystemIds::new())).build();
//!
//! let options = ServerOptions::new().token("0123456789abcdef0123456789abcdef")?;
//! let program: axum::Router = axum::Router::new()
//!     .route("/", axum::routing::get(|| async { "my program" }))
//!     .nest("/agents", harness_server::router(runtime, options));
//! # let _ = program;
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! # })?;
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```

mod agui;
mod app;
mod attributes;
mod body;
mod connections;
mod drive;
mod error;
mod fault;
mod follow;
mod guard;
mod openai;
mod options;
mod page;
mod routes;
mod serve;
mod stored;
mod wire;

use std::sync::Arc;

use axum::extract::DefaultBodyLimit;
use axum::http::{Method, StatusCode, Uri};
use axum::{Extension, Router, middleware};
use harness::runtime::ThreadService;
use serde_json::Value;
use tower_http::cors::{AllowOrigin, CorsLayer};

pub use error::ServerError;
pub use options::{Bounds, ServerOptions};
pub use serve::serve;
pub use stored::{DynStoredThreads, StoredThread, StoredThreads};

use app::App;
use fault::Fault;
use routes::service::DescriptionText;

/// Returns the routes to the threads of a service, for programs with their own server.
///
/// Such a program must call [`ServerOptions::check`] for its listener and [`ThreadService::stop`] before it
/// exits; [`serve`] does both. With
/// [`into_make_service_with_connect_info`](axum::Router::into_make_service_with_connect_info) for `SocketAddr` the
/// stream limit per client applies, too.
pub fn router(threads: impl ThreadService + 'static, options: ServerOptions) -> Router {
    router_of(App::new(threads, options))
}

/// Returns the OpenAPI description of all routes, as `/openapi.json` serves it.
pub fn openapi() -> String {
    text_of(&routes::all().into_openapi())
}

/// Returns the JSON Schema of the events of `/v1/threads/{thread}/events`, as `/thread-events.schema.json` serves it.
///
/// An event is an object of `event` and `data`, the fields of a server-sent event.
///
/// ```
/// let schema: serde_json::Value = serde_json::from_str(&harness_server::event_schema())?;
/// assert_eq!(schema["title"], "ThreadEvent");
/// # Ok::<(), serde_json::Error>(())
/// ```
pub fn event_schema() -> String {
    format!("{:#}\n", wire::event_schema().to_value())
}

fn text_of(description: &utoipa::openapi::OpenApi) -> String {
    // A description contains only text, so it always has a JSON form.
    let mut description = serde_json::to_value(description).unwrap_or_default();
    if let Some(schemas) = description.pointer_mut("/components/schemas").and_then(Value::as_object_mut) {
        schemas.extend(wire::components());
        schemas.sort_keys();
    }
    format!("{description:#}\n")
}

fn router_of(app: Arc<App>) -> Router {
    let (described, description) = routes::all().split_for_parts();
    let options = &app.options;
    let mut router = described
        .merge(page::routes())
        .fallback(no_route)
        .method_not_allowed_fallback(no_method)
        .layer(Extension(DescriptionText(text_of(&description).into())))
        .layer(DefaultBodyLimit::max(options.bounds.body))
        .layer(middleware::from_fn_with_state(Arc::clone(&app), guard::guard));
    if !options.origins.is_empty() {
        router = router.layer(cors(options));
    }
    router.with_state(app)
}

/// Lets pages of the allowed origins read responses.
fn cors(options: &ServerOptions) -> CorsLayer {
    use axum::http::header::{AUTHORIZATION, CONTENT_TYPE, HeaderName};
    CorsLayer::new()
        .allow_origin(AllowOrigin::list(options.origins.iter().cloned()))
        .allow_methods([Method::GET, Method::POST, Method::PATCH, Method::DELETE])
        .allow_headers([AUTHORIZATION, CONTENT_TYPE, HeaderName::from_static("last-event-id")])
}

async fn no_route(uri: Uri) -> Fault {
    Fault::no_route(uri.path())
}

async fn no_method(method: Method, uri: Uri) -> Fault {
    let message = format!("`{}` does not take {method}", uri.path());
    Fault::new(StatusCode::METHOD_NOT_ALLOWED, "server.no_method", message)
        .hint("GET /openapi.json lists the routes")
}
