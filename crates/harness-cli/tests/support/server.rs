//! A scripted endpoint on a loopback port.

use std::collections::VecDeque;
use std::sync::Arc;
use std::sync::mpsc::{Receiver, Sender, channel};

use axum::Router;
use axum::body::{Body, Bytes};
use axum::extract::State;
use axum::http::header::{AUTHORIZATION, CONTENT_TYPE};
use axum::http::{HeaderMap, Uri};
use axum::response::Response;
use axum::routing::post;
use futures_util::stream::{self, StreamExt as _};
use parking_lot::Mutex;
use serde_json::Value;
use tokio::runtime::Runtime;
use tokio::sync::Semaphore;

use super::Answer;

/// A place at which the endpoint stops until the test lets it go on.
#[derive(Clone)]
pub(crate) struct Gate {
    arrived: Sender<()>,
    open: Arc<Semaphore>,
}

impl Gate {
    /// A closed gate, and what tells that the endpoint has arrived there.
    pub(crate) fn closed() -> (Self, Receiver<()>) {
        let (arrived, arrivals) = channel();
        (Self { arrived, open: Arc::new(Semaphore::new(0)) }, arrivals)
    }

    /// Lets what waits go on.
    pub(crate) fn open(&self) {
        self.open.add_permits(1);
    }

    async fn pass(&self) {
        // Nobody may be waiting for the news.
        let _ = self.arrived.send(());
        self.open.acquire().await.unwrap().forget();
    }
}

/// What one request is answered with.
pub(crate) enum Reply {
    /// A streamed answer.
    Stream(Answer),
    /// A streamed answer that stops after its first events until the gate opens.
    Paused { answer: Answer, after: usize, gate: Gate },
    /// A status with headers and a body.
    Status { status: u16, headers: Vec<(&'static str, &'static str)>, body: &'static str },
}

impl Reply {
    pub(crate) fn text(text: &str) -> Self {
        Self::Stream(Answer::text(text))
    }

    /// No answer: the connection stays open.
    pub(crate) fn silence() -> Self {
        let (gate, _) = Gate::closed();
        Self::Paused { answer: Answer::text(""), after: 0, gate }
    }

    pub(crate) fn status(status: u16, body: &'static str) -> Self {
        Self::Status { status, headers: vec![("content-type", "application/json")], body }
    }

    fn response(self) -> Response {
        let event_stream =
            |body| Response::builder().header(CONTENT_TYPE, "text/event-stream").body(body).unwrap();
        match self {
            Self::Stream(answer) => event_stream(Body::from(answer.body("scripted"))),
            Self::Paused { answer, after, gate } => {
                let body = answer.body("scripted");
                let events: Vec<String> = body.split_inclusive("\n\n").map(str::to_owned).collect();
                let events = stream::iter(events.into_iter().enumerate()).then(move |(at, event)| {
                    let gate = gate.clone();
                    async move {
                        if at == after {
                            gate.pass().await;
                        }
                        Ok::<_, std::convert::Infallible>(Bytes::from(event))
                    }
                });
                event_stream(Body::from_stream(events))
            }
            Self::Status { status, headers, body } => {
                let mut response = Response::builder().status(status);
                for (name, value) in headers {
                    response = response.header(name, value);
                }
                response.body(Body::from(body)).unwrap()
            }
        }
    }
}

/// Says what a request is answered with.
type Respond = dyn FnMut(&Value) -> Reply + Send;

#[derive(Clone)]
struct Script {
    reply: Arc<Mutex<Respond>>,
    requests: Arc<Mutex<Vec<Value>>>,
    keys: Arc<Mutex<Vec<String>>>,
    heads: Arc<Mutex<Vec<(String, HeaderMap)>>>,
}

async fn answer(
    State(script): State<Script>,
    uri: Uri,
    headers: HeaderMap,
    axum::Json(request): axum::Json<Value>,
) -> Response {
    let reply = (script.reply.lock())(&request);
    script.requests.lock().push(request);
    script.keys.lock().push(key_in(&headers));
    script.heads.lock().push((uri.to_string(), headers));
    reply.response()
}

/// The key that a request brings.
fn key_in(headers: &HeaderMap) -> String {
    let header =
        headers.get(AUTHORIZATION).or_else(|| headers.get("x-api-key")).and_then(|value| value.to_str().ok());
    header.map_or("no key", |value| value.trim_start_matches("Bearer ")).to_owned()
}

/// Serves on a free port until the runtime is dropped; gives the address, without a path.
pub(crate) fn listen(router: Router) -> (String, Runtime) {
    let runtime = tokio::runtime::Builder::new_multi_thread().worker_threads(1).enable_all().build().unwrap();
    let listener = runtime.block_on(tokio::net::TcpListener::bind("127.0.0.1:0")).unwrap();
    let url = format!("http://{}", listener.local_addr().unwrap());
    runtime.spawn(async move { axum::serve(listener, router).await });
    (url, runtime)
}

/// A scripted endpoint.
pub(crate) struct Server {
    pub(crate) url: String,
    script: Script,
    _runtime: Runtime,
}

impl Server {
    /// Answers its requests in order.
    pub(crate) fn start(replies: impl IntoIterator<Item = Reply>) -> Self {
        let mut replies: VecDeque<Reply> = replies.into_iter().collect();
        let over = || Reply::status(400, r#"{"error":{"message":"the script is over"}}"#);
        Self::by(move |_| replies.pop_front().unwrap_or_else(over))
    }

    /// Answers each request as it asks for.
    pub(crate) fn by(reply: impl FnMut(&Value) -> Reply + Send + 'static) -> Self {
        let script = Script {
            reply: Arc::new(Mutex::new(reply)),
            requests: Arc::default(),
            keys: Arc::default(),
            heads: Arc::default(),
        };
        let router = Router::new().fallback(post(answer)).with_state(script.clone());
        let (url, runtime) = listen(router);
        Self { url: format!("{url}/v1"), script, _runtime: runtime }
    }

    /// The requests so far.
    pub(crate) fn requests(&self) -> Vec<Value> {
        self.script.requests.lock().clone()
    }

    /// Path with query, and headers, of each request so far.
    pub(crate) fn heads(&self) -> Vec<(String, HeaderMap)> {
        self.script.heads.lock().clone()
    }

    /// The keys that the requests brought.
    pub(crate) fn keys(&self) -> Vec<String> {
        self.script.keys.lock().clone()
    }
}
