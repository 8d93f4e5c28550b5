//! A tool that runs a command line.

use std::path::{Component, Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use harness_core::Json;
use harness_core::port::Clock;
use harness_core::tool::{ArgumentFault, Tool, ToolCx, ToolDef, ToolOutcome};
use harness_host::process::{ProgramSpec, Sandbox};
use serde_json::{Value, json};

use super::hazards::name_of;
use super::policy::ShellPolicy;
use crate::arguments::{Arguments, Refused, refusal};
use crate::command::{CommandSpec, run_shell};

/// The longest command line, in bytes: 32 KiB.
const MOST_COMMAND: usize = 32 * 1024;

/// The tool `shell`: runs a command line that its [`ShellPolicy`] allows, without a shell.
///
/// The program leads a process group. At its time limit and on cancellation the whole group gets SIGTERM,
/// then SIGKILL; earlier output is kept. Long output keeps its start and end. The environment has only the
/// variables of [`PASSED`](harness_host::process::PASSED) and those that are set; stdin is empty. An exit code
/// other than 0 is a *success* with that code, because a search without a match is not a failure. Each call
/// requires approval unless [`ShellTool::without_approval`] is called.
///
/// Commands run in a [`Sandbox`]: they may change their directory and a private temporary directory, read
/// these and the [system directories](harness_host::process::SYSTEM_FOLDERS), and have no network.
/// [`ShellTool::sandbox`] sets a different one. On a machine that cannot sandbox programs, no command runs
/// unless [`ShellTool::without_sandbox`] is called.
///
/// | code | status | meaning |
/// |---|---|---|
/// | `invalid_input` | failed | an argument is missing, has the wrong type, or is too long |
/// | `sandbox_unavailable` | failed | this machine cannot sandbox programs; nothing was started |
/// | `command_not_allowed` | failed | the policy does not allow the command, or it is not a plain command |
/// | `spawn_error` | failed | the program could not be started |
/// | `killed_by_signal` | failed | it was killed by a signal from elsewhere |
/// | `too_much_output` | failed | it printed more than [`MAX_PRINTED`](harness_host::process::MAX_PRINTED) and was stopped |
/// | `timeout` | timeout | it was stopped at its time limit, or at the turn's deadline |
/// | `cancelled` | cancelled | it was stopped, or not started, because `cx.cancel` fired |
///
/// ```
/// use std::sync::Arc;
///
/// use harness_core::Json;
/// use harness_core::message::ToolCall;
/// use harness_core::tool::{Tool, ToolCx};
/// use harness_host::process::Environment;
/// use harness_tools::{ShellPolicy, ShellTool};
///
/// # let surroundings = Environment::from_iter([("PATH", "/usr/bin:/bin")]);
/// let tool = ShellTool::new(ShellPolicy::allowing(["echo", "false"])?, ".").env_from(&surroundings);
/// // So that the example runs on every system.
/// let tool = tool.without_sandbox();
/// # tokio::runtime::Builder::new_current_thread().enable_all().build()?.block_on(async {
/// let arguments = Json::parse(r#"{"command":"echo 'a; b'"}"#)?;
/// let outcome = tool.call(ToolCx::for_call(Arc::new(ToolCall::new("c", "shell", arguments)))).await;
/// assert_eq!(outcome.content[0].as_text(), Some("a; b"));
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// # })?;
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Clone, derive_more::Debug)]
pub struct ShellTool {
    def: ToolDef,
    policy: ShellPolicy,
    folder: PathBuf,
    /// Environment, limits and sandbox of commands. Give them no variable that holds a secret: a model may read what a
    /// program prints. Default sandbox: the working directory is writable, and there is no network.
    #[debug(skip)]
    pub spec: CommandSpec,
    #[debug(skip)]
    clock: Option<Arc<dyn Clock>>,
}

impl ShellTool {
    /// Creates a tool whose commands run in `folder`, with an empty environment.
    pub fn new(policy: ShellPolicy, folder: impl Into<PathBuf>) -> Self {
        let schema = json!({
            "type": "object",
            "required": ["command"],
            "properties": {
                "command": command_schema(),
                "cwd": {
                    "type": "string",
                    "description": "Working directory, inside the default one. Default: the default one.",
                },
            },
        });
        let description = "Runs a command and gives what it prints and its exit code.";
        let mut def = ToolDef::new("shell", description).with_schema(schema.into());
        def.requires_approval = true;
        def.sequential = true;
        let folder = folder.into();
        let sandbox = Sandbox::new().writing(&folder);
        let mut spec = CommandSpec::new(ProgramSpec::new("")).input(crate::command::Input::None);
        spec.sandbox = Some(sandbox);
        Self { def, policy, folder, spec, clock: None }
    }

    /// Sets the name and description.
    #[must_use]
    pub fn named(mut self, name: &str, description: Option<&str>) -> Self {
        self.def.name = name.into();
        if let Some(description) = description {
            self.def.description = description.into();
        }
        self
    }

    /// Lets commands run without approval.
    #[must_use]
    pub fn without_approval(mut self) -> Self {
        self.def.requires_approval = false;
        self
    }

    /// With the variables of [`PASSED`](harness_host::process::PASSED) that `surroundings` has.
    #[must_use]
    pub fn env_from(mut self, surroundings: &harness_host::process::Environment) -> Self {
        self.spec.program = self.spec.program.pass(surroundings, []);
        self
    }

    /// Sets the sandbox. Default: the working directory is writable, and there is no network.
    #[must_use]
    pub fn sandbox(mut self, sandbox: Sandbox) -> Self {
        self.spec.sandbox = Some(sandbox);
        self
    }

    /// Without a sandbox: a command can do whatever this process can.
    #[must_use]
    pub fn without_sandbox(mut self) -> Self {
        self.spec.sandbox = None;
        self
    }

    /// Sets the time limit. Default 30 s.
    #[must_use]
    pub fn timeout(mut self, span: Duration) -> Self {
        self.spec.limits.time = span;
        self
    }

    /// Sets the clock, as [`CommandTool::with_clock`](crate::CommandTool::with_clock).
    #[must_use]
    pub fn with_clock(mut self, clock: Arc<dyn Clock>) -> Self {
        self.clock = Some(clock);
        self
    }

    /// Working directory of commands.
    pub fn folder(&self) -> &Path {
        &self.folder
    }

    fn ask(arguments: &Json) -> Result<(String, PathBuf), Refused> {
        let arguments = Arguments::of(arguments)?;
        let text = |key: &str| arguments.get(key).and_then(Value::as_str);
        let command =
            text("command").ok_or_else(|| Refused::new("command", "input.command must be a string"))?;
        if command.len() > MOST_COMMAND {
            let bytes = command.len();
            let problem = format!("input.command has {bytes} bytes; it may have {MOST_COMMAND}");
            return Err(Refused::new("command", problem));
        }
        let folder = match arguments.get("cwd") {
            None => PathBuf::new(),
            Some(_) => inside(text("cwd").unwrap_or(".."))
                .ok_or_else(|| Refused::new("cwd", "input.cwd must be a directory inside the default one"))?,
        };
        Ok((command.to_owned(), folder))
    }
}

/// The schema of the argument `command`, by which a call of this tool is known.
pub(super) fn command_schema() -> Value {
    json!({
        "type": "string",
        "minLength": 1,
        "description": "A program and its arguments. There is no shell: quotes work, pipes, lists, redirections, \
                        variables and patterns do not.",
    })
}

/// A path that stays below where it starts, by its names.
fn inside(path: &str) -> Option<PathBuf> {
    let path = Path::new(path);
    let stays = path.components().all(|part| matches!(part, Component::Normal(_) | Component::CurDir));
    (stays && !path.as_os_str().as_encoded_bytes().contains(&0)).then(|| path.to_owned())
}

impl Tool for ShellTool {
    fn def(&self) -> &ToolDef {
        &self.def
    }

    fn check(&self, arguments: &Json) -> Result<(), ArgumentFault> {
        // Whether a command is allowed is the policy's answer, and no fault of the arguments; but nobody is
        // asked to approve what would be refused afterwards.
        let (command, _) = Self::ask(arguments)?;
        self.policy.check(&command).map(|_| ()).map_err(|e| ArgumentFault::new("command", e.to_string()))
    }

    async fn call(&self, cx: ToolCx) -> ToolOutcome {
        let (command, folder) = match Self::ask(&cx.call.arguments) {
            Ok(asked) => asked,
            Err(refused) => return refused.outcome(),
        };
        let words = match self.policy.check(&command) {
            Ok(words) => words,
            Err(why) => return refusal("command_not_allowed", why.to_string()),
        };
        let folder = match real(&self.folder, &folder) {
            Ok(folder) => folder,
            Err(problem) => return refusal("invalid_input", problem),
        };
        let mut words = words.into_iter();
        let mut spec = self.spec.clone();
        let program = words.next().unwrap_or_default();
        if name_of(&program) == "git" {
            explicit_repositories(&mut spec.program);
        }
        spec.program.path = program.into();
        spec.program = spec.program.args(words).cwd(folder);
        run_shell(&spec, self.clock.as_deref(), &cx).await
    }
}

/// Makes git ignore directories that only look like a bare repository: a model can create one from files
/// (`HEAD`, `config`, `objects`), and its configuration decides what git runs. Configuration of the host in
/// the environment is kept.
fn explicit_repositories(program: &mut ProgramSpec) {
    if program.environment().get("GIT_CONFIG_COUNT").is_none() {
        program.env.set("GIT_CONFIG_COUNT", "1");
        program.env.set("GIT_CONFIG_KEY_0", "safe.bareRepository");
        program.env.set("GIT_CONFIG_VALUE_0", "explicit");
    }
}

/// Working directory with links resolved, because a link may lead outside.
fn real(root: &Path, below: &Path) -> Result<PathBuf, String> {
    if below.as_os_str().is_empty() {
        return Ok(root.to_owned());
    }
    let shown = below.display();
    let resolved = root.canonicalize().and_then(|root| Ok((root.join(below).canonicalize()?, root)));
    match resolved {
        Ok((folder, root)) if folder.starts_with(&root) && folder.is_dir() => Ok(folder),
        Ok(_) => Err(format!("input.cwd `{shown}` is not a directory inside the default one")),
        Err(error) => Err(format!("input.cwd `{shown}` cannot be used: {error}")),
    }
}
