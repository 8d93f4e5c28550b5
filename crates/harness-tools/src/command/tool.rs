//! A tool that is a program.

use std::ffi::OsString;
use std::fmt;
use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use harness_core::Json;
use harness_core::port::Clock;
use harness_core::tool::{ArgumentFault, Tool, ToolCx, ToolDef, ToolOutcome};
use harness_host::process::{Environment, Launch, Limits, PASSED, Sandbox};

use super::answer;
use crate::error::ToolsError;
#[cfg(feature = "schema-validation")]
use crate::schema::ArgumentSchema;

/// How a program is told the arguments of a call.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub enum Input {
    /// As one line of JSON on stdin.
    #[default]
    JsonStdin,
    /// Not at all; its stdin is empty.
    None,
}

/// How a program is run.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub struct CommandSpec {
    /// The program: a path, or a name that is looked up in `PATH`.
    pub program: OsString,
    /// Its arguments, passed as they are: there is no shell. Default none.
    pub args: Vec<OsString>,
    /// The folder it runs in; `None` is the folder of this process.
    pub cwd: Option<PathBuf>,
    /// Its environment, beside the call's `HARNESS_CALL_ID` and `HARNESS_IDEMPOTENCY_KEY`. Default
    /// empty: not even `PATH` is inherited.
    pub env: Environment,
    /// How it is told the arguments. Default [`Input::JsonStdin`].
    pub input: Input,
    /// How long it may run before it is stopped. Default 30 s; must not be zero.
    pub timeout: Duration,
    /// How long it may take to end after SIGTERM, before SIGKILL. Default 500 ms.
    pub grace: Duration,
    /// How many bytes of stdout are kept: the beginning and the end. Default 64 KiB.
    pub max_output: usize,
    /// What it may reach; `None` restricts nothing. Default `None`. In a sandbox each call has a private temporary
    /// folder: `TMPDIR` and `HOME` name it, unless [`CommandSpec::env`] sets them.
    pub sandbox: Option<Sandbox>,
    /// Those of the variables that were chosen one by one.
    chosen: Environment,
}

impl CommandSpec {
    /// How many bytes of stderr are kept, unless `max_output` is less.
    pub(crate) const MAX_STDERR: usize = 16 * 1024;

    /// A program without arguments, with the default bounds and an empty environment.
    pub fn new(program: impl Into<OsString>) -> Self {
        Self {
            program: program.into(),
            args: Vec::new(),
            cwd: None,
            env: Environment::default(),
            input: Input::JsonStdin,
            timeout: Duration::from_secs(30),
            grace: Duration::from_millis(500),
            max_output: 64 * 1024,
            sandbox: None,
            chosen: Environment::default(),
        }
    }

    /// With these arguments.
    #[must_use]
    pub fn args(mut self, args: impl IntoIterator<Item = impl Into<OsString>>) -> Self {
        self.args = args.into_iter().map(Into::into).collect();
        self
    }

    /// In this folder.
    #[must_use]
    pub fn cwd(mut self, folder: impl Into<PathBuf>) -> Self {
        self.cwd = Some(folder.into());
        self
    }

    /// With the variables of [`PASSED`] that `surroundings` has.
    #[must_use]
    pub fn env_from(mut self, surroundings: &Environment) -> Self {
        self.env = surroundings.share(PASSED.into_iter());
        self
    }

    /// With one more variable.
    #[must_use]
    pub fn env(mut self, name: impl Into<OsString>, value: impl Into<OsString>) -> Self {
        let (name, value) = (name.into(), value.into());
        self.chosen.set(name.clone(), value.clone());
        self.env.set(name, value);
        self
    }

    /// Told the arguments in this way.
    #[must_use]
    pub fn input(mut self, input: Input) -> Self {
        self.input = input;
        self
    }

    /// Stopped after this time.
    #[must_use]
    pub fn timeout(mut self, span: Duration) -> Self {
        self.timeout = span;
        self
    }

    /// Killed this long after it was asked to end.
    #[must_use]
    pub fn grace(mut self, span: Duration) -> Self {
        self.grace = span;
        self
    }

    /// In a sandbox.
    #[must_use]
    pub fn sandbox(mut self, sandbox: Sandbox) -> Self {
        self.sandbox = Some(sandbox);
        self
    }

    /// With this many bytes of stdout kept.
    #[must_use]
    pub fn max_output(mut self, bytes: usize) -> Self {
        self.max_output = bytes;
        self
    }
}

/// A tool that runs a program for each call.
///
/// What the program is given and what becomes of its answer stands in the [crate's
/// documentation](crate). A failing program is a failed *result* with one of these codes, never a
/// fault of the turn:
///
/// | code | status | meaning |
/// |---|---|---|
/// | `invalid_arguments` | failed | the arguments are no object, or do not fit the schema; nothing was started |
/// | `spawn_error` | failed | the program could not be started |
/// | `nonzero_exit` | failed | it exited with another code than 0 |
/// | `killed_by_signal` | failed | a signal from elsewhere ended it |
/// | `binary_output` | failed | it exited with code 0, and stdout is not UTF-8 text |
/// | `too_much_output` | failed | it printed more than [`MAX_PRINTED`](harness_host::process::MAX_PRINTED) and was stopped |
/// | `timeout` | timeout | it was stopped at its timeout, or at the turn's deadline |
/// | `cancelled` | cancelled | it was stopped, or not even started, because `cx.cancel` fired |
///
/// Dropping a running call kills the program and its process group.
///
/// ```
/// use std::sync::Arc;
///
/// use harness_core::Json;
/// use harness_core::message::ToolCall;
/// use harness_core::tool::{Tool, ToolCx, ToolDef};
/// use harness_tools::{CommandSpec, CommandTool, Input};
///
/// let spec = CommandSpec::new("/bin/sh").args(["-c", "echo out of stock; exit 3"]).input(Input::None);
/// let tool = CommandTool::new(ToolDef::new("stock", "Tells what is in stock"), spec)?;
/// # tokio::runtime::Builder::new_current_thread().enable_all().build()?.block_on(async {
/// let call = Arc::new(ToolCall::new("call-1", "stock", Json::empty_object()));
/// let outcome = tool.call(ToolCx::for_call(call)).await;
/// assert_eq!(outcome.exit_code, Some(3));
/// assert_eq!(outcome.error.map(|e| e.code).as_deref(), Some("nonzero_exit"));
/// # });
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Clone)]
pub struct CommandTool {
    def: ToolDef,
    spec: CommandSpec,
    clock: Option<Arc<dyn Clock>>,
    #[cfg(feature = "schema-validation")]
    schema: Option<ArgumentSchema>,
}

impl CommandTool {
    /// A tool that runs `spec` and is offered to a model as `def`.
    ///
    /// # Errors
    /// With the feature `schema-validation`: [`ToolsError::Schema`], when `def.input_schema` is not a
    /// usable JSON Schema.
    pub fn new(def: ToolDef, spec: CommandSpec) -> Result<Self, ToolsError> {
        Ok(Self {
            #[cfg(feature = "schema-validation")]
            schema: ArgumentSchema::of_tool(&def)?,
            def,
            spec,
            clock: None,
        })
    }

    /// The same tool with a clock, by which it stops at the turn's deadline by itself.
    ///
    /// Without a clock, or with one that is not the driver's, the driver's cancellation at the deadline
    /// stops it all the same; the result's code is then `cancelled`.
    #[must_use]
    pub fn with_clock(mut self, clock: Arc<dyn Clock>) -> Self {
        self.clock = Some(clock);
        self
    }

    /// How the program is run.
    pub fn spec(&self) -> &CommandSpec {
        &self.spec
    }

    /// The program as messages name it.
    pub(crate) fn program(&self) -> std::borrow::Cow<'_, str> {
        self.spec.program.to_string_lossy()
    }

    /// How long this call may run.
    fn time_limit(&self, cx: &ToolCx) -> TimeLimit {
        TimeLimit::of(self.spec.timeout, self.clock.as_deref(), cx)
    }
}

/// A sandbox of one call, with its private temporary folder.
struct Cell {
    sandbox: Sandbox,
    folder: tempfile::TempDir,
}

impl Cell {
    /// The cell of a program; `None` when it has no sandbox.
    ///
    /// # Errors
    /// The result of the call, when this machine cannot sandbox programs.
    async fn of(spec: &CommandSpec) -> Result<Option<Self>, ToolOutcome> {
        let Some(sandbox) = spec.sandbox.clone() else { return Ok(None) };
        let program = PathBuf::from(&spec.program);
        let work = tokio::task::spawn_blocking(move || {
            Sandbox::available().map_err(|fault| fault.to_string())?;
            let folder = tempfile::Builder::new().prefix("harness-").tempdir().map_err(|e| e.to_string())?;
            let sandbox = sandbox.writing(folder.path());
            let own = harness_host::process::is_path(program.as_os_str()) && program.exists();
            Ok(Self { sandbox: if own { sandbox.reading(program) } else { sandbox }, folder })
        });
        let made = work.await.unwrap_or_else(|error| Err(error.to_string()));
        made.map(Some).map_err(|why| answer::no_sandbox(&why))
    }

    /// Removes the folder, which may be large.
    async fn close(cell: Option<Self>) {
        if let Some(cell) = cell {
            // What cannot be removed stays in the system's folder of temporary files.
            let _ = tokio::task::spawn_blocking(move || cell.folder.close()).await;
        }
    }
}

/// The program as it is started for a call.
fn launch<'s>(spec: &'s CommandSpec, cell: Option<&'s Cell>, cx: &ToolCx, time: Duration) -> Launch<'s> {
    let mut env = spec.env.clone();
    if let Some(cell) = cell {
        env.set("TMPDIR", cell.folder.path());
        env.set("HOME", cell.folder.path());
        for name in ["TMPDIR", "HOME"] {
            if let Some(value) = spec.chosen.get(name) {
                env.set(name, value);
            }
        }
    }
    env.set("HARNESS_CALL_ID", cx.call.id.as_str());
    env.set("HARNESS_IDEMPOTENCY_KEY", cx.idempotency_key());
    let kept_of_stderr = spec.max_output.min(CommandSpec::MAX_STDERR);
    let limits = Limits::new(time).grace(spec.grace).kept(spec.max_output, kept_of_stderr);
    let launch = Launch::new(&spec.program, &spec.args, env, limits)
        .cwd(spec.cwd.as_deref())
        .sandbox(cell.map(|cell| &cell.sandbox));
    match spec.input {
        // The line break lets a shell script `read` it.
        Input::JsonStdin => launch.stdin(format!("{}\n", cx.call.arguments.text())),
        Input::None => launch,
    }
}

/// Runs a program whose exit code is for the model to judge.
pub(crate) async fn run_shell(spec: &CommandSpec, clock: Option<&dyn Clock>, cx: &ToolCx) -> ToolOutcome {
    let program = spec.program.to_string_lossy();
    if cx.cancel.is_cancelled() {
        return answer::not_wanted(&program);
    }
    let limit = TimeLimit::of(spec.timeout, clock, cx);
    if limit.span().is_zero() {
        return answer::too_late(&program);
    }
    tracing::debug!(tool = %cx.call.name, call = %cx.call.id, program = %program, "starts a program");
    let cell = match Cell::of(spec).await {
        Ok(cell) => cell,
        Err(refused) => return refused,
    };
    let ended =
        harness_host::process::run(launch(spec, cell.as_ref(), cx, limit.span()), cx.cancel.cancelled())
            .await;
    Cell::close(cell).await;
    match ended {
        Ok(ended) => answer::any_exit(&program, limit, &ended),
        Err(error) => answer::spawn_error(spec, &error),
    }
}

impl Tool for CommandTool {
    fn def(&self) -> &ToolDef {
        &self.def
    }

    fn check(&self, arguments: &Json) -> Result<(), ArgumentFault> {
        if !arguments.is_object() {
            return Err(ArgumentFault::new("", format!("expected an object, found {}", kind_of(arguments))));
        }
        #[cfg(feature = "schema-validation")]
        if let Some(schema) = &self.schema {
            return schema.check(arguments);
        }
        Ok(())
    }

    async fn call(&self, cx: ToolCx) -> ToolOutcome {
        // The turn asks `check` only where a gate or an approval follows.
        if let Err(fault) = self.check(&cx.call.arguments) {
            return ToolOutcome::error(answer::INVALID_ARGUMENTS, fault.to_string());
        }
        if cx.cancel.is_cancelled() {
            return answer::not_wanted(&self.program());
        }
        let limit = self.time_limit(&cx);
        if limit.span().is_zero() {
            return answer::too_late(&self.program());
        }
        let cell = match Cell::of(&self.spec).await {
            Ok(cell) => cell,
            Err(refused) => return refused,
        };
        let launch = launch(&self.spec, cell.as_ref(), &cx, limit.span());
        tracing::debug!(tool = %self.def.name, call = %cx.call.id, program = %self.program(), "starts a program");
        let ended = harness_host::process::run(launch, cx.cancel.cancelled()).await;
        Cell::close(cell).await;
        match ended {
            Ok(ended) => answer::outcome(&self.program(), self.def.class, limit, &ended),
            Err(error) => answer::spawn_error(&self.spec, &error),
        }
    }
}

impl fmt::Debug for CommandTool {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("CommandTool")
            .field("def", &self.def)
            .field("spec", &self.spec)
            .finish_non_exhaustive()
    }
}

/// What bounds the time of a call.
#[derive(Clone, Copy, Debug)]
pub(crate) enum TimeLimit {
    /// The tool's own timeout.
    Timeout(Duration),
    /// What is left until the turn's deadline.
    Deadline(Duration),
}

impl TimeLimit {
    /// The nearer of a timeout and what a clock says is left of the turn.
    pub(crate) fn of(timeout: Duration, clock: Option<&dyn Clock>, cx: &ToolCx) -> Self {
        let left = match (clock, cx.deadline) {
            (Some(clock), Some(deadline)) => deadline.since(clock.now()).duration(),
            _ => timeout,
        };
        if left < timeout { Self::Deadline(left) } else { Self::Timeout(timeout) }
    }

    pub(crate) fn span(self) -> Duration {
        match self {
            Self::Timeout(span) | Self::Deadline(span) => span,
        }
    }
}

/// What a value is, for messages: `a list`.
pub(crate) fn kind_of(value: &Json) -> &'static str {
    match value.text().as_bytes().first() {
        Some(b'[') => "a list",
        Some(b'"') => "a text",
        Some(b't' | b'f') => "a boolean",
        Some(b'n') => "null",
        _ => "a number",
    }
}
