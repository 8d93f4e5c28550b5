//! Templates in Markdown files.

use serde::Deserialize;

use super::PromptTemplate;
use crate::front_matter::{self, FrontMatterFault};

/// The longest template that is read, in bytes.
const MAX_BYTES: usize = 256 * 1024;
/// How much of the first line describes a template that has no description.
const DESCRIPTION: usize = 60;

/// Why a text is no template.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum TemplateFault {
    /// The front matter cannot be read.
    #[error("{0}")]
    FrontMatter(#[from] FrontMatterFault),
    /// The text is too long.
    #[error("it has {bytes} bytes; at most {most} are read")]
    TooLong {
        /// Its length.
        bytes: usize,
        /// The bound.
        most: usize,
    },
}

impl TemplateFault {
    /// A stable code.
    pub fn kind(&self) -> &'static str {
        match self {
            Self::FrontMatter(_) => "template.front_matter",
            Self::TooLong { .. } => "template.too_long",
        }
    }
}

#[derive(Default, Deserialize)]
#[serde(rename_all = "kebab-case", default)]
struct Front {
    description: Option<String>,
    argument_hint: Option<String>,
}

impl PromptTemplate {
    /// Reads the text of a Markdown file. Its front matter may have `description` and `argument-hint`; without
    /// a description, the beginning of the first line that is not empty is one.
    ///
    /// # Errors
    /// A [`TemplateFault`] when it is too long or its front matter cannot be read.
    pub fn parse(name: impl Into<String>, text: &str) -> Result<Self, TemplateFault> {
        if text.len() > MAX_BYTES {
            return Err(TemplateFault::TooLong { bytes: text.len(), most: MAX_BYTES });
        }
        let (front, body) = front_matter::parse::<Front>(text)?;
        let given = front.description.filter(|text| !text.trim().is_empty());
        let description = given.unwrap_or_else(|| first_line(body));
        let (name, content) = (name.into(), body.to_owned());
        Ok(Self { name, description, argument_hint: front.argument_hint, content })
    }
}

fn first_line(body: &str) -> String {
    let line = body.lines().map(str::trim).find(|line| !line.is_empty()).unwrap_or_default();
    match line.char_indices().nth(DESCRIPTION) {
        Some((end, _)) => format!("{}...", line.get(..end).unwrap_or_default()),
        None => line.to_owned(),
    }
}
