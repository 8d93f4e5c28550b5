//! Preview of an agent in a context, with the reasons for omissions.

use std::collections::HashSet;

use super::agents::{Agent, Graph, Handoff, Instructions, Part};
use super::path::{ContextPath, gate_is_open};
use super::resolve::ResolvedAgent;
use crate::error::{DescriptorError, Fault};
use crate::field::PathUse;
use crate::value::Value;

/// An agent in one context: its offer, and the availability of each part and handoff.
///
/// Made by [`Graph::preview`], to inspect a descriptor before a model uses it.
#[derive(Debug)]
#[non_exhaustive]
pub struct Preview<'g> {
    /// Previewed agent.
    pub agent: &'g Agent,
    /// Resolved agent as in a turn, or the error that would end the turn.
    pub resolved: Result<ResolvedAgent, DescriptorError>,
    /// The parts of its instructions in order; empty when they are one text or none.
    pub parts: Vec<PartPreview<'g>>,
    /// Its handoffs in order, closed ones included.
    pub handoffs: Vec<HandoffPreview<'g>>,
}

/// A part of the instructions in one context.
#[derive(Debug)]
#[non_exhaustive]
pub struct PartPreview<'g> {
    /// Part of the instructions.
    pub part: &'g Part,
    /// Availability of the part.
    pub standing: Standing,
}

/// A handoff in one context.
#[derive(Debug)]
#[non_exhaustive]
pub struct HandoffPreview<'g> {
    /// Handoff of the agent.
    pub handoff: &'g Handoff,
    /// Whether it is offered.
    pub standing: Standing,
}

/// Whether something is part of what an agent gets, and why not.
#[derive(Debug)]
#[non_exhaustive]
pub enum Standing {
    /// Included in the turn.
    Open,
    /// Its gate reads `false` at this path.
    Closed {
        /// The path of the gate.
        path: ContextPath,
    },
    /// A handoff to an agent that an earlier, open handoff goes to already.
    Repeated,
    /// Its gate cannot be evaluated; a turn would end with this error.
    Faulty(Fault),
}

impl Standing {
    /// The stable word: `open`, `closed`, `repeated` or `faulty`.
    pub fn name(&self) -> &'static str {
        match self {
            Self::Open => "open",
            Self::Closed { .. } => "closed",
            Self::Repeated => "repeated",
            Self::Faulty(_) => "faulty",
        }
    }

    fn of(gate: Option<&ContextPath>, context: &Value, used_by: impl Fn() -> PathUse) -> Self {
        let Some(path) = gate else { return Self::Open };
        match gate_is_open(path, context, used_by) {
            Ok(true) => Self::Open,
            Ok(false) => Self::Closed { path: path.clone() },
            Err(fault) => Self::Faulty(fault),
        }
    }
}

impl Graph {
    /// Previews the agent `id` in this context, with the reasons for omissions.
    ///
    /// # Errors
    /// When the graph has no such agent. All other errors are part of the preview.
    ///
    /// ```
    /// use harness_descriptor::{Graph, Registry, Standing, Value, load_text};
    ///
    /// let descriptor = load_text("
    /// runtime: { entry_agent: a }
    /// context: { references: { open: { type: boolean } } }
    /// agents: { a: { model: m, handoffs: [{ agent: b, where: { context: open } }] }, b: {} }
    /// ")?;
    /// let graph = Graph::build(&descriptor, &Registry::new())?;
    /// let context: Value = serde_json::from_str(r#"{ "open": false }"#).unwrap();
    /// let preview = graph.preview("a", &context)?;
    /// assert!(matches!(&preview.handoffs[0].standing, Standing::Closed { path } if path.as_str() == "open"));
    /// # Ok::<(), harness_descriptor::DescriptorError>(())
    /// ```
    pub fn preview(&self, id: &str, context: &Value) -> Result<Preview<'_>, DescriptorError> {
        let agent = self.known_agent(id)?;
        Ok(Preview {
            agent,
            resolved: self.resolve(id, context),
            parts: parts(agent, context),
            handoffs: handoffs(agent, context),
        })
    }
}

fn handoffs<'g>(agent: &'g Agent, context: &Value) -> Vec<HandoffPreview<'g>> {
    let mut offered = HashSet::new();
    let preview = |handoff: &'g Handoff| {
        let used_by = || PathUse::HandoffGate { agent: agent.id.to_string(), to: handoff.to.to_string() };
        let mut standing = Standing::of(handoff.gate(), context, used_by);
        if matches!(standing, Standing::Open) && !offered.insert(handoff.to()) {
            standing = Standing::Repeated;
        }
        HandoffPreview { handoff, standing }
    };
    agent.handoffs.iter().map(preview).collect()
}

fn parts<'g>(agent: &'g Agent, context: &Value) -> Vec<PartPreview<'g>> {
    let Some(Instructions::Parts(parts)) = &agent.instructions else { return Vec::new() };
    let used_by = || PathUse::PartGate { agent: agent.id.to_string() };
    let preview =
        |part: &'g Part| PartPreview { part, standing: Standing::of(part.gate(), context, used_by) };
    parts.iter().map(preview).collect()
}
