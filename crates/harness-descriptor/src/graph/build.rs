//! Building a graph: steps 6 to 10 of reference section 7, in their order.

use std::collections::HashMap;
use std::sync::Arc;

use harness_diagnostics::document::{Document, Kind, NodeId, Text};

use super::agents::{Agent, BoundTool, Graph, Handoff, Instructions, Metadata, Part};
use super::max_turns;
use super::path::ContextPath;
use super::references::References;
use super::registry::Registry;
use super::resolve::stable_tool_names;
use super::shape::Shape;
use super::template::{Scanned, Template};
use crate::descriptor::Descriptor;
use crate::error::{DescriptorError, Fault};
use crate::faults::Faults;
use crate::field::{Expected, Field, PathUse, Target};
use crate::number::is_blank;
use crate::output;
use crate::run;
use crate::unknown;
use crate::value::Value;

impl Graph {
    /// Checks a descriptor, binds its tools and compiles its instructions.
    ///
    /// Stops at the first error.
    pub fn build(descriptor: &Descriptor, registry: &Registry) -> Result<Self, DescriptorError> {
        let built = Self::assemble(descriptor, registry, &Faults::first())?;
        // Only a collecting sink lets a graph without an entry agent through.
        built.ok_or_else(|| Fault::UnknownEntryAgent { agent: String::new() }.into())
    }

    /// Builds the graph, or collects its errors: with a collecting sink all errors are found, and
    /// the graph is unusable if there are any.
    pub(crate) fn assemble(
        descriptor: &Descriptor,
        registry: &Registry,
        faults: &Faults,
    ) -> Result<Option<Self>, DescriptorError> {
        let document = descriptor.document();
        for key in descriptor.unknown_keys() {
            faults.report(key.error())?;
        }
        faults.keep(unknown::extensions(document, descriptor.root_id()))?;
        let shape = Shape::check(document, descriptor.root_id(), faults)?;
        let references = References::read(document, shape.root, faults)?;
        let section = |name| document.get(shape.root, name);
        let tools = section("tools").and_then(|tools| document.object(tools)).unwrap_or_default();
        let builder = Builder {
            document,
            defaults: section("agent_defaults"),
            tools: tools.iter().map(|entry| (document.resolve(&entry.key), entry.value)).collect(),
            references: &references,
            registry,
            faults,
        };
        let mut agents = Vec::with_capacity(shape.agents.len());
        for (id, node) in &shape.agents {
            agents.push(builder.agent(id, *node)?);
        }
        let known: HashMap<&str, Arc<str>> =
            shape.agents.iter().zip(&agents).map(|((id, _), agent)| (*id, Arc::clone(&agent.id))).collect();
        for agent in &mut agents {
            agent.handoffs = builder.handoffs(agent, &known)?;
        }
        let agents: Vec<Arc<Agent>> = agents.into_iter().map(Arc::new).collect();
        let by_id: HashMap<_, _> =
            agents.iter().map(|agent| (Arc::clone(&agent.id), Arc::clone(agent))).collect();
        let Some(entry) = builder.entry_agent(&shape, &by_id)? else { return Ok(None) };
        let max_turns = faults.keep(max_turns::read(document, shape.root))?.flatten();
        let run = run::read(descriptor, faults)?;
        let value = |path: &[&str]| document.get_path(shape.root, path).map(|id| Value::of(document, id));
        Ok(Some(Self {
            metadata: Metadata {
                name: value(&["metadata", "name"]),
                version: value(&["metadata", "version"]),
                descriptor_version: value(&["descriptor_version"]),
                descriptor_hash: descriptor.hash(),
                registry_version: registry.version_name().map(ToOwned::to_owned),
            },
            max_turns,
            run,
            descriptor: descriptor.clone(),
            agents,
            by_id,
            entry,
        }))
    }
}

struct Builder<'a> {
    document: &'a Document,
    defaults: Option<NodeId>,
    tools: HashMap<&'a str, NodeId>,
    references: &'a References,
    registry: &'a Registry,
    faults: &'a Faults,
}

impl Builder<'_> {
    fn at(&self, node: NodeId) -> impl Fn(Fault) -> DescriptorError {
        move |fault| DescriptorError::new(fault, Some(self.document.place(node)))
    }

    /// The place of a placeholder within a text, or of the text if it cannot be found there.
    fn at_placeholder(&self, node: NodeId) -> impl Fn(Fault) -> DescriptorError {
        move |fault| {
            let place = fault.placeholder().and_then(|written| self.document.place_within(node, written));
            DescriptorError::new(fault, Some(place.unwrap_or_else(|| self.document.place(node))))
        }
    }

    /// A value of the agent, or of the defaults when the agent has none or `null`.
    fn own_or_default(&self, agent: NodeId, key: &str) -> Option<NodeId> {
        let own = self.document.get(agent, key).filter(|id| !self.document.is_null(*id));
        own.or_else(|| self.document.get(self.defaults?, key))
    }

    fn entry_agent(
        &self,
        shape: &Shape<'_>,
        agents: &HashMap<Arc<str>, Arc<Agent>>,
    ) -> Result<Option<Arc<Agent>>, DescriptorError> {
        let Some(node) = shape.entry_agent else { return Ok(None) };
        let entry = self.document.string(node).unwrap_or_default();
        if let Some(agent) = agents.get(entry) {
            return Ok(Some(Arc::clone(agent)));
        }
        let error = self.at(node)(Fault::UnknownEntryAgent { agent: entry.to_owned() });
        let known = shape.agents.iter().map(|(id, _)| *id);
        self.faults.report(error.suggest(entry, known)).map(|()| None)
    }

    fn agent(&self, id: &str, node: NodeId) -> Result<Agent, DescriptorError> {
        let document = self.document;
        let text = |key| document.get(node, key).filter(|id| !document.is_null(*id));
        let instructions_node = self.own_or_default(node, "instructions");
        let instructions = match instructions_node {
            Some(source) => self.faults.keep(self.instructions(id, source))?.flatten(),
            None => None,
        };
        let tools = self.tools(id, node)?;
        let value = |key| {
            let value = self.own_or_default(node, key).filter(|id| !document.is_null(*id));
            value.map(|id| Value::of(document, id))
        };
        Ok(Agent {
            id: id.into(),
            name: text("name").map_or_else(|| id.into(), |name| document.display_text(name).into()),
            handoff_description: text("handoffDescription")
                .map_or_else(|| "".into(), |text| document.display_text(text).into()),
            model: value("model"),
            model_settings: value("modelSettings"),
            output: document
                .get(node, output::KEY)
                .filter(|id| document.object(*id).is_some())
                .map(|id| Value::of(document, id)),
            instructions,
            tools,
            handoffs: Vec::new(),
            node,
            instructions_node,
        })
    }

    /// Compiles instructions; `None` if one of their errors was collected.
    fn instructions(&self, agent: &str, source: NodeId) -> Result<Option<Instructions>, DescriptorError> {
        match self.document.kind(source) {
            Kind::Text(text) => {
                let scanned = self.scan(agent, source, text)?;
                Ok(self.declare(scanned, agent, source)?.map(Instructions::Text))
            }
            Kind::List(parts) => Ok(Some(Instructions::Parts(self.parts(agent, parts)?))),
            Kind::Null | Kind::Bool(_) | Kind::Number(_) | Kind::Instant(_) | Kind::Map(_) => {
                let field = Field::Key { target: Target::Agent(agent.to_owned()), key: "instructions" };
                Err(self.at(source)(Fault::WrongType { field, expected: Expected::StringOrParts }))
            }
        }
    }

    /// Finds the placeholders of a text.
    fn scan(&self, agent: &str, node: NodeId, text: &Text) -> Result<Scanned, DescriptorError> {
        Scanned::new(self.shared(text), agent, |fault| self.faults.report(self.at_placeholder(node)(fault)))
    }

    /// Checks the placeholders of a text; `None` if one of their errors was collected.
    fn declare(
        &self,
        scanned: Scanned,
        agent: &str,
        node: NodeId,
    ) -> Result<Option<Template>, DescriptorError> {
        scanned.declare(self.references, agent, |fault| {
            let error = self.at_placeholder(node)(fault);
            let path = error.fault().context_path().map(ToOwned::to_owned);
            let error = error.suggest(path.as_deref().unwrap_or_default(), self.references.paths());
            self.faults.report(error)
        })
    }

    fn shared(&self, text: &Text) -> Arc<str> {
        match text {
            Text::Shared(text) => Arc::clone(text),
            Text::Source(_) => self.document.resolve(text).into(),
        }
    }

    /// Compiles parts: first the shape of all, then all placeholders, then all gates.
    fn parts(&self, agent: &str, parts: &[NodeId]) -> Result<Vec<Part>, DescriptorError> {
        let mut shaped = Vec::with_capacity(parts.len());
        for (index, node) in parts.iter().enumerate() {
            shaped.extend(self.faults.keep(self.part_shape(agent, index, *node))?);
        }
        let mut scanned = Vec::with_capacity(parts.len());
        for (node, gate) in shaped {
            if let Kind::Text(text) = self.document.kind(node) {
                scanned.push((self.scan(agent, node, text)?, node, gate));
            }
        }
        let mut templates = Vec::with_capacity(parts.len());
        for (scanned, node, gate) in scanned {
            templates.push((self.declare(scanned, agent, node)?, gate));
        }
        let used_by = || PathUse::PartGate { agent: agent.to_owned() };
        let mut compiled = Vec::with_capacity(parts.len());
        for (template, gate) in templates {
            let gate = gate.map(|gate| self.faults.keep(self.gate(gate, used_by))).transpose()?.flatten();
            compiled.extend(template.map(|template| Part { template, gate }));
        }
        Ok(compiled)
    }

    /// The text node and the gate's path node of a part.
    fn part_shape(
        &self,
        agent: &str,
        index: usize,
        node: NodeId,
    ) -> Result<(NodeId, Option<NodeId>), DescriptorError> {
        let document = self.document;
        let wrong = |below, expected, node| {
            let field = Field::Part { agent: agent.to_owned(), index, below };
            self.at(node)(Fault::WrongType { field, expected })
        };
        if document.object(node).is_none() {
            return Err(wrong("", Expected::Object, node));
        }
        let text = document.get(node, "text");
        let Some(text) = text.filter(|text| document.string(*text).is_some()) else {
            return Err(wrong("text", Expected::String, text.unwrap_or(node)));
        };
        let Some(gate) = document.get(node, "where") else { return Ok((text, None)) };
        if document.object(gate).is_none() {
            return Err(wrong("where", Expected::Object, gate));
        }
        let context = document.get(gate, "context");
        match context.filter(|context| document.string(*context).is_some_and(|path| !is_blank(path))) {
            Some(context) => Ok((text, Some(context))),
            None => Err(wrong("where.context", Expected::NonEmptyString, context.unwrap_or(gate))),
        }
    }

    /// A gate's path: well-formed, declared, boolean.
    fn gate(&self, node: NodeId, used_by: impl Fn() -> PathUse) -> Result<ContextPath, DescriptorError> {
        let written = self.document.string(node).unwrap_or_default();
        let path = ContextPath::parse(written, &used_by).map_err(self.at(node))?;
        match self.references.declared_boolean(&path, used_by) {
            Ok(()) => Ok(path),
            Err(fault) => {
                let declared = self.references.get(&path).map(|found| found.key_bytes);
                let error = self.at(node)(fault);
                Err(match declared {
                    Some(bytes) => error.relate(self.document.place_of(bytes), "declared here"),
                    None => error.suggest(path.as_str(), self.references.paths()),
                })
            }
        }
    }

    fn tools(&self, agent: &str, node: NodeId) -> Result<Vec<BoundTool>, DescriptorError> {
        let document = self.document;
        let listed = document.get(node, "tools").filter(|id| !document.is_null(*id));
        let Some(list) = listed else { return Ok(Vec::new()) };
        let Some(items) = document.list(list) else {
            let field = Field::Key { target: Target::Agent(agent.to_owned()), key: "tools" };
            let error = self.at(list)(Fault::WrongType { field, expected: Expected::List });
            return self.faults.report(error).map(|()| Vec::new());
        };
        let mut tools = Vec::with_capacity(items.len());
        for item in items {
            tools.extend(self.faults.keep(self.tool(agent, *item))?.flatten());
        }
        Ok(tools)
    }

    /// Binds a tool; `None` if an error of its target was collected earlier.
    fn tool(&self, agent: &str, item: NodeId) -> Result<Option<BoundTool>, DescriptorError> {
        let document = self.document;
        // Upstream looks tools up by text, so the number 7 finds the key `"7"`.
        let id = document.display_text(item);
        let Some(tool) = self.tools.get(id.as_str()).copied() else {
            let error = self.at(item)(Fault::UnknownTool { agent: agent.to_owned(), tool: id.clone() });
            return Err(error.suggest(&id, self.tools.keys().copied()));
        };
        let Some(target_node) = document.get(tool, "target") else { return Ok(None) };
        let Some(target) = document.string(target_node).filter(|target| !is_blank(target)) else {
            return Ok(None);
        };
        let Some(bound) = self.registry.get(target) else {
            let error = self.at(target_node)(Fault::UnboundTarget { tool: id, target: target.to_owned() });
            return Err(error.suggest(target, self.registry.targets()));
        };
        let (name, description) = (Arc::clone(&bound.name), Arc::clone(&bound.description));
        Ok(Some(BoundTool { id: id.into(), target: target.into(), name, description }))
    }

    fn handoffs(
        &self,
        agent: &Agent,
        known: &HashMap<&str, Arc<str>>,
    ) -> Result<Vec<Handoff>, DescriptorError> {
        let document = self.document;
        let list = document.get(agent.node, "handoffs").and_then(|id| document.list(id)).unwrap_or_default();
        let mut handoffs = Vec::with_capacity(list.len());
        for node in list {
            handoffs.extend(self.faults.keep(self.handoff(agent, *node, known))?.flatten());
        }
        let names = stable_tool_names(handoffs.iter().map(Handoff::to), &agent.tools);
        for (handoff, name) in handoffs.iter_mut().zip(names) {
            handoff.tool_name = name;
        }
        Ok(handoffs)
    }

    /// Builds a handoff; `None` if an error of its shape was collected.
    fn handoff(
        &self,
        agent: &Agent,
        node: NodeId,
        known: &HashMap<&str, Arc<str>>,
    ) -> Result<Option<Handoff>, DescriptorError> {
        let document = self.document;
        let to_node = document.get(node, "agent").unwrap_or(node);
        let Some(to) = document.string(to_node).filter(|to| !is_blank(to)) else { return Ok(None) };
        let from = || agent.id.to_string();
        let Some(to) = known.get(to) else {
            let error = self.at(to_node)(Fault::UnknownHandoff { agent: from(), to: to.to_owned() });
            return Err(error.suggest(to, known.keys().copied()));
        };
        let gate = document.get_path(node, &["where", "context"]);
        let gate = gate.filter(|gate| document.string(*gate).is_some_and(|path| !is_blank(path)));
        let used_by = || PathUse::HandoffGate { agent: from(), to: to.to_string() };
        let gate = gate.map(|gate| self.gate(gate, used_by)).transpose()?;
        Ok(Some(Handoff { to: Arc::clone(to), gate, tool_name: "".into(), node }))
    }
}
