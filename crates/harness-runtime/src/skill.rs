//! Skills and prompt templates, as data.

use std::sync::Arc;

/// Instructions for one sort of task, which a model or a user may ask for.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct Skill {
    /// Its name.
    pub name: Arc<str>,
    /// What it is for, in a sentence.
    pub description: Arc<str>,
    /// The instructions.
    pub content: Arc<str>,
    /// Whether only a user may ask for it: a model is not told of it. Default false.
    pub hidden: bool,
}

impl Skill {
    /// A skill that a model is told of.
    pub fn new(
        name: impl Into<Arc<str>>,
        description: impl Into<Arc<str>>,
        content: impl Into<Arc<str>>,
    ) -> Self {
        Self { name: name.into(), description: description.into(), content: content.into(), hidden: false }
    }

    /// The same skill, of which a model is not told.
    #[must_use]
    pub fn hidden(mut self) -> Self {
        self.hidden = true;
        self
    }
}

/// A prompt with places for arguments.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct PromptTemplate {
    /// Its name.
    pub name: Arc<str>,
    /// What it is for, in a sentence.
    pub description: Arc<str>,
    /// The text.
    pub content: Arc<str>,
}

impl PromptTemplate {
    /// A template.
    pub fn new(
        name: impl Into<Arc<str>>,
        description: impl Into<Arc<str>>,
        content: impl Into<Arc<str>>,
    ) -> Self {
        Self { name: name.into(), description: description.into(), content: content.into() }
    }
}
