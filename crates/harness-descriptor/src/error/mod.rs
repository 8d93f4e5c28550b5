//! Errors of descriptors.

use std::fmt;
use std::io;
use std::path::PathBuf;

use harness_control::contract::ContractFault;
use harness_diagnostics::{Diagnostic, Place, Severity, Style, YamlError, YamlFault, suggest};

use crate::field::{Expected, Field, Form, PathUse, Target};

/// Reason why a descriptor could not be loaded, built or used, with its place.
///
/// Every error of the crate is one of these: the [`Fault`] has the data, the [`Place`] the file,
/// line and column, if known. Displays as `file:line:column: message`.
#[derive(Debug)]
pub struct DescriptorError(Box<Inner>);

#[derive(Debug)]
struct Inner {
    fault: Fault,
    place: Option<Place>,
    /// Suggested correction; more precise than the hint of the error.
    suggestion: Option<String>,
    related: Vec<(Place, String)>,
}

/// Kind and data of an error.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum Fault {
    /// A file or directory could not be reached or read.
    #[error("{}: {source}", wanted_by.unreadable(path))]
    Io {
        /// The path that was tried.
        path: PathBuf,
        /// Field that refers to the file.
        wanted_by: Field,
        /// The operating system's answer.
        source: io::Error,
    },
    /// An input is larger than its limit.
    #[error("{what} of {actual} exceeds the limit of {limit}")]
    TooLarge {
        /// Counted quantity, with its unit.
        what: &'static str,
        /// Limit, in that unit.
        limit: u64,
        /// The count at which reading stopped.
        actual: u64,
    },
    /// The text is not YAML, or YAML that a descriptor cannot hold.
    #[error("{0}")]
    Yaml(YamlFault),
    /// The YAML holds something other than a mapping.
    #[error("a descriptor must be a mapping, but `{label}` is {found}")]
    NotADescriptor {
        /// Path of the file.
        label: String,
        /// Kind of value found instead of a mapping.
        found: &'static str,
    },
    /// A value has the wrong type or is empty.
    #[error("{field} must be {expected}")]
    WrongType {
        /// The value's place in the descriptor.
        field: Field,
        /// Expected kind of value.
        expected: Expected,
    },
    /// `agents` is empty.
    #[error("agents must have at least one agent")]
    NoAgents,
    /// Two instruction forms exclude each other.
    #[error("{target} has both `{}` and `{}`", first.key(), second.key())]
    Exclusive {
        /// Owner of the instructions.
        target: Target,
        /// One form.
        first: Form,
        /// The other form.
        second: Form,
    },
    /// `instructions` beside `instructions_files` is not a string.
    #[error("{target}.instructions must be a string when combined with `instructions_files`")]
    InlineBesideFiles {
        /// Owner of the instructions.
        target: Target,
    },
    /// A sequence item has not exactly one of `file`, `ref` and `text`.
    #[error(
        "{target}.instructions_sequence[{index}] must have exactly one of `file`, `ref` and `text`, not {found}"
    )]
    ItemKinds {
        /// Owner of the sequence.
        target: Target,
        /// The position, from 0.
        index: usize,
        /// How many of the three it has.
        found: usize,
    },
    /// A prompt path breaks a rule.
    #[error("{field} `{path}` must not {rule}")]
    PathRule {
        /// The path's place in the descriptor.
        field: Field,
        /// The path as written.
        path: String,
        /// Violated rule.
        rule: PathRule,
    },
    /// A path is outside the root directory.
    #[error("{field} `{path}` is outside the root directory `{root}`")]
    OutsideRoot {
        /// The path's place in the descriptor.
        field: Field,
        /// The path as written.
        path: String,
        /// Root directory.
        root: String,
    },
    /// A prompt file is outside the root directory once links are followed.
    #[error("prompt file `{path}` of {target} is a link outside the root directory `{root}`")]
    LinkOutsideRoot {
        /// Owner of the prompt file.
        target: Target,
        /// The path as written.
        path: String,
        /// Real path of the root directory.
        root: String,
    },
    /// A sequence refers to a part, but there is no catalog.
    #[error(
        "{target}.instructions_sequence[{index}].ref names part `{part}`, but the descriptor has no instruction_parts"
    )]
    NoCatalog {
        /// Owner of the sequence.
        target: Target,
        /// The position, from 0.
        index: usize,
        /// The part's name.
        part: String,
    },
    /// A sequence refers to a part that the catalog does not have.
    #[error("{target}.instructions_sequence[{index}].ref names unknown part `{part}`")]
    UnknownPart {
        /// Owner of the sequence.
        target: Target,
        /// The position, from 0.
        index: usize,
        /// The part's name.
        part: String,
    },
    /// The prompt map lacks a file.
    #[error("no text for `{path}` of {target} in the prompt map")]
    PromptMissing {
        /// Owner of the prompt file.
        target: Target,
        /// The path as written.
        path: String,
    },
    /// The descriptor needs prompt files, but no prompt map was given.
    #[error(
        "the descriptor uses prompt files (instructions_file, instructions_files or file items), but no prompt map was passed"
    )]
    PromptMapRequired,
    /// A file form or sequence is still there when the graph is built.
    #[error("{target} still has `{}`", form.key())]
    NotMaterialized {
        /// Owner of the instructions.
        target: Target,
        /// Form of the instructions.
        form: Form,
    },
    /// A context path is empty.
    #[error("{used_by} is an empty path")]
    EmptyPath {
        /// User of the path.
        used_by: PathUse,
    },
    /// A segment of a context path is not made of letters, digits, `_` and `-`.
    #[error("{used_by} has the invalid path segment `{segment}`")]
    BadSegment {
        /// User of the path.
        used_by: PathUse,
        /// Invalid segment of the path.
        segment: String,
    },
    /// A context path is not declared under `context.references`.
    #[error("{used_by} reads context path `{path}`, which context.references does not declare")]
    Undeclared {
        /// User of the path.
        used_by: PathUse,
        /// The path in normal form.
        path: String,
    },
    /// A gate's context path is not declared as a boolean.
    #[error("{used_by} reads context path `{path}`, which is not declared with type boolean")]
    NotDeclaredBoolean {
        /// Owner of the gate.
        used_by: PathUse,
        /// The path in normal form.
        path: String,
    },
    /// An agent lists a tool that `tools` does not have.
    #[error("agent `{agent}` lists undeclared tool `{tool}`")]
    UnknownTool {
        /// The agent id.
        agent: String,
        /// The tool id.
        tool: String,
    },
    /// The registry has no tool for a target.
    #[error("target `{target}` of tool `{tool}` is not bound")]
    UnboundTarget {
        /// The tool id.
        tool: String,
        /// Target of the tool.
        target: String,
    },
    /// A handoff goes to an agent that does not exist.
    #[error("agent `{agent}` hands off to unknown agent `{to}`")]
    UnknownHandoff {
        /// The agent that hands off.
        agent: String,
        /// The agent id it names.
        to: String,
    },
    /// The entry agent does not exist.
    #[error("unknown agent `{agent}` in `runtime.entry_agent`")]
    UnknownEntryAgent {
        /// The agent id it names.
        agent: String,
    },
    /// `runtime.max_iterations` is not a valid limit.
    #[error("runtime.{key} must be a positive integer, not `{found}`")]
    MaxTurns {
        /// The key as written: `max_iterations`, or its alias `max_turns`.
        key: &'static str,
        /// Value as written.
        found: String,
    },
    /// A mapping has a key that nothing reads.
    #[error("unknown key `{key}` in {owner}")]
    UnknownKey {
        /// Owner of the key, for example `a handoff`.
        owner: &'static str,
        /// Unknown key.
        key: String,
    },
    /// A value was given for a context path that the descriptor does not declare.
    #[error("context path `{path}` is not declared in the descriptor")]
    UndeclaredValue {
        /// Undeclared path.
        path: String,
    },
    /// A setting of `run`, or of a contract, is unknown, missing or invalid.
    #[error("{message}")]
    Setting {
        /// The stable code.
        code: &'static str,
        /// The setting by its dotted path, and what is wrong with it.
        message: String,
    },
    /// A contract that can not be meant.
    #[error("{path}: {fault}")]
    Contract {
        /// The contract by its dotted path.
        path: String,
        /// Problem in the contract.
        fault: ContractFault,
    },
    /// `run.contract` names a file whose text was not given.
    #[error("run.contract names the file `{path}`, but its text was not passed")]
    ContractMissing {
        /// The path as written.
        path: String,
    },
    /// An agent id that the graph does not have.
    #[error("unknown agent `{agent}`")]
    UnknownAgent {
        /// The id asked for.
        agent: String,
    },
    /// Instructions read a context path that has no value.
    #[error("no value for context path `{path}`, which the instructions read")]
    ContextMissing {
        /// The path in normal form.
        path: String,
    },
    /// A gate reads a context path that has no value.
    #[error("no value for context path `{path}`, which {used_by} reads")]
    GateMissing {
        /// Owner of the gate.
        used_by: PathUse,
        /// The path in normal form.
        path: String,
    },
    /// A gate reads a context value that is not a boolean.
    #[error("{used_by} requires a boolean at context path `{path}`, not {found}")]
    GateNotBoolean {
        /// Owner of the gate.
        used_by: PathUse,
        /// The path in normal form.
        path: String,
        /// Kind of value found.
        found: &'static str,
    },
    /// Neither the agent nor the defaults name a model.
    #[error("agent `{agent}` has no model")]
    NoModel {
        /// The agent's name.
        agent: String,
    },
}

/// A rule about prompt paths.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum PathRule {
    /// No NUL.
    Nul,
    /// No URL.
    Remote,
    /// Relative to the descriptor's directory.
    Absolute,
    /// None of `* ? [ ] { }`.
    Glob,
}

impl fmt::Display for PathRule {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Nul => "hold a NUL character",
            Self::Remote => "be a URL",
            Self::Absolute => "be an absolute path",
            Self::Glob => "hold any of * ? [ ] { }",
        })
    }
}

impl DescriptorError {
    pub(crate) fn new(fault: Fault, place: Option<Place>) -> Self {
        Self(Box::new(Inner { fault, place, suggestion: None, related: Vec::new() }))
    }

    /// Adds what was probably meant: the known name that is closest to the one written.
    pub(crate) fn suggest<'a>(mut self, written: &str, known: impl IntoIterator<Item = &'a str>) -> Self {
        self.0.suggestion = suggest::did_you_mean(written, known);
        self
    }

    /// Adds a hint that is more precise than that of the error.
    pub(crate) fn with_suggestion(mut self, suggestion: String) -> Self {
        self.0.suggestion = Some(suggestion);
        self
    }

    /// An error of a setting.
    pub(crate) fn of_setting(diagnostic: Diagnostic) -> Self {
        let Diagnostic { code, message, place, hint, .. } = diagnostic;
        let mut error = Self::new(Fault::Setting { code, message }, place);
        error.0.suggestion = hint;
        error
    }

    /// Adds another place that has to do with it.
    pub(crate) fn relate(mut self, place: Place, why: impl Into<String>) -> Self {
        self.0.related.push((place, why.into()));
        self
    }

    /// Adds a place to an error without one.
    pub(crate) fn or_at(mut self, place: impl FnOnce() -> Place) -> Self {
        self.0.place.get_or_insert_with(place);
        self
    }

    /// Kind and data of the error.
    pub fn fault(&self) -> &Fault {
        &self.0.fault
    }

    /// Place in the descriptor; `None` if the error belongs to none.
    pub fn place(&self) -> Option<&Place> {
        self.0.place.as_ref()
    }

    /// Stable code of the error, such as `descriptor.unknown_tool`.
    pub fn kind(&self) -> &'static str {
        self.0.fault.kind()
    }

    /// Suggested fix: a similar name, or general advice.
    pub fn hint(&self) -> Option<&str> {
        self.0.suggestion.as_deref().or_else(|| self.0.fault.hint())
    }

    /// Related places, each with its description.
    pub fn related(&self) -> &[(Place, String)] {
        &self.0.related
    }

    /// Renders the error: its place and code, the line with a caret below the value, and the hint.
    ///
    /// [`Report::render`](crate::check::Report::render) renders all errors of a descriptor.
    pub fn render(&self) -> String {
        Diagnostic::from(self).render(Style::Plain).to_string()
    }
}

impl fmt::Display for DescriptorError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match &self.0.place {
            Some(place) => write!(f, "{place}: {}", self.0.fault),
            None => write!(f, "{}", self.0.fault),
        }
    }
}

impl std::error::Error for DescriptorError {
    fn source(&self) -> Option<&(dyn std::error::Error + 'static)> {
        std::error::Error::source(&self.0.fault)
    }
}

impl From<YamlError> for DescriptorError {
    fn from(error: YamlError) -> Self {
        let YamlError { fault, place } = error;
        if let YamlFault::TooLarge { what, limit, actual } = fault {
            return Self::new(Fault::TooLarge { what, limit, actual }, place);
        }
        Self::new(Fault::Yaml(fault), place)
    }
}

impl From<&DescriptorError> for Diagnostic {
    fn from(error: &DescriptorError) -> Self {
        let diagnostic = Self::new(Severity::Error, error.kind(), error.fault().to_string())
            .at(error.place().cloned())
            .with_hint(error.hint().map(ToOwned::to_owned));
        error
            .related()
            .iter()
            .fold(diagnostic, |diagnostic, (place, why)| diagnostic.relate(place.clone(), why))
    }
}

impl From<Fault> for DescriptorError {
    fn from(fault: Fault) -> Self {
        Self::new(fault, None)
    }
}

impl Fault {
    /// An invalid setting.
    pub(crate) fn setting(message: impl Into<String>) -> Self {
        Self::Setting { code: "descriptor.setting", message: message.into() }
    }

    /// Placeholder in question, as written.
    pub(crate) fn placeholder(&self) -> Option<&str> {
        if let Self::EmptyPath { used_by }
        | Self::BadSegment { used_by, .. }
        | Self::Undeclared { used_by, .. } = self
            && let PathUse::Placeholder { text, .. } = used_by
        {
            return Some(text);
        }
        None
    }

    /// Context path in question, in normal form.
    pub(crate) fn context_path(&self) -> Option<&str> {
        if let Self::Undeclared { path, .. } | Self::NotDeclaredBoolean { path, .. } = self {
            Some(path)
        } else {
            None
        }
    }

    /// The stable code.
    pub fn kind(&self) -> &'static str {
        match self {
            Self::Io { .. } => "descriptor.io",
            Self::TooLarge { .. } => "descriptor.too_large",
            Self::Yaml(fault) => fault.kind(),
            Self::NotADescriptor { .. } => "descriptor.not_a_mapping",
            Self::WrongType { .. } => "descriptor.wrong_type",
            Self::NoAgents => "descriptor.no_agents",
            Self::Exclusive { .. } => "descriptor.exclusive_forms",
            Self::InlineBesideFiles { .. } => "descriptor.inline_beside_files",
            Self::ItemKinds { .. } => "descriptor.item_kinds",
            Self::PathRule { .. } => "descriptor.path_rule",
            Self::OutsideRoot { .. } | Self::LinkOutsideRoot { .. } => "descriptor.outside_root",
            Self::NoCatalog { .. } | Self::UnknownPart { .. } => "descriptor.unknown_part",
            Self::PromptMissing { .. } => "descriptor.prompt_missing",
            Self::PromptMapRequired => "descriptor.prompt_map_required",
            Self::NotMaterialized { .. } => "descriptor.not_materialized",
            Self::EmptyPath { .. } | Self::BadSegment { .. } => "descriptor.bad_context_path",
            Self::Undeclared { .. } => "descriptor.undeclared",
            Self::NotDeclaredBoolean { .. } => "descriptor.gate_type",
            Self::UnknownTool { .. } => "descriptor.unknown_tool",
            Self::UnboundTarget { .. } => "descriptor.unbound_target",
            Self::UnknownHandoff { .. } => "descriptor.unknown_handoff",
            Self::UnknownEntryAgent { .. } => "descriptor.unknown_entry_agent",
            Self::MaxTurns { .. } => "descriptor.max_turns",
            Self::UnknownKey { .. } => "descriptor.unknown_key",
            Self::UndeclaredValue { .. } => "context.undeclared",
            Self::Setting { code, .. } => code,
            Self::Contract { .. } => "descriptor.contract",
            Self::ContractMissing { .. } => "descriptor.contract_missing",
            Self::UnknownAgent { .. } => "descriptor.unknown_agent",
            Self::ContextMissing { .. } => "context.missing",
            Self::GateMissing { .. } => "context.gate_missing",
            Self::GateNotBoolean { .. } => "context.gate_not_boolean",
            Self::NoModel { .. } => "descriptor.no_model",
        }
    }

    /// General advice for this kind of error.
    pub fn hint(&self) -> Option<&'static str> {
        Some(match self {
            Self::PromptMapRequired => {
                "pass the prompt texts with `TextSource::prompts`, or load the file with `load_file`"
            }
            Self::NotMaterialized { .. } => "load the descriptor through this crate before building it",
            Self::Undeclared { .. } => "add the path under `context.references`",
            Self::NotDeclaredBoolean { .. } => {
                "declare the path as `{ type: boolean }` under `context.references`"
            }
            Self::UnknownTool { .. } => "declare the tool under `tools` with a `target`",
            Self::UnboundTarget { .. } => "bind the target in the registry",
            Self::MaxTurns { .. } => "it limits model calls; omit it for the default",
            Self::NoModel { .. } => "set `model` on the agent or in `agent_defaults`",
            Self::OutsideRoot { .. } | Self::LinkOutsideRoot { .. } => {
                "move the file into the root directory, or choose a larger root directory"
            }
            Self::ContextMissing { .. } => {
                "set the value in the context, set a default, or declare the reference optional"
            }
            Self::GateMissing { .. } | Self::GateNotBoolean { .. } => {
                "a gate requires `true` or `false` in every context"
            }
            Self::UnknownHandoff { .. } | Self::UnknownEntryAgent { .. } => {
                "use the id of an agent, or add the agent under `agents`"
            }
            Self::ContractMissing { .. } => {
                "pass the text with `TextSource::prompts`, or load the file with `load_file`"
            }
            Self::UndeclaredValue { .. } => "declare it under `context.fields` or `context.references`",
            Self::UnknownKey { .. } => {
                "your own keys start with `x-`; data of other programs belongs in `extensions`"
            }
            Self::Io { source, .. } if source.kind() == io::ErrorKind::NotFound => "check the path",
            Self::Io { .. } => "check that it is a readable file",
            Self::Yaml(fault) => return fault.hint(),
            Self::TooLarge { .. }
            | Self::NotADescriptor { .. }
            | Self::WrongType { .. }
            | Self::NoAgents
            | Self::Exclusive { .. }
            | Self::InlineBesideFiles { .. }
            | Self::ItemKinds { .. }
            | Self::PathRule { .. }
            | Self::NoCatalog { .. }
            | Self::UnknownPart { .. }
            | Self::PromptMissing { .. }
            | Self::EmptyPath { .. }
            | Self::BadSegment { .. }
            | Self::Setting { .. }
            | Self::Contract { .. }
            | Self::UnknownAgent { .. } => return None,
        })
    }
}
