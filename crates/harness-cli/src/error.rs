//! Errors that end the program before or instead of a run.

use std::fmt::Write as _;
use std::io;
use std::net::SocketAddr;
use std::path::PathBuf;

use harness::HarnessError;
use harness::adapters::AdapterError;
use harness::descriptor::{DescriptorError, Fault};
use harness::diagnostics::{Diagnostic, Rendered, Style};
use harness::record::RecordError;
use harness::tools::ToolsError;

use crate::exit::Exit;
use crate::model::keys::KeyFileFault;
use crate::model::providers::PROVIDERS;
use crate::paths::Paths;
use crate::render::{BAD, NOTE};
use crate::run::decisions::DecisionError;
use crate::terminal::painted;
use crate::{env, model};

/// Error of a `harness` command.
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
    #[error("{fault}; registry file {} not found", registry.display())]
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
    /// The session was started with a different descriptor.
    #[error("session `{}` was started under descriptor {began}, this is {now}", session.display())]
    OtherDescriptor { session: PathBuf, began: String, now: String },
    /// No descriptor is named, or a directory without one is.
    #[error("no `harness.yaml` in `{}`{}", directory.display(), if *parents { " or its parent directories" } else { "" })]
    NoHarnessYaml { directory: PathBuf, parents: bool },
    /// An argument of `run` that can only be meant as a path.
    #[error("descriptor `{}` not found", path.display())]
    NoSuchDescriptor { path: PathBuf },
    /// `show --agent` with an unknown agent id.
    #[error("{} has no agent `{agent}`", descriptor.display())]
    NoAgent { agent: String, descriptor: PathBuf, known: Vec<String> },
    /// A turn of the agent would end before its first model call.
    #[error("agent `{agent}` cannot run with this context: {fault}")]
    NoTurn { agent: String, fault: DescriptorError },
    /// A file that `new` would replace.
    #[error("`{}` already exists", path.display())]
    Exists { path: PathBuf },
    #[error("cannot write {}: {source}", path.display())]
    NotWritten { path: PathBuf, source: io::Error },
    /// The parent directory of an output file does not exist. It is not created, since the path may be mistyped.
    #[error("cannot write {}: the directory `{}` does not exist", path.display(), folder.display())]
    NoParent { path: PathBuf, folder: PathBuf },
    #[error("the record does not name its descriptor")]
    NoDescriptor,
    #[error("the run left no record")]
    NoRecord,
    /// A directory for `inspect`.
    #[error("no run record in the directory `{}`", folder.display())]
    NoRecords { folder: PathBuf },
    #[error("{found} or more run records, more than the {most} that can be shown at once")]
    TooManyRecords { found: usize, most: usize },
    #[error("no message given")]
    NoMessage,
    #[error("invalid message on standard input: {problem}")]
    Message { problem: String },
    /// None of the keys with which the model could be asked is at hand.
    #[error("no API key for model `{model}`: {}", missing(names))]
    NoKey { model: String, names: Vec<String> },
    /// A model of the user's own, whose address only the user knows.
    #[error("no base URL for model `{model}`")]
    NoAddress { model: String },
    #[error("invalid key file {}: {fault}", path.display())]
    KeyFile { path: PathBuf, fault: KeyFileFault },
    #[error("invalid token file {}: {fault}", path.display())]
    TokenFile { path: PathBuf, fault: KeyFileFault },
    #[error("cannot listen on {address}: {source}")]
    Listen { address: SocketAddr, source: io::Error },
    #[error("invalid context {origin}: {problem}")]
    Context { origin: String, problem: String },
    #[error("invalid output schema {}: {problem}", file.display())]
    OutputSchema { file: PathBuf, problem: String },
    #[error("invalid log filter `{filter}`: {reason}")]
    LogFilter { filter: String, reason: String },
    #[error("invalid input {origin}: {problem}")]
    ToolInput { origin: String, problem: String },
    #[error("tool `{name}` not found in registry {}", registry.display())]
    NoTool { registry: PathBuf, name: String, known: Vec<String> },
    #[error("invalid input for tool `{name}`: {problem}")]
    ToolArguments { name: String, problem: String },
    /// A file of `--backend command:FILE`.
    #[error("cannot read backend file {}: {problem}", file.display())]
    BackendFile { file: PathBuf, problem: String },
    /// A file that the user wrote, with the place of the error.
    #[error("{0}")]
    Invalid(Box<Diagnostic>),
    #[error(transparent)]
    Runtime(#[from] harness::runtime::RuntimeError),
    /// `chat --continue` or `--resume` without a previous session.
    #[error("no previous session{}", within(folder.as_deref()))]
    NoConversation { folder: Option<PathBuf> },
    /// An unreadable directory of skills or templates.
    #[error("cannot read the {what} directory {}: {source}", folder.display())]
    NoFolder { what: &'static str, folder: PathBuf, source: io::Error },
    /// `chat --resume` over a pipe.
    #[error("`--resume` requires a terminal")]
    NoTerminal,
    /// A line of a chat over a pipe.
    #[error("unknown command `{}`", line.trim())]
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
            Self::NoRecord | Self::NoRecords { .. } => "cli.no_record",
            Self::TooManyRecords { .. } => "cli.too_many_records",
            Self::NoMessage => "cli.no_message",
            Self::Message { .. } => "cli.message",
            Self::NoKey { .. } => "cli.no_key",
            Self::NoAddress { .. } => "cli.no_address",
            Self::KeyFile { .. } => "cli.key_file",
            Self::TokenFile { .. } => "cli.token_file",
            Self::Listen { .. } => "cli.listen",
            Self::Context { .. } => "cli.context",
            Self::OutputSchema { .. } => "cli.output_schema",
            Self::LogFilter { .. } => "cli.log_filter",
            Self::ToolInput { .. } => "cli.tool_input",
            Self::NoTool { .. } => "cli.no_tool",
            Self::ToolArguments { .. } => "cli.tool_arguments",
            Self::BackendFile { .. } => "cli.backend_file",
            Self::Invalid(diagnostic) => diagnostic.code,
            Self::Runtime(error) => error.kind(),
            Self::Decision(error) => error.kind(),
            Self::NoConversation { .. } => "cli.no_conversation",
            Self::NoFolder { .. } => "cli.no_folder",
            Self::NoTerminal => "cli.no_terminal",
            Self::NoSuchCommand { .. } => "cli.no_such_command",
            Self::NoOutput { .. } => "cli.no_output",
            Self::Io { .. } => "cli.io",
        }
    }

    /// The descriptor error behind this error, if any.
    fn fault(&self) -> Option<&DescriptorError> {
        if let Self::Harness(HarnessError::Descriptor(fault))
        | Self::Descriptor(fault)
        | Self::NoTurn { fault, .. } = self
        {
            return Some(fault);
        }
        None
    }

    /// Errors of a file, with their places.
    fn diagnostics(&self) -> Vec<Diagnostic> {
        if let Some(fault) = self.fault() {
            return vec![Diagnostic::from(fault).with_hint(self.hint())];
        }
        if let Self::Tools(ToolsError::Invalid { diagnostics, .. }) = self {
            return diagnostics.clone();
        }
        if let Self::Invalid(diagnostic) | Self::Record(RecordError::Suite(diagnostic)) = self {
            return vec![(**diagnostic).clone()];
        }
        if let Self::KeyFile { fault: KeyFileFault::Invalid(diagnostic), .. } = self {
            return vec![(**diagnostic).clone().with_hint(self.hint())];
        }
        Vec::new()
    }

    /// The error with styles; errors of a file with their lines and carets.
    pub(crate) fn render(&self, paths: &Paths) -> String {
        let mut text = String::new();
        let mut diagnostics = self.diagnostics();
        for diagnostic in &mut diagnostics {
            paths.shorten(diagnostic);
        }
        if diagnostics.is_empty() {
            let _ = writeln!(text, "{BAD}error{BAD:#}: {self}");
            if let Some(hint) = self.hint() {
                let _ = writeln!(text, "  {NOTE}hint{NOTE:#}: {hint}");
            }
            return text;
        }
        if let Self::NoTurn { agent, .. } = self {
            let _ = writeln!(text, "agent `{agent}` cannot run with this context:");
        }
        text.push_str(&painted(&Rendered::of(&diagnostics, Style::Ansi).to_string()));
        text
    }

    /// The hint for the user.
    pub(crate) fn hint(&self) -> Option<String> {
        self.hint_of_cause().or_else(|| self.advice().map(str::to_owned))
    }

    /// The hint of the cause, or one derived from its values.
    #[expect(clippy::wildcard_enum_match_arm, reason = "the others have their own text")]
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
            Self::NoAgent { known, .. } => Some(format!("available: {}", listed(known))),
            Self::NoTurn { fault, .. } => no_turn_hint(fault),
            Self::NoParent { folder, .. } => {
                Some(format!("create it with `mkdir -p {}`, or choose another path", folder.display()))
            }
            Self::NoKey { names, .. } => Some(no_key_hint(names)),
            Self::NoAddress { .. } => Some(format!("pass `--base-url URL` or set `{}`", env::LOCAL_URL)),
            Self::TokenFile { fault: KeyFileFault::TooLong, .. } => None,
            Self::KeyFile { path, fault } | Self::TokenFile { path, fault } => Some(fault.hint(path)),
            Self::NoTool { known, .. } if !known.is_empty() => Some(format!("available: {}", listed(known))),
            Self::Harness(HarnessError::Memory(error)) => error.hint().map(str::to_owned),
            Self::Runtime(error) => error.hint().map(str::to_owned),
            _ => None,
        }
    }

    /// The hint for this kind of error, without details of the cause.
    #[expect(clippy::wildcard_enum_match_arm, reason = "the others have no fix besides that of their cause")]
    fn advice(&self) -> Option<&'static str> {
        Some(match self {
            Self::Harness(HarnessError::SameName { .. }) => {
                "set a different `name` for one of them in the registry file"
            }
            Self::Session(harness::session::Error::NotFound { .. }) => {
                "check the path; without `--resume`, a message starts a new session there"
            }
            Self::Orphans(_) => "stop these processes, then try again",
            Self::NoRegistry { .. } => "create it, or pass `--registry FILE`",
            Self::NoSession { .. } | Self::NoFolder { .. } => "check the path",
            Self::SessionWithoutDescriptor { .. } => "pass `--descriptor FILE`",
            Self::OtherDescriptor { .. } => "use the original descriptor or pass `--allow-changed`",
            Self::NoHarnessYaml { parents: true, .. } => {
                "create one with `harness new`, or pass a descriptor: `harness run FILE \"…\"`"
            }
            Self::NoSuchDescriptor { .. } => {
                "check the path; to send it as a message, pass the descriptor first: `harness run FILE \"…\"`"
            }
            Self::Exists { .. } => "choose another directory or pass `--force`; nothing was written",
            Self::NotWritten { .. } => "check that the directory exists and is writable",
            Self::NoDescriptor => "pass `--descriptor FILE`",
            Self::NoRecords { .. } => "write one with `--run-record DIR` of `harness run`, `chat` or `serve`",
            Self::TooManyRecords { .. } => "name fewer records",
            Self::NoMessage => {
                "pass it as an argument or on standard input, or use `--resume` with `--session`"
            }
            Self::TokenFile { fault: KeyFileFault::TooLong, .. } => "write only the token to the file",
            Self::Listen { .. } => "choose a different address with `--listen`; port 0 chooses a free port",
            Self::Context { .. } => {
                "pass PATH=VALUE, for example customer.premium=true, or a YAML or JSON file with a mapping"
            }
            Self::OutputSchema { .. } => "pass a JSON or YAML file with a JSON Schema",
            Self::LogFilter { .. } => {
                "use error, warn, info, debug or trace, or a filter such as harness_adapters=debug"
            }
            Self::ToolInput { .. } => "pass a JSON object, @FILE, or - for standard input",
            Self::NoTool { .. } => "the registry has no tools",
            Self::ToolArguments { .. } => "`harness tools --json` prints the schemas of the arguments",
            Self::BackendFile { .. } => "check the path",
            Self::Harness(HarnessError::Memory(_)) => {
                "correct `memory` in the registry file, or pass a file that `--memory` created"
            }
            Self::NoConversation { .. } => "omit the option to start one",
            Self::NoTerminal => "pass `--session FILE`",
            Self::NoSuchCommand { .. } => {
                "to send a message that starts with a slash, double it: `//`, or use `--whole`"
            }
            Self::NoOutput { .. } => "free disk space, or redirect the output",
            _ => return None,
        })
    }
}

/// The hint for an agent whose context does not permit a turn.
fn no_turn_hint(error: &DescriptorError) -> Option<String> {
    #[expect(clippy::wildcard_enum_match_arm, reason = "the library's list is open")]
    let (path, value) = match error.fault() {
        Fault::ContextMissing { path } => (path, "VALUE"),
        Fault::GateMissing { path, .. } | Fault::GateNotBoolean { path, .. } => (path, "true"),
        _ => return error.hint().map(str::to_owned),
    };
    Some(format!("set it with `--context {path}={value}`, or set a default under `context.fields`"))
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
        None => ": without a home directory, none are stored".to_owned(),
    }
}

/// Which keys are missing.
fn missing(names: &[String]) -> String {
    match names {
        [one] => format!("{one} is not set"),
        _ => format!("neither {} is set", names.join(" nor ")),
    }
}

fn no_key_hint(names: &[String]) -> String {
    // A key file holds the API keys of providers only.
    let is_provider = names.iter().any(|name| PROVIDERS.iter().any(|known| known.key_name == name));
    let file = if is_provider { "`--keys FILE`, " } else { "" };
    format!(
        "set {}, or use {file}`--model ollama/NAME`, `--base-url URL`, or `--model demo` for the demo model",
        names.join(" or ")
    )
}
