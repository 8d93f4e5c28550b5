//! Parts of a built graph.

use std::collections::HashMap;
use std::num::NonZeroU32;
use std::sync::Arc;

use harness_diagnostics::document::NodeId;

use super::path::ContextPath;
use super::template::Template;
use crate::canonical::DescriptorHash;
use crate::descriptor::Descriptor;
use crate::error::{DescriptorError, Fault};
use crate::run::RunSection;
use crate::value::Value;

/// The agents of a descriptor, bound to tools and ready to be asked.
///
/// See [`Graph::build`], [`Graph::create_context`] and [`Graph::resolve`]. Cloning shares nothing
/// that can change.
#[derive(Clone, Debug)]
pub struct Graph {
    pub(super) descriptor: Descriptor,
    pub(super) agents: Vec<Arc<Agent>>,
    pub(super) by_id: HashMap<Arc<str>, Arc<Agent>>,
    pub(super) entry: Arc<Agent>,
    pub(super) metadata: Metadata,
    pub(super) max_turns: Option<NonZeroU32>,
    pub(super) run: Option<RunSection>,
}

/// Identification of a graph in records and sessions.
#[derive(Clone, Debug, PartialEq)]
#[non_exhaustive]
pub struct Metadata {
    /// `metadata.name`, unchecked.
    pub name: Option<Value>,
    /// `metadata.version`, unchecked.
    pub version: Option<Value>,
    /// `descriptor_version`, unchecked.
    pub descriptor_version: Option<Value>,
    /// The hash of the materialized descriptor.
    pub descriptor_hash: DescriptorHash,
    /// The version of the registry, if it has one.
    pub registry_version: Option<String>,
}

/// One agent.
#[derive(Clone, Debug)]
pub struct Agent {
    pub(super) id: Arc<str>,
    pub(super) name: Arc<str>,
    pub(super) handoff_description: Arc<str>,
    pub(super) model: Option<Value>,
    pub(super) model_settings: Option<Value>,
    pub(super) output: Option<Value>,
    pub(super) instructions: Option<Instructions>,
    pub(super) tools: Vec<BoundTool>,
    pub(super) handoffs: Vec<Handoff>,
    pub(super) node: NodeId,
    pub(super) instructions_node: Option<NodeId>,
}

/// A tool of an agent.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct BoundTool {
    /// The id in the descriptor.
    pub id: Arc<str>,
    /// The target in the registry.
    pub target: Arc<str>,
    /// The name the model calls.
    pub name: Arc<str>,
    /// Description for the model.
    pub description: Arc<str>,
}

/// A move to another agent.
#[derive(Clone, Debug)]
pub struct Handoff {
    pub(super) to: Arc<str>,
    pub(super) gate: Option<ContextPath>,
    pub(super) tool_name: Arc<str>,
    pub(super) node: NodeId,
}

/// The instructions of an agent.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub enum Instructions {
    /// One text.
    Text(Template),
    /// Parts, joined by a blank line; those whose gate is closed are left out.
    Parts(Vec<Part>),
}

/// A part of instructions.
#[derive(Clone, Debug)]
pub struct Part {
    pub(super) template: Template,
    pub(super) gate: Option<ContextPath>,
}

impl Graph {
    /// The descriptor it was built from.
    pub fn descriptor(&self) -> &Descriptor {
        &self.descriptor
    }

    /// The agents in the order of the descriptor.
    pub fn agents(&self) -> impl ExactSizeIterator<Item = &Agent> {
        self.agents.iter().map(|agent| &**agent)
    }

    /// The agent with this id.
    pub fn agent(&self, id: &str) -> Option<&Agent> {
        self.by_id.get(id).map(|agent| &**agent)
    }

    /// The agent that a run starts with.
    pub fn entry_agent(&self) -> &Agent {
        &self.entry
    }

    /// Name, versions and hash.
    pub fn metadata(&self) -> &Metadata {
        &self.metadata
    }

    /// The number of model calls that a run may make, from `runtime.max_iterations` or its alias `max_turns`; `None` if the
    /// descriptor sets no limit.
    pub fn max_iterations(&self) -> Option<NonZeroU32> {
        self.max_turns
    }

    /// Section `run`, which controls how runs continue until the work is done; `None` if there is
    /// none.
    pub fn run(&self) -> Option<&RunSection> {
        self.run.as_ref()
    }

    /// Names the version of the registry, for records.
    pub fn set_registry_version(&mut self, version: String) {
        self.metadata.registry_version = Some(version);
    }

    pub(super) fn known_agent(&self, id: &str) -> Result<&Agent, DescriptorError> {
        self.agent(id).ok_or_else(|| Fault::UnknownAgent { agent: id.to_owned() }.into())
    }
}

impl Agent {
    /// The key under `agents`.
    pub fn id(&self) -> &str {
        &self.id
    }

    /// The name shown to models and people; the id unless the descriptor gives one.
    pub fn name(&self) -> &str {
        &self.name
    }

    /// Description for other agents, possibly empty.
    pub fn handoff_description(&self) -> &str {
        &self.handoff_description
    }

    /// The model as written, its own or the default.
    pub fn model(&self) -> Option<&Value> {
        self.model.as_ref()
    }

    /// The model settings as a whole, its own or the default.
    pub fn model_settings(&self) -> Option<&Value> {
        self.model_settings.as_ref()
    }

    /// The JSON Schema that its answers must match.
    pub fn output(&self) -> Option<&Value> {
        self.output.as_ref()
    }

    /// The compiled instructions, its own or the default.
    pub fn instructions(&self) -> Option<&Instructions> {
        self.instructions.as_ref()
    }

    /// Its tools in order, repeats included.
    pub fn tools(&self) -> &[BoundTool] {
        &self.tools
    }

    /// Its handoffs in order, repeats included.
    pub fn handoffs(&self) -> &[Handoff] {
        &self.handoffs
    }
}

impl Handoff {
    /// The id of the agent that takes over.
    pub fn to(&self) -> &str {
        &self.to
    }

    /// The context path that must be `true` for the handoff to be offered.
    pub fn gate(&self) -> Option<&ContextPath> {
        self.gate.as_ref()
    }

    /// The name of its tool: the same in every turn.
    pub fn tool_name(&self) -> &str {
        &self.tool_name
    }
}

impl Instructions {
    /// Whether the text is the same in every context.
    pub fn is_constant(&self) -> bool {
        match self {
            Self::Text(template) => template.is_constant(),
            Self::Parts(parts) => parts.iter().all(|part| part.gate.is_none() && part.template.is_constant()),
        }
    }
}

impl Part {
    /// The text of the part.
    pub fn template(&self) -> &Template {
        &self.template
    }

    /// The context path that must be `true` for the part to be included.
    pub fn gate(&self) -> Option<&ContextPath> {
        self.gate.as_ref()
    }
}
