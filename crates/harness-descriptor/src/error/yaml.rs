//! Errors of YAML texts.

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
    #[error("a descriptor must be a single YAML document; a second one starts here")]
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
    #[error("{0} cannot be a key in a descriptor")]
    ComplexKey(&'static str),
    /// An alias inside the value that it names.
    #[error("the value contains itself through an alias")]
    Cycle,
    /// A tag that descriptors do not know, or not on this kind of value.
    #[error("unknown tag `{0}`")]
    UnknownTag(String),
    /// A value that its tag does not fit.
    #[error("the value does not match its tag `{0}`")]
    TagMismatch(String),
    /// Binary data.
    #[error("binary data is not supported in descriptors")]
    Binary,
    /// Date with fields outside the calendar.
    #[error("invalid date `{0}`")]
    InstantOutOfRange(String),
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
        }
    }

    /// Suggested fix, unless the message makes it obvious.
    pub(super) fn hint(&self) -> Option<&'static str> {
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
            | Self::TagMismatch(_) => None,
        }
    }
}
