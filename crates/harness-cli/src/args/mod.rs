//! The command line.

mod acp;
mod approvals;
mod backend;
mod bridge;
mod chat;
mod descriptor;
mod descriptors;
mod doctor;
mod folders;
mod records;
mod resume;
mod serve;
mod session;
mod spans;
mod threads;
mod tools;
mod until;
mod values;

use std::path::PathBuf;

use clap::{Args, Parser, Subcommand, ValueEnum, ValueHint};
use harness::core::Millis;
use harness::core::message::Cost;
use harness::descriptor::CompactionPreset;

pub(crate) use acp::AcpArgs;
pub(crate) use approvals::ApprovalArgs;
pub(crate) use backend::{BackendArg, BackendArgs};
pub(crate) use bridge::{BridgeArgs, BrokerArgs};
pub(crate) use chat::{ChatArgs, Color};
pub(crate) use descriptor::DescriptorArg;
pub(crate) use descriptors::{
    CheckArgs, CompletionsArgs, DiffArgs, GraphArgs, GraphFormat, HashArgs, NewArgs, SchemaArgs, ShowArgs,
};
pub(crate) use doctor::DoctorArgs;
pub(crate) use folders::{SkillArgs, TemplateArgs};
pub(crate) use records::{InspectArgs, LiveArgs, Mode, RegressArgs, ReplayArgs};
pub(crate) use resume::ResumeArgs;
pub(crate) use serve::ServeArgs;
pub(crate) use session::{
    CompactArgs, ExportArgs, ExportFormat, ForkArgs, LabelArgs, ListArgs, RepairArgs, SessionArgs,
    SessionVerb, ShowSessionArgs,
};
pub(crate) use spans::SpanArgs;
pub(crate) use threads::ThreadArgs;
pub(crate) use tools::{InputArg, ToolsArgs};
pub(crate) use until::{ModeArg, UntilArgs};
pub(crate) use values::{ContextArg, MessageArg, time};

use crate::env;
use crate::exit::Exit;

/// Runs agent graphs that are bounded, streamed, resumable and truthful about why they stopped.
#[derive(Debug, Parser)]
#[command(name = "harness", version, after_help = Exit::help(), max_term_width = 100)]
pub(crate) struct Cli {
    #[command(subcommand)]
    pub(crate) command: Command,

    /// Show logs on standard error: a level (error, warn, info, debug, trace) or a filter such as
    /// harness_adapters=debug
    #[arg(long, global = true, value_name = "LEVEL", env = env::LOG, hide_env_values = true)]
    pub(crate) log: Option<String>,
}

#[derive(Debug, Subcommand)]
pub(crate) enum Command {
    /// Run an agent graph with a message and print the answer
    Run(Box<RunArgs>),
    /// Talk with the agents of a descriptor, or with a model, at the terminal
    Chat(Box<ChatArgs>),
    /// Go on with a run that was deferred or interrupted, with new limits
    Resume(Box<ResumeArgs>),
    /// Find everything that is wrong with descriptors, their registries and contracts, with file, line and column
    Check(CheckArgs),
    /// Print the hash that names exactly this graph
    Hash(HashArgs),
    /// Print a descriptor with its prompts in place, or what one of its agents would get
    Show(ShowArgs),
    /// Print the graph as text for Mermaid or Graphviz, which make a picture of it
    Graph(GraphArgs),
    /// Tell what changed between two descriptors
    Diff(DiffArgs),
    /// Print the JSON Schema of descriptors, with which editors complete and check them
    Schema(SchemaArgs),
    /// Create a directory with a descriptor, a tool and a README
    New(NewArgs),
    /// Run a recorded run again and tell what differs
    Replay(Box<ReplayArgs>),
    /// Run a suite of recorded runs again and tell which of them changed
    Regress(RegressArgs),
    /// Show a run record as a page or as text: what happened, and why it ended
    Inspect(InspectArgs),
    /// Serve conversations over HTTP, with server-sent events
    Serve(Box<ServeArgs>),
    /// List, show, repair, compact, export, fork and label stored conversations
    Session(SessionArgs),
    /// List the tools in a registry, or call one
    Tools(ToolsArgs),
    /// Look at everything that runs need: keys, endpoints, files, the machine; tell what is wrong and what to do
    Doctor(DoctorArgs),
    /// Be an agent in an editor (Zed, JetBrains, Neovim), over the Agent Client Protocol
    Acp(Box<AcpArgs>),
    /// Be a worker behind an Agent Relay: answer requests with a local program
    Bridge(BridgeArgs),
    /// Print the script with which a shell completes commands and options
    Completions(CompletionsArgs),
}

impl Command {
    /// Where traces of its runs go; `None` for commands that run nothing.
    pub(crate) fn spans(&self) -> Option<&SpanArgs> {
        match self {
            Self::Run(args) => Some(&args.spans),
            Self::Resume(args) => Some(&args.spans),
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
            | Self::Completions(_) => None,
        }
    }

    /// Whether its output is for programs, faults included.
    pub(crate) fn json(&self) -> bool {
        match self {
            Self::Run(args) => args.json,
            Self::Resume(args) => args.json,
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
            Self::Acp(_)
            | Self::Chat(_)
            | Self::Bridge(_)
            | Self::Serve(_)
            | Self::Graph(_)
            | Self::Schema(_)
            | Self::New(_)
            | Self::Completions(_) => false,
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

    /// What the descriptor's tool targets are [default: registry.yaml beside the descriptor]
    #[arg(long, value_name = "FILE", value_hint = ValueHint::FilePath)]
    pub(crate) registry: Option<PathBuf>,

    /// Keep the conversation in this file, and go on with what it holds
    #[arg(long, value_name = "FILE", value_hint = ValueHint::FilePath)]
    pub(crate) session: Option<PathBuf>,

    /// Go on where the session stopped, without a new message
    #[arg(long, requires = "session")]
    pub(crate) resume: bool,

    /// Go on with the session although the descriptor has changed since it was begun
    #[arg(long, requires = "session")]
    pub(crate) allow_changed: bool,

    /// A value of the descriptor's context (customer.premium=true), or a YAML or JSON file of them;
    /// may be repeated
    #[arg(long, value_name = "KEY=VALUE|FILE")]
    pub(crate) context: Vec<ContextArg>,

    #[command(flatten)]
    pub(crate) approvals: ApprovalArgs,

    /// Write the record of the run to this file, for `harness inspect`, `replay` and `regress`
    #[arg(long, value_name = "FILE", value_hint = ValueHint::FilePath)]
    pub(crate) run_record: Option<PathBuf>,

    /// One event per line on standard output, the last line is the result
    #[arg(long)]
    pub(crate) json: bool,

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

/// What the model is shown of a long conversation.
#[derive(Clone, Debug, Args)]
#[command(next_help_heading = "Memory")]
pub(crate) struct ViewArgs {
    /// Show the model less when the conversation nears its context window; the session keeps everything
    /// [default: show it all]
    #[arg(long, value_name = "HOW", value_parser = values::presets())]
    pub(crate) compact: Option<CompactionPreset>,

    /// Keep facts from one run to the next in this file: those that fit are shown to the model, and agents
    /// may remember, recall and forget
    #[arg(long, value_name = "FILE", value_hint = ValueHint::FilePath)]
    pub(crate) memory: Option<PathBuf>,

    /// Tokens of the model's context window, for --compact and --memory
    #[arg(long, value_name = "N", default_value_t = 128_000, value_parser = clap::value_parser!(u64).range(1_000..))]
    pub(crate) window: u64,
}

/// Where answers come from.
#[derive(Clone, Debug, Args)]
#[command(next_help_heading = "Model")]
pub(crate) struct ModelArgs {
    /// Use this model for every agent instead of those that the descriptor names: anthropic/NAME, openai/NAME,
    /// ollama/NAME, lmstudio/NAME, or a name of OpenRouter; with --backend, the backend's own name for it
    #[arg(long, value_name = "PROVIDER/MODEL")]
    pub(crate) model: Option<String>,

    /// Take the keys of providers from this file, which only you may read [default: the environment, then
    /// ~/.config/harness/keys.yaml]
    #[arg(long, value_name = "FILE", value_hint = ValueHint::FilePath)]
    pub(crate) keys: Option<PathBuf>,

    /// An OpenAI-compatible endpoint for all models, for example http://localhost:11434/v1;
    /// its key, if it needs one, is read from HARNESS_API_KEY
    #[arg(long, value_name = "URL", value_hint = ValueHint::Url)]
    pub(crate) base_url: Option<String>,

    /// Write all requests and answers to this file; with --replay, those of the replay, in the newest form
    #[arg(long, value_name = "FILE", value_hint = ValueHint::FilePath)]
    pub(crate) record: Option<PathBuf>,

    /// Take the answers from a file that --record wrote; no network is used
    #[arg(long, value_name = "FILE", conflicts_with_all = ["model", "base_url"], value_hint = ValueHint::FilePath)]
    pub(crate) replay: Option<PathBuf>,
}

/// What the run may use at most.
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

    /// Limit the tokens of all model calls, input and output together [default: 4000000]. No call starts
    /// when the rest is smaller than the last call; a call in flight may exceed the limit. Tokens that no
    /// provider reports are estimated
    #[arg(long, value_name = "N")]
    pub(crate) max_tokens: Option<u64>,

    /// Limit the cost reported by the provider, for example 0.25 [default: 20]. Reserved and charged like
    /// tokens; without a reported cost or a known price it cannot take effect, which is said at once
    #[arg(long, value_name = "AMOUNT")]
    pub(crate) max_cost: Option<Cost>,

    /// Limit the duration of the run, for example 90s, 5m or 1h [default: 30m]
    #[arg(long, value_name = "TIME", value_parser = values::time)]
    pub(crate) timeout: Option<Millis>,
}

/// What happens to a call that needs approval.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub(crate) enum Approve {
    /// Ask on the terminal; without one the run stops with `awaiting_approval`
    Ask,
    /// Approve every call
    Always,
    /// Refuse every call; the model is told
    Never,
}

fn run_notes() -> String {
    format!(
        "A single argument is the descriptor when it exists, ends in .yaml, .yml or .json, or has a path separator \
         and no space; otherwise it is the message. {SECURITY}\n\n\
         The answer goes to standard output, everything else to standard error. The name of a \
         model says who is asked: anthropic/NAME and openai/NAME ask these when {ANTHROPIC} or \
         {OPENAI} is set, ollama/NAME a server on this machine; all others are asked through OpenRouter with {OPENROUTER}. \
         Without a key the demo model answers: it follows rules, calls the tools whose names fit and is no LLM. \
         --model demo asks for it, demo/slow is slow, demo/fail fails; `call TOOL {{\"a\": 1}}` as the message makes it call \
         exactly that.\n\n\
         Ctrl-C stops the run and leaves the session in order; a second one ends the program at \
         once.\n\n{codes}",
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
