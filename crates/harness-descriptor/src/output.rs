//! Output schemas of agents in files: the content takes the place of the path, so that the hash covers it.

use std::path::{Path, PathBuf};

use harness_diagnostics::document::{Document, NodeId};

use crate::disk::{Opened, ReadFault};
use crate::error::{DescriptorError, Fault};
use crate::faults::Faults;
use crate::field::{Field, Target};
use crate::limits::Limits;
use crate::load::{io_fault, label, parse};
use crate::paths::{Absolute, Folders, check_form, is_inside};

/// Key of an agent's JSON Schema.
pub(crate) const KEY: &str = "output";

/// A file with the JSON Schema of an agent's answers.
#[derive(Debug)]
pub(crate) struct OutputFile {
    owner: NodeId,
    /// The text that names it.
    pub(crate) node: NodeId,
    pub(crate) target: Target,
    pub(crate) written: String,
    pub(crate) resolved: PathBuf,
}

impl OutputFile {
    /// The files of all agents; their paths keep the rules of prompt paths.
    pub(crate) fn all(
        document: &Document,
        root: NodeId,
        folders: &Folders,
        faults: &Faults,
    ) -> Result<Vec<Self>, DescriptorError> {
        let agents = document.get(root, "agents").and_then(|agents| document.object(agents));
        let mut files = Vec::new();
        for agent in agents.unwrap_or_default() {
            let Some(node) = document.get(agent.value, KEY) else { continue };
            let Some(written) = document.string(node) else { continue };
            let target = Target::Agent(document.resolve(&agent.key).to_owned());
            let field = Field::Key { target: target.clone(), key: KEY };
            let resolved = check_form(&field, Some(written), Absolute::Refused)
                .and_then(|()| folders.resolve(field, written))
                .map_err(|fault| DescriptorError::new(fault, Some(document.place(node))));
            let (owner, written) = (agent.value, written.to_owned());
            files.extend(faults.keep(resolved)?.map(|resolved| Self {
                owner,
                node,
                target,
                written,
                resolved,
            }));
        }
        Ok(files)
    }

    /// Reads it from disk; links must stay inside the root directory.
    pub(crate) fn read(
        &self,
        real_root: &Path,
        limits: &Limits,
        faults: &Faults,
    ) -> Result<Document, DescriptorError> {
        let field = || Field::Key { target: self.target.clone(), key: KEY };
        let fault = |source| io_fault(self.resolved.clone(), field(), source);
        let opened = Opened::at(&self.resolved).map_err(fault)?;
        if !is_inside(&opened.real, real_root) {
            let (path, root) = (self.written.clone(), real_root.display().to_string());
            return Err(Fault::OutsideRoot { field: field(), path, root }.into());
        }
        let label = label(&opened.real);
        let bytes = opened.read(limits.prompt_bytes).map_err(|fault| match fault {
            ReadFault::Io(source) => io_fault(self.resolved.clone(), field(), source),
            ReadFault::TooLarge(actual) => {
                Fault::TooLarge { what: "output schema in bytes", limit: limits.prompt_bytes, actual }.into()
            }
        })?;
        parse(bytes, label, limits, faults)
    }

    /// Puts the schema in place of the path.
    pub(crate) fn put_in(&self, document: &mut Document, schema: &Document) {
        if let Some(content) = schema.root() {
            let copy = document.graft(schema, content, document.bytes(self.node));
            document.set(self.owner, KEY, copy);
        }
    }
}
