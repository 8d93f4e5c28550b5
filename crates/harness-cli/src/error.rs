//! What ends the program before a run begins, or instead of one.

use std::fmt::Write as _;
use std::io;
use std::net::SocketAddr;
use std::path::PathBuf;

use harness::HarnessError;
use harness::adapters::AdapterError;
use harness::descriptor::check::{Diagnostic, Style};
use harness::descriptor::{DescriptorError, Fault};
use harness::memory::MemoryError;
use harness::record::RecordError;
use harness::tools::ToolsError;

use crate::exit::Exit;
use crate::model::keys::KeyFileFault;
use crate::paths::Paths;
use crate::render::{BAD, NOTE};
use crate::run::decisions::DecisionError;
use crate::terminal::painted;
use crate::{env, model};

/// Why nothing was run.
#[derive(Debug, thiserror::Error)]
pub(crate) enum CliError {
    #[error(transparent)]
    Harness(#[from] HarnessError),
    #[error(transparent)]
    Descriptor(#[from] DescriptorError),
    #[error(transparent)]
    Tools(#[from] ToolsError),
    #[error(transparent)]
    Adapter(#[from] AdapterError),
    #[error(transparent)]
    Record(#[from] RecordError),
    #[error(transparent)]
    Session(#[from] harness::session::Error),
    #[error(transparent)]
    Orphans(#[from] harness::host::process::OrphansLeft),
    /// An error of a part that a build may leave out.
    #[error("{message}")]
    Part { kind: String, message: String, hint: Option<String> },
    /// A tool has no program, and there is no registry file that could name one.
    #[error("{fault}; there is no registry file at {}", registry.display())]
    NoRegistry { fault: DescriptorError, registry: PathBuf },
    /// A tool has no program in the registry file.
    #[error("{fault}: {why}")]
    Unbound { fault: DescriptorError, why: ToolsError },
    /// A session that is to be looked at.
    #[error("session `{}` does not exist", path.display())]
    NoSession { path: PathBuf },
    /// A session of another program, or of an earlier version.
    #[error("session `{}` does not record its descriptor", session.display())]
    SessionWithoutDescriptor { session: PathBuf },
    /// The session was begun under another descriptor.
    #[error("session `{}` was started under descriptor {began}, this is {now}", session.display())]
    OtherDescriptor { session: PathBuf, began: String, now: String },
    /// No descriptor is named, or a directory without one is.
    #[error("no `harness.yaml` in `{}`{}", directory.display(), if *parents { " or its parent directories" } else { "" })]
    NoHarnessYaml { directory: PathBuf, parents: bool },
    /// An argument of `run` that can only be meant as a path.
    #[error("descriptor `{}` not found", path.display())]
    NoSuchDescriptor { path: PathBuf },
    /// `show --agent` with an id that is no agent's.
    #[error("{} has no agent `{agent}`", descriptor.display())]
    NoAgent { agent: String, descriptor: PathBuf, known: Vec<String> },
    /// A turn of the agent would end before it asks a model.
    #[error("in this context agent `{agent}` could not have a turn: {fault}")]
    NoTurn { agent: String, fault: DescriptorError },
    /// A file that `new` would replace.
    #[error("`{}` already exists", path.display())]
    Exists { path: PathBuf },
    #[error("cannot write {}: {source}", path.display())]
    NotWritten { path: PathBuf, source: io::Error },
    /// Folders that were named by mistake are not made.
    #[error("cannot write {}: the directory `{}` does not exist", path.display(), folder.display())]
    NoParent { path: PathBuf, folder: PathBuf },
    #[error("the record does not say which descriptor was run")]
    NoDescriptor,
    #[error("the run left no record")]
    NoRecord,
    #[error("there is no message to send")]
    NoMessage,
    #[error("the message on standard input {problem}")]
    Message { problem: String },
    /// None of the keys with which the model could be asked is at hand.
    #[error("the model `{model}` cannot be asked: {}", missing(names))]
    NoKey { model: String, names: Vec<&'static str> },
    /// A model of the user's own, whose address only the user knows.
    #[error("the model `{model}` cannot be asked: nothing says where its endpoint is")]
    NoAddress { model: String },
    #[error("the key file {} {fault}", path.display())]
    KeyFile { path: PathBuf, fault: KeyFileFault },
    #[error("the token file {} {fault}", path.display())]
    TokenFile { path: PathBuf, fault: KeyFileFault },
    #[error("cannot listen on {address}: {source}")]
    Listen { address: SocketAddr, source: io::Error },
    #[error("the context {origin} {problem}")]
    Context { origin: String, problem: String },
    #[error("the log filter `{filter}` cannot be used: {reason}")]
    LogFilter { filter: String, reason: String },
    #[error("the input {origin} {problem}")]
    ToolInput { origin: String, problem: String },
    #[error("no tool of the registry file {} is named `{name}`", registry.display())]
    NoTool { registry: PathBuf, name: String, known: Vec<String> },
    #[error("the tool `{name}` refuses the input: {problem}")]
    ToolArguments { name: String, problem: String },
    /// A file of `--backend command:FILE`.
    #[error("the backend file {}: {problem}", file.display())]
    BackendFile { file: PathBuf, problem: String },
    #[error("the memory {} cannot be used: {source}", path.display())]
    Memory { path: PathBuf, source: MemoryError },
    #[error(transparent)]
    Runtime(#[from] harness::runtime::RuntimeError),
    /// `chat` without a descriptor and without a model.
    #[error("no descriptor or model given")]
    NobodyToTalkTo,
    /// `chat --continue` or `--pick`, and there is nothing to go on with.
    #[error("there is no conversation to go on with{}", within(folder.as_deref()))]
    NoConversation { folder: Option<PathBuf> },
    /// A folder that was named for skills or templates.
    #[error("the folder of {what} {} cannot be read: {source}", folder.display())]
    NoFolder { what: &'static str, folder: PathBuf, source: io::Error },
    /// `chat --pick` over a pipe.
    #[error("there is no terminal on which a conversation could be chosen")]
    NoTerminal,
    /// A line of a chat over a pipe.
    #[error("`{}` is no command of a chat without a terminal, no template and no skill", line.trim())]
    NoSuchCommand { line: String },
    /// The answer, or what else a command prints.
    #[error("cannot write to standard output: {source}")]
    NoOutput { source: io::Error },
    #[error(transparent)]
    Decision(#[from] DecisionError),
    #[error("cannot {action}: {source}")]
    Io { action: &'static str, source: io::Error },
}

impl CliError {
    /// An error of a part that a build may leave out.
    pub(crate) fn part(kind: &str, error: &dyn std::error::Error, hint: Option<&str>) -> Self {
        Self::Part { kind: kind.to_owned(), message: error.to_string(), hint: hint.map(str::to_owned) }
    }

    /// How the program ends with it.
    pub(crate) fn exit(&self) -> Exit {
        let was_run = model::was_called();
        if matches!(self, Self::NoOutput { .. }) || was_run && matches!(self, Self::NotWritten { .. }) {
            return Exit::Unwritten;
        }
        if was_run { Exit::Failed } else { Exit::Refused }
    }

    /// A stable code.
    pub(crate) fn kind(&self) -> &str {
        match self {
            Self::Harness(error) => error.kind(),
            Self::Descriptor(error) => error.kind(),
            Self::Tools(error) => error.kind(),
            Self::Adapter(error) => error.kind(),
            Self::Record(error) => error.kind(),
            Self::Session(error) => error.kind(),
            Self::Orphans(_) => "session.orphans",
            Self::Part { kind, .. } => kind,
            Self::NoRegistry { .. } => "cli.no_registry",
            Self::Unbound { why, .. } => why.kind(),
            Self::NoSession { .. } => "session.not_found",
            Self::SessionWithoutDescriptor { .. } => "session.no_descriptor",
            Self::OtherDescriptor { .. } => "session.other_descriptor",
            Self::NoHarnessYaml { .. } | Self::NoSuchDescriptor { .. } => "cli.descriptor_not_found",
            Self::NoAgent { .. } => "descriptor.unknown_agent",
            Self::NoTurn { fault, .. } => fault.kind(),
            Self::Exists { .. } => "cli.exists",
            Self::NotWritten { .. } => "cli.not_written",
            Self::NoParent { .. } => "cli.no_directory",
            Self::NoDescriptor => "cli.no_descriptor",
            Self::NoRecord => "cli.no_record",
            Self::NoMessage => "cli.no_message",
            Self::Message { .. } => "cli.message",
            Self::NoKey { .. } => "cli.no_key",
            Self::NoAddress { .. } => "cli.no_address",
            Self::KeyFile { .. } => "cli.key_file",
            Self::TokenFile { .. } => "cli.token_file",
            Self::Listen { .. } => "cli.listen",
            Self::Context { .. } => "cli.context",
            Self::LogFilter { .. } => "cli.log_filter",
            Self::ToolInput { .. } => "cli.tool_input",
            Self::NoTool { .. } => "cli.no_tool",
            Self::ToolArguments { .. } => "cli.tool_arguments",
            Self::BackendFile { .. } => "cli.backend_file",
            Self::Memory { source, .. } => source.kind(),
            Self::Runtime(error) => error.kind(),
            Self::Decision(error) => error.kind(),
            Self::NobodyToTalkTo => "cli.nobody",
            Self::NoConversation { .. } => "cli.no_conversation",
            Self::NoFolder { .. } => "cli.no_folder",
            Self::NoTerminal => "cli.no_terminal",
            Self::NoSuchCommand { .. } => "cli.no_such_command",
            Self::NoOutput { .. } => "cli.no_output",
            Self::Io { .. } => "cli.io",
        }
    }

    /// The fault of a descriptor that it is about, and nothing else.
    fn fault(&self) -> Option<&DescriptorError> {
        if let Self::Harness(HarnessError::Descriptor(fault))
        | Self::Descriptor(fault)
        | Self::NoTurn { fault, .. } = self
        {
            return Some(fault);
        }
        None
    }

    /// The error for people, with styles: a fault of a descriptor with its line and a caret.
    pub(crate) fn render(&self, paths: &Paths) -> String {
        let mut text = String::new();
        if let Some(fault) = self.fault() {
            if let Self::NoTurn { agent, .. } = self {
                let _ = writeln!(text, "in this context agent `{agent}` could not have a turn:");
            }
            let mut diagnostic = Diagnostic::from(fault);
            diagnostic.hint = self.hint();
            paths.shorten(&mut diagnostic);
            text.push_str(&painted(&diagnostic.render(Style::Ansi).to_string()));
        } else {
            let _ = writeln!(text, "{BAD}error{BAD:#}: {self}");
            if let Some(hint) = self.hint() {
                let _ = writeln!(text, "  {NOTE}hint{NOTE:#}: {hint}");
            }
        }
        text
    }

    /// What to do about it.
    pub(crate) fn hint(&self) -> Option<String> {
        self.hint_of_cause().or_else(|| self.advice().map(str::to_owned))
    }

    /// What the cause says to do, or what follows from what is known of it.
    #[expect(clippy::wildcard_enum_match_arm, reason = "the others have a text of their own")]
    fn hint_of_cause(&self) -> Option<String> {
        match self {
            Self::Harness(HarnessError::Descriptor(error)) | Self::Descriptor(error) => {
                error.hint().map(str::to_owned)
            }
            Self::Decision(error) => Some(error.hint()),
            Self::Tools(error) => error.hint(),
            Self::Adapter(error) => error.hint().map(str::to_owned),
            Self::Record(error) => Some(error.hint().to_owned()),
            Self::Session(harness::session::Error::NotFound { .. }) => None,
            Self::Session(error) => Some(error.hint().to_owned()),
            Self::Part { hint, .. } => hint.clone(),
            Self::Unbound { why, .. } => why.hint(),
            Self::NoHarnessYaml { directory, parents: false } => {
                let directory = directory.display();
                Some(format!("create one with `harness new {directory}`, or pass a descriptor file"))
            }
            Self::NoAgent { known, .. } => Some(format!("its agents are {}", listed(known))),
            Self::NoTurn { fault, .. } => no_turn_hint(fault),
            Self::NoParent { folder, .. } => {
                Some(format!("create it with `mkdir -p {}`, or choose another path", folder.display()))
            }
            Self::NoKey { names, .. } => Some(no_key_hint(names)),
            Self::NoAddress { .. } => Some(format!("give it with --base-url URL or in {}", env::LOCAL_URL)),
            Self::TokenFile { fault: KeyFileFault::TooLong, .. } => None,
            Self::KeyFile { path, fault } | Self::TokenFile { path, fault } => Some(fault.hint(path)),
            Self::NoTool { known, .. } if !known.is_empty() => {
                Some(format!("there are {}", known.join(", ")))
            }
            Self::Memory { source, .. } => source.hint().map(str::to_owned),
            Self::Runtime(error) => error.hint().map(str::to_owned),
            _ => None,
        }
    }

    /// What to do about it, whatever is known of it.
    #[expect(
        clippy::wildcard_enum_match_arm,
        reason = "of the others the cause says what to do, or nobody knows"
    )]
    fn advice(&self) -> Option<&'static str> {
        Some(match self {
            Self::Harness(HarnessError::SameName { .. }) => {
                "give one of them another `name` in the registry file"
            }
            Self::Session(harness::session::Error::NotFound { .. }) => {
                "check the path; without --resume a message begins a new session there"
            }
            Self::Orphans(_) => "end these processes, then try again",
            Self::NoRegistry { .. } => "write one there, or name another with --registry FILE",
            Self::NoSession { .. } | Self::NoFolder { .. } => "check the path",
            Self::SessionWithoutDescriptor { .. } => "pass `--descriptor FILE`",
            Self::OtherDescriptor { .. } => {
                "use the descriptor that it was started under, another session, or --allow-changed to go on with this one \
                 all the same"
            }
            Self::NoHarnessYaml { parents: true, .. } => {
                "create one with `harness new`, or pass a descriptor: `harness run FILE \"…\"`"
            }
            Self::NoSuchDescriptor { .. } => {
                "check the path; to send it as a message, pass the descriptor first: `harness run FILE \"…\"`"
            }
            Self::Exists { .. } => "choose another directory or pass `--force`; nothing was written",
            Self::NotWritten { .. } => "check that the folder is there and that you may write to it",
            Self::NoDescriptor => "name it with --descriptor FILE",
            Self::NoMessage => "give it as an argument or on standard input, or use --resume with --session",
            Self::TokenFile { fault: KeyFileFault::TooLong, .. } => "write the token alone into it",
            Self::Listen { .. } => "choose another address with --listen; port 0 takes one that is free",
            Self::Context { .. } => {
                "write PATH=VALUE, for example customer.premium=true, or name a YAML or JSON file with a mapping"
            }
            Self::LogFilter { .. } => {
                "use error, warn, info, debug or trace, or a list such as harness_adapters=debug"
            }
            Self::ToolInput { .. } => "give a JSON object, as text, as @FILE, or as - for standard input",
            Self::NoTool { .. } => "the file binds none",
            Self::ToolArguments { .. } => "list the tools with --json to see the schema of their arguments",
            Self::BackendFile { .. } => {
                "write `version: 1`, `command:` and, where they are needed, `args`, `stdin`, `env`, `set`, `cwd`, \
                 `timeout`, `output` and `backend`"
            }
            Self::Memory { .. } => "name a SQLite file that --memory made, or one that is not there yet",
            Self::NobodyToTalkTo => {
                "pass a descriptor, `--model PROVIDER/NAME`, `--base-url URL` or `--backend NAME`; `harness new` creates \
                 a descriptor"
            }
            Self::NoConversation { .. } => "begin one: the same command without that option",
            Self::NoTerminal => "name the file of the conversation with --session",
            Self::NoSuchCommand { .. } => {
                "begin a message that begins with a slash with two, or give all of it with --whole"
            }
            Self::NoOutput { .. } => "make room, or send the output elsewhere",
            _ => return None,
        })
    }
}

/// What to do about a context that an agent cannot have a turn with.
fn no_turn_hint(error: &DescriptorError) -> Option<String> {
    #[expect(clippy::wildcard_enum_match_arm, reason = "the library's list is open")]
    let (path, value) = match error.fault() {
        Fault::ContextMissing { path } => (path, "VALUE"),
        Fault::GateMissing { path, .. } | Fault::GateNotBoolean { path, .. } => (path, "true"),
        _ => return error.hint().map(str::to_owned),
    };
    Some(format!("give the value with --context {path}={value}, or a default under `context.fields`"))
}

/// `a`, `b` and 3 more.
fn listed(names: &[String]) -> String {
    const SHOWN: usize = 20;
    let shown: Vec<String> = names.iter().take(SHOWN).map(|name| format!("`{name}`")).collect();
    match names.len().saturating_sub(SHOWN) {
        0 => shown.join(", "),
        more => format!("{} and {more} more", shown.join(", ")),
    }
}

/// Where there is nothing.
fn within(folder: Option<&std::path::Path>) -> String {
    match folder {
        Some(folder) => format!(" in {}", folder.display()),
        None => ": without a home, none is kept".to_owned(),
    }
}

/// Which keys are missing.
fn missing(names: &[&str]) -> String {
    match names {
        [one] => format!("{one} is not set"),
        _ => format!("neither {} is set", names.join(" nor ")),
    }
}

fn no_key_hint(names: &[&str]) -> String {
    format!(
        "set {}, or write the key into a file for --keys; or use --model ollama/NAME for a model on this machine, \
         --base-url for an endpoint of your own, or --model demo for the demo model",
        names.join(" or ")
    )
}
