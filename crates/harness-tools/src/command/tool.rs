//! Tools that run a program.

use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use harness_core::Json;
use harness_core::port::Clock;
use harness_core::tool::{ArgumentFault, Tool, ToolCx, ToolDef, ToolOutcome};
use harness_host::process::{Ended, Launch, Limits, ProgramSpec, Sandbox};

use super::answer;
use crate::error::ToolsError;
#[cfg(feature = "schema-validation")]
use crate::schema::ArgumentSchema;

/// How a program receives the arguments of a call.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub enum Input {
    /// As one line of JSON on stdin.
    #[default]
    JsonStdin,
    /// Not at all; stdin is empty.
    None,
}

/// Program of a tool, with its limits.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub struct CommandSpec {
    /// Program. Its environment has `HARNESS_CALL_ID` and `HARNESS_IDEMPOTENCY_KEY` of the call, too.
    pub program: ProgramSpec,
    /// How it receives the arguments. Default [`Input::JsonStdin`].
    pub input: Input,
    /// Limits. Default 30 s, which must not be zero, and the defaults of [`Limits`].
    pub limits: Limits,
    /// Sandbox; `None`, the default, restricts nothing. In a sandbox each call has a private temporary
    /// directory, named by `TMPDIR` and `HOME` unless [`ProgramSpec::env`] sets them.
    pub sandbox: Option<Sandbox>,
}

impl CommandSpec {
    /// Creates a program with default limits.
    pub fn new(program: ProgramSpec) -> Self {
        let limits = Limits::new(Duration::from_secs(30));
        Self { program, input: Input::JsonStdin, limits, sandbox: None }
    }

    /// Sets how it receives the arguments.
    #[must_use]
    pub fn input(mut self, input: Input) -> Self {
        self.input = input;
        self
    }

    /// Applies the limits of an entry. Of stderr no more is kept than of stdout.
    pub(crate) fn limit(&mut self, time: Option<Duration>, max_output: Option<usize>) {
        let limits = &mut self.limits;
        limits.time = time.unwrap_or(limits.time);
        limits.stdout = max_output.unwrap_or(limits.stdout);
        limits.stderr = limits.stderr.min(limits.stdout);
    }
}

/// A tool that runs a program for each call.
///
/// The [crate's documentation](crate) describes the input of the program and its result. A failing program
/// is a failed *result* with one of these codes, never an error of the turn:
///
/// | code | status | meaning |
/// |---|---|---|
/// | `invalid_arguments` | failed | the arguments are not an object, or do not match the schema; nothing was started |
/// | `spawn_error` | failed | the program could not be started |
/// | `nonzero_exit` | failed | its exit code is not 0 |
/// | `killed_by_signal` | failed | it was killed by a signal from elsewhere |
/// | `binary_output` | failed | it exited with code 0, and stdout is not UTF-8 text |
/// | `too_much_output` | failed | it printed more than [`MAX_PRINTED`](harness_host::process::MAX_PRINTED) and was stopped |
/// | `timeout` | timeout | it was stopped at its time limit, or at the turn's deadline |
/// | `cancelled` | cancelled | it was stopped, or not started, because `cx.cancel` fired |
///
/// Dropping a running call kills the program and its process group.
///
/// ```
/// use std::sync::Arc;
///
/// use harness_core::Json;
/// use harness_core::message::ToolCall;
/// use harness_core::tool::{Tool, ToolCx, ToolDef};
/// use harness_host::process::ProgramSpec;
/// use harness_tools::{CommandSpec, CommandTool, Input};
///
/// let program = ProgramSpec::new("/bin/sh").args(["-c", "echo out of stock; exit 3"]);
/// let spec = CommandSpec::new(program).input(Input::None);
/// let tool = CommandTool::new(ToolDef::new("stock", "Tells what is in stock"), spec)?;
/// # tokio::runtime::Builder::new_current_thread().enable_all().build()?.block_on(async {
/// let call = Arc::new(ToolCall::new("call-1", "stock", Json::empty_object()));
/// let outcome = tool.call(ToolCx::for_call(call)).await;
/// assert_eq!(outcome.exit_code, Some(3));
/// assert_eq!(outcome.error.map(|e| e.code).as_deref(), Some("nonzero_exit"));
/// # });
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Clone, derive_more::Debug)]
pub struct CommandTool {
    def: ToolDef,
    spec: CommandSpec,
    #[debug(skip)]
    clock: Option<Arc<dyn Clock>>,
    #[cfg(feature = "schema-validation")]
    #[debug(skip)]
    schema: Option<ArgumentSchema>,
}

impl CommandTool {
    /// Creates a tool that runs `spec`.
    ///
    /// # Errors
    /// With the feature `schema-validation`: [`ToolsError::Schema`] if `def.input_schema` is not a valid
    /// JSON Schema.
    pub fn new(def: ToolDef, spec: CommandSpec) -> Result<Self, ToolsError> {
        Ok(Self {
            #[cfg(feature = "schema-validation")]
            schema: ArgumentSchema::of_tool(&def)?,
            def,
            spec,
            clock: None,
        })
    }

    /// Sets the clock by which calls stop at the deadline of the turn.
    ///
    /// Without the driver's clock, the driver cancels the call at the deadline, and the code of the result is
    /// `cancelled`.
    #[must_use]
    pub fn with_clock(mut self, clock: Arc<dyn Clock>) -> Self {
        self.clock = Some(clock);
        self
    }

    /// Program of the tool.
    pub fn spec(&self) -> &CommandSpec {
        &self.spec
    }
}

/// Sandbox of one call, with its private temporary directory.
struct Cell {
    sandbox: Sandbox,
    folder: tempfile::TempDir,
}

impl Cell {
    /// The cell of a program; `None` without a sandbox.
    ///
    /// # Errors
    /// The result of the call if this machine cannot sandbox programs.
    async fn of(spec: &CommandSpec) -> Result<Option<Self>, ToolOutcome> {
        let Some(sandbox) = spec.sandbox.clone() else { return Ok(None) };
        let program = PathBuf::from(&spec.program.path);
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

    /// Removes the directory, which may be large.
    async fn close(cell: Option<Self>) {
        if let Some(cell) = cell {
            // Files that cannot be removed stay in the system's temporary directory.
            let _ = tokio::task::spawn_blocking(move || cell.folder.close()).await;
        }
    }
}

/// The program as it is started for a call.
fn launch<'s>(spec: &CommandSpec, cell: Option<&'s Cell>, cx: &ToolCx, time: Duration) -> Launch<'s> {
    let mut program = spec.program.clone();
    if let Some(cell) = cell {
        program.passed.set("TMPDIR", cell.folder.path());
        program.passed.set("HOME", cell.folder.path());
    }
    program.env.set("HARNESS_CALL_ID", cx.call.id.as_str());
    program.env.set("HARNESS_IDEMPOTENCY_KEY", cx.idempotency_key());
    let mut limits = spec.limits;
    limits.time = time;
    let launch = Launch::new(program, limits).sandbox(cell.map(|cell| &cell.sandbox));
    match spec.input {
        // The line break lets a shell script `read` it.
        Input::JsonStdin => launch.stdin(format!("{}\n", cx.call.arguments.text())),
        Input::None => launch,
    }
}

/// Runs a program whose exit code the model interprets.
pub(crate) async fn run_shell(spec: &CommandSpec, clock: Option<&dyn Clock>, cx: &ToolCx) -> ToolOutcome {
    match run(spec, clock, cx).await {
        Ok((limit, ended)) => answer::any_exit(&spec.program.name(), limit, &ended),
        Err(outcome) => outcome,
    }
}

/// Runs a program to its end.
///
/// # Errors
/// The result of the call if the program was not started.
async fn run(
    spec: &CommandSpec,
    clock: Option<&dyn Clock>,
    cx: &ToolCx,
) -> Result<(TimeLimit, Ended), ToolOutcome> {
    let program = spec.program.name();
    if cx.cancel.is_cancelled() {
        return Err(answer::cancelled(&program));
    }
    let limit = TimeLimit::of(spec.limits.time, clock, cx);
    if limit.span().is_zero() {
        return Err(answer::too_late(&program));
    }
    let cell = Cell::of(spec).await?;
    tracing::debug!(tool = %cx.call.name, call = %cx.call.id, program = %program, "starting a program");
    let launch = launch(spec, cell.as_ref(), cx, limit.span());
    let ended = harness_host::process::run(launch, cx.cancel.cancelled()).await;
    Cell::close(cell).await;
    ended.map(|ended| (limit, ended)).map_err(|error| answer::spawn_error(&spec.program, &error))
}

impl Tool for CommandTool {
    fn def(&self) -> &ToolDef {
        &self.def
    }

    fn check(&self, arguments: &Json) -> Result<(), ArgumentFault> {
        if !arguments.is_object() {
            return Err(ArgumentFault::new("", format!("expected an object, not {}", kind_of(arguments))));
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
        let program = self.spec.program.name();
        match run(&self.spec, self.clock.as_deref(), &cx).await {
            Ok((limit, ended)) => answer::outcome(&program, self.def.class, limit, &ended),
            Err(outcome) => outcome,
        }
    }
}

/// Time limit of a call.
#[derive(Clone, Copy, Debug)]
pub(crate) enum TimeLimit {
    /// Time limit of the tool.
    Timeout(Duration),
    /// Time until the turn's deadline.
    Deadline(Duration),
}

impl TimeLimit {
    /// The smaller of a timeout and the time until the turn's deadline.
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

/// Kind of a value for messages, such as `a list`.
pub(crate) fn kind_of(value: &Json) -> &'static str {
    match value.text().as_bytes().first() {
        Some(b'[') => "a list",
        Some(b'"') => "a string",
        Some(b't' | b'f') => "a boolean",
        Some(b'n') => "null",
        _ => "a number",
    }
}
