//! Errors of YAML texts.

use crate::diagnostic::{Diagnostic, Severity};
use crate::place::Place;

/// Error in a YAML text.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum YamlFault {
    /// The parser's own reason.
    #[error("invalid YAML: {0}")]
    Syntax(String),
    /// A NUL or another control character that YAML forbids.
    #[error("invalid YAML: control character U+{0:04X}")]
    ControlCharacter(u32),
    /// More than one document.
    #[error("only one YAML document is allowed; a second one starts here")]
    SecondDocument,
    /// A key that the mapping already has.
    #[error("duplicate key `{key}`, first defined on line {first_line}")]
    DuplicateKey {
        /// The key as text.
        key: String,
        /// The line of its first use, from 1.
        first_line: u32,
    },
    /// `<<` over something other than a mapping or a list of mappings.
    #[error("`<<` requires a mapping or a list of mappings")]
    MergeSource,
    /// A list, mapping or date as a key.
    #[error("{0} cannot be a key")]
    ComplexKey(&'static str),
    /// An alias inside the value that it names.
    #[error("the value contains itself through an alias")]
    Cycle,
    /// An unknown tag, or one that this kind of value cannot have.
    #[error("unknown tag `{0}`")]
    UnknownTag(String),
    /// A value that does not match its tag.
    #[error("the value does not match its tag `{0}`")]
    TagMismatch(String),
    /// Binary data.
    #[error("binary data is not supported")]
    Binary,
    /// Date with fields outside the calendar.
    #[error("invalid date `{0}`")]
    InstantOutOfRange(String),
    /// The text exceeds a limit.
    #[error("{what} of {actual} exceeds the limit of {limit}")]
    TooLarge {
        /// Counted quantity, with its unit.
        what: &'static str,
        /// Limit, in that unit.
        limit: u64,
        /// The count at which reading stopped.
        actual: u64,
    },
}

impl YamlFault {
    /// The stable code.
    pub fn kind(&self) -> &'static str {
        match self {
            Self::Syntax(_) | Self::ControlCharacter(_) => "yaml.syntax",
            Self::SecondDocument => "yaml.second_document",
            Self::DuplicateKey { .. } => "yaml.duplicate_key",
            Self::MergeSource => "yaml.merge_source",
            Self::ComplexKey(_) => "yaml.complex_key",
            Self::Cycle => "yaml.cycle",
            Self::UnknownTag(_) | Self::TagMismatch(_) => "yaml.tag",
            Self::Binary => "yaml.binary",
            Self::InstantOutOfRange(_) => "yaml.instant_out_of_range",
            Self::TooLarge { .. } => "yaml.too_large",
        }
    }

    /// Suggested fix, unless the message makes it obvious.
    pub fn hint(&self) -> Option<&'static str> {
        match self {
            Self::ComplexKey(_) | Self::InstantOutOfRange(_) => Some("put it in quotes to make it a string"),
            Self::Binary => Some("remove the tag to keep the base64 text as a string"),
            Self::Syntax(_) => Some("check indentation and quotes at that place"),
            Self::SecondDocument => Some("keep one document in the file"),
            Self::ControlCharacter(_)
            | Self::DuplicateKey { .. }
            | Self::MergeSource
            | Self::Cycle
            | Self::UnknownTag(_)
            | Self::TagMismatch(_)
            | Self::TooLarge { .. } => None,
        }
    }
}

/// Error in a YAML text, with its place.
///
/// Displays as `file:line:column: message`.
#[derive(Clone, Debug, PartialEq)]
pub struct YamlError {
    /// Kind and data of the error.
    pub fault: YamlFault,
    /// Place of the error; `None` if it concerns the whole text.
    pub place: Option<Place>,
}

impl std::fmt::Display for YamlError {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match &self.place {
            Some(place) => write!(f, "{place}: {}", self.fault),
            None => write!(f, "{}", self.fault),
        }
    }
}

impl std::error::Error for YamlError {}

impl From<YamlError> for Diagnostic {
    fn from(error: YamlError) -> Self {
        Self::new(Severity::Error, error.fault.kind(), error.fault.to_string())
            .at(error.place)
            .with_hint(error.fault.hint().map(str::to_owned))
    }
}
