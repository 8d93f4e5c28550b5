//! Errors in the form of OpenAI.

use std::collections::BTreeMap;

use axum::Json;
use axum::http::{HeaderValue, StatusCode};
use axum::response::{IntoResponse as _, Response};
use serde::Serialize;
use utoipa::openapi::{Content, RefOr, ResponseBuilder, response};
use utoipa::{IntoResponses, ToSchema};

use crate::fault::{ErrorDetail, Fault};

/// Code and type of an error for a budget that is used up.
pub(super) const INSUFFICIENT_QUOTA: &str = "insufficient_quota";

/// First parts of the paths whose errors have this form.
const PATHS: [&str; 4] = ["/v1/models", "/v1/chat/completions", "/v1/responses", "/v1/conversations"];

/// Body of an error response of the OpenAI routes.
#[derive(Debug, Serialize, ToSchema)]
pub(crate) struct OpenAiError {
    error: OpenAiErrorDetail,
}

/// Details of an error of the OpenAI routes.
#[derive(Debug, Serialize, ToSchema)]
pub(crate) struct OpenAiErrorDetail {
    /// Human-readable message.
    message: String,
    /// `invalid_request_error`, `authentication_error`, `permission_error`, `rate_limit_error`, `insufficient_quota` or
    /// `server_error`.
    r#type: &'static str,
    /// Path of the invalid field in the request body.
    param: Option<String>,
    /// Stable code.
    code: String,
}

impl OpenAiError {
    pub(crate) fn new(status: StatusCode, detail: &ErrorDetail) -> Self {
        let ErrorDetail { kind, message, hint, path } = detail;
        let hint = hint.as_ref().map(|hint| format!("; {hint}")).unwrap_or_default();
        let message = format!("{message}{hint}");
        Self {
            error: OpenAiErrorDetail {
                message,
                r#type: type_of(status, kind),
                param: path.clone(),
                code: kind.clone(),
            },
        }
    }

    pub(crate) fn of(fault: &Fault) -> Self {
        Self::new(fault.status(), fault.detail())
    }
}

fn type_of(status: StatusCode, code: &str) -> &'static str {
    match status {
        StatusCode::TOO_MANY_REQUESTS if code == INSUFFICIENT_QUOTA => INSUFFICIENT_QUOTA,
        StatusCode::UNAUTHORIZED => "authentication_error",
        StatusCode::FORBIDDEN => "permission_error",
        StatusCode::TOO_MANY_REQUESTS => "rate_limit_error",
        status if status.is_server_error() => "server_error",
        _ => "invalid_request_error",
    }
}

/// Converts the error response of an OpenAI route. Other responses are unchanged.
pub(crate) fn in_their_form(path: &str, mut response: Response) -> Response {
    let is_theirs =
        |known: &&str| path.strip_prefix(*known).is_some_and(|rest| rest.is_empty() || rest.starts_with('/'));
    if !PATHS.iter().any(is_theirs) {
        return response;
    }
    let Some(detail) = response.extensions_mut().remove::<ErrorDetail>() else { return response };
    let status = match response.status() {
        StatusCode::UNPROCESSABLE_ENTITY => StatusCode::BAD_REQUEST,
        status => status,
    };
    let mut converted = (status, Json(OpenAiError::new(status, &detail))).into_response();
    for (name, value) in response.headers() {
        converted.headers_mut().entry(name).or_insert_with(|| value.clone());
    }
    converted.headers_mut().remove(axum::http::header::CONTENT_LENGTH);
    converted
}

/// Keeps the official clients from repeating a request whose run had effects.
pub(crate) fn without_retry(fault: Fault) -> Response {
    let mut response = fault.into_response();
    response.headers_mut().insert("x-should-retry", HeaderValue::from_static("false"));
    response
}

const ANY: [(&str, &str); 11] = [
    ("400", "The request is invalid; `param` names the field"),
    ("401", "The bearer token is missing or invalid"),
    ("403", "The host or the origin is not allowed, or a call requires approval"),
    ("404", "The model, response or conversation was not found"),
    ("408", "The body did not arrive in time"),
    ("409", "The thread is busy"),
    ("413", "The body is too large"),
    ("415", "The body is not declared as JSON"),
    ("429", "Too many requests of this client, or a budget is used up (`insufficient_quota`)"),
    ("500", "The run failed"),
    ("503", "The server is full or stopping"),
];

/// Errors of every OpenAI route.
pub(crate) struct AnyOpenAiFault;

impl IntoResponses for AnyOpenAiFault {
    fn responses() -> BTreeMap<String, RefOr<response::Response>> {
        let response = |(status, meaning): (&str, &str)| {
            let body = utoipa::openapi::Ref::from_schema_name("OpenAiError");
            let response = ResponseBuilder::new().description(meaning);
            let response = response.content("application/json", Content::new(Some(body))).build();
            (status.to_owned(), RefOr::T(response))
        };
        ANY.into_iter().map(response).collect()
    }
}
