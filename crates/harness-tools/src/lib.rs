//! Tools for agents: files, commands, notes, programs of yours, and the registry file that binds them.
//!
//! | tools | made by |
//! |---|---|
//! | search, list and read files | [`WorkspaceTools`] over a [`FolderWorkspace`] or a [`MemoryWorkspace`](harness_host::MemoryWorkspace) |
//! | write and edit files | [`FileEdits`] |
//! | run commands without a shell | [`ShellTool`] with a [`ShellPolicy`] |
//! | run a program of yours | [`CommandTool`] |
//! | keep a to-do list, or work items with their results | [`WorkTools`] |
//! | say that the work is done | [`work_complete`] |
//! | give work to another agent | [`SubagentTool`] |
//! | give work to agents that go on in the background | [`BackgroundAgents`] |
//! | plan before acting | [`Modes`] |
//! | ask a person about one call at a time, and keep the answer | [`StandingApprovals`] |
//! | answer calls that were made before | [`DuplicateGuard`], around any registry |
//!
//! [`SystemPrograms`] is no tool: through it code of a host runs command lines and programs.
//!
//! All are ordinary [`Tool`](harness_core::tool::Tool)s, bounded in input, output and time, that any turn
//! can use. The crate knows nothing of descriptors, models or providers, and needs only `harness-core`.
//!
//! A descriptor names *targets*; the registry file says which tool stands behind each of them.
//!
//! ```
//! use std::path::Path;
//! use std::sync::Arc;
//!
//! use harness_core::Json;
//! use harness_core::message::ToolCall;
//! use harness_core::tool::ToolCx;
//! use harness_host::process::Environment;
//! use harness_tools::Registry;
//!
//! let file = r#"
//! version: 1
//! tools:
//!   text.upper:
//!     description: Upper-cases what it is given
//!     command: tr
//!     args: ["a-z", "A-Z"]
//!     timeout: 5s
//!     class: pure
//! "#;
//! # let environment = Environment::from_iter([("PATH", "/usr/bin:/bin")]);
//! # tokio::runtime::Builder::new_current_thread().enable_all().build()?.block_on(async {
//! let registry = Registry::parse(file, Path::new("tools.yaml"), &environment)?;
//! let tool = registry.get("text.upper")?;
//!
//! let call = ToolCall::new("call-1", "text_upper", Json::parse(r#"{"say":"hello"}"#)?);
//! let outcome = tool.call_boxed(ToolCx::for_call(Arc::new(call))).await;
//! assert_eq!(outcome.structured, Some(Json::parse(r#"{"SAY":"HELLO"}"#)?));
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! # })?;
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```
//!
//! # The registry file
//!
//! All entries and keys, those of the built-in tools too, stand in `docs/reference/registry.md`. An entry
//! of a program:
//!
//! ```yaml
//! version: 1                      # required
//! tools:
//!   orders.lookup:                # the descriptor's target
//!     command: ./lookup           # required: the program; a path is relative to this file
//!     name: lookup_order          # what the model calls it; default: made from the target
//!     description: Finds an order # for the model
//!     args: [--format, json]      # passed as they are: there is no shell
//!     input: json-stdin           # the arguments on stdin (default), or `none`
//!     timeout: 10s                # ms, s, m, h; default 30s, at most 1h
//!     max_output: 64KiB           # what is kept of stdout; default 64KiB, 256B to 16MiB
//!     cwd: .                      # relative to this file; default: this file's folder
//!     env: { MODE: read-only }    # fixed variables
//!     env_pass: [ORDERS_TOKEN]    # variables to pass on from the surrounding environment
//!     class: pure                 # pure, idempotent or unsafe (default)
//!     requires_approval: false
//!     sequential: false
//!     parameters:                 # JSON Schema of the arguments
//!       type: object
//!       properties: { number: { type: integer } }
//!       required: [number]
//! ```
//!
//! All faults of a file are reported at once, each with its line and column. Besides them,
//! [`Registry::problems`] tells what is missing on this machine (a program, a folder, a variable).
//!
//! # What a program is given, and what becomes of its answer
//!
//! - Its arguments as one line of JSON on stdin, `HARNESS_CALL_ID` and `HARNESS_IDEMPOTENCY_KEY` in its
//!   environment, and of the surrounding environment only [`PASSED`](harness_host::process::PASSED) and what `env_pass` names, so that
//!   keys and tokens do not leak into every tool.
//! - Exit code 0: stdout is the result, and if it is a JSON object it is kept as data, too.
//! - Any other code is an *error result* (`nonzero_exit`) with the code, stderr and stdout; the turn goes
//!   on. Code 75 (temporary failure) asks for another attempt, where the tool's class allows one.
//! - It leads a process group of its own. At the timeout, on cancellation, and when it leaves children
//!   behind, the whole group gets SIGTERM and soon after SIGKILL. What was printed until then is kept. In a
//!   host that calls [`supervise`](harness_host::process::supervise), on Linux, so does everything else that it started.
//! - Of long output the beginning and the end are kept, with the count of what was left out. A program
//!   that prints more than [`MAX_PRINTED`](harness_host::process::MAX_PRINTED) is stopped.
//!
//! # Features
//!
//! `schema-validation` checks arguments against the tool's JSON Schema before its program starts. Without
//! it a schema is passed on to the model, and of arguments only that they are an object is checked.

#[cfg(not(unix))]
compile_error!("harness-tools ends process groups by signals and needs a Unix system");

mod approval;
mod arguments;
mod background;
mod command;
mod duplicates;
mod error;
mod exact;
#[cfg(feature = "mcp")]
pub mod mcp;
mod modes;
mod near;
mod programs;
mod registry;
#[cfg(feature = "schema-validation")]
mod schema;
mod shell;
mod source;
mod state;
mod subagent;
mod surroundings;
mod tool_set;
mod turn_runner;
mod work;
mod workspace;

pub use approval::{ApprovalAnswer, ApprovalRule, Asker, DynAsker, Remember, StandingApprovals};
pub use background::{BackgroundAgents, TaskRecord, TaskStatus};
pub use command::{CommandSpec, CommandTool, Input};
pub use duplicates::{DuplicateGuard, DuplicateOptions};
pub use error::{Place, Problem, RegistryFault, ToolsError};
pub use modes::{Mode, ModeCalls, ModeNotes, Modes};
pub use programs::SystemPrograms;
pub use registry::{
    BudgetSetting, LayerKind, LayerScope, LayerSetting, MAX_FILE, MAX_OUTPUT, MAX_TIMEOUT, MIN_OUTPUT,
    MemorySetting, ModelAuth, ModelBreaker, ModelCache, ModelEndpoint, ModelEntry, ModelFallback, ModelKey,
    ModelPrice, ModelProtocol, ModelRate, ModelRetry, Registry, ReminderSetting, ReminderTrigger,
    RuleSetting, RuleTarget,
};
#[cfg(feature = "schema-validation")]
pub use schema::{ArgumentSchema, JsonSchemas, Validated};
pub use shell::{ShellPolicy, ShellRefusal, ShellTool};
pub use source::{Binding, Combined, Source};
pub use state::Keep;
pub use subagent::{
    DynSubagentRunner, Exchange, RunnerSlot, SUBAGENT_TOOLS, Subagent, SubagentAsk, SubagentCode,
    SubagentFault, SubagentReport, SubagentRunner, SubagentTool,
};
pub use surroundings::{Surroundings, SurroundingsPart, WithSurroundings};
pub use tool_set::ToolSet;
pub use turn_runner::TurnRunner;
pub use work::{WorkTools, work_complete};
pub use workspace::{
    FileEdits, FolderWorkspace, ProtectedFiles, SeenFiles, WorkspaceOptions, WorkspaceTools,
};

/// The code of the cookbook's page compiles.
#[cfg(doctest)]
#[doc = include_str!("../../../docs/cookbook/tools.md")]
struct Cookbook;
