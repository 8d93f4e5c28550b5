//! An agent of this machine as an execution adapter.

use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use harness_core::port::Clock;
use harness_host::process::Environment;

use super::LocalAgent;
use super::arguments::invocation;
use super::claude::Claude;
use super::codex::Codex;
use super::gemini::Gemini;
use super::opencode::OpenCode;
use super::output::AgentOutput;
use super::session::{Session, reasons};
use crate::execution::{
    ContextStrategy, ExecutionAdapter, ExecutionCapabilities, ExecutionCx, ExecutionError,
    ExecutionErrorCode, ExecutionNegotiation, ExecutionRequest, ExecutionResult, Support, ToolUse,
    TraceDepth,
};
use crate::local::adapter::LocalCommandAdapter;
use crate::local::output::OutputFormat;
use crate::local::probe::{Found, probe};
use crate::local::program::LocalProgram;

/// Permissions of an agent, which cannot prompt for approval.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub enum Permission {
    /// Look at files; what else it may do is said by its own settings.
    #[default]
    ReadOnly,
    /// Also change files in its directory.
    WriteFiles,
    /// Everything, commands included. Only where the machine is its own.
    Everything,
}

/// How an agent is asked.
#[derive(Clone, Debug)]
pub(super) struct Settings {
    pub(super) model: Option<String>,
    pub(super) permission: Permission,
    pub(super) args: Vec<String>,
    pub(super) script: String,
}

/// A [`LocalAgent`] as a backend: each request is one run of its program.
///
/// Its events are forwarded as they arrive and kept in the result: the answer, calls of its tools, usage
/// and cost if reported, and its session id, with which a later request can continue. `metadata` has
/// `sessionId`, `usage` and other reported values (`model`, `turns`, `stopReason`, `denied`). Unknown events
/// become notes. The last event and the exit code decide whether a turn succeeded, never the status words
/// of its tools. Exit code 2 means invalid arguments and is not retryable.
///
/// Claude Code receives the names of the request's tools as an allow list of its built-in tools; the other
/// agents receive none, which degrades the request. Only [`LocalAgent::variables`] are passed on.
///
/// ```
/// use std::sync::Arc;
///
/// use harness_adapters::execution::{ExecutionAdapter, ExecutionCx, ExecutionMessage, ExecutionRequest};
/// use harness_adapters::local::{AgentBackend, LocalAgent, Permission};
/// use harness_host::process::Environment;
/// use harness_core::Cancel;
/// use harness_core::port::Clock;
///
/// # async fn example(clock: Arc<dyn Clock>) {
/// let backend = AgentBackend::new(LocalAgent::Codex, &Environment::of_process(), clock)
///     .permission(Permission::WriteFiles)
///     .cwd("/srv/work");
/// let request = ExecutionRequest::new("a", "t1", "Be brief.", ExecutionMessage::new("m1", "Fix the tests."));
/// let first = backend.execute(request.clone(), ExecutionCx::new(&(), &Cancel::never())).await;
///
/// let mut next = request;
/// next.message = ExecutionMessage::new("m2", "Now the lints.");
/// next.continuation = first.continuation;
/// let second = backend.execute(next, ExecutionCx::new(&(), &Cancel::never())).await;
/// println!("{}", second.text());
/// # }
/// ```
#[derive(Clone, derive_more::Debug)]
pub struct AgentBackend {
    agent: LocalAgent,
    /// How its program is run: its path, directory, environment and limits.
    pub program: LocalProgram,
    settings: Settings,
    #[debug(skip)]
    clock: Arc<dyn Clock>,
}

impl AgentBackend {
    /// Creates the backend with its variables of `surroundings`, the current directory, the agent's
    /// own model, read permission, and a time limit of ten minutes.
    pub fn new(agent: LocalAgent, surroundings: &Environment, clock: Arc<dyn Clock>) -> Self {
        let settings = Settings {
            model: None,
            permission: Permission::default(),
            args: Vec::new(),
            script: "cat".to_owned(),
        };
        Self { agent, program: agent.program(surroundings), settings, clock }
    }

    /// With this model, in the agent's own words for models. An empty one is none.
    #[must_use]
    pub fn model(mut self, model: impl Into<String>) -> Self {
        self.settings.model = Some(model.into()).filter(|model| !model.is_empty());
        self
    }

    /// Allowed so much.
    #[must_use]
    pub fn permission(mut self, permission: Permission) -> Self {
        self.settings.permission = permission;
        self
    }

    /// With one more argument for the agent, after those that it is given anyway.
    #[must_use]
    pub fn arg(mut self, arg: impl Into<String>) -> Self {
        self.settings.args.push(arg.into());
        self
    }

    /// The script of [`LocalAgent::Bash`]; it reads the prompt from stdin. Default `cat`.
    #[must_use]
    pub fn script(mut self, script: impl Into<String>) -> Self {
        self.settings.script = script.into();
        self
    }

    /// Sets the working directory.
    #[must_use]
    pub fn cwd(mut self, folder: impl Into<PathBuf>) -> Self {
        self.program.spec.cwd = Some(folder.into());
        self
    }

    /// Stopped after this time.
    #[must_use]
    pub fn timeout(mut self, span: Duration) -> Self {
        self.program.limits.time = span;
        self
    }

    /// Which agent it is.
    pub fn agent(&self) -> LocalAgent {
        self.agent
    }

    /// Replaces the error if the agent's version is too old: such a version rejects the arguments
    /// or reports other events. A run that timed out is not delayed further.
    async fn blame_an_old_version(&self, error: &mut ExecutionError) {
        let strange = [ExecutionErrorCode::BackendExecutionError, ExecutionErrorCode::InvalidBackendOutput];
        if !strange.contains(&error.code) {
            return;
        }
        if let Found::TooOld(version) = Box::pin(probe(self.agent, &self.program)).await.found {
            let (minimum, hint) = (self.agent.minimum(), self.agent.install_hint());
            error.message = format!(
                "{} {version} is too old, {minimum} or newer is needed: {hint}. ({})",
                self.agent, error.message
            );
            error.retryable = Some(false);
        }
    }

    /// The general adapter that does it: what the agent is given for a request can be seen there
    /// ([`LocalCommandAdapter::invocation`]), and changed further.
    pub fn adapter(&self) -> LocalCommandAdapter {
        let (agent, settings) = (self.agent, self.settings.clone());
        LocalCommandAdapter::new(
            agent.backend_id(),
            self.program.clone(),
            move |request| invocation(agent, &settings, request),
            format(agent),
            capabilities(agent),
            Arc::clone(&self.clock),
        )
        .label(agent.title())
        // Programs say so that their arguments are wrong, and would say it again.
        .retryable_exit(|exit| exit.code != Some(2))
        .negotiating(move |request| reasons(agent, request))
        .when_missing(agent.install_hint())
    }
}

fn capabilities(agent: LocalAgent) -> ExecutionCapabilities {
    let mut capabilities = ExecutionCapabilities::none();
    if agent == LocalAgent::Bash {
        return capabilities;
    }
    capabilities.tool_use = ToolUse::NativeIterative;
    capabilities.structured_tool_calls = true;
    capabilities.continuation_support = Support::OpaqueResume;
    capabilities.trace_depth = TraceDepth::Standard;
    capabilities.max_context_strategy = Some(ContextStrategy::Large);
    capabilities
}

fn format(agent: LocalAgent) -> OutputFormat {
    let told = move |request: &ExecutionRequest| {
        let session = Session::of(request, agent).ok().flatten().unwrap_or_default();
        AgentOutput::new(agent, session)
    };
    match agent {
        LocalAgent::ClaudeCode => OutputFormat::lines(move |request| Box::new(Claude::new(told(request)))),
        LocalAgent::Codex => OutputFormat::lines(move |request| Box::new(Codex::new(told(request)))),
        LocalAgent::OpenCode => OutputFormat::lines(move |request| Box::new(OpenCode::new(told(request)))),
        LocalAgent::Gemini => OutputFormat::lines(move |request| Box::new(Gemini::new(told(request)))),
        LocalAgent::Bash => OutputFormat::plain_text(),
    }
}

impl ExecutionAdapter for AgentBackend {
    fn backend_id(&self) -> &str {
        self.agent.backend_id()
    }

    fn capabilities(&self) -> ExecutionCapabilities {
        capabilities(self.agent)
    }

    fn negotiate(&self, request: &ExecutionRequest) -> ExecutionNegotiation {
        self.adapter().negotiate(request)
    }

    async fn execute(&self, request: ExecutionRequest, cx: ExecutionCx<'_>) -> ExecutionResult {
        let mut result = Box::pin(self.adapter().execute(request, cx)).await;
        if let Some(error) = result.error.as_mut()
            && result.continuation.is_none()
            && !cx.cancel.is_cancelled()
        {
            self.blame_an_old_version(error).await;
        }
        result
    }
}
