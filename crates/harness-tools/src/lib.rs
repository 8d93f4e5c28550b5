//! Tools for agents: files, commands, notes, your own programs, and the registry file that binds them.
//!
//! | tools | made by |
//! |---|---|
//! | search, list and read files | [`WorkspaceTools`] over a [`FolderWorkspace`] or a [`MemoryWorkspace`](harness_host::MemoryWorkspace) |
//! | write and edit files | [`FileEdits`] |
//! | run commands without a shell | [`ShellTool`] with a [`ShellPolicy`] |
//! | run your own program | [`CommandTool`] |
//! | keep a to-do list, or work items with their results | [`WorkTools`] |
//! | report that the work is complete | [`work_complete`] |
//! | delegate work to another agent | [`SubagentTool`] |
//! | delegate work to agents in the background | [`BackgroundAgents`] |
//! | plan before acting | [`Modes`] |
//! | prompt for one call at a time, and remember approvals | [`StandingApprovals`] |
//! | answer repeated calls | [`DuplicateGuard`], around any registry |
//!
//! [`SystemPrograms`] is not a tool: it runs command lines and programs for code of a host.
//!
//! All are ordinary [`Tool`](harness_core::tool::Tool)s with bounded input, output and time, for any turn.
//! The crate knows no descriptors, models or providers.
//!
//! A descriptor names *targets*; the registry file binds each of them to a tool.
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
//! All entries and keys are listed in `docs/reference/registry.md`. An entry of a program:
//!
//! ```yaml
//! version: 1                      # required
//! tools:
//!   orders.lookup:                # the descriptor's target
//!     command: ./lookup           # required: the program; a path is relative to this file
//!     name: lookup_order          # name for the model; default: made from the target
//!     description: Finds an order # for the model
//!     args: [--format, json]      # passed as they are: there is no shell
//!     input: json-stdin           # the arguments on stdin (default), or `none`
//!     timeout: 10s                # ms, s, m, h; default 30s, at most 1h
//!     max_output: 64KiB           # limit of stdout; default 64KiB, 256B to 16MiB
//!     cwd: .                      # relative to this file; default: the directory of this file
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
//! All errors of a file are reported at once, each with its line and column. In addition,
//! [`Registry::problems`] reports what this machine lacks (a program, a directory, a variable).
//!
//! # Input and result of a program
//!
//! - Its arguments are one line of JSON on stdin. Its environment has `HARNESS_CALL_ID`,
//!   `HARNESS_IDEMPOTENCY_KEY`, the variables of [`PASSED`](harness_host::process::PASSED) and those of
//!   `env_pass`, so API keys do not leak into every tool.
//! - Exit code 0: stdout is the result, which is also kept as data if it is a JSON object.
//! - Any other code is an *error result* (`nonzero_exit`) with the code, stderr and stdout; the turn
//!   continues. Code 75 (temporary failure) requests another attempt if the tool's class allows one.
//! - It leads a process group. At the time limit, on cancellation, and if it leaves children behind, the whole
//!   group gets SIGTERM, then SIGKILL; earlier output is kept. On Linux, in a host that calls
//!   [`supervise`](harness_host::process::supervise), all its descendants are stopped, too.
//! - Long output keeps its start and end, with the number of omitted bytes. A program that prints more than
//!   [`MAX_PRINTED`](harness_host::process::MAX_PRINTED) is stopped.
//!
//! # Features
//!
//! `schema-validation` checks arguments against the tool's JSON Schema before its program starts. Without it,
//! the schema is only sent to the model, and arguments must be an object.

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
pub use error::ToolsError;
pub use modes::{Mode, ModeCalls, ModeNotes, Modes, ThreadMode};
pub use programs::SystemPrograms;
pub use registry::{
    BudgetSetting, LayerKind, LayerScope, LayerSetting, MAX_FILE, MAX_OUTPUT, MAX_TIMEOUT, MIN_OUTPUT,
    MemorySetting, ModelAuth, ModelBreaker, ModelCache, ModelEndpoint, ModelEntry, ModelFallback, ModelKey,
    ModelPrice, ModelProtocol, ModelRate, ModelRetry, Registry, ReminderSetting, ReminderTrigger,
    RuleSetting, RuleTarget,
};
#[cfg(feature = "schema-validation")]
pub use schema::{ArgumentSchema, JsonSchemas, Validated};
pub use shell::{ShellCommand, ShellPolicy, ShellRefusal, ShellTool};
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
    FileEdits, FilePreview, FolderWorkspace, ProtectedFiles, SeenFiles, WorkspaceOptions, WorkspaceTools,
};

/// The code of the cookbook's page compiles.
#[cfg(doctest)]
#[doc = include_str!("../../../docs/cookbook/tools.md")]
struct Cookbook;
