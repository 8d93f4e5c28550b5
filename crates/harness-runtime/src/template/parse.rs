//! Templates in Markdown files.

use harness_host::DynWorkspace;

use super::{PromptTemplate, TemplateSet};
use crate::markdown::{self, FileProblem, MarkdownFault, Reader};

/// Maximum templates of all directories.
const TEMPLATES: usize = 1_024;
/// How much of the first line describes a template that has no description.
const DESCRIPTION: usize = 60;

/// Templates of several directories.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct FoundTemplates {
    /// Templates by directory and then by path; of several with one name, the first.
    pub templates: TemplateSet,
    /// Skipped files.
    pub problems: Vec<FileProblem>,
}

/// Reads every `*.md` directly in one of the directories, in their order, 1,024 in all; the file name is the name of the
/// template. A missing directory has none. Errors are reported as problems.
pub async fn read_templates(workspace: &dyn DynWorkspace, directories: &[&str]) -> FoundTemplates {
    let mut reader = Reader::new(workspace, TEMPLATES);
    let mut templates = Vec::new();
    for directory in directories {
        for path in reader.files(directory, 1).await {
            let Some(name) = name_of(&path).map(str::to_owned) else { continue };
            let Some(text) = reader.text(&path).await else { continue };
            let parsed = PromptTemplate::parse(name, &text);
            templates.extend(reader.keep(path, parsed, |template| &template.name));
        }
    }
    FoundTemplates { templates: TemplateSet::new(templates), problems: reader.problems }
}

fn name_of(path: &str) -> Option<&str> {
    path.rsplit('/').next()?.strip_suffix(".md").filter(|name| !name.is_empty())
}

impl PromptTemplate {
    /// Reads the text of a Markdown file. Its front matter may have `description` and `argument-hint`; without
    /// a description, the beginning of the first line that is not empty is one.
    ///
    /// # Errors
    /// When it is too long or its front matter is invalid.
    pub fn parse(name: impl Into<String>, text: &str) -> Result<Self, MarkdownFault> {
        let ((description, argument_hint), body) =
            markdown::parse(text, |front| (front.text("description"), front.text("argument-hint")))?;
        let given = description.filter(|text| !text.trim().is_empty());
        let description = given.unwrap_or_else(|| first_line(body));
        let (name, content) = (name.into(), body.to_owned());
        Ok(Self { name, description, argument_hint, content })
    }
}

fn first_line(body: &str) -> String {
    let line = body.lines().map(str::trim).find(|line| !line.is_empty()).unwrap_or_default();
    match line.char_indices().nth(DESCRIPTION) {
        Some((end, _)) => format!("{}...", line.get(..end).unwrap_or_default()),
        None => line.to_owned(),
    }
}
