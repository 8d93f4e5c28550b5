//! Prompt templates: texts with places for arguments, and the commands that use them.
//!
//! | in a template | is replaced by |
//! |---|---|
//! | `$1`, `$2`, …, `$10` | that argument; nothing when there is none, and for `$0` |
//! | `$ARGUMENTS`, `$@` | all arguments, joined by spaces |
//! | `${@:N}`, `${@:N:L}` | all from the N-th on, or L of them, joined by spaces |
//!
//! Every other `$` stays as it is, and there is no escape: `$5.00` holds a place for the fifth argument. A
//! template is expanded in one pass, so an argument that looks like a place stays what it is.
//!
//! ```
//! use harness_runtime::template::PromptTemplate;
//!
//! let template = PromptTemplate::new("review", "Review $1 with regard to ${@:2}.");
//! let prompt = template.expand(&["main.rs", "errors", "and", "names"]);
//! assert_eq!(prompt, "Review main.rs with regard to errors and names.");
//! ```

mod arguments;
mod command;
mod expand;
mod parse;

pub use arguments::split_arguments;
pub use command::expand_command;
pub use parse::{FoundTemplates, read_templates};

use std::sync::Arc;

/// A text with places for arguments.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct PromptTemplate {
    /// Name of the template.
    pub name: String,
    /// Description of its purpose.
    pub description: String,
    /// Description of its arguments: `<file> [topic]`.
    pub argument_hint: Option<String>,
    /// Text with placeholders.
    pub content: String,
}

impl PromptTemplate {
    /// A template without a description.
    pub fn new(name: impl Into<String>, content: impl Into<String>) -> Self {
        Self { name: name.into(), content: content.into(), ..Self::default() }
    }

    /// The text with its places filled; see the [module](self) for the rules.
    pub fn expand<T: AsRef<str>>(&self, arguments: &[T]) -> String {
        expand::expand(&self.content, arguments)
    }
}

/// The templates that there are, in their order. Of two with one name the first counts. Cloning is cheap.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct TemplateSet(Arc<[PromptTemplate]>);

impl TemplateSet {
    /// These templates.
    pub fn new(templates: impl IntoIterator<Item = PromptTemplate>) -> Self {
        Self(templates.into_iter().collect())
    }

    /// All of them.
    pub fn templates(&self) -> &[PromptTemplate] {
        &self.0
    }

    /// The first of that name.
    pub fn get(&self, name: &str) -> Option<&PromptTemplate> {
        self.0.iter().find(|template| template.name == name)
    }

    /// The text of a template with its places filled; `None` when there is none of that name.
    pub fn expand<T: AsRef<str>>(&self, name: &str, arguments: &[T]) -> Option<String> {
        self.get(name).map(|template| template.expand(arguments))
    }
}

impl FromIterator<PromptTemplate> for TemplateSet {
    fn from_iter<I: IntoIterator<Item = PromptTemplate>>(templates: I) -> Self {
        Self::new(templates)
    }
}
