//! The shape of a descriptor: steps 1 to 5 of reference section 7, in their order.

use harness_diagnostics::document::{Document, NodeId};

use crate::error::{DescriptorError, Fault};
use crate::faults::Faults;
use crate::field::{Expected, Field, Form, Target};
use crate::number::is_blank;
use crate::output;

/// Optional sections that must be mappings.
const OPTIONAL_SECTIONS: [&[&str]; 7] = [
    &["metadata"],
    &["tools"],
    &["instruction_parts"],
    &["agent_defaults"],
    &["context"],
    &["context", "fields"],
    &["context", "references"],
];

const SECTION_NAMES: [&str; 7] = [
    "metadata",
    "tools",
    "instruction_parts",
    "agent_defaults",
    "context",
    "context.fields",
    "context.references",
];

/// The parts of a descriptor whose shape was checked.
pub(super) struct Shape<'a> {
    pub(super) root: NodeId,
    /// `None` only if its error was collected.
    pub(super) entry_agent: Option<NodeId>,
    /// Agent ids with their nodes, in order.
    pub(super) agents: Agents<'a>,
}

type Agents<'a> = Vec<(&'a str, NodeId)>;

impl<'a> Shape<'a> {
    pub(super) fn check(
        document: &'a Document,
        root: NodeId,
        faults: &'a Faults,
    ) -> Result<Self, DescriptorError> {
        let checker = Checker { document, root, faults };
        faults.keep(checker.expect(Field::Root, Expected::Object, Some(root)))?;
        let entry_agent = faults.keep(checker.entry_agent())?;
        let mut agents = faults.keep(checker.agents())?.unwrap_or_default();
        checker.optional()?;
        if let Some(defaults) = document.get(root, "agent_defaults") {
            faults.keep(checker.materialized(&Target::Defaults, defaults))?;
        }
        for (id, agent) in &agents {
            faults.keep(checker.agent(id, *agent))?;
        }
        // The others were reported; nothing more can be said of them.
        agents.retain(|(_, agent)| document.object(*agent).is_some());
        for entry in document.get(root, "tools").and_then(|tools| document.object(tools)).unwrap_or_default()
        {
            faults.keep(checker.tool(document.resolve(&entry.key), entry.value))?;
        }
        Ok(Self { root, entry_agent, agents })
    }
}

struct Checker<'a> {
    document: &'a Document,
    root: NodeId,
    faults: &'a Faults,
}

impl<'a> Checker<'a> {
    fn fail<T>(&self, fault: Fault, node: NodeId) -> Result<T, DescriptorError> {
        Err(DescriptorError::new(fault, Some(self.document.place(node))))
    }

    fn expect(
        &self,
        field: Field,
        expected: Expected,
        node: Option<NodeId>,
    ) -> Result<NodeId, DescriptorError> {
        let fits = node.filter(|id| match expected {
            Expected::Object => self.document.object(*id).is_some(),
            Expected::NonEmptyString => self.non_empty_string(*id),
            Expected::List => self.document.list(*id).is_some(),
            Expected::String
            | Expected::NonEmptyList
            | Expected::NonEmptyStringList
            | Expected::NonEmptyStringOrObject
            | Expected::FlagOrObject
            | Expected::StringOrParts => false,
        });
        match fits {
            Some(id) => Ok(id),
            None => self.fail(Fault::WrongType { field, expected }, node.unwrap_or(self.root)),
        }
    }

    fn non_empty_string(&self, id: NodeId) -> bool {
        self.document.string(id).is_some_and(|text| !is_blank(text))
    }

    fn section(&self, name: &'static str) -> Result<NodeId, DescriptorError> {
        self.expect(Field::Section(name), Expected::Object, self.document.get(self.root, name))
    }

    fn entry_agent(&self) -> Result<NodeId, DescriptorError> {
        let runtime = self.section("runtime")?;
        let entry = self.document.get(runtime, "entry_agent");
        let fault = || Fault::WrongType { field: Field::EntryAgent, expected: Expected::NonEmptyString };
        match entry {
            None => self.fail(fault(), runtime),
            entry => self.expect(Field::EntryAgent, Expected::NonEmptyString, entry),
        }
    }

    fn agents(&self) -> Result<Agents<'a>, DescriptorError> {
        let agents = self.section("agents")?;
        let entries = self.document.object(agents).unwrap_or_default();
        if entries.is_empty() {
            return self.fail(Fault::NoAgents, agents);
        }
        Ok(entries.iter().map(|entry| (self.document.resolve(&entry.key), entry.value)).collect())
    }

    fn optional(&self) -> Result<(), DescriptorError> {
        for (path, name) in OPTIONAL_SECTIONS.iter().zip(SECTION_NAMES) {
            if let Some(section) = self.document.get_path(self.root, path) {
                self.faults.keep(self.expect(Field::Section(name), Expected::Object, Some(section)))?;
            }
        }
        Ok(())
    }

    fn materialized(&self, target: &Target, owner: NodeId) -> Result<(), DescriptorError> {
        for form in [Form::File, Form::Files, Form::Sequence] {
            if let Some(node) = self.document.get(owner, form.key()) {
                return self.fail(Fault::NotMaterialized { target: target.clone(), form }, node);
            }
        }
        Ok(())
    }

    fn agent(&self, id: &str, agent: NodeId) -> Result<(), DescriptorError> {
        let target = Target::Agent(id.to_owned());
        self.expect(Field::Target(target.clone()), Expected::Object, Some(agent))?;
        self.materialized(&target, agent)?;
        if let Some(schema) = self.document.get(agent, output::KEY).filter(|id| !self.document.is_null(*id)) {
            let field = Field::Key { target: target.clone(), key: output::KEY };
            self.faults.keep(self.expect(field, Expected::Object, Some(schema)))?;
        }
        let Some(handoffs) = self.document.get(agent, "handoffs") else { return Ok(()) };
        let field = Field::Key { target: target.clone(), key: "handoffs" };
        self.expect(field, Expected::List, Some(handoffs))?;
        for (index, handoff) in self.document.list(handoffs).unwrap_or_default().iter().enumerate() {
            self.faults.keep(self.handoff(&target, index, *handoff))?;
        }
        Ok(())
    }

    fn handoff(&self, target: &Target, index: usize, handoff: NodeId) -> Result<(), DescriptorError> {
        let field = |below| Field::Item { target: target.clone(), key: "handoffs", index, below };
        if self.document.string(handoff).is_some() {
            self.expect(field(""), Expected::NonEmptyString, Some(handoff))?;
            return Ok(());
        }
        if self.document.object(handoff).is_none() {
            let fault = Fault::WrongType { field: field(""), expected: Expected::NonEmptyStringOrObject };
            return self.fail(fault, handoff);
        }
        let expect = |below, expected, node: Option<NodeId>, owner| match node {
            None => self.fail(Fault::WrongType { field: field(below), expected }, owner),
            some => self.expect(field(below), expected, some),
        };
        expect("agent", Expected::NonEmptyString, self.document.get(handoff, "agent"), handoff)?;
        if let Some(gate) = self.document.get(handoff, "where") {
            expect("where", Expected::Object, Some(gate), handoff)?;
            expect("where.context", Expected::NonEmptyString, self.document.get(gate, "context"), gate)?;
        }
        Ok(())
    }

    fn tool(&self, id: &str, tool: NodeId) -> Result<(), DescriptorError> {
        self.expect(Field::Tool(id.to_owned()), Expected::Object, Some(tool))?;
        let target = self.document.get(tool, "target");
        let fault =
            Fault::WrongType { field: Field::ToolTarget(id.to_owned()), expected: Expected::NonEmptyString };
        match target {
            Some(target) if self.non_empty_string(target) => Ok(()),
            other => self.fail(fault, other.unwrap_or(tool)),
        }
    }
}
