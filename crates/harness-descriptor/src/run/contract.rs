//! Contracts: inline in `run`, or in a separate file.

use std::path::{Path, PathBuf};

use harness_control::contract::{ContractFault, PredicateKind, TaskContract};
use harness_diagnostics::Diagnostic;
use harness_diagnostics::document::{Document, NodeId};

use super::shape::Shape;
use super::table;
use crate::check::Report;
use crate::disk::{Opened, ReadFault};
use crate::error::{DescriptorError, Fault};
use crate::faults::Faults;
use crate::field::Field;
use crate::limits::Limits;
use crate::load::{io_fault, label, parse};
use crate::paths::{Absolute, Folders, check_form, is_inside};

const SHAPE: Shape = Shape::Section(table::CONTRACT);

/// Name of a contract file in messages.
pub(super) const ALONE: &str = "contract";

/// Name of an inline contract in messages.
pub(super) const INLINE: &str = "run.contract";

/// Loads a contract from a YAML or JSON file. Blocks while it is read.
///
/// Its keys are those of `run.contract` in a descriptor.
///
/// # Errors
/// The first error, with its place; [`check_contract`] reports all.
pub fn load_contract(path: impl AsRef<Path>) -> Result<TaskContract, DescriptorError> {
    load(path.as_ref(), &Faults::first())?.ok_or_else(nothing)
}

/// Reports everything that is wrong with a contract in a file. Blocks while it is read.
pub fn check_contract(path: impl AsRef<Path>) -> Report {
    let faults = Faults::all();
    let loaded = load(path.as_ref(), &faults);
    let truncated = faults.is_full();
    let mut found = faults.into_found();
    let contract = loaded.unwrap_or_else(|error| {
        found.push(error);
        None
    });
    let mut diagnostics: Vec<Diagnostic> = found.iter().map(Diagnostic::from).collect();
    diagnostics.sort_by_key(|diagnostic| diagnostic.place.as_ref().map(|place| place.bytes.start));
    Report::of_contract(diagnostics, contract, truncated)
}

/// Whether the file at `path` is a contract and not a descriptor: a mapping with a `goal` or with
/// `required_outputs`, without `agents` and `runtime`. A file with invalid YAML is not a contract.
pub fn is_contract(path: impl AsRef<Path>) -> bool {
    let Ok(document) = open(path.as_ref(), &Faults::first()) else { return false };
    let Some(root) = document.root() else { return false };
    let has = |key| document.get(root, key).is_some();
    (has("goal") || has("required_outputs")) && !has("agents") && !has("runtime")
}

fn load(path: &Path, faults: &Faults) -> Result<Option<TaskContract>, DescriptorError> {
    let document = open(path, faults)?;
    read(&document, document.root(), ALONE, faults)
}

fn open(path: &Path, faults: &Faults) -> Result<Document, DescriptorError> {
    let fault = |source| io_fault(path.to_owned(), Field::Section(ALONE), source);
    parsed(Opened::at(path).map_err(fault)?, path, &Limits::default(), faults)
}

fn parsed(
    opened: Opened,
    path: &Path,
    limits: &Limits,
    faults: &Faults,
) -> Result<Document, DescriptorError> {
    let label = label(&opened.real);
    let bytes = opened.read(limits.prompt_bytes).map_err(|fault| match fault {
        ReadFault::Io(source) => io_fault(path.to_owned(), Field::Section(ALONE), source),
        ReadFault::TooLarge(actual) => {
            Fault::TooLarge { what: "contract in bytes", limit: limits.prompt_bytes, actual }.into()
        }
    })?;
    parse(bytes, label, limits, faults)
}

/// Error of a file without a value.
fn nothing() -> DescriptorError {
    Fault::setting(format!("{ALONE} must be a mapping, not nothing")).into()
}

/// The file that `run.contract` of a descriptor names.
#[derive(Debug)]
pub(crate) struct ContractFile {
    /// The text that names it.
    pub(crate) node: NodeId,
    pub(crate) written: String,
    pub(crate) resolved: PathBuf,
}

impl ContractFile {
    /// The file, if there is one; its path keeps the rules of prompt paths.
    pub(crate) fn of(
        document: &Document,
        root: NodeId,
        folders: &Folders,
    ) -> Result<Option<Self>, DescriptorError> {
        let Some(node) = document.get_path(root, &["run", "contract"]) else { return Ok(None) };
        let Some(written) = document.string(node) else { return Ok(None) };
        let field = Field::Section(INLINE);
        let resolved = check_form(&field, Some(written), Absolute::Refused)
            .and_then(|()| folders.resolve(field, written))
            .map_err(|fault| DescriptorError::new(fault, Some(document.place(node))))?;
        Ok(Some(Self { node, written: written.to_owned(), resolved }))
    }

    /// Reads it from disk; links must stay inside the root directory.
    pub(crate) fn read(
        &self,
        real_root: &Path,
        limits: &Limits,
        faults: &Faults,
    ) -> Result<Document, DescriptorError> {
        let fault = |source| io_fault(self.resolved.clone(), Field::Section(INLINE), source);
        let opened = Opened::at(&self.resolved).map_err(fault)?;
        if !is_inside(&opened.real, real_root) {
            let (path, root) = (self.written.clone(), real_root.display().to_string());
            return Err(Fault::OutsideRoot { field: Field::Section(INLINE), path, root }.into());
        }
        parsed(opened, &self.resolved, limits, faults)
    }
}

/// Contract at a node; `None` if its errors were collected.
pub(super) fn read(
    document: &Document,
    node: Option<NodeId>,
    path: &str,
    faults: &Faults,
) -> Result<Option<TaskContract>, DescriptorError> {
    let Some(node) = node else { return faults.report(nothing()).map(|()| None) };
    if !SHAPE.check(document, node, path, faults)? {
        return Ok(None);
    }
    let before = faults.count();
    let at = |fault, node| DescriptorError::new(fault, Some(document.place(node)));
    let contract: TaskContract = match serde_json::from_value(SHAPE.json(document, node)) {
        Ok(contract) => contract,
        Err(error) => {
            return faults.report(at(Fault::setting(format!("{path}: {error}")), node)).map(|()| None);
        }
    };
    let written = Written { document, node };
    for fault in contract.check() {
        let place = written.node_of(&fault);
        faults.report(at(Fault::Contract { path: path.to_owned(), fault }, place))?;
    }
    for output in &contract.required_outputs {
        if let PredicateKind::FileExists { path: file } = &output.predicate.kind
            && leads_out(file)
        {
            let node = written.arg(&output.id, "path");
            let message = format!(
                "{path}: `path` of required output `{}` must be a relative path that stays in the workspace, \
                 not `{file}`",
                output.id
            );
            faults.report(at(Fault::setting(message), node))?;
        }
    }
    Ok(Some(contract).filter(|_| faults.count() == before))
}

/// Whether no file of a workspace can have this path.
fn leads_out(path: &str) -> bool {
    let path = Path::new(path);
    path.has_root() || path.components().any(|part| matches!(part, std::path::Component::ParentDir))
}

/// Contract as written, for the places of its errors.
struct Written<'a> {
    document: &'a Document,
    node: NodeId,
}

impl Written<'_> {
    fn items(&self, key: &str) -> &[NodeId] {
        self.document.get(self.node, key).and_then(|id| self.document.list(id)).unwrap_or_default()
    }

    /// The items of a list that have this id.
    fn named(&self, key: &str, id: &str) -> impl Iterator<Item = NodeId> {
        let is = move |node: &&NodeId| {
            self.document.get(**node, "id").and_then(|name| self.document.string(name)) == Some(id)
        };
        self.items(key).iter().filter(is).copied()
    }

    /// An argument of an output's predicate, or what comes nearest to it.
    fn arg(&self, output: &str, arg: &str) -> NodeId {
        let Some(output) = self.named("required_outputs", output).next() else { return self.node };
        let at = |path: &[&str]| self.document.get_path(output, path);
        at(&["predicate", "args", arg]).or_else(|| at(&["predicate"])).unwrap_or(output)
    }

    fn node_of(&self, fault: &ContractFault) -> NodeId {
        if let ContractFault::Twice { id } = fault {
            let all = self.named("required_outputs", id).chain(self.named("questions", id));
            let second = all.last().unwrap_or(self.node);
            return self.document.get(second, "id").unwrap_or(second);
        }
        if let ContractFault::Predicate { output, .. } = fault {
            return self.arg(output, "pattern");
        }
        if let ContractFault::NoSuchOutput { question, output } = fault {
            let Some(question) = self.named("questions", question).next() else { return self.node };
            let needs = self.document.get(question, "required_for").and_then(|list| self.document.list(list));
            let mut needs = needs.unwrap_or_default().iter();
            let found = needs.find(|name| self.document.string(**name) == Some(output));
            return found.copied().unwrap_or(question);
        }
        self.node
    }
}
