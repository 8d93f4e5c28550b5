//! Events of a thread, as server-sent events.

use std::convert::Infallible;
use std::net::{IpAddr, SocketAddr};
use std::sync::Arc;

use axum::extract::{ConnectInfo, FromRequestParts, State};
use axum::http::request::Parts;
use axum::http::{HeaderMap, StatusCode};
use axum::response::IntoResponse;
use axum::response::sse::{Event, KeepAlive, Sse};
use serde::Deserialize;
use utoipa::{IntoParams, ToSchema};

use crate::app::App;
use crate::body::{Asked, At};
use crate::fault::{AnyFault, Fault};
use crate::follow::{Follow, From, Kind};
use crate::wire::ThreadEvent;

/// Content and start of a stream.
#[derive(Debug, Deserialize, IntoParams)]
#[serde(deny_unknown_fields)]
#[into_params(parameter_in = Query)]
pub(super) struct EventsQuery {
    /// `live`: new events only. `turn`: from the start of the current run, or of the last run of an idle thread.
    /// `replay`: from the oldest buffered event. A number: from the event with this number. Default: `live`.
    /// The header `Last-Event-ID` takes precedence.
    #[param(example = "turn")]
    from: Option<String>,
    /// Content of the stream. Default: `full`.
    #[serde(default)]
    #[param(inline)]
    kind: Kind,
    /// `run_end` ends the stream at the end of the next run, whatever its outcome.
    #[param(inline)]
    until: Option<Until>,
}

/// End of a stream.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize, ToSchema)]
#[serde(rename_all = "snake_case")]
enum Until {
    RunEnd,
}

/// Client address of a request, if known.
pub(crate) struct Client(Option<IpAddr>);

impl Client {
    pub(crate) fn address(&self) -> Option<IpAddr> {
        self.0
    }
}

impl<S: Send + Sync> FromRequestParts<S> for Client {
    type Rejection = Infallible;

    async fn from_request_parts(parts: &mut Parts, _: &S) -> Result<Self, Infallible> {
        let known = parts.extensions.get::<ConnectInfo<SocketAddr>>();
        Ok(Self(known.map(|ConnectInfo(address)| address.ip())))
    }
}

/// Streams the events of a thread as server-sent events.
///
/// `id` numbers the events; a client that reconnects with the header `Last-Event-ID`, or with
/// `from`, receives all later events. `event` and `data`:
///
/// - of `full`: `status`, `queue`, `run_started`, `event`, `delta`, `tool_update`, `run_ended`,
///   `run_failed`; the data has the same word as `type`; `approvals` with `{"pending"}`, the number of calls
///   that wait for a decision, including those of sub-agents: at the start if there are any, and after each change;
/// - of `text` and `reasoning`: `text` and `reasoning` with `{"text"}`;
/// - of `full`, `text` and `reasoning` on a durable engine: `answer_restarted`, when a worker was lost: discard the
///   deltas of the response in progress. Deltas of an engine have no `id`;
/// - of `items`: `item` with `{id, seq, complete}` and `message`, `block` or `coming`; a later item
///   replaces the one with the same `id`;
/// - of all: `lagged` with `{"missed"}`, the number of events that the client missed; `reset`, if
///   the server has restarted its numbers; `end` with `{"reason"}`, the last event.
///
/// `/thread-events.schema.json` is the JSON Schema of the events.
#[utoipa::path(
    get, path = "/v1/threads/{thread}/events", tag = "events", operation_id = "followThread",
    params(
        ("thread" = String, Path, description = "Thread id"),
        ("Last-Event-ID" = Option<u64>, Header, description = "The last `id` that was received"),
        EventsQuery,
    ),
    responses((status = 200, description = "The stream, with the schema of one event", body = ThreadEvent, content_type = "text/event-stream"), AnyFault)
)]
pub(super) async fn events(
    State(app): State<Arc<App>>,
    At(name): At<String>,
    Asked(query): Asked<EventsQuery>,
    Client(client): Client,
    headers: HeaderMap,
) -> Result<impl IntoResponse, Fault> {
    let from = match headers.get("last-event-id").filter(|id| !id.is_empty()) {
        Some(id) => From::behind(id.to_str().unwrap_or_default()),
        None => From::read(query.from.as_deref().unwrap_or("live")),
    };
    let from = from.ok_or_else(|| {
        Fault::new(StatusCode::BAD_REQUEST, "request.query", "the place to begin at cannot be read").hint(
            "give `from` as live, turn, replay or the number of an event, and `Last-Event-ID` as a number",
        )
    })?;
    let thread = app.thread(&name).await?;
    let place = app.begin_stream(client)?;
    let is_one_run = query.until == Some(Until::RunEnd);
    let follow = Follow::new(&*app.threads, &thread, from, query.kind, is_one_run).await?;
    let frames = futures_util::stream::unfold((follow, place), |(mut follow, place)| async move {
        let frame = follow.next().await?;
        let event = match frame.seq {
            Some(seq) => Event::default().id(seq.to_string()),
            None => Event::default(),
        };
        Some((Ok::<_, Infallible>(event.event(frame.name).data(frame.data)), (follow, place)))
    });
    Ok(Sse::new(frames).keep_alive(KeepAlive::new().interval(app.options.bounds.keep_alive)))
}
