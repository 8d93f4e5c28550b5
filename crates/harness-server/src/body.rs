//! Request parsing, with errors that name the problem and its place.

use std::sync::Arc;

use axum::body::Bytes;
use axum::extract::rejection::BytesRejection;
use axum::extract::{FromRequest, FromRequestParts, Path, Query, Request};
use axum::http::header::CONTENT_TYPE;
use axum::http::request::Parts;
use axum::http::{HeaderMap, StatusCode};
use serde::de::DeserializeOwned;

use crate::app::App;
use crate::fault::Fault;

/// The JSON body of a request.
pub(crate) struct Body<T>(pub(crate) T);

impl<T: DeserializeOwned> FromRequest<Arc<App>> for Body<T> {
    type Rejection = Fault;

    async fn from_request(request: Request, app: &Arc<App>) -> Result<Self, Fault> {
        let is_json = is_json(request.headers());
        let bytes = bytes(request, app).await?;
        declared(is_json)?;
        read(&bytes).map(Self)
    }
}

/// JSON body, or the default without a body.
pub(crate) struct MaybeBody<T>(pub(crate) T);

impl<T: DeserializeOwned + Default> FromRequest<Arc<App>> for MaybeBody<T> {
    type Rejection = Fault;

    async fn from_request(request: Request, app: &Arc<App>) -> Result<Self, Fault> {
        let headers = request.headers().clone();
        let bytes = bytes(request, app).await?;
        if bytes.is_empty() {
            return Ok(Self(T::default()));
        }
        declared(is_json(&headers))?;
        if bytes.trim_ascii() == b"null" { Ok(Self(T::default())) } else { read(&bytes).map(Self) }
    }
}

async fn bytes(request: Request, app: &Arc<App>) -> Result<Bytes, Fault> {
    let bound = app.options.bounds.body_time;
    let read = tokio::time::timeout(bound, Bytes::from_request(request, app)).await;
    let read = read.map_err(|_| {
        let message = format!("the body did not come within {} ms", bound.as_millis());
        Fault::new(StatusCode::REQUEST_TIMEOUT, "request.too_slow", message)
    })?;
    read.map_err(unread)
}

fn is_json(headers: &HeaderMap) -> bool {
    let declared = headers.get(CONTENT_TYPE).and_then(|value| value.to_str().ok()).unwrap_or_default();
    let essence = declared.split(';').next().unwrap_or_default().trim();
    essence.eq_ignore_ascii_case("application/json")
}

fn declared(is_json: bool) -> Result<(), Fault> {
    if is_json {
        return Ok(());
    }
    let message = "the body is not declared as JSON";
    Err(Fault::new(StatusCode::UNSUPPORTED_MEDIA_TYPE, "request.media_type", message)
        .hint("send it with `Content-Type: application/json`"))
}

fn unread(rejection: BytesRejection) -> Fault {
    if rejection.status() == StatusCode::PAYLOAD_TOO_LARGE {
        return Fault::new(StatusCode::PAYLOAD_TOO_LARGE, "request.too_large", "the body is too large");
    }
    Fault::new(StatusCode::BAD_REQUEST, "request.unread", "the body could not be read to its end")
}

fn read<T: DeserializeOwned>(bytes: &[u8]) -> Result<T, Fault> {
    let first = bytes.iter().find(|byte| !byte.is_ascii_whitespace());
    if matches!(first, Some(b'[' | b'"' | b'0'..=b'9' | b'-' | b't' | b'f' | b'n')) {
        // A list would be taken for the fields in their order.
        return Err(Fault::unreadable("the body is not a JSON object"));
    }
    let mut json = serde_json::Deserializer::from_slice(bytes);
    let value = serde_path_to_error::deserialize(&mut json).map_err(|error| {
        let (path, fault) = (error.path().to_string(), error.inner());
        if fault.is_data() {
            return Fault::unreadable(fault.to_string()).at(path);
        }
        Fault::new(StatusCode::BAD_REQUEST, "request.no_json", format!("the body is not valid JSON: {fault}"))
    })?;
    json.end().map_err(|fault| {
        Fault::new(StatusCode::BAD_REQUEST, "request.no_json", format!("the body is not valid JSON: {fault}"))
    })?;
    Ok(value)
}

/// Path parameters.
pub(crate) struct At<T>(pub(crate) T);

impl<T: DeserializeOwned + Send, S: Send + Sync> FromRequestParts<S> for At<T> {
    type Rejection = Fault;

    async fn from_request_parts(parts: &mut Parts, state: &S) -> Result<Self, Fault> {
        let Path(path) = Path::from_request_parts(parts, state).await.map_err(|rejection| {
            Fault::new(StatusCode::BAD_REQUEST, "request.path", rejection.body_text())
        })?;
        Ok(Self(path))
    }
}

/// Query parameters.
pub(crate) struct Asked<T>(pub(crate) T);

impl<T: DeserializeOwned, S: Send + Sync> FromRequestParts<S> for Asked<T> {
    type Rejection = Fault;

    async fn from_request_parts(parts: &mut Parts, state: &S) -> Result<Self, Fault> {
        let Query(query) = Query::from_request_parts(parts, state).await.map_err(|rejection| {
            Fault::new(StatusCode::BAD_REQUEST, "request.query", rejection.body_text())
        })?;
        Ok(Self(query))
    }
}
