//! The server itself.

use axum::http::header::CONTENT_TYPE;
use axum::response::IntoResponse;
use axum::{Extension, Json};
use serde::Serialize;
use utoipa::ToSchema;

use crate::fault::AnyFault;

/// Health of the server.
#[derive(Debug, Serialize, ToSchema)]
pub(super) struct Health {
    /// `ok`.
    status: &'static str,
    /// Version of the server.
    version: &'static str,
}

/// Returns whether the server is up. Requires no authentication.
#[utoipa::path(
    get, path = "/v1/health", tag = "service", operation_id = "health", security(()),
    responses((status = 200, description = "The server is running", body = Health), AnyFault)
)]
pub(super) async fn health() -> Json<Health> {
    Json(Health { status: "ok", version: env!("CARGO_PKG_VERSION") })
}

/// Returns the JSON Schema of the events of a thread's stream. Requires no authentication.
#[utoipa::path(
    get, path = "/thread-events.schema.json", tag = "service", operation_id = "eventSchema", security(()),
    responses((status = 200, description = "The schema", body = Object, content_type = "application/json"), AnyFault)
)]
pub(super) async fn event_schema() -> impl IntoResponse {
    ([(CONTENT_TYPE, "application/json")], crate::event_schema())
}

/// Text of the OpenAPI description.
#[derive(Clone)]
pub(crate) struct DescriptionText(pub(crate) std::sync::Arc<str>);

/// Returns this description. Requires no authentication.
#[utoipa::path(
    get, path = "/openapi.json", tag = "service", operation_id = "openapi", security(()),
    responses((status = 200, description = "The description", body = Object, content_type = "application/json"), AnyFault)
)]
pub(super) async fn openapi(Extension(text): Extension<DescriptionText>) -> impl IntoResponse {
    ([(CONTENT_TYPE, "application/json")], text.0.to_string())
}
