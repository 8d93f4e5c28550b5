//! Error responses.

use std::collections::BTreeMap;

use axum::Json;
use axum::http::StatusCode;
use axum::http::header::{HeaderValue, RETRY_AFTER, WWW_AUTHENTICATE};
use axum::response::{IntoResponse, Response};
use harness::core::port::SessionError;
use harness::runtime::{ErrorClass, RuntimeError};
use schemars::JsonSchema;
use serde::Serialize;
use utoipa::openapi::{Content, RefOr, ResponseBuilder, response};
use utoipa::{IntoResponses, ToSchema};

/// Body of every error response.
#[derive(Debug, Serialize, ToSchema)]
pub(crate) struct ErrorBody {
    error: ErrorDetail,
}

/// Details of an error.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, JsonSchema)]
pub(crate) struct ErrorDetail {
    /// Stable code.
    #[schemars(example = "runtime.busy")]
    pub(crate) kind: String,
    /// Human-readable message.
    pub(crate) message: String,
    /// Suggested fix.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) hint: Option<String>,
    /// Path of the invalid field in the request body.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(example = "content[0].text")]
    pub(crate) path: Option<String>,
}

impl From<&RuntimeError> for ErrorDetail {
    fn from(error: &RuntimeError) -> Self {
        // The hints of the library name its functions; these name the routes.
        #[expect(clippy::wildcard_enum_match_arm, reason = "the others have no route that helps")]
        let hint = match error {
            RuntimeError::Busy { .. } => {
                Some("wait for the end of the run, or send the message to `messages`, where it waits")
            }
            RuntimeError::QueueFull { .. } | RuntimeError::QueueBytesFull { .. } => {
                Some("wait until the thread has caught up, or remove what waits")
            }
            RuntimeError::AllQueuesFull { .. } => Some("wait until threads have caught up"),
            RuntimeError::NothingToResume { .. } => Some("prompt the thread, or queue a message first"),
            RuntimeError::OtherCall { .. } | RuntimeError::NotHeld { .. } | RuntimeError::Decided { .. } => {
                Some("list the pending approvals again, and decide about the call that is shown now")
            }
            RuntimeError::Engine(fault) => hint_of_engine(&fault.code),
            _ => None,
        };
        Self {
            kind: error.kind().to_owned(),
            message: error.to_string(),
            hint: hint.map(str::to_owned),
            path: None,
        }
    }
}

fn hint_of_engine(code: &str) -> Option<&'static str> {
    Some(match code {
        "engine.unreachable" => {
            "check that the engine runs, and that `--engine` and `--admin` of this server are its URLs; then send the request again"
        }
        "engine.no_admin" => "start this server with `--admin URL`, the admin API of the engine",
        "engine.queue_full" => "wait until the thread has caught up, or remove what waits",
        "engine.forgetting" => "send the request again in a moment",
        "engine.not_pending" | "engine.decided" => {
            "list the pending approvals again, and decide about the call that is shown now"
        }
        _ => return None,
    })
}

/// Error response of a route.
#[derive(Debug)]
pub(crate) struct Fault {
    status: StatusCode,
    told: ErrorDetail,
}

impl Fault {
    pub(crate) fn new(status: StatusCode, kind: &str, message: impl Into<String>) -> Self {
        let told = ErrorDetail { kind: kind.to_owned(), message: message.into(), hint: None, path: None };
        Self { status, told }
    }

    pub(crate) fn status(&self) -> StatusCode {
        self.status
    }

    pub(crate) fn detail(&self) -> &ErrorDetail {
        &self.told
    }

    pub(crate) fn with_status(self, status: StatusCode) -> Self {
        Self { status, ..self }
    }

    pub(crate) fn hint(mut self, hint: impl Into<String>) -> Self {
        self.told.hint = Some(hint.into());
        self
    }

    pub(crate) fn at(mut self, path: impl Into<String>) -> Self {
        self.told.path = Some(path.into()).filter(|path: &String| !path.is_empty() && path != ".");
        self
    }

    /// Error for an invalid body or field.
    pub(crate) fn unreadable(message: impl Into<String>) -> Self {
        Self::new(StatusCode::UNPROCESSABLE_ENTITY, "request.invalid", message)
    }

    pub(crate) fn no_thread(id: &str) -> Self {
        Self::new(StatusCode::NOT_FOUND, "server.no_thread", format!("there is no thread `{id}`"))
            .hint("create it with POST /v1/threads")
    }

    pub(crate) fn no_route(path: &str) -> Self {
        let message = format!("there is no route `{path}`");
        Self::new(StatusCode::NOT_FOUND, "server.no_route", message)
            .hint("GET /openapi.json lists the routes")
    }

    /// Error for a limit of the server that is reached.
    pub(crate) fn full(what: &str, bound: usize) -> Self {
        let message = format!("the server is full: {bound} {what}");
        Self::new(StatusCode::SERVICE_UNAVAILABLE, "server.full", message).hint("try again later")
    }

    pub(crate) fn stopping() -> Self {
        Self::new(StatusCode::SERVICE_UNAVAILABLE, "server.stopping", "the server is being stopped")
    }
}

impl From<RuntimeError> for Fault {
    fn from(error: RuntimeError) -> Self {
        // Exhaustive: an error of a new class does not compile until it has a status.
        let status = match error.class() {
            ErrorClass::Invalid => StatusCode::UNPROCESSABLE_ENTITY,
            ErrorClass::NotFound => StatusCode::NOT_FOUND,
            ErrorClass::Conflict => StatusCode::CONFLICT,
            ErrorClass::Closed => StatusCode::GONE,
            ErrorClass::Full => StatusCode::TOO_MANY_REQUESTS,
            ErrorClass::Elsewhere => StatusCode::SERVICE_UNAVAILABLE,
            ErrorClass::Failed => StatusCode::INTERNAL_SERVER_ERROR,
            ErrorClass::Unsupported => StatusCode::NOT_IMPLEMENTED,
        };
        Self { status, told: ErrorDetail::from(&error) }
    }
}

impl From<SessionError> for Fault {
    fn from(error: SessionError) -> Self {
        RuntimeError::from(error).into()
    }
}

impl IntoResponse for Fault {
    fn into_response(self) -> Response {
        let busy = matches!(self.status, StatusCode::TOO_MANY_REQUESTS | StatusCode::SERVICE_UNAVAILABLE);
        let unknown = self.status == StatusCode::UNAUTHORIZED;
        let body = Json(ErrorBody { error: self.told.clone() });
        let mut response = (self.status, body).into_response();
        // Routes of other APIs convert the body.
        response.extensions_mut().insert(self.told);
        if busy {
            response.headers_mut().insert(RETRY_AFTER, HeaderValue::from_static("1"));
        }
        if unknown {
            response.headers_mut().insert(WWW_AUTHENTICATE, HeaderValue::from_static("Bearer"));
        }
        response
    }
}

/// Errors of every route: status, name and meaning.
const ANY: [(&str, &str, &str); 12] = [
    ("400", "BadRequest", "The body or the query is invalid"),
    ("401", "Unknown", "The bearer token is missing or invalid"),
    ("403", "Refused", "The name of the host, or the origin of the page, is not allowed"),
    ("404", "NotFound", "There is no such thing"),
    ("408", "TooSlow", "The body did not come in time"),
    ("413", "TooLarge", "The body is too large"),
    ("415", "NotJson", "The body is not declared as JSON"),
    ("422", "Invalid", "The body does not say what it has to; `path` says where"),
    ("429", "TooMuch", "Too much at once for this client or this thread"),
    ("500", "Failed", "The server, or the session of the thread, has failed"),
    ("501", "Unsupported", "The threads of this server do not support it"),
    ("503", "Full", "The server is full, or is being stopped, or the engine of its threads does not respond"),
];

/// Errors by the state of a thread.
const STATE: [(&str, &str, &str); 2] = [
    ("409", "Conflict", "The thread is not in a state for it, or the name is taken"),
    ("410", "Closed", "The thread was closed meanwhile"),
];

/// All error responses by name, for the OpenAPI description.
pub(crate) fn all() -> impl Iterator<Item = (&'static str, response::Response)> {
    ANY.iter().chain(&STATE).map(|(_, name, meaning)| {
        let body = utoipa::openapi::Ref::from_schema_name("ErrorBody");
        let response = ResponseBuilder::new().description(*meaning);
        (*name, response.content("application/json", Content::new(Some(body))).build())
    })
}

fn named(faults: &[(&str, &str, &str)]) -> BTreeMap<String, RefOr<response::Response>> {
    let named = faults.iter().map(|(status, name, _)| {
        let response = utoipa::openapi::Ref::from_response_name(*name);
        ((*status).to_owned(), RefOr::Ref(response))
    });
    named.collect()
}

/// Errors of every route.
pub(crate) struct AnyFault;

impl IntoResponses for AnyFault {
    fn responses() -> BTreeMap<String, RefOr<response::Response>> {
        named(&ANY)
    }
}

/// Errors by the state of a thread.
pub(crate) struct Conflict;

impl IntoResponses for Conflict {
    fn responses() -> BTreeMap<String, RefOr<response::Response>> {
        named(&STATE)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[track_caller]
    fn check(error: RuntimeError, expected: u16) {
        let kind = error.kind().to_owned();
        assert_eq!(Fault::from(error).status.as_u16(), expected, "{kind}");
    }

    #[test]
    fn fault_38_every_runtime_error_has_the_status_of_its_class() {
        let thread = || "a".into();
        check(RuntimeError::Busy { thread: thread() }, 409);
        check(RuntimeError::Closed { thread: thread() }, 410);
        check(RuntimeError::EmptyTranscript { thread: thread() }, 409);
        check(RuntimeError::NothingToResume { reason: harness::core::StopReason::AnswerFinalized }, 409);
        // These three were answered with 500, because no string named them.
        check(RuntimeError::UnknownTools { names: vec!["pay".into()] }, 422);
        check(RuntimeError::UnknownSkill { name: "x".to_owned() }, 422);
        check(RuntimeError::UnknownTemplate { name: "x".to_owned() }, 422);
        check(RuntimeError::QueueFull { thread: thread(), bound: 1 }, 429);
        check(RuntimeError::QueueBytesFull { thread: thread(), bytes: 2, used: 0, bound: 1 }, 429);
        check(RuntimeError::AllQueuesFull { thread: thread(), bytes: 2, bound: 1 }, 429);
        check(RuntimeError::NotWaiting { thread: thread(), entry: "e".into() }, 404);
        check(RuntimeError::EntryExists { thread: thread(), entry: "e".into() }, 409);
        check(RuntimeError::NotHeld { thread: thread(), approval: "c".into() }, 404);
        check(RuntimeError::Session(SessionError::new("session.locked", "locked")), 503);
        check(RuntimeError::Session(SessionError::new("session.corrupt_line", "damaged")), 500);
        check(RuntimeError::Lost { thread: thread() }, 500);
        check(RuntimeError::NoTokio, 500);
        check(RuntimeError::Unsupported { what: "it" }, 501);
        let engine = |code| {
            RuntimeError::Engine(harness::core::Fault::new(harness::core::FaultSource::Session, code, ""))
        };
        check(engine("engine.unreachable"), 503);
        check(engine("engine.queue_full"), 429);
        check(engine("engine.child"), 409);
    }
}
