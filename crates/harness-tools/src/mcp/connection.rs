//! A connection to a server, from its handshake to its end.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use harness_core::port::BoxFuture;
use harness_core::redact::KnownSecrets;
use parking_lot::Mutex;
use rmcp::model::{
    CallToolRequestParams, CallToolResponse, ClientCapabilities, ClientConfig, ClientRequest, Implementation,
    ListToolsRequest, PaginatedRequestParams, ProtocolVersion, ServerResult, Tool,
};
use rmcp::service::{
    ClientInitializeError, NotificationContext, Peer, RoleClient, RunningService, ServiceError, serve_client,
};
use rmcp::transport::async_rw::AsyncRwTransport;
use rmcp::{ClientHandler, ErrorData};
use tokio::time::timeout;

use super::child::{self, Bounded, Life, MAX_MESSAGE};
use super::fault::McpFault;
use super::http;
use super::spec::{McpSpec, McpTransport};

/// The most tools that a server may have.
pub const MAX_TOOLS: usize = 1000;

/// The most pages in which it may list them.
const MAX_PAGES: usize = 100;

/// How long a server over HTTP may take to end a session.
const FAREWELL: Duration = Duration::from_secs(2);

/// A server that has answered the handshake.
#[derive(Debug)]
pub(super) struct Connection {
    peer: Peer<RoleClient>,
    service: Mutex<Option<RunningService<RoleClient, Client>>>,
    transport: McpTransport,
    /// Of a program.
    life: Option<Life>,
    /// Whether it sent too long a message over streams.
    flooded: Arc<AtomicBool>,
    /// Whether a call found it gone, which the peer may notice later.
    lost: AtomicBool,
    changed: Arc<AtomicBool>,
    secrets: KnownSecrets,
}

/// A handshake under way.
type Greeting = BoxFuture<'static, Result<RunningService<RoleClient, Client>, ClientInitializeError>>;

/// Error of a call without a response.
pub(super) enum CallFault {
    /// The server answered with an error of the protocol.
    Answered(ErrorData),
    /// It never got the call.
    NotSent(McpFault),
    /// The connection ended, or failed, after the call was sent.
    Lost(McpFault),
    /// It answered with something else than a result.
    Unusable(&'static str),
}

/// Information for servers, and notifications from them.
#[derive(Debug)]
struct Client {
    changed: Arc<AtomicBool>,
}

impl ClientHandler for Client {
    async fn on_tool_list_changed(&self, _: NotificationContext<RoleClient>) {
        self.changed.store(true, Ordering::Release);
    }

    fn get_info(&self) -> ClientConfig {
        let me = Implementation::new("harness", env!("CARGO_PKG_VERSION"));
        // From the next version on, changes of the list are told only to those who listen for them.
        ClientConfig::new(ClientCapabilities::default(), me)
            .with_protocol_version(ProtocolVersion::V_2025_11_25)
    }
}

impl Connection {
    /// Starts or reaches the server, and shakes hands with it.
    pub(super) async fn open(spec: &McpSpec, secrets: &KnownSecrets) -> Result<Self, McpFault> {
        let changed = Arc::<AtomicBool>::default();
        let flooded = Arc::<AtomicBool>::default();
        let client = Client { changed: Arc::clone(&changed) };
        let within = spec.connect_timeout;
        let (greeting, life): (Greeting, _) = match &spec.transport {
            McpTransport::Stdio(program) => {
                let (pipes, life) = child::launch(program, spec.grace).await?;
                let transport = AsyncRwTransport::new(pipes.stdout, pipes.stdin);
                (Box::pin(serve_client(client, transport)), Some(life))
            }
            McpTransport::Http(http) => {
                (Box::pin(serve_client(client, http::transport(http, within)?)), None)
            }
            McpTransport::Streams(streams) => {
                let (read, write) = streams.dial().await?;
                let transport = AsyncRwTransport::new(Bounded::new(read, Arc::clone(&flooded)), write);
                (Box::pin(serve_client(client, transport)), None)
            }
        };
        let greeted = timeout(within, greeting).await;
        let service = match greeted {
            Ok(Ok(service)) => service,
            Ok(Err(error)) => return Err(no_greeting(error, spec, life.as_ref(), &flooded, secrets).await),
            Err(_) => {
                let stderr = life.map(|life| life.stderr(secrets)).unwrap_or_default();
                return Err(McpFault::NotReady { within, stderr });
            }
        };
        Ok(Self {
            peer: service.peer().clone(),
            service: Mutex::new(Some(service)),
            transport: spec.transport.clone(),
            life,
            flooded,
            lost: AtomicBool::new(false),
            changed,
            secrets: secrets.clone(),
        })
    }

    /// Whether calls can be sent.
    pub(super) fn is_open(&self) -> bool {
        !self.lost.load(Ordering::Acquire) && !self.peer.is_transport_closed()
    }

    /// Whether the list of tools changed since this was last asked.
    pub(super) fn take_changed(&self) -> bool {
        self.changed.swap(false, Ordering::AcqRel)
    }

    /// Says that the list of tools is still to be asked for.
    pub(super) fn set_changed(&self) {
        self.changed.store(true, Ordering::Release);
    }

    /// Instructions of the server about its use.
    pub(super) fn instructions(&self) -> Option<String> {
        self.peer.peer_info().and_then(|info| info.instructions.clone())
    }

    /// The tools of the server, all pages.
    pub(super) async fn list(&self) -> Result<Vec<Tool>, McpFault> {
        if self.peer.peer_info().is_some_and(|info| info.capabilities.tools.is_none()) {
            return Ok(Vec::new());
        }
        let mut tools = Vec::new();
        let mut cursor = None;
        for _ in 0..MAX_PAGES {
            let params = PaginatedRequestParams::default().with_cursor(cursor);
            let request = ClientRequest::ListToolsRequest(ListToolsRequest::with_param(params));
            let page = match self.peer.send_request(request).await {
                Ok(ServerResult::ListToolsResult(page)) => page,
                Ok(_) => return Err(protocol("it answered `tools/list` with something else")),
                Err(error) => return Err(self.fault(error, "tools/list").await),
            };
            tools.extend(page.tools);
            if tools.len() > MAX_TOOLS {
                return Err(protocol(&format!("it lists more than {MAX_TOOLS} tools")));
            }
            match page.next_cursor {
                Some(next) => cursor = Some(next),
                None => return Ok(tools),
            }
        }
        Err(protocol(&format!("it lists its tools in more than {MAX_PAGES} pages")))
    }

    /// Calls a tool. Dropping the future cancels the call on the server.
    pub(super) async fn call(
        &self,
        params: CallToolRequestParams,
    ) -> Result<rmcp::model::CallToolResult, CallFault> {
        match self.peer.call_tool_once(params).await {
            Ok(CallToolResponse::Complete(result)) => Ok(result),
            Ok(CallToolResponse::InputRequired(_)) => {
                Err(CallFault::Unusable("MCP server requested input during the call, which is not supported"))
            }
            Ok(CallToolResponse::Task(_)) => {
                Err(CallFault::Unusable("it made a task of the call, and tasks are not followed here"))
            }
            Ok(_) | Err(ServiceError::UnexpectedResponse) => {
                Err(CallFault::Unusable("the response is not a tool result"))
            }
            Err(ServiceError::McpError(error)) => Err(CallFault::Answered(error)),
            Err(ServiceError::TransportSend(error)) if http::never_arrived(&error) => {
                let fault = self.fault(ServiceError::TransportSend(error), "tools/call").await;
                Err(CallFault::NotSent(fault))
            }
            Err(error) => Err(CallFault::Lost(self.fault(error, "tools/call").await)),
        }
    }

    /// Error of a request. The connection is not reused unless the server responded.
    async fn fault(&self, error: ServiceError, request: &'static str) -> McpFault {
        if let ServiceError::McpError(error) = error {
            return refused(request, &error, &self.secrets);
        }
        self.lost.store(true, Ordering::Release);
        match (&error, &self.transport) {
            (ServiceError::TransportSend(error), McpTransport::Http(http)) => {
                http::failed(http, error.error.as_ref(), &self.secrets)
            }
            (ServiceError::TransportClosed | ServiceError::TransportSend(_), _) => {
                gone(self.life.as_ref(), &self.flooded, &self.secrets).await
            }
            _ => protocol(&self.secrets.text(&error.to_string())),
        }
    }

    /// Ends the session, and the program if it has one.
    pub(super) async fn close(&self) {
        self.lost.store(true, Ordering::Release);
        let service = self.service.lock().take();
        if let Some(mut service) = service {
            // It is ended all the same when it is dropped.
            let _ = service.close_with_timeout(FAREWELL).await;
        }
        if let Some(life) = &self.life {
            life.end().await;
        }
    }
}

/// Error of the handshake.
async fn no_greeting(
    error: ClientInitializeError,
    spec: &McpSpec,
    life: Option<&Life>,
    flooded: &AtomicBool,
    secrets: &KnownSecrets,
) -> McpFault {
    #[expect(clippy::wildcard_enum_match_arm, reason = "the library's list is open")]
    match error {
        ClientInitializeError::JsonRpcError(error) => refused("initialize", &error, secrets),
        ClientInitializeError::TransportError { error, .. } => match &spec.transport {
            McpTransport::Http(http) => http::failed(http, error.error.as_ref(), secrets),
            McpTransport::Stdio(_) | McpTransport::Streams(_) => gone(life, flooded, secrets).await,
        },
        ClientInitializeError::ConnectionClosed(_) => gone(life, flooded, secrets).await,
        other => protocol(&secrets.text(&other.to_string())),
    }
}

/// Error of a stream that ended.
async fn gone(life: Option<&Life>, flooded: &AtomicBool, secrets: &KnownSecrets) -> McpFault {
    match life {
        Some(life) => life.why(secrets).await,
        None if flooded.load(Ordering::Acquire) => McpFault::MessageTooLong { limit: MAX_MESSAGE },
        None => McpFault::Closed,
    }
}

fn refused(request: &'static str, error: &ErrorData, secrets: &KnownSecrets) -> McpFault {
    McpFault::Refused { request, code: error.code.0, message: super::short(&secrets.text(&error.message)) }
}

fn protocol(problem: &str) -> McpFault {
    McpFault::Protocol { problem: super::short(problem) }
}
