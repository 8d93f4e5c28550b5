//! The command line.

mod acp;
mod agents;
mod approvals;
mod backend;
mod bridge;
mod chat;
mod descriptor;
mod descriptors;
mod dev;
mod doctor;
mod engine;
mod folders;
mod help;
#[cfg(test)]
mod page;
mod records;
mod resume;
mod serve;
mod session;
mod spans;
mod threads;
mod tools;
mod until;
mod values;
mod worker;

use std::path::PathBuf;

use clap::{Args, FromArgMatches as _, Parser, Subcommand, ValueEnum, ValueHint};
use harness::core::Millis;
use harness::core::message::Cost;
use harness::descriptor::CompactionPreset;

pub(crate) use acp::AcpArgs;
pub(crate) use agents::AgentArgs;
pub(crate) use approvals::ApprovalArgs;
pub(crate) use backend::{BackendArg, BackendArgs};
pub(crate) use bridge::{BridgeArgs, BrokerArgs};
pub(crate) use chat::{ChatArgs, Color};
pub(crate) use descriptor::DescriptorArg;
pub(crate) use descriptors::{
    CheckArgs, CompletionsArgs, DiffArgs, GraphArgs, GraphFormat, HashArgs, ManArgs, NewArgs, SchemaArgs,
    ShowArgs,
};
pub(crate) use dev::DevArgs;
#[cfg(feature = "restate")]
pub(crate) use dev::{ClusterArgs, DevVerb};
pub(crate) use doctor::DoctorArgs;
#[cfg(feature = "restate")]
pub(crate) use engine::{
    AdminArg, EngineRegisterArgs, EngineResumeArgs, EngineSettleArgs, EngineStatusArgs, EngineVerb,
};
pub(crate) use engine::{EngineArgs, EngineCommandArgs};
pub(crate) use folders::{SkillArgs, TemplateArgs};
pub(crate) use help::command;
pub(crate) use records::{
    InspectArgs, LiveArgs, Mode, RegressArgs, ReplayArgs, RunRecordArgs, ThreadRecordArgs,
};
pub(crate) use resume::ResumeArgs;
pub(crate) use serve::ServeArgs;
pub(crate) use session::{
    CompactArgs, ExportArgs, ExportFormat, ForkArgs, KeyArgs, LabelArgs, ListArgs, RepairArgs, SearchArgs,
    SessionArgs, SessionVerb, ShowSessionArgs,
};
pub(crate) use spans::SpanArgs;
pub(crate) use threads::ThreadArgs;
pub(crate) use tools::{InputArg, ToolsArgs};
pub(crate) use until::{ModeArg, UntilArgs};
pub(crate) use values::{ContextArg, MessageArg, time};
pub(crate) use worker::WorkerArgs;

use crate::env;
use crate::exit::Exit;

/// Run LLM agents that are bounded, streamed and resumable
#[derive(Debug, Parser)]
#[command(name = "harness", version, help_template = help::template(), after_help = help::EXAMPLES, max_term_width = 100)]
pub(crate) struct Cli {
    #[command(subcommand)]
    pub(crate) command: Command,

    /// Set the log filter: a level (error, warn, info, debug, trace), or for example
    /// harness_adapters=debug
    #[arg(long, global = true, value_name = "FILTER", env = env::LOG, hide_env_values = true)]
    pub(crate) log: Option<String>,

    /// Encrypt new sessions with the key in this file, and open encrypted ones with it
    #[arg(long, global = true, value_name = "FILE", env = env::SESSION_KEY, hide_env_values = true, value_hint = ValueHint::FilePath)]
    pub(crate) session_key: Option<PathBuf>,

    /// Print without colors, like a non-empty `NO_COLOR`
    #[arg(long, global = true)]
    pub(crate) no_color: bool,

    /// Print long texts without a pager
    #[arg(long, global = true)]
    pub(crate) no_pager: bool,
}

impl Cli {
    /// The program's arguments, with the help of all commands.
    pub(crate) fn of_process() -> Result<Self, clap::Error> {
        let matches = help::command().try_get_matches()?;
        serve::check(&matches)?;
        Self::from_arg_matches(&matches)
    }
}

#[derive(Debug, Subcommand)]
pub(crate) enum Command {
    /// Run an agent graph and print the answer
    Run(Box<RunArgs>),
    /// Chat with an agent or a model in the terminal
    Chat(Box<ChatArgs>),
    /// Resume a stopped or interrupted run
    Resume(Box<ResumeArgs>),
    /// Validate descriptors, registries and contracts
    Check(CheckArgs),
    /// Print the hash of a descriptor
    Hash(HashArgs),
    /// Print a resolved descriptor or agent
    Show(ShowArgs),
    /// Print the agent graph as Mermaid or DOT
    Graph(GraphArgs),
    /// Compare two descriptors
    Diff(DiffArgs),
    /// Print the descriptor JSON Schema
    Schema(SchemaArgs),
    /// Create a descriptor with a tool and a README
    New(NewArgs),
    /// Replay a recorded run and compare the results
    Replay(Box<ReplayArgs>),
    /// Run a suite of recorded runs
    Regress(RegressArgs),
    /// Show a run record as text or HTML
    Inspect(InspectArgs),
    /// Serve threads over HTTP
    Serve(Box<ServeArgs>),
    /// Run threads of a durable engine, as one of many workers
    Worker(Box<WorkerArgs>),
    /// Look after runs on a durable engine
    Engine(EngineCommandArgs),
    /// Try parts of harness on this machine
    Dev(DevArgs),
    /// List, search, show, export, fork, label, compact and repair sessions
    Session(SessionArgs),
    /// List the tools in a registry, or call one
    Tools(ToolsArgs),
    /// Check API keys, endpoints, agents and files
    Doctor(DoctorArgs),
    /// Run as an ACP agent for editors
    Acp(Box<AcpArgs>),
    /// Run as an Agent Relay worker
    Bridge(BridgeArgs),
    /// Generate shell completions
    Completions(CompletionsArgs),
    /// Generate man pages
    Man(ManArgs),
}

impl Command {
    /// Trace options; `None` for commands that run no agent.
    pub(crate) fn spans(&self) -> Option<&SpanArgs> {
        match self {
            Self::Run(args) => Some(&args.options.spans),
            Self::Resume(args) => Some(&args.options.spans),
            Self::Chat(args) => Some(&args.threads.spans),
            Self::Serve(args) => Some(&args.threads.spans),
            Self::Acp(args) => Some(&args.threads.spans),
            Self::Check(_)
            | Self::Hash(_)
            | Self::Show(_)
            | Self::Graph(_)
            | Self::Diff(_)
            | Self::Schema(_)
            | Self::New(_)
            | Self::Replay(_)
            | Self::Regress(_)
            | Self::Inspect(_)
            | Self::Session(_)
            | Self::Tools(_)
            | Self::Doctor(_)
            | Self::Bridge(_)
            | Self::Worker(_)
            | Self::Engine(_)
            | Self::Dev(_)
            | Self::Completions(_)
            | Self::Man(_) => None,
        }
    }

    /// Whether the output is JSON, including errors.
    pub(crate) fn json(&self) -> bool {
        match self {
            Self::Run(args) => args.options.json,
            Self::Resume(args) => args.options.json,
            Self::Show(args) => args.json,
            Self::Check(args) => args.json,
            Self::Replay(args) => args.json,
            Self::Regress(args) => args.json,
            Self::Inspect(args) => args.json,
            Self::Hash(args) => args.json,
            Self::Diff(args) => args.json,
            Self::Tools(args) => args.json,
            Self::Session(args) => args.verb.json(),
            Self::Doctor(args) => args.json,
            Self::Engine(args) => args.verb.json(),
            Self::Acp(_)
            | Self::Chat(_)
            | Self::Bridge(_)
            | Self::Serve(_)
            | Self::Worker(_)
            | Self::Dev(_)
            | Self::Graph(_)
            | Self::Schema(_)
            | Self::New(_)
            | Self::Completions(_)
            | Self::Man(_) => false,
        }
    }
}

#[derive(Debug, Args)]
#[command(after_help = Exit::help(), after_long_help = run_notes())]
pub(crate) struct RunArgs {
    /// Descriptor file, or a directory with a `harness.yaml` [default: `harness.yaml` in the current or nearest
    /// parent directory]
    #[arg(value_hint = ValueHint::AnyPath)]
    pub(crate) descriptor: Option<PathBuf>,

    /// Message to send; `-`, or no message when standard input is not a terminal, reads standard input. A single
    /// argument that names no file is the message
    #[arg(conflicts_with = "resume")]
    pub(crate) message: Option<MessageArg>,

    /// Bind tools with this registry file [default: `registry.yaml` next to the descriptor]
    #[arg(long, value_name = "FILE", value_hint = ValueHint::FilePath)]
    pub(crate) registry: Option<PathBuf>,

    /// Store the session in this file, or as a thread of a database (chats.db#NAME), or continue the one it
    /// holds
    #[arg(long, value_name = "FILE", value_hint = ValueHint::FilePath)]
    pub(crate) session: Option<PathBuf>,

    /// Resume the session without a new message
    #[arg(long, requires = "session")]
    pub(crate) resume: bool,

    /// Resume even if the descriptor has changed
    #[arg(long, requires = "session")]
    pub(crate) allow_changed: bool,

    #[command(flatten)]
    pub(crate) options: RunOptions,
}

/// Options of `run` and `resume`.
#[derive(Clone, Debug, Args)]
pub(crate) struct RunOptions {
    /// Set a context value (customer.premium=true), or load values from a YAML or JSON file
    /// (repeatable)
    #[arg(long, value_name = "KEY=VALUE|FILE")]
    pub(crate) context: Vec<ContextArg>,

    /// Require an answer that matches the JSON Schema in this file
    #[arg(long, value_name = "FILE", value_hint = ValueHint::FilePath)]
    pub(crate) output_schema: Option<PathBuf>,

    #[command(flatten)]
    pub(crate) approvals: ApprovalArgs,

    #[command(flatten)]
    pub(crate) recorded: RunRecordArgs,

    /// Print one JSON event per line, and the result as the last line
    #[arg(long)]
    pub(crate) json: bool,

    /// Print only the answer, errors and the reason for an early stop
    #[arg(long, short)]
    pub(crate) quiet: bool,

    #[command(flatten)]
    pub(crate) model: ModelArgs,

    #[command(flatten)]
    pub(crate) backend: BackendArgs,

    #[command(flatten)]
    pub(crate) until: UntilArgs,

    #[command(flatten)]
    pub(crate) limits: LimitArgs,

    #[command(flatten)]
    pub(crate) view: ViewArgs,

    #[command(flatten)]
    pub(crate) spans: SpanArgs,
}

/// Options for what the model sees of a long conversation.
#[derive(Clone, Debug, Args)]
#[command(next_help_heading = "Memory")]
pub(crate) struct ViewArgs {
    /// Compact the model's view near its context window; the session keeps everything [default:
    /// off]
    #[arg(long, value_name = "HOW", value_parser = values::presets())]
    pub(crate) compact: Option<CompactionPreset>,

    /// Store facts in this file across runs; the model sees those that fit, and agents can
    /// remember, recall and forget
    #[arg(long, value_name = "FILE", value_hint = ValueHint::FilePath)]
    pub(crate) memory: Option<PathBuf>,

    /// Set the model's context window in tokens, for --compact and --memory [default: that of the model in
    /// the registry file, or else 128000]
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u64).range(1_000..))]
    pub(crate) window: Option<u64>,
}

impl ViewArgs {
    /// The context window: as set, else as `declared` for the model.
    pub(crate) fn window(&self, declared: Option<u64>) -> u64 {
        self.window.or(declared).unwrap_or(DEFAULT_WINDOW)
    }
}

/// Context window in tokens of a model whose window is not known.
pub(crate) const DEFAULT_WINDOW: u64 = 128_000;

/// Options of the model.
#[derive(Clone, Debug, Args)]
#[command(next_help_heading = "Model")]
pub(crate) struct ModelArgs {
    /// Use this model for every agent: a model of the registry file, anthropic/NAME, openai/NAME,
    /// openai-responses/NAME, ollama/NAME, lmstudio/NAME, or an OpenRouter name; with --backend, the
    /// backend's own model name
    #[arg(long, value_name = "PROVIDER/MODEL")]
    pub(crate) model: Option<String>,

    /// Read API keys from this file, which must be private [default: the environment, then
    /// ~/.config/harness/keys.yaml]
    #[arg(long, value_name = "FILE", value_hint = ValueHint::FilePath)]
    pub(crate) keys: Option<PathBuf>,

    /// Send all requests to this OpenAI-compatible endpoint, for example http://localhost:11434/v1;
    /// its API key is read from HARNESS_API_KEY
    #[arg(long, value_name = "URL", value_hint = ValueHint::Url)]
    pub(crate) base_url: Option<String>,

    /// Record all model requests and responses in this file; with --replay, convert the recording
    /// to the newest format
    #[arg(long, value_name = "FILE", value_hint = ValueHint::FilePath)]
    pub(crate) record: Option<PathBuf>,

    /// Use the responses recorded by --record, without a network
    #[arg(long, value_name = "FILE", conflicts_with_all = ["model", "base_url"], value_hint = ValueHint::FilePath)]
    pub(crate) replay: Option<PathBuf>,
}

/// Limits of a run.
#[derive(Clone, Debug, Args)]
#[command(next_help_heading = "Limits")]
pub(crate) struct LimitArgs {
    /// Limit the turns of a run that continues until the work is done; one turn has several iterations
    /// [default: the descriptor's, or else 50]
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u32).range(1..))]
    pub(crate) max_turns: Option<u32>,

    /// Limit the iterations, each one model call of the agent with its tool calls [default: max_iterations of
    /// the descriptor, or else 32]
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u32).range(1..))]
    pub(crate) max_iterations: Option<u32>,

    /// Limit the tool calls [default: 128]
    #[arg(long, value_name = "N")]
    pub(crate) max_tool_calls: Option<u32>,

    /// Limit the tokens of all model calls, input and output together [default: 4000000]. No call
    /// starts if the rest is smaller than the last call; a call in flight may exceed the limit.
    /// Tokens that no provider reports are estimated
    #[arg(long, value_name = "N")]
    pub(crate) max_tokens: Option<u64>,

    /// Limit the cost reported by the provider, for example 0.25 [default: 20]. Reserved and
    /// charged like tokens; without a reported cost or a known price it has no effect, and a
    /// warning is printed
    #[arg(long, value_name = "AMOUNT")]
    pub(crate) max_cost: Option<Cost>,

    /// Limit the duration of the run, for example 90s, 5m or 1h [default: 30m]
    #[arg(long, value_name = "TIME", value_parser = values::time)]
    pub(crate) timeout: Option<Millis>,
}

/// How to decide a call that needs approval.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub(crate) enum Approve {
    /// Prompt on the terminal; without one, stop and wait
    Ask,
    /// Approve every call
    Always,
    /// Deny every call and inform the model
    Never,
}

fn run_notes() -> String {
    format!(
        "A single argument is the descriptor if it exists, ends in .yaml, .yml or .json, or has a path separator \
         and no space; otherwise it is the message. {SECURITY}\n\n\
         The answer goes to standard output, everything else to standard error. The name of a \
         model selects its provider: anthropic/NAME and openai/NAME if {ANTHROPIC} or \
         {OPENAI} is set, ollama/NAME a local server, and OpenRouter with {OPENROUTER} for all others. \
         Without an API key, a rule-based demo model answers and calls tools with matching names. \
         --model demo selects it, demo/slow is slow, demo/fail fails; the message `call TOOL {{\"a\": 1}}` makes it call \
         exactly that.\n\n\
         Ctrl-C stops the run and saves the session; a second Ctrl-C exits immediately.\n\n{codes}",
        ANTHROPIC = env::ANTHROPIC_KEY,
        OPENAI = env::OPENAI_KEY,
        OPENROUTER = env::OPENROUTER_KEY,
        codes = Exit::help(),
        SECURITY = descriptor::SECURITY,
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_command_line_is_consistent() {
        use clap::CommandFactory as _;
        Cli::command().debug_assert();
    }

    #[test]
    fn the_limits_in_the_help_are_the_defaults() {
        let limits = harness::core::limits::Limits::default();
        assert_eq!((limits.iterations, limits.tool_calls, limits.tokens), (32, 128, 4_000_000));
        assert_eq!(limits.elapsed, Some(Millis(30 * 60_000)));
        assert_eq!(limits.cost.to_string(), "20");
    }
}
