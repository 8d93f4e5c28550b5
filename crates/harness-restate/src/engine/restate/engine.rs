//! The address of an engine, and requests to it.

use std::fmt;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use harness::core::ThreadId;
use reqwest::header::ACCEPT;
use reqwest::{Client, Method, Response, StatusCode, Url};
use serde::Serialize;
use serde::de::DeserializeOwned;

/// The longest time of one request.
const TIMEOUT: Duration = Duration::from_mins(1);
/// Attempts at a request, and the pause after the first; each pause is twice the one before.
const ATTEMPTS: u32 = 6;
const PAUSE: Duration = Duration::from_millis(50);
/// The header that names the source of an error: `ingress` when the request did not arrive at a service.
const SOURCE: &str = "x-restate-error-source";

/// Reason why a request to an engine fails.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum EngineError {
    /// An address is not a URL.
    #[error("`{0}` is not the URL of an engine; use one such as http://127.0.0.1:8080")]
    Url(String),
    /// The engine has no admin URL ([`Engine::admin`]).
    #[error("engine {0} has no admin URL")]
    NoAdmin(String),
    /// The engine does not respond, after several attempts.
    #[error("engine {url} does not respond: {why}")]
    Unreachable {
        /// URL of the engine.
        url: String,
        /// The last error.
        why: String,
    },
    /// The run of a thread did not end in time after the request to end it.
    #[error("the engine did not end the run of thread `{0}` in time")]
    NotEnded(ThreadId),
    /// The engine or a worker failed.
    #[error("engine {url} answered {status}: {text}")]
    Failed {
        /// URL of the engine.
        url: String,
        /// Status of HTTP.
        status: u16,
        /// Message of the response, up to 500 characters.
        text: String,
    },
    /// The response is not what the services of this version send.
    #[error("invalid response of engine {url}: {why}")]
    Invalid {
        /// URL of the engine.
        url: String,
        /// Problem with it.
        why: String,
    },
}

impl EngineError {
    /// A stable code, for example `engine.unreachable`.
    pub fn kind(&self) -> &'static str {
        match self {
            Self::Url(_) => "engine.url",
            Self::NoAdmin(_) => "engine.no_admin",
            Self::Unreachable { .. } => "engine.unreachable",
            Self::NotEnded(_) => "engine.not_ended",
            Self::Failed { .. } => "engine.failed",
            Self::Invalid { .. } => "engine.invalid",
        }
    }
}

/// A request to an engine.
pub(super) struct Request<'r, I> {
    pub(super) method: Method,
    pub(super) path: &'r [&'r str],
    pub(super) query: Option<(&'r str, &'r str)>,
    pub(super) body: Option<&'r I>,
}

impl<'r, I> Request<'r, I> {
    pub(super) fn post(path: &'r [&'r str], body: &'r I) -> Self {
        Self { method: Method::POST, path, query: None, body: Some(body) }
    }
}

impl<'r> Request<'r, ()> {
    pub(super) fn get(path: &'r [&'r str]) -> Self {
        Self { method: Method::GET, path, query: None, body: None }
    }
}

/// An engine: one server, or one of a cluster.
///
/// Requests that did not arrive are repeated, six attempts over 1.5 s; each of the requests of this crate may be
/// delivered twice.
///
/// ```
/// use harness_restate::engine::restate::Engine;
///
/// let engine = Engine::new("http://127.0.0.1:8080")?.admin("http://127.0.0.1:9070")?;
/// assert_eq!(engine.to_string(), "http://127.0.0.1:8080/");
/// assert!(Engine::new("engine").is_err());
/// # Ok::<(), harness_restate::engine::restate::EngineError>(())
/// ```
#[derive(Clone, Debug)]
pub struct Engine {
    /// The servers of the cluster.
    ingress: Arc<[Url]>,
    /// The server that responded last.
    last: Arc<AtomicUsize>,
    admin: Option<Url>,
    client: Client,
}

impl fmt::Display for Engine {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let servers: Vec<_> = self.ingress.iter().map(Url::as_str).collect();
        f.write_str(&servers.join(", "))
    }
}

impl Engine {
    /// An engine, by the URL of its ingress. Port 8080 by default of the server.
    ///
    /// # Errors
    /// [`EngineError::Url`].
    pub fn new(ingress: &str) -> Result<Self, EngineError> {
        let client = Client::builder().timeout(TIMEOUT).tcp_nodelay(true).no_proxy().build();
        let ingress = url(ingress)?;
        let client = client.map_err(|error| unreachable(&ingress, &error))?;
        Ok(Self { ingress: [ingress].into(), last: Arc::default(), admin: None, client })
    }

    /// Adds the ingress of another server of the cluster. Requests go there when a server does not respond.
    ///
    /// # Errors
    /// [`EngineError::Url`].
    pub fn or(mut self, ingress: &str) -> Result<Self, EngineError> {
        let other = url(ingress)?;
        self.ingress = self.ingress.iter().cloned().chain([other]).collect();
        Ok(self)
    }

    /// Sets the URL of its admin API, which [`register`](Self::register) needs. Port 9070 by default of the server.
    ///
    /// # Errors
    /// [`EngineError::Url`].
    pub fn admin(mut self, admin: &str) -> Result<Self, EngineError> {
        self.admin = Some(url(admin)?);
        Ok(self)
    }

    /// Registers workers under the URL at which the engine reaches them. Workers of one build share one URL.
    ///
    /// The services are then open to the clients of this engine. Registering one URL again changes nothing; for the way
    /// back to an earlier build there is [`register_again`](Self::register_again).
    ///
    /// # Errors
    /// When the engine cannot be reached, or cannot reach a worker there.
    pub async fn register(&self, workers: &str) -> Result<(), EngineError> {
        let body = serde_json::json!({ "uri": url(workers)?.as_str() });
        self.ask_admin(&Request::post(&["deployments"], &body)).await.map(drop)
    }

    /// Registers workers under a URL that is registered already: new work goes to them, and not to those that were registered
    /// later. It is the way back to an earlier build, whose workers must run. Runs that a later build started stay with it, so
    /// its workers run on until [`status`](Self::status) counts none.
    ///
    /// # Errors
    /// As [`register`](Self::register).
    pub async fn register_again(&self, workers: &str) -> Result<(), EngineError> {
        let body = serde_json::json!({ "uri": url(workers)?.as_str(), "force": true });
        self.ask_admin(&Request::post(&["deployments"], &body)).await.map(drop)
    }

    /// Whether the ingress of a server responds as one.
    ///
    /// # Errors
    /// [`EngineError::Unreachable`]; [`EngineError::Failed`] when something else responds at that URL.
    pub async fn check(&self) -> Result<(), EngineError> {
        self.send(&self.ingress, &Request::get(&["restate", "health"])).await.map(drop)
    }

    /// Sends a request to the admin API.
    pub(super) async fn ask_admin<I: Serialize + Sync>(
        &self,
        request: &Request<'_, I>,
    ) -> Result<Vec<u8>, EngineError> {
        let no_admin = || EngineError::NoAdmin(self.to_string());
        let admin = [self.admin.clone().ok_or_else(no_admin)?];
        self.send(&admin, request).await
    }

    /// The URL of the admin API, for messages.
    pub(super) fn admin_url(&self) -> String {
        self.admin.as_ref().map(ToString::to_string).unwrap_or_default()
    }

    /// Calls a handler of an object.
    pub(super) async fn call<I: Serialize + Sync, O: DeserializeOwned>(
        &self,
        path: [&str; 3],
        input: &I,
    ) -> Result<O, EngineError> {
        let body = self.send(&self.ingress, &Request::post(&path, input)).await?;
        let invalid =
            |error: serde_json::Error| EngineError::Invalid { url: self.to_string(), why: error.to_string() };
        serde_json::from_slice(&body).map_err(invalid)
    }

    /// Sends a request until it arrives, to one server after the other.
    async fn send<I: Serialize + Sync>(
        &self,
        servers: &[Url],
        request: &Request<'_, I>,
    ) -> Result<Vec<u8>, EngineError> {
        let first = self.last.load(Ordering::Relaxed);
        let mut turn = servers.iter().enumerate().cycle().skip(first % servers.len().max(1));
        let mut pause = PAUSE;
        for _ in 1..ATTEMPTS {
            let Some((at, server)) = turn.next() else { break };
            match self.send_once(server, request).await {
                Err((error, true)) => tracing::debug!(%error, "a request is sent again"),
                done => {
                    self.last.store(at, Ordering::Relaxed);
                    return done.map_err(|(error, _)| error);
                }
            }
            tokio::time::sleep(pause).await;
            pause *= 2;
        }
        let Some((_, server)) = turn.next() else { return Err(EngineError::Url(String::new())) };
        self.send_once(server, request).await.map_err(|(error, _)| error)
    }

    /// Sends a request once. An error says whether another attempt may help.
    async fn send_once<I: Serialize>(
        &self,
        server: &Url,
        request: &Request<'_, I>,
    ) -> Result<Vec<u8>, (EngineError, bool)> {
        let mut url = server.clone();
        if let Ok(mut segments) = url.path_segments_mut() {
            segments.pop_if_empty().extend(request.path);
        }
        if let Some((key, value)) = request.query {
            url.query_pairs_mut().append_pair(key, value);
        }
        let lost = |error| (unreachable(server, &error), true);
        let mut asked = self.client.request(request.method.clone(), url).header(ACCEPT, "application/json");
        if let Some(body) = request.body {
            asked = asked.json(body);
        }
        let response = asked.send().await.map_err(lost)?;
        let status = response.status();
        let may_repeat = is_of_ingress(&response) && status.is_server_error();
        let body = response.bytes().await.map_err(lost)?;
        if status.is_success() {
            return Ok(body.to_vec());
        }
        let text = message(&body).chars().take(500).collect();
        let error = EngineError::Failed { url: server.to_string(), status: status.as_u16(), text };
        Err((error, may_repeat || status == StatusCode::TOO_MANY_REQUESTS))
    }
}

/// The message of an error: that of its JSON object, or all of it.
fn message(body: &[u8]) -> String {
    #[derive(serde::Deserialize)]
    struct Told {
        message: String,
    }
    let told = serde_json::from_slice::<Told>(body);
    told.map_or_else(|_| String::from_utf8_lossy(body).into_owned(), |told| told.message)
}

fn is_of_ingress(response: &Response) -> bool {
    response.headers().get(SOURCE).is_some_and(|source| source == "ingress")
}

pub(super) fn unreachable(url: &Url, error: &reqwest::Error) -> EngineError {
    let mut why = error.to_string();
    let mut source = std::error::Error::source(error);
    while let Some(cause) = source {
        why = cause.to_string();
        source = cause.source();
    }
    EngineError::Unreachable { url: url.to_string(), why }
}

pub(super) fn url(text: &str) -> Result<Url, EngineError> {
    let is_http = |url: &Url| matches!(url.scheme(), "http" | "https") && url.has_host();
    Url::parse(text).ok().filter(is_http).ok_or_else(|| EngineError::Url(text.to_owned()))
}
