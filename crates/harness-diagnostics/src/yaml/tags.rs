//! Explicit tags: what they make of a node.

use granit_parser::Tag;

use super::fault::YamlFault;
use super::scalar::{self, Scalar};

const NAMESPACE: &str = "tag:yaml.org,2002:";

/// The tags that descriptors know.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Known {
    /// `!`: keeps a plain scalar a string.
    NonSpecific,
    Str,
    Int,
    Float,
    Bool,
    Null,
    Timestamp,
    Merge,
    Seq,
    Map,
    Set,
    Omap,
    Pairs,
}

impl Known {
    /// Whether the tag is valid on a list (or else on a mapping).
    pub(super) fn fits_collection(self, is_list: bool) -> bool {
        match self {
            Self::NonSpecific => true,
            Self::Seq | Self::Omap | Self::Pairs => is_list,
            Self::Map | Self::Set => !is_list,
            Self::Str | Self::Int | Self::Float | Self::Bool | Self::Null | Self::Timestamp | Self::Merge => {
                false
            }
        }
    }
}

/// Reads a tag; binary data and everything unknown is refused.
pub(super) fn known(tag: &Tag) -> Result<Known, YamlFault> {
    let name = tag.suffix_in_namespace(NAMESPACE);
    Ok(match name.as_deref() {
        Some("str") => Known::Str,
        Some("int") => Known::Int,
        Some("float") => Known::Float,
        Some("bool") => Known::Bool,
        Some("null") => Known::Null,
        Some("timestamp") => Known::Timestamp,
        Some("merge") => Known::Merge,
        Some("seq") => Known::Seq,
        Some("map") => Known::Map,
        Some("set") => Known::Set,
        Some("omap") => Known::Omap,
        Some("pairs") => Known::Pairs,
        Some("binary") => return Err(YamlFault::Binary),
        _ if matches!(tag.parts(), ("", "!") | ("!", "")) => Known::NonSpecific,
        _ => return Err(YamlFault::UnknownTag(tag.original())),
    })
}

/// Value of a tagged scalar: a typed value, a merge key, or an empty collection.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) enum Tagged {
    Scalar(Scalar),
    Merge,
    EmptyList,
    EmptyMap,
}

/// Applies `tag` to a scalar. `absent` means that no value follows the tag.
pub(super) fn scalar(tag: &Tag, text: &str, absent: bool) -> Result<Tagged, YamlFault> {
    let mismatch = || YamlFault::TagMismatch(tag.original());
    let typed = |scalar: Option<Scalar>| scalar.map(Tagged::Scalar).ok_or_else(mismatch);
    match known(tag)? {
        Known::NonSpecific if absent => Ok(Tagged::Scalar(Scalar::Null)),
        Known::NonSpecific | Known::Str => Ok(Tagged::Scalar(Scalar::Text)),
        Known::Null if absent || !text.is_empty() && scalar::null(text) => Ok(Tagged::Scalar(Scalar::Null)),
        Known::Bool => typed(scalar::boolean(text).map(Scalar::Bool)),
        Known::Int => typed(scalar::integer(text)),
        Known::Float => typed(scalar::float(text)),
        Known::Timestamp => typed(Some(scalar::instant(text)).filter(|instant| *instant != Scalar::Text)),
        Known::Merge if absent || text == "<<" => Ok(Tagged::Merge),
        Known::Seq | Known::Omap | Known::Pairs if absent => Ok(Tagged::EmptyList),
        Known::Map | Known::Set if absent => Ok(Tagged::EmptyMap),
        Known::Null | Known::Merge => Err(mismatch()),
        Known::Seq | Known::Omap | Known::Pairs | Known::Map | Known::Set => {
            Err(YamlFault::UnknownTag(tag.original()))
        }
    }
}
