//! Materialization of a descriptor: prompt files and sequences become plain `instructions`
//! (reference section 3).
//!
//! All errors of file references precede errors of sequences, and all errors of form precede
//! reading.

use std::collections::HashMap;
use std::path::PathBuf;
use std::sync::Arc;

use harness_diagnostics::document::{Document, Entry, Kind, LossyReason, NodeId, Origin, Text};

use crate::disk::PromptText;
use crate::error::{DescriptorError, Fault};
use crate::faults::Faults;
use crate::field::{Expected, Field, Form, Target};
use crate::limits::Limits;
use crate::number::is_blank;
use crate::paths::{Absolute, Folders, check_form};

/// One reference to a prompt file.
#[derive(Clone, Debug)]
pub(crate) struct PromptRef {
    pub(crate) field: Field,
    pub(crate) target: Target,
    pub(crate) written: String,
    pub(crate) resolved: PathBuf,
    /// The name of the file in messages.
    pub(crate) label: Arc<str>,
    pub(crate) node: NodeId,
}

/// Everything that materialization has to do, in order.
#[derive(Debug)]
pub(crate) struct Plan {
    files: Vec<FileForm>,
    sequences: Vec<Sequence>,
    /// Owners of forms with collected errors; the rest of these forms is removed.
    broken: Vec<NodeId>,
}

#[derive(Debug)]
struct FileForm {
    owner: NodeId,
    form: Form,
    value: NodeId,
    prompts: Vec<PromptRef>,
}

#[derive(Debug)]
struct Sequence {
    owner: NodeId,
    value: NodeId,
    items: Vec<Item>,
}

#[derive(Debug)]
struct Item {
    node: NodeId,
    content: Content,
    /// The text node of `where.context`.
    gate: Option<NodeId>,
}

#[derive(Debug)]
enum Content {
    Prompt(PromptRef),
    Node(NodeId),
}

impl Plan {
    /// Collects and checks all file forms, then all sequences.
    pub(crate) fn collect(
        document: &Document,
        root: NodeId,
        folders: &Folders,
        faults: &Faults,
    ) -> Result<Self, DescriptorError> {
        let collector = Collector { document, root, folders, faults, catalog: None };
        collector.collect()
    }

    /// All references to prompt files, in the order in which they are needed.
    pub(crate) fn prompts(&self) -> impl Iterator<Item = &PromptRef> {
        let in_sequences = self.sequences.iter().flat_map(|sequence| &sequence.items);
        let in_sequences = in_sequences.filter_map(|item| match &item.content {
            Content::Prompt(prompt) => Some(prompt),
            Content::Node(_) => None,
        });
        self.files.iter().flat_map(|form| &form.prompts).chain(in_sequences)
    }

    /// Replaces every form by plain instructions; `fetch` gives the text of a prompt file.
    pub(crate) fn apply(
        self,
        document: &mut Document,
        limits: &Limits,
        faults: &Faults,
        fetch: impl FnMut(&Document, &PromptRef) -> Result<PromptText, DescriptorError>,
    ) -> Result<(), DescriptorError> {
        let budget = TextBudget { limit: limits.text_bytes, used: 0 };
        let mut prompts = Prompts { fetch, budget, faults };
        for form in self.files {
            form.apply(document, &mut prompts)?;
        }
        for sequence in self.sequences {
            sequence.apply(document, &mut prompts)?;
        }
        for owner in self.broken {
            for form in [Form::File, Form::Files, Form::Sequence] {
                document.remove(owner, form.key());
            }
        }
        Ok(())
    }
}

/// Separator between the texts of several files.
const SEPARATOR: &str = "\n\n";

impl FileForm {
    fn apply<F: Fetch>(
        self,
        document: &mut Document,
        prompts: &mut Prompts<'_, F>,
    ) -> Result<(), DescriptorError> {
        let mut texts = Vec::with_capacity(self.prompts.len() + 1);
        let mut origins = Vec::with_capacity(self.prompts.len());
        for prompt in &self.prompts {
            let Some(text) = prompts.fetch(document, prompt)? else { continue };
            let start = origins.last().map_or(0, |last: &Origin| last.bytes.end + SEPARATOR.len());
            origins.push(Origin { file: Arc::clone(&prompt.label), bytes: start..start + text.len() });
            texts.push(text);
        }
        // Inline text is read now and not when the form was collected: a mapping shared by two
        // agents already holds the result of the first pass here, and upstream appends that.
        let inline = document.get(self.owner, Form::Inline.key()).and_then(|id| document.string(id));
        prompts.budget.take(inline.unwrap_or_default())?;
        let text = match (self.form, inline.filter(|text| !text.is_empty())) {
            (Form::Files, Some(inline)) => {
                texts.push(inline.into());
                texts.join(SEPARATOR).into()
            }
            _ => match texts.as_slice() {
                [only] => Arc::clone(only),
                several => several.join(SEPARATOR).into(),
            },
        };
        let instructions = document.push(Kind::Text(Text::Shared(text)), document.bytes(self.value));
        document.set_origins(instructions, origins);
        document.set(self.owner, Form::Inline.key(), instructions);
        document.remove(self.owner, Form::File.key());
        document.remove(self.owner, Form::Files.key());
        Ok(())
    }
}

impl Sequence {
    fn apply<F: Fetch>(
        self,
        document: &mut Document,
        prompts: &mut Prompts<'_, F>,
    ) -> Result<(), DescriptorError> {
        let mut parts = Vec::with_capacity(self.items.len());
        for Item { node, content, gate } in self.items {
            let text = match content {
                Content::Node(id) => {
                    prompts.budget.take(document.string(id).unwrap_or_default())?;
                    id
                }
                Content::Prompt(prompt) => {
                    let Some(text) = prompts.fetch(document, &prompt)? else { continue };
                    let origin = Origin { file: prompt.label, bytes: 0..text.len() };
                    let id = document.push(Kind::Text(Text::Shared(text)), document.bytes(prompt.node));
                    document.set_origins(id, vec![origin]);
                    id
                }
            };
            let bytes = document.bytes(node);
            let mut entries = vec![entry(document, "text", text)];
            if let Some(context) = gate {
                let context_entry = entry(document, "context", context);
                let gate_bytes = document.bytes(context);
                let gate = document.push(Kind::Map(vec![context_entry]), gate_bytes);
                entries.push(entry(document, "where", gate));
            }
            parts.push(document.push(Kind::Map(entries), bytes));
        }
        let list = document.push(Kind::List(parts), document.bytes(self.value));
        document.set(self.owner, Form::Inline.key(), list);
        document.remove(self.owner, Form::Sequence.key());
        Ok(())
    }
}

fn entry(document: &Document, key: &'static str, value: NodeId) -> Entry {
    Entry { key: Text::Shared(key.into()), key_bytes: document.bytes(value), value, merged: false }
}

struct Collector<'a> {
    document: &'a Document,
    root: NodeId,
    folders: &'a Folders,
    faults: &'a Faults,
    /// `instruction_parts` by name, made at the first use.
    catalog: Option<HashMap<&'a str, NodeId>>,
}

impl Collector<'_> {
    fn collect(mut self) -> Result<Plan, DescriptorError> {
        let targets = self.targets();
        let (mut files, mut sequences, mut broken) = (Vec::new(), Vec::new(), Vec::new());
        for (target, owner) in &targets {
            match self.faults.keep(self.file_form(target, *owner))? {
                Some(form) => files.extend(form),
                None => broken.push(*owner),
            }
        }
        for (target, owner) in &targets {
            if broken.contains(owner) {
                continue;
            }
            match self.faults.keep(self.sequence(target, *owner))? {
                Some(sequence) => sequences.extend(sequence),
                None => broken.push(*owner),
            }
        }
        Ok(Plan { files, sequences, broken })
    }

    /// The defaults, then the agents in order; what is not an object is left to the builder.
    fn targets(&self) -> Vec<(Target, NodeId)> {
        let document = self.document;
        let defaults = document.get(self.root, "agent_defaults").map(|id| (Target::Defaults, id));
        let agents = document.get(self.root, "agents").and_then(|agents| document.object(agents));
        let agents = agents
            .unwrap_or_default()
            .iter()
            .map(|entry| (Target::Agent(document.resolve(&entry.key).to_owned()), entry.value));
        defaults.into_iter().chain(agents).filter(|(_, id)| document.object(*id).is_some()).collect()
    }

    fn fail<T>(&self, fault: Fault, node: NodeId) -> Result<T, DescriptorError> {
        Err(DescriptorError::new(fault, Some(self.document.place(node))))
    }

    fn file_form(&self, target: &Target, owner: NodeId) -> Result<Option<FileForm>, DescriptorError> {
        let get = |form: Form| self.document.get(owner, form.key());
        let (inline, file, files) = (get(Form::Inline), get(Form::File), get(Form::Files));
        let exclusive = |first, second| Fault::Exclusive { target: target.clone(), first, second };
        if let (Some(node), Some(_)) = (file, files) {
            return self.fail(exclusive(Form::File, Form::Files), node);
        }
        if let (Some(node), Some(_)) = (file, inline) {
            return self.fail(exclusive(Form::Inline, Form::File), node);
        }
        if let (Some(node), Some(_)) = (get(Form::Sequence), file.or(files)) {
            let second = if file.is_some() { Form::File } else { Form::Files };
            return self.fail(exclusive(Form::Sequence, second), node);
        }
        if let (Some(_), Some(inline)) = (files, inline)
            && self.document.string(inline).is_none()
        {
            return self.fail(Fault::InlineBesideFiles { target: target.clone() }, inline);
        }
        match (file, files) {
            (Some(value), _) => {
                let field = Field::Key { target: target.clone(), key: Form::File.key() };
                self.check_path(&field, value)?;
                let prompt = self.prompt(field, target, value)?;
                Ok(Some(FileForm { owner, form: Form::File, value, prompts: vec![prompt] }))
            }
            (None, Some(value)) => {
                let prompts = self.prompt_list(target, value)?;
                Ok(Some(FileForm { owner, form: Form::Files, value, prompts }))
            }
            (None, None) => Ok(None),
        }
    }

    fn prompt_list(&self, target: &Target, value: NodeId) -> Result<Vec<PromptRef>, DescriptorError> {
        let key = Form::Files.key();
        let whole = Field::Key { target: target.clone(), key };
        let Some(items) = self.document.list(value).filter(|items| !items.is_empty()) else {
            return self
                .fail(Fault::WrongType { field: whole, expected: Expected::NonEmptyStringList }, value);
        };
        let item = |index| Field::Item { target: target.clone(), key, index, below: "" };
        let mut sound = Vec::with_capacity(items.len());
        for (index, id) in items.iter().enumerate() {
            let checked = self.check_path(&item(index), *id);
            sound.extend(self.faults.keep(checked)?.map(|()| (index, *id)));
        }
        let label = |index| if items.len() > 1 { item(index) } else { whole.clone() };
        let mut prompts = Vec::with_capacity(sound.len());
        for (index, id) in sound {
            prompts.extend(self.faults.keep(self.prompt(label(index), target, id))?);
        }
        Ok(prompts)
    }

    fn check_path(&self, field: &Field, node: NodeId) -> Result<(), DescriptorError> {
        check_form(field, self.document.string(node), Absolute::Refused)
            .or_else(|fault| self.fail(fault, node))
    }

    /// A prompt path that passed [`Self::check_path`], checked against the root.
    fn prompt(&self, field: Field, target: &Target, node: NodeId) -> Result<PromptRef, DescriptorError> {
        let written = self.document.string(node).unwrap_or_default();
        match self.folders.resolve(field.clone(), written) {
            Ok(resolved) => {
                let (target, written) = (target.clone(), written.to_owned());
                let label = match self.folders.descriptor {
                    Some(_) => resolved.display().to_string().into(),
                    None => written.as_str().into(),
                };
                Ok(PromptRef { field, target, written, resolved, label, node })
            }
            Err(fault) => self.fail(fault, node),
        }
    }

    fn sequence(&mut self, target: &Target, owner: NodeId) -> Result<Option<Sequence>, DescriptorError> {
        let document = self.document;
        let Some(value) = document.get(owner, Form::Sequence.key()) else { return Ok(None) };
        for second in [Form::Inline, Form::File, Form::Files] {
            if document.get(owner, second.key()).is_some() {
                return self
                    .fail(Fault::Exclusive { target: target.clone(), first: Form::Sequence, second }, value);
            }
        }
        let Some(nodes) = document.list(value).filter(|nodes| !nodes.is_empty()) else {
            let field = Field::Key { target: target.clone(), key: Form::Sequence.key() };
            return self.fail(Fault::WrongType { field, expected: Expected::NonEmptyList }, value);
        };
        let mut items = Vec::with_capacity(nodes.len());
        for (index, node) in nodes.iter().enumerate() {
            let item = self.item(target, index, *node);
            items.extend(self.faults.keep(item)?);
        }
        Ok(Some(Sequence { owner, value, items }))
    }

    fn item(&mut self, target: &Target, index: usize, node: NodeId) -> Result<Item, DescriptorError> {
        let document = self.document;
        let field = |below| Field::Item { target: target.clone(), key: Form::Sequence.key(), index, below };
        let wrong = |below, expected| Fault::WrongType { field: field(below), expected };
        if document.object(node).is_none() {
            return self.fail(wrong("", Expected::Object), node);
        }
        let kinds = ["file", "ref", "text"].map(|key| document.get(node, key));
        let found = kinds.iter().flatten().count();
        if found != 1 {
            return self.fail(Fault::ItemKinds { target: target.clone(), index, found }, node);
        }
        let gate = match document.get(node, "where") {
            None => None,
            Some(gate) if document.object(gate).is_none() => {
                return self.fail(wrong("where", Expected::Object), gate);
            }
            Some(gate) => {
                let context = document.get(gate, "context");
                match context.and_then(|id| Some((id, document.string(id)?))) {
                    None => {
                        return self.fail(wrong("where.context", Expected::String), context.unwrap_or(gate));
                    }
                    Some((id, path)) if is_blank(path) => {
                        return self.fail(wrong("where.context", Expected::NonEmptyString), id);
                    }
                    Some((id, _)) => Some(id),
                }
            }
        };
        let content = match kinds {
            [Some(file), ..] => {
                self.check_path(&field("file"), file)?;
                Content::Prompt(self.prompt(field("file"), target, file)?)
            }
            [_, Some(part), _] => Content::Node(self.catalog_part(target, index, part)?),
            [.., Some(text)] if document.string(text).is_some() => Content::Node(text),
            [.., text] => return self.fail(wrong("text", Expected::String), text.unwrap_or(node)),
        };
        Ok(Item { node, content, gate })
    }

    fn catalog_part(
        &mut self,
        target: &Target,
        index: usize,
        node: NodeId,
    ) -> Result<NodeId, DescriptorError> {
        let document = self.document;
        let field = Field::Item { target: target.clone(), key: Form::Sequence.key(), index, below: "ref" };
        let Some(name) = document.string(node) else {
            return self.fail(Fault::WrongType { field, expected: Expected::String }, node);
        };
        if is_blank(name) {
            return self.fail(Fault::WrongType { field, expected: Expected::NonEmptyString }, node);
        }
        let (target, part) = (target.clone(), name.to_owned());
        let catalog = document.get(self.root, "instruction_parts").and_then(|id| document.object(id));
        let Some(entries) = catalog else {
            return self.fail(Fault::NoCatalog { target, index, part }, node);
        };
        let catalog = self.catalog.get_or_insert_with(|| {
            entries.iter().map(|entry| (document.resolve(&entry.key), entry.value)).collect()
        });
        match catalog.get(name).copied() {
            None => {
                let place = Some(document.place(node));
                let known = entries.iter().map(|entry| document.resolve(&entry.key));
                Err(DescriptorError::new(Fault::UnknownPart { target, index, part }, place)
                    .suggest(name, known))
            }
            Some(text) if document.string(text).is_none() => {
                let field = Field::CatalogPart(part);
                self.fail(Fault::WrongType { field, expected: Expected::String }, text)
            }
            Some(text) => Ok(text),
        }
    }
}

/// Gives the text of a prompt file.
trait Fetch: FnMut(&Document, &PromptRef) -> Result<PromptText, DescriptorError> {}
impl<F: FnMut(&Document, &PromptRef) -> Result<PromptText, DescriptorError>> Fetch for F {}

struct Prompts<'a, F> {
    fetch: F,
    budget: TextBudget,
    faults: &'a Faults,
}

impl<F: Fetch> Prompts<'_, F> {
    /// Reads a text; `None` if its error was collected.
    fn fetch(
        &mut self,
        document: &mut Document,
        prompt: &PromptRef,
    ) -> Result<Option<Arc<str>>, DescriptorError> {
        let Some(PromptText { text, lossy }) = self.faults.keep((self.fetch)(document, prompt))? else {
            return Ok(None);
        };
        self.budget.take(&text)?;
        if lossy {
            document.push_lossy(document.bytes(prompt.node), LossyReason::InvalidUtf8);
        }
        Ok(Some(text))
    }
}

/// Bounds the text that materialization adds, each use of a prompt or part counted.
struct TextBudget {
    limit: u64,
    used: u64,
}

impl TextBudget {
    fn take(&mut self, text: &str) -> Result<(), Fault> {
        self.used = self.used.saturating_add(text.len() as u64);
        if self.used > self.limit {
            return Err(Fault::TooLarge {
                what: "text of all instructions in bytes",
                limit: self.limit,
                actual: self.used,
            });
        }
        Ok(())
    }
}
