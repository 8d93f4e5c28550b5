//! A server as a source of tools.

use std::collections::HashMap;
use std::fmt;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use harness_core::message::ToolCall;
use harness_core::port::Clock;
use harness_core::redact::KnownSecrets;
use harness_core::tool::{ArgumentFault, RetryClass, ToolCx, ToolDef, ToolOutcome, ToolRegistry, ToolScope};
use harness_core::{Fault, FaultSource, ToolName};
use parking_lot::RwLock;
use rmcp::model::{CallToolRequestParams, JsonObject, RequestMetaObject, Tool};
use serde_json::{Map, Value};
use tokio::sync::Mutex;
use tokio::time::{Instant, sleep, timeout};

use super::answer::Called;
use super::connection::{CallFault, Connection};
use super::fault::McpFault;
use super::names;
use super::spec::McpSpec;
use crate::command::{INVALID_ARGUMENTS, TimeLimit, kind_of};
use crate::error::ToolsError;
#[cfg(feature = "schema-validation")]
use crate::schema::ArgumentSchema;
use crate::source::Source;

/// How long a server that could not be reached is left alone; doubled at each further failure.
const BACK_OFF: Duration = Duration::from_secs(1);

/// The longest that it is left alone.
const MAX_BACK_OFF: Duration = Duration::from_secs(30);

/// The longest description of a tool that is passed on, in bytes.
const MAX_DESCRIPTION: usize = 16 * 1024;

/// Bytes of a tool's name as its server writes it. Names that a model sees are shorter still.
pub(super) const MAX_TOOL_NAME_BYTES: usize = 256;

/// An MCP server: a source of tools, connected on first use.
///
/// It is a [`ToolRegistry`] of all its tools, named `NAMESPACE__TOOL`; the namespace is made from the id.
/// Clones share the connection. If it ends, the next use opens a new one. After a failed attempt the server
/// is not contacted for 1 s to 30 s, and calls return the error of that attempt. [`close`](Self::close)
/// shuts it down, dropping the last clone does so immediately; no program is left running.
///
/// A failed call is an error *result* with one of these codes, never an error of the turn:
///
/// | code | status | meaning |
/// |---|---|---|
/// | `invalid_arguments` | failed | the arguments are not an object, or do not match the schema; nothing was sent |
/// | `mcp_tool_failed` | failed | the tool reported a failure (`isError`) |
/// | `mcp_error` | failed | the server responded with a protocol error; its code is in the data |
/// | `mcp_unknown_tool` | failed | the server does not list the tool |
/// | `mcp_unavailable` | failed | the server could not be reached; nothing was sent |
/// | `mcp_server_lost` | failed | the server ended, or its connection broke, during the call |
/// | `mcp_message_too_long` | failed | the response exceeds [`MAX_MESSAGE`](super::MAX_MESSAGE) |
/// | `mcp_unusable_answer` | failed | the response is not a tool result |
/// | `timeout` | timeout | there was no response in time; the call was cancelled on the server |
/// | `cancelled` | cancelled | `cx.cancel` fired; the call was cancelled on the server |
///
/// ```no_run
/// use harness_host::process::{Environment, ProgramSpec};
/// use harness_tools::mcp::{McpServer, McpSpec};
///
/// # async fn example() -> Result<(), harness_tools::ToolsError> {
/// let program = ProgramSpec::new("npx")
///     .args(["-y", "@modelcontextprotocol/server-filesystem", "."])
///     .pass(&Environment::of_process(), []);
/// let files = McpServer::new("files", McpSpec::stdio(program));
/// for tool in files.tools().await?.iter() {
///     println!("{}: {}", tool.name, tool.description); // files__read_file: ...
/// }
/// files.close().await;
/// # Ok(())
/// # }
/// ```
#[derive(Clone)]
pub struct McpServer(Arc<Inner>);

struct Inner {
    id: String,
    namespace: Arc<str>,
    spec: McpSpec,
    clock: Option<Arc<dyn Clock>>,
    secrets: KnownSecrets,
    link: Mutex<Link>,
    known: RwLock<Option<Arc<Known>>>,
}

/// The connection, and what is known of failures to open one.
#[derive(Default)]
struct Link {
    connection: Option<Arc<Connection>>,
    failures: u32,
    failed: Option<(Instant, McpFault)>,
    shut: bool,
}

/// The tools as they were last listed.
struct Known {
    defs: Arc<[ToolDef]>,
    tools: HashMap<ToolName, KnownTool>,
}

struct KnownTool {
    /// The server's own name for it.
    name: String,
    class: RetryClass,
    #[cfg(feature = "schema-validation")]
    schema: Option<ArgumentSchema>,
}

impl fmt::Debug for McpServer {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("McpServer")
            .field("id", &self.0.id)
            .field("spec", &self.0.spec)
            .finish_non_exhaustive()
    }
}

impl McpServer {
    /// A server; nothing is started yet.
    pub fn new(id: impl Into<String>, spec: McpSpec) -> Self {
        Self::with(id.into(), spec, None)
    }

    /// A new connection to the same server, with a clock by which calls stop at the deadline of the turn.
    #[must_use]
    pub fn with_clock(&self, clock: Arc<dyn Clock>) -> Self {
        Self::with(self.0.id.clone(), self.0.spec.clone(), Some(clock))
    }

    fn with(id: String, spec: McpSpec, clock: Option<Arc<dyn Clock>>) -> Self {
        Self(Arc::new(Inner {
            namespace: names::namespace(&id).into(),
            secrets: spec.secrets(),
            id,
            spec,
            clock,
            link: Mutex::default(),
            known: RwLock::default(),
        }))
    }

    /// Id of the server.
    pub fn id(&self) -> &str {
        &self.0.id
    }

    /// Prefix of its tool names, such as `files__`.
    pub fn namespace(&self) -> &str {
        &self.0.namespace
    }

    /// Its tools, to be combined with others.
    pub fn source(&self) -> Source {
        Source::new(self.namespace(), Arc::new(self.clone()))
    }

    /// How it is reached, and the bounds of its use.
    pub fn spec(&self) -> &McpSpec {
        &self.0.spec
    }

    /// The name by which a model calls the tool that the server names `tool`.
    pub fn name_of(&self, tool: &str) -> ToolName {
        names::tool_name(&self.0.namespace, tool).into()
    }

    /// Its current tools. Connects if needed.
    ///
    /// If it is no longer reachable, the last known tools are returned; calling them fails.
    ///
    /// # Errors
    /// [`ToolsError::Mcp`] if it was never reachable, or does not list its tools.
    pub async fn tools(&self) -> Result<Arc<[ToolDef]>, ToolsError> {
        match self.refresh().await {
            Ok(known) => Ok(Arc::clone(&known.defs)),
            Err(fault) => match self.known() {
                Some(known) => {
                    tracing::warn!(server = %self.0.id, %fault, "its tools cannot be listed; the last list is used");
                    Ok(Arc::clone(&known.defs))
                }
                None => Err(self.error(fault)),
            },
        }
    }

    /// Instructions of the server for a system prompt. Connects if needed.
    ///
    /// # Errors
    /// [`ToolsError::Mcp`] if it is not reachable.
    pub async fn instructions(&self) -> Result<Option<String>, ToolsError> {
        let connection = self.connection().await.map_err(|fault| self.error(fault))?;
        Ok(connection.instructions())
    }

    /// Ends the connection, and the program with all that it started; waits until they are gone, which
    /// takes at most some seconds. Later calls are answered with `mcp_unavailable`.
    pub async fn close(&self) {
        let connection = {
            let mut link = self.0.link.lock().await;
            link.shut = true;
            link.connection.take()
        };
        if let Some(connection) = connection {
            connection.close().await;
        }
    }

    fn error(&self, fault: McpFault) -> ToolsError {
        ToolsError::Mcp { server: self.0.id.clone(), fault }
    }

    fn known(&self) -> Option<Arc<Known>> {
        self.0.known.read().clone()
    }

    /// The connection; opens one if there is none.
    async fn connection(&self) -> Result<Arc<Connection>, McpFault> {
        let mut link = self.0.link.lock().await;
        if link.shut {
            return Err(McpFault::Shut);
        }
        if let Some(connection) = link.connection.as_ref().filter(|connection| connection.is_open()) {
            return Ok(Arc::clone(connection));
        }
        link.connection = None;
        if let Some((until, fault)) = &link.failed
            && Instant::now() < *until
        {
            return Err(fault.clone());
        }
        tracing::debug!(server = %self.0.id, "connects");
        match Connection::open(&self.0.spec, &self.0.secrets).await {
            Ok(connection) => {
                let connection = Arc::new(connection);
                connection.set_changed();
                (link.failures, link.failed) = (0, None);
                link.connection = Some(Arc::clone(&connection));
                Ok(connection)
            }
            Err(fault) => {
                let wait = BACK_OFF.saturating_mul(2_u32.saturating_pow(link.failures)).min(MAX_BACK_OFF);
                link.failures += 1;
                link.failed = Some((Instant::now() + wait, fault.clone()));
                Err(fault)
            }
        }
    }

    /// The tools, listed anew if the list changed or the connection is new.
    async fn refresh(&self) -> Result<Arc<Known>, McpFault> {
        let connection = self.connection().await?;
        let changed = connection.take_changed();
        if let (false, Some(known)) = (changed, self.known()) {
            return Ok(known);
        }
        let within = self.0.spec.connect_timeout;
        let listed = timeout(within, connection.list()).await;
        let listed = listed.unwrap_or(Err(McpFault::NotReady { within, stderr: String::new() }));
        match listed {
            Ok(tools) => {
                let known = Arc::new(self.understand(tools));
                *self.0.known.write() = Some(Arc::clone(&known));
                Ok(known)
            }
            Err(fault) => {
                connection.set_changed();
                Err(fault)
            }
        }
    }

    /// Tools as offered to the model. Of two with the same name the first one is used; names that are too
    /// long are omitted.
    fn understand(&self, listed: Vec<Tool>) -> Known {
        let mut defs = Vec::with_capacity(listed.len());
        let mut tools = HashMap::with_capacity(listed.len());
        for tool in listed {
            if tool.name.len() > MAX_TOOL_NAME_BYTES {
                let (server, bytes) = (&self.0.id, tool.name.len());
                tracing::warn!(%server, bytes, limit = MAX_TOOL_NAME_BYTES, "tool name is too long; it is left out");
                continue;
            }
            let def = self.def(&tool);
            if tools.contains_key(&def.name) {
                tracing::warn!(server = %self.0.id, tool = %tool.name, "has the name of another; it is left out");
                continue;
            }
            let known = KnownTool {
                name: tool.name.into_owned(),
                class: def.class,
                // A schema that cannot be used here is the server's to check.
                #[cfg(feature = "schema-validation")]
                schema: ArgumentSchema::of_tool(&def).ok().flatten(),
            };
            tools.insert(def.name.clone(), known);
            defs.push(def);
        }
        Known { defs: defs.into(), tools }
    }

    fn def(&self, tool: &Tool) -> ToolDef {
        let spec = &self.0.spec;
        let hints = tool.annotations.as_ref();
        let title = tool.title.as_deref().or_else(|| hints?.title.as_deref());
        let description = tool.description.as_deref().or(title).unwrap_or_default();
        let description = super::content::fitted(description, &mut { MAX_DESCRIPTION });
        let class = match hints {
            Some(hints) if spec.trust_annotations && hints.read_only_hint == Some(true) => RetryClass::Pure,
            Some(hints) if spec.trust_annotations && hints.is_idempotent() => RetryClass::Idempotent,
            _ => RetryClass::Unsafe,
        };
        let mut def = ToolDef::new(self.name_of(&tool.name), description).with_class(class);
        def.input_schema = Some(Value::Object(Map::clone(&tool.input_schema)).into());
        def.requires_approval = spec.requires_approval;
        def.sequential = spec.sequential;
        def.metadata = Some(
            serde_json::json!({
                "mcp": {"server": self.0.id, "tool": tool.name, "title": title, "annotations": hints},
            })
            .into(),
        );
        def
    }

    /// Runs one attempt, within its time.
    async fn run(&self, cx: &ToolCx) -> ToolOutcome {
        let known = self.known();
        let tool = known.as_ref().and_then(|known| known.tools.get(&cx.call.name));
        let name = cx.call.name.as_str();
        let short = name.strip_prefix(&*self.0.namespace).unwrap_or(name);
        let called = Called {
            server: &self.0.id,
            tool: tool.map_or(short, |tool| tool.name.as_str()),
            class: tool.map_or(RetryClass::Unsafe, |tool| tool.class),
        };
        let limit = TimeLimit::of(self.0.spec.timeout, self.0.clock.as_deref(), cx);
        if cx.cancel.is_cancelled() {
            return called.cancelled(false);
        }
        if limit.span().is_zero() {
            return called.too_late(limit, false);
        }
        let sent = AtomicBool::new(false);
        tokio::select! {
            biased;
            outcome = self.send(cx, called, &sent) => outcome,
            () = cx.cancel.cancelled() => called.cancelled(sent.load(Ordering::Relaxed)),
            () = sleep(limit.span()) => called.too_late(limit, sent.load(Ordering::Relaxed)),
        }
    }

    async fn send(&self, cx: &ToolCx, called: Called<'_>, sent: &AtomicBool) -> ToolOutcome {
        let connection = match self.connection().await {
            Ok(connection) => connection,
            Err(fault) => return called.unavailable(&fault),
        };
        let Some(name) = self.wire_name(&cx.call.name).await else { return called.unknown() };
        let Ok(Value::Object(arguments)) = cx.call.arguments.to() else {
            return ToolOutcome::error(INVALID_ARGUMENTS, "the arguments cannot be sent as JSON");
        };
        let mut params = CallToolRequestParams::new(name).with_arguments(arguments);
        params.meta = Some(meta(cx));
        sent.store(true, Ordering::Relaxed);
        tracing::debug!(server = %self.0.id, call = %cx.call.id, "calls a tool");
        match connection.call(params).await {
            Ok(result) => called.done(result, self.0.spec.max_output),
            Err(CallFault::Answered(error)) => {
                called.refused(&error, &super::short(&self.0.secrets.text(&error.message)))
            }
            Err(CallFault::NotSent(fault)) => called.unavailable(&fault),
            Err(CallFault::Lost(fault)) => called.lost(&fault),
            Err(CallFault::Unusable(problem)) => called.unusable(problem),
        }
    }

    /// The server's own name for a tool; lists them if that was never done.
    async fn wire_name(&self, name: &ToolName) -> Option<String> {
        let known = match self.known() {
            Some(known) => known,
            None => self.refresh().await.ok()?,
        };
        known.tools.get(name).map(|tool| tool.name.clone())
    }
}

/// Metadata of a call, for servers that support it.
fn meta(cx: &ToolCx) -> RequestMetaObject {
    let mut meta = JsonObject::new();
    meta.insert("harness/idempotencyKey".to_owned(), Value::String(cx.idempotency_key()));
    meta.into()
}

impl ToolRegistry for McpServer {
    async fn list(&self, scope: &ToolScope) -> Result<Arc<[ToolDef]>, Fault> {
        let defs = self.tools().await.map_err(|error| {
            let hint = error.hint().map(|hint| format!("; {hint}")).unwrap_or_default();
            Fault::new(FaultSource::Tool, error.kind(), format!("{error}{hint}"))
        })?;
        let Some(names) = &scope.allowed else { return Ok(defs) };
        Ok(defs.iter().filter(|def| names.contains(&def.name)).cloned().collect())
    }

    fn check(&self, call: &ToolCall) -> Result<(), ArgumentFault> {
        if !call.arguments.is_object() {
            let found = kind_of(&call.arguments);
            return Err(ArgumentFault::new("", format!("expected an object, not {found}")));
        }
        #[cfg(feature = "schema-validation")]
        if let Some(schema) =
            self.known().as_ref().and_then(|known| known.tools.get(&call.name)?.schema.as_ref())
        {
            return schema.check(&call.arguments);
        }
        Ok(())
    }

    async fn call(&self, cx: ToolCx) -> Result<ToolOutcome, Fault> {
        // The turn asks `check` only where a gate or an approval follows.
        if let Err(fault) = self.check(&cx.call) {
            return Ok(ToolOutcome::error(INVALID_ARGUMENTS, fault.to_string()));
        }
        Ok(self.run(&cx).await)
    }
}
