//! Names of the parts of a descriptor that errors refer to.

use std::fmt;
use std::path::Path;

/// The owner of an instruction form: the defaults, or one agent.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub enum Target {
    /// `agent_defaults`.
    Defaults,
    /// The agent with this id.
    Agent(String),
}

/// One of the four ways to give instructions.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Form {
    /// `instructions`, in the descriptor itself.
    Inline,
    /// `instructions_file`, one prompt file.
    File,
    /// `instructions_files`, several prompt files.
    Files,
    /// `instructions_sequence`, files, catalog parts and texts, each with an optional gate.
    Sequence,
}

impl Form {
    /// The key in the descriptor.
    pub const fn key(self) -> &'static str {
        match self {
            Self::Inline => "instructions",
            Self::File => "instructions_file",
            Self::Files => "instructions_files",
            Self::Sequence => "instructions_sequence",
        }
    }
}

/// A part of a descriptor, or of the input beside it.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum Field {
    /// The path given to load a descriptor from.
    DescriptorPath,
    /// The whole descriptor.
    Root,
    /// A section by its dotted path, such as `context.fields`.
    Section(&'static str),
    /// `runtime.entry_agent`.
    EntryAgent,
    /// `agent_defaults` or an agent as a whole.
    Target(Target),
    /// A key of `agent_defaults` or of an agent.
    Key {
        /// Owner of the key.
        target: Target,
        /// Key of the field.
        key: &'static str,
    },
    /// An entry of a list of `agent_defaults` or of an agent, or a key below it.
    Item {
        /// Owner of the field.
        target: Target,
        /// The key of the list.
        key: &'static str,
        /// The position, from 0.
        index: usize,
        /// The dotted path below the entry; empty for the entry itself.
        below: &'static str,
    },
    /// A part of materialized instructions, or a key below it.
    Part {
        /// The id of the agent that uses the instructions.
        agent: String,
        /// The position, from 0.
        index: usize,
        /// The dotted path below the part; empty for the part itself.
        below: &'static str,
    },
    /// An entry of `instruction_parts`.
    CatalogPart(String),
    /// An entry of `tools`.
    Tool(String),
    /// The target of an entry of `tools`.
    ToolTarget(String),
    /// An entry of `context.references`, by its key as written.
    Reference(String),
    /// An entry of `context.fields`, by its key as written.
    ContextField(String),
    /// The key of a prompt map entry.
    PromptKey(String),
    /// The text of a prompt map entry.
    PromptEntry(String),
}

/// Expected kind of a value.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum Expected {
    /// Mapping of string keys.
    Object,
    /// String, possibly empty.
    String,
    /// A string with at least one visible character.
    NonEmptyString,
    /// List of values.
    List,
    /// A list with at least one entry.
    NonEmptyList,
    /// A list with at least one string.
    NonEmptyStringList,
    /// A string with at least one visible character, or a mapping.
    NonEmptyStringOrObject,
    /// `true`, `false` or a mapping.
    FlagOrObject,
    /// A string or a list of parts.
    StringOrParts,
}

/// User of a context path.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum PathUse {
    /// The key of an entry of `context.references`.
    Reference,
    /// The key of an entry of `context.fields`.
    Field,
    /// A placeholder, with the agent whose instructions hold it and its text with the braces.
    Placeholder {
        /// The agent id.
        agent: String,
        /// The placeholder as written.
        text: String,
    },
    /// The gate of an instruction part of this agent.
    PartGate {
        /// The agent id.
        agent: String,
    },
    /// The gate of a handoff.
    HandoffGate {
        /// The agent that hands off.
        agent: String,
        /// The agent that takes over.
        to: String,
    },
}

impl fmt::Display for Target {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Defaults => f.write_str("agent_defaults"),
            Self::Agent(id) => write!(f, "agents.{id}"),
        }
    }
}

impl Field {
    /// Says that the file of this field cannot be read.
    pub(crate) fn unreadable(&self, path: &Path) -> String {
        let path = path.display();
        if *self == Self::DescriptorPath {
            return format!("cannot read the descriptor `{path}`");
        }
        format!("cannot read `{path}` for {self}")
    }
}

impl fmt::Display for Field {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::DescriptorPath => f.write_str("the descriptor path"),
            Self::Root => f.write_str("the descriptor"),
            Self::Section(path) => f.write_str(path),
            Self::EntryAgent => f.write_str("runtime.entry_agent"),
            Self::Target(target) => write!(f, "{target}"),
            Self::Key { target, key } => write!(f, "{target}.{key}"),
            Self::Item { target, key, index, below } => {
                write!(f, "{target}.{key}[{index}]")?;
                write_below(f, below)
            }
            Self::Part { agent, index, below } => {
                write!(f, "agents.{agent}.instructions[{index}]")?;
                write_below(f, below)
            }
            Self::CatalogPart(name) => write!(f, "instruction_parts.{name}"),
            Self::Tool(id) => write!(f, "tools.{id}"),
            Self::ToolTarget(id) => write!(f, "tools.{id}.target"),
            Self::Reference(key) => write!(f, "context.references.{key}"),
            Self::ContextField(key) => write!(f, "context.fields.{key}"),
            Self::PromptKey(key) => write!(f, "prompt map key `{key}`"),
            Self::PromptEntry(key) => write!(f, "prompt map entry `{key}`"),
        }
    }
}

fn write_below(f: &mut fmt::Formatter<'_>, below: &str) -> fmt::Result {
    if below.is_empty() { Ok(()) } else { write!(f, ".{below}") }
}

impl fmt::Display for Expected {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Object => "a mapping",
            Self::String => "a string",
            Self::NonEmptyString => "a non-empty string",
            Self::List => "a list",
            Self::NonEmptyList => "a non-empty list",
            Self::NonEmptyStringList => "a non-empty list of strings",
            Self::NonEmptyStringOrObject => "an agent id or a mapping",
            Self::FlagOrObject => "`true`, `false` or a mapping",
            Self::StringOrParts => "a string or a list of parts",
        })
    }
}

impl fmt::Display for PathUse {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Reference => f.write_str("the key of a context reference"),
            Self::Field => f.write_str("the key of a context field"),
            Self::Placeholder { agent, text } => write!(f, "placeholder `{text}` of agent `{agent}`"),
            Self::PartGate { agent } => write!(f, "the gate of an instruction part of agent `{agent}`"),
            Self::HandoffGate { agent, to } => write!(f, "the gate of the handoff from `{agent}` to `{to}`"),
        }
    }
}
