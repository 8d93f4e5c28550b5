//! Changes as data.

use serde::Serialize;

use crate::value::Value;

/// Changes from one descriptor to another.
///
/// Displays as one line for each change, starting with `+`, `-` or `~`; changed texts follow as a
/// short excerpt. Serializes as `{before, after, affectedAgents, changes}`.
#[derive(Clone, Debug, PartialEq, Serialize)]
#[serde(rename_all = "camelCase")]
#[non_exhaustive]
pub struct DescriptorDiff {
    /// The hash of the earlier descriptor.
    pub before: String,
    /// The hash of the later descriptor.
    pub after: String,
    /// The agents of both whose own hash differs, by a change of theirs or of the defaults, in the
    /// order of the later descriptor. See [`Descriptor::agent_hashes`](crate::Descriptor::agent_hashes).
    pub affected_agents: Vec<String>,
    /// The changes, section by section.
    pub changes: Vec<Change>,
}

/// One change.
#[derive(Clone, Debug, PartialEq, Serialize)]
#[serde(rename_all = "camelCase")]
#[non_exhaustive]
pub struct Change {
    /// The entry of the descriptor that changed.
    pub subject: Subject,
    /// Changed aspect of the subject.
    pub aspect: Aspect,
    /// How it changed.
    pub difference: Difference,
}

/// An entry of a descriptor.
#[derive(Clone, Debug, PartialEq, Eq, Hash, Serialize)]
#[serde(tag = "kind", content = "name", rename_all = "camelCase")]
#[non_exhaustive]
pub enum Subject {
    /// A section as a whole, by its dotted path; the empty path is the descriptor.
    Section(String),
    /// `descriptor_version`.
    Version,
    /// `metadata`.
    Metadata,
    /// `runtime`.
    Runtime,
    /// An entry of `context.fields`, by its key.
    Field(String),
    /// An entry of `context.references`, by its key.
    Reference(String),
    /// An entry of `instruction_parts`, by its name.
    InstructionPart(String),
    /// An entry of `tools`, by its id.
    Tool(String),
    /// `agent_defaults`.
    Defaults,
    /// An agent, by its id.
    Agent(String),
}

/// Aspect of an entry that can change.
#[derive(Clone, Debug, PartialEq, Eq, Hash, Serialize)]
#[serde(tag = "kind", content = "of", rename_all = "camelCase")]
#[non_exhaustive]
pub enum Aspect {
    /// All of it.
    Whole,
    /// The name of an agent.
    Name,
    /// Description of an agent for other agents.
    HandoffDescription,
    /// Model of the agent or of the defaults.
    Model,
    /// The model settings as a whole.
    ModelSettings,
    /// One model setting.
    Setting(String),
    /// The instructions as a whole.
    Instructions,
    /// The part of the instructions at this position, from 0; in the earlier list if it was removed,
    /// in the later one otherwise.
    Part(usize),
    /// The condition of the part at this position.
    PartCondition(usize),
    /// The list of tools as a whole.
    Tools,
    /// A tool in the list of an agent.
    Tool(String),
    /// The list of handoffs as a whole.
    Handoffs,
    /// The handoff to this agent.
    Handoff(String),
    /// The condition of the handoff to this agent.
    HandoffCondition(String),
    /// The target of a tool.
    Target,
    /// Another key, as a dotted path.
    Key(String),
}

/// How something changed. Values are as they are hashed: dates are ISO text, numbers without a
/// value are `null`.
#[derive(Clone, Debug, PartialEq, Serialize)]
#[serde(tag = "kind", rename_all = "camelCase")]
pub enum Difference {
    /// It is new.
    Added {
        /// New value.
        after: Value,
    },
    /// It is gone.
    Removed {
        /// Old value.
        before: Value,
    },
    /// It has another value.
    Changed {
        /// Old value.
        before: Value,
        /// New value.
        after: Value,
    },
}

impl DescriptorDiff {
    /// Whether nothing changed, which is so exactly if the hashes are equal.
    pub fn is_empty(&self) -> bool {
        self.changes.is_empty()
    }
}
