//! Templates in folders, read through the workspace port.

use std::collections::BTreeMap;

use harness_host::{DynWorkspace, EntryKind, WorkspaceFault, WorkspaceFaultCode};

use super::{PromptTemplate, TemplateFault, TemplateSet};

/// How many entries of a folder are looked at.
const ENTRIES: u32 = 10_000;
/// How many templates are read from all folders together.
const TEMPLATES: usize = 1_024;

/// What was found in folders of templates.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct FoundTemplates {
    /// The templates, by folder and then by path. Of several with one name only the first is there.
    pub templates: TemplateSet,
    /// What was left out.
    pub problems: Vec<TemplateProblem>,
}

/// What was left out of a folder of templates, and why.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum TemplateProblem {
    /// A folder or file could not be read.
    #[error("{path}: {fault}")]
    Unreadable {
        /// What.
        path: String,
        /// Why.
        fault: WorkspaceFault,
    },
    /// A file is no template.
    #[error("{path}: {fault}")]
    NoTemplate {
        /// The file.
        path: String,
        /// Why.
        fault: TemplateFault,
    },
    /// A template has the name of an earlier one.
    #[error("{path}: left out, as `{name}` is the name of {first} already")]
    NameTaken {
        /// The file.
        path: String,
        /// The name.
        name: String,
        /// The earlier one's file.
        first: String,
    },
    /// There are more than are read.
    #[error("{path}: left out, as {most} templates were read before it")]
    TooMany {
        /// The file.
        path: String,
        /// The bound.
        most: usize,
    },
}

/// Reads every `*.md` that lies directly in one of the folders, of earlier folders first, 1024 in all; a
/// template is named after its file. A folder that does not exist has none. Nothing here fails: what cannot be
/// used is told as a problem.
pub async fn read_templates(workspace: &dyn DynWorkspace, folders: &[&str]) -> FoundTemplates {
    let mut names = BTreeMap::new();
    let mut templates = Vec::new();
    let mut problems = Vec::new();
    for folder in folders {
        let entries = match workspace.list_boxed(folder, 1, ENTRIES).await {
            Ok(entries) => entries,
            Err(fault) => {
                problems.push(TemplateProblem::Unreadable { path: (*folder).to_owned(), fault });
                continue;
            }
        };
        for path in entries.into_iter().filter(|entry| entry.kind != EntryKind::Dir).map(|entry| entry.path) {
            let Some(name) = name_of(&path) else { continue };
            if templates.len() == TEMPLATES {
                problems.push(TemplateProblem::TooMany { path, most: TEMPLATES });
            } else if let Some(first) = names.get(name) {
                let (name, first) = (name.to_owned(), String::clone(first));
                problems.push(TemplateProblem::NameTaken { path, name, first });
            } else {
                match read(workspace, name, &path).await {
                    Ok(template) => {
                        names.insert(name.to_owned(), path.clone());
                        templates.push(template);
                    }
                    Err(problem) => problems.push(problem),
                }
            }
        }
    }
    FoundTemplates { templates: TemplateSet::new(templates), problems }
}

fn name_of(path: &str) -> Option<&str> {
    path.rsplit('/').next()?.strip_suffix(".md").filter(|name| !name.is_empty())
}

async fn read(
    workspace: &dyn DynWorkspace,
    name: &str,
    path: &str,
) -> Result<PromptTemplate, TemplateProblem> {
    let unreadable = |fault| TemplateProblem::Unreadable { path: path.to_owned(), fault };
    let fault = |code, text: &str| unreadable(WorkspaceFault::new(code, text));
    match workspace.read_boxed(path).await.map_err(unreadable)? {
        Some(file) if file.base64 => Err(fault(WorkspaceFaultCode::NotText, "it is no UTF-8 text")),
        Some(file) => PromptTemplate::parse(name, &file.content)
            .map_err(|fault| TemplateProblem::NoTemplate { path: path.to_owned(), fault }),
        None => Err(fault(WorkspaceFaultCode::NotFound, "it went away while it was read")),
    }
}
