//! Faults of descriptors.

mod yaml;

use std::fmt;
use std::io;
use std::path::PathBuf;

use harness_control::contract::ContractFault;

use crate::check::{Diagnostic, Style, suggest};
use crate::field::{Expected, Field, Form, PathUse, Target};
use crate::place::Place;

pub use self::yaml::YamlFault;

/// Why a descriptor could not be loaded, built or used, and where the fault stands.
///
/// Every fault of the crate is one of these: the [`Fault`] holds the data, the [`Place`] the
/// file, line and column where they are known. Displays as `file:line:column: message`.
#[derive(Debug)]
pub struct DescriptorError(Box<Inner>);

#[derive(Debug)]
struct Inner {
    fault: Fault,
    place: Option<Place>,
    /// What was probably meant; a hint more precise than that of the fault.
    suggestion: Option<String>,
    related: Vec<(Place, String)>,
}

/// What is wrong, as data.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum Fault {
    /// A file or folder could not be reached or read.
    #[error("cannot read `{}` for {wanted_by}: {source}", path.display())]
    Io {
        /// The path that was tried.
        path: PathBuf,
        /// What asked for it.
        wanted_by: Field,
        /// The operating system's answer.
        source: io::Error,
    },
    /// An input is larger than its limit.
    #[error("{what} of {actual} is over the limit of {limit}")]
    TooLarge {
        /// What was counted, with its unit.
        what: &'static str,
        /// The limit.
        limit: u64,
        /// The count at which reading stopped.
        actual: u64,
    },
    /// The text is not YAML, or YAML that a descriptor cannot hold.
    #[error("{0}")]
    Yaml(YamlFault),
    /// The YAML holds something other than a mapping.
    #[error("a descriptor is a mapping, but `{label}` holds {found}")]
    NotADescriptor {
        /// The file.
        label: String,
        /// What it holds.
        found: &'static str,
    },
    /// A value has the wrong type or is empty.
    #[error("{field} must be {expected}")]
    WrongType {
        /// The value's place in the descriptor.
        field: Field,
        /// What it must be.
        expected: Expected,
    },
    /// `agents` is empty.
    #[error("agents must hold at least one agent")]
    NoAgents,
    /// Two instruction forms exclude each other.
    #[error("{target} has both `{}` and `{}`", first.key(), second.key())]
    Exclusive {
        /// Whose instructions.
        target: Target,
        /// One form.
        first: Form,
        /// The other form.
        second: Form,
    },
    /// `instructions` beside `instructions_files` is not a string.
    #[error("{target}.instructions must be a string beside `instructions_files`")]
    InlineBesideFiles {
        /// Whose instructions.
        target: Target,
    },
    /// A sequence item has not exactly one of `file`, `ref` and `text`.
    #[error(
        "{target}.instructions_sequence[{index}] must have exactly one of `file`, `ref` and `text`, not {found}"
    )]
    ItemKinds {
        /// Whose sequence.
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
        /// The rule.
        rule: PathRule,
    },
    /// A path leaves the root folder.
    #[error("{field} `{path}` lies outside the root folder `{root}`")]
    OutsideRoot {
        /// The path's place in the descriptor.
        field: Field,
        /// The path as written.
        path: String,
        /// The root folder.
        root: String,
    },
    /// A prompt file lies outside the root folder once links are followed.
    #[error("prompt file `{path}` of {target} leads outside the root folder `{root}`")]
    LinkOutsideRoot {
        /// Whose prompt file.
        target: Target,
        /// The path as written.
        path: String,
        /// The real root folder.
        root: String,
    },
    /// A sequence refers to a part, but there is no catalog.
    #[error(
        "{target}.instructions_sequence[{index}].ref names the part `{part}`, but there are no instruction_parts"
    )]
    NoCatalog {
        /// Whose sequence.
        target: Target,
        /// The position, from 0.
        index: usize,
        /// The part's name.
        part: String,
    },
    /// A sequence refers to a part that the catalog does not have.
    #[error(
        "{target}.instructions_sequence[{index}].ref names the part `{part}`, which instruction_parts does not have"
    )]
    UnknownPart {
        /// Whose sequence.
        target: Target,
        /// The position, from 0.
        index: usize,
        /// The part's name.
        part: String,
    },
    /// The prompt map lacks a file.
    #[error("the prompt map has no text for `{path}` of {target}")]
    PromptMissing {
        /// Whose prompt file.
        target: Target,
        /// The path as written.
        path: String,
    },
    /// The descriptor needs prompt files, but no prompt map was given.
    #[error(
        "the descriptor names prompt files (instructions_file, instructions_files or file items), but no prompt map was given"
    )]
    PromptMapRequired,
    /// A file form or sequence is still there when the graph is built.
    #[error("{target} still has `{}`", form.key())]
    NotMaterialized {
        /// Whose instructions.
        target: Target,
        /// The form.
        form: Form,
    },
    /// A context path is empty.
    #[error("{used_by} is an empty path")]
    EmptyPath {
        /// Who uses the path.
        used_by: PathUse,
    },
    /// A segment of a context path is not made of letters, digits, `_` and `-`.
    #[error("{used_by} has the invalid path segment `{segment}`")]
    BadSegment {
        /// Who uses the path.
        used_by: PathUse,
        /// The segment.
        segment: String,
    },
    /// A context path is not declared under `context.references`.
    #[error("{used_by} reads context path `{path}`, which context.references does not declare")]
    Undeclared {
        /// Who uses the path.
        used_by: PathUse,
        /// The path in normal form.
        path: String,
    },
    /// A gate's context path is not declared as a boolean.
    #[error("{used_by} reads context path `{path}`, which is not declared with type boolean")]
    NotDeclaredBoolean {
        /// Whose gate.
        used_by: PathUse,
        /// The path in normal form.
        path: String,
    },
    /// An agent lists a tool that `tools` does not have.
    #[error("agent `{agent}` lists tool `{tool}`, which tools does not declare")]
    UnknownTool {
        /// The agent id.
        agent: String,
        /// The tool id.
        tool: String,
    },
    /// The registry has no tool for a target.
    #[error("nothing is bound to target `{target}` of tool `{tool}`")]
    UnboundTarget {
        /// The tool id.
        tool: String,
        /// The target.
        target: String,
    },
    /// A handoff goes to an agent that does not exist.
    #[error("agent `{agent}` hands off to `{to}`, which is no agent")]
    UnknownHandoff {
        /// The agent that hands off.
        agent: String,
        /// The agent id it names.
        to: String,
    },
    /// The entry agent does not exist.
    #[error("runtime.entry_agent `{agent}` is no agent")]
    UnknownEntryAgent {
        /// The agent id it names.
        agent: String,
    },
    /// `runtime.max_iterations` is no limit.
    #[error("runtime.{key} must be a whole number from 1 on, not `{found}`")]
    MaxTurns {
        /// The key as written: `max_iterations`, or its alias `max_turns`.
        key: &'static str,
        /// What is written.
        found: String,
    },
    /// A mapping has a key that nothing reads.
    #[error("unknown key `{key}` in {owner}")]
    UnknownKey {
        /// What it is a key of, for example `a handoff`.
        owner: &'static str,
        /// The key.
        key: String,
    },
    /// A value was given for a context path that the descriptor does not declare.
    #[error("context path `{path}` is not declared in the descriptor")]
    UndeclaredValue {
        /// The path.
        path: String,
    },
    /// A section of `run`, or of a contract, has a key that it does not know.
    #[error("{owner} has no setting `{key}`")]
    UnknownSetting {
        /// The section by its dotted path.
        owner: String,
        /// The key.
        key: String,
    },
    /// A section of `run`, or of a contract, lacks a key.
    #[error("{owner} needs `{key}`")]
    MissingSetting {
        /// The section by its dotted path.
        owner: String,
        /// The key.
        key: &'static str,
    },
    /// A setting of `run`, or of a contract, is not what it must be.
    #[error("{path} must be {expected}, not {found}")]
    SettingValue {
        /// The setting by its dotted path.
        path: String,
        /// What it must be.
        expected: String,
        /// What is written.
        found: String,
    },
    /// Settings of `run` do not fit together.
    #[error("{path}: {problem}")]
    Setting {
        /// The section by its dotted path.
        path: String,
        /// What is wrong.
        problem: String,
    },
    /// A contract that can not be meant.
    #[error("{path}: {fault}")]
    Contract {
        /// The contract by its dotted path.
        path: String,
        /// What is wrong.
        fault: ContractFault,
    },
    /// `run.contract` names a file whose text was not given.
    #[error("run.contract names the file `{path}`, whose text was not given")]
    ContractMissing {
        /// The path as written.
        path: String,
    },
    /// An agent id that the graph does not have.
    #[error("the graph has no agent `{agent}`")]
    UnknownAgent {
        /// The id asked for.
        agent: String,
    },
    /// Instructions read a context path that has no value.
    #[error("instructions need context path `{path}`, which has no value")]
    ContextMissing {
        /// The path in normal form.
        path: String,
    },
    /// A gate reads a context path that has no value.
    #[error("{used_by} needs context path `{path}`, which has no value")]
    GateMissing {
        /// Whose gate.
        used_by: PathUse,
        /// The path in normal form.
        path: String,
    },
    /// A gate reads a context value that is not a boolean.
    #[error("{used_by} needs a boolean at context path `{path}`, which holds {found}")]
    GateNotBoolean {
        /// Whose gate.
        used_by: PathUse,
        /// The path in normal form.
        path: String,
        /// What stands there.
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
    /// Relative to the descriptor's folder.
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

    /// Adds what to do about it, more precise than the fault says it.
    pub(crate) fn with_suggestion(mut self, suggestion: String) -> Self {
        self.0.suggestion = Some(suggestion);
        self
    }

    /// Adds another place that has to do with it.
    pub(crate) fn relate(mut self, place: Place, why: impl Into<String>) -> Self {
        self.0.related.push((place, why.into()));
        self
    }

    /// Adds a place to a fault that has none yet.
    pub(crate) fn or_at(mut self, place: impl FnOnce() -> Place) -> Self {
        self.0.place.get_or_insert_with(place);
        self
    }

    /// What is wrong, as data.
    pub fn fault(&self) -> &Fault {
        &self.0.fault
    }

    /// Where it stands, if the fault belongs to a place in the descriptor.
    pub fn place(&self) -> Option<&Place> {
        self.0.place.as_ref()
    }

    /// The stable code of the fault, such as `descriptor.unknown_tool`.
    pub fn kind(&self) -> &'static str {
        self.0.fault.kind()
    }

    /// What to do about it: the name that was probably meant, or what helps in general.
    pub fn hint(&self) -> Option<&str> {
        self.0.suggestion.as_deref().or_else(|| self.0.fault.hint())
    }

    /// Other places that have to do with it, each with what stands there.
    pub fn related(&self) -> &[(Place, String)] {
        &self.0.related
    }

    /// The fault for people: its place and code, the line with a caret below the value, and what to do.
    ///
    /// [`Report::render`](crate::check::Report::render) shows all faults of a descriptor.
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

impl From<Fault> for DescriptorError {
    fn from(fault: Fault) -> Self {
        Self::new(fault, None)
    }
}

impl Fault {
    /// The placeholder that the fault is about, as written.
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

    /// The context path in normal form that the fault is about.
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
            Self::UnknownSetting { .. } => "descriptor.unknown_setting",
            Self::MissingSetting { .. } => "descriptor.missing_setting",
            Self::SettingValue { .. } | Self::Setting { .. } => "descriptor.setting",
            Self::Contract { .. } => "descriptor.contract",
            Self::ContractMissing { .. } => "descriptor.contract_missing",
            Self::UnknownAgent { .. } => "descriptor.unknown_agent",
            Self::ContextMissing { .. } => "context.missing",
            Self::GateMissing { .. } => "context.gate_missing",
            Self::GateNotBoolean { .. } => "context.gate_not_boolean",
            Self::NoModel { .. } => "descriptor.no_model",
        }
    }

    /// What to do about it, where that can be said in general.
    pub fn hint(&self) -> Option<&'static str> {
        Some(match self {
            Self::PromptMapRequired => {
                "give the prompt texts with `TextSource::prompts`, or load the file with `load_file`"
            }
            Self::NotMaterialized { .. } => "load the descriptor through this crate before building it",
            Self::Undeclared { .. } => "add the path under `context.references`",
            Self::NotDeclaredBoolean { .. } => {
                "declare the path as `{ type: boolean }` under `context.references`"
            }
            Self::UnknownTool { .. } => "declare the tool under `tools` with a `target`",
            Self::UnboundTarget { .. } => "bind the target in the registry",
            Self::MaxTurns { .. } => "it counts model calls; leave it out for the program's own limit",
            Self::NoModel { .. } => "set `model` on the agent or in `agent_defaults`",
            Self::OutsideRoot { .. } | Self::LinkOutsideRoot { .. } => {
                "move the file below the root folder, or choose a wider root folder"
            }
            Self::ContextMissing { .. } => {
                "give the value in the context, set a default, or declare the reference optional"
            }
            Self::GateMissing { .. } | Self::GateNotBoolean { .. } => {
                "a gate needs `true` or `false` in every context"
            }
            Self::UnknownHandoff { .. } | Self::UnknownEntryAgent { .. } => {
                "use the id of an agent, a key under `agents`, or add that agent"
            }
            Self::ContractMissing { .. } => {
                "give the text with `TextSource::prompts`, or load the file with `load_file`"
            }
            Self::UndeclaredValue { .. } => "declare it under `context.fields` or `context.references`",
            Self::UnknownKey { .. } => {
                "notes begin with `x-`; data of other programs goes into the mapping `extensions`"
            }
            Self::UnknownSetting { .. } => "a key that begins with `x-` is taken for a note of yours",
            Self::Io { source, .. } if source.kind() == io::ErrorKind::NotFound => "check the path",
            Self::Io { .. } => "check that it is a file and that you may read it",
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
            | Self::MissingSetting { .. }
            | Self::SettingValue { .. }
            | Self::Setting { .. }
            | Self::Contract { .. }
            | Self::UnknownAgent { .. } => return None,
        })
    }
}
