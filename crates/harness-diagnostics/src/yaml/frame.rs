//! Lists and mappings that are being read.

use std::borrow::Cow;
use std::collections::HashMap;

use granit_parser::Span;

use super::tags::Known;
use crate::document::{Bytes, NodeId};

/// Target of an anchor.
pub(super) enum Anchor {
    Open,
    Closed(NodeId),
}

/// A list or mapping that is being read.
pub(super) struct Frame<'src> {
    pub(super) shape: Shape<'src>,
    /// Where this frame's items or entries begin in the shared stack.
    pub(super) base: usize,
    pub(super) anchor: usize,
    pub(super) anchor_name: Option<Cow<'src, str>>,
    pub(super) tag: Option<(Known, String)>,
    pub(super) bytes: Bytes,
    /// Where its last key or value ends.
    pub(super) content_end: u32,
    pub(super) flow: bool,
    /// The characters before its start in the line.
    pub(super) column: usize,
}

impl Shape<'_> {
    pub(super) fn map() -> Self {
        Self::Map { key: None, index: HashMap::new() }
    }
}

/// Value being read.
pub(super) enum Shape<'src> {
    List,
    Map {
        key: Option<Key<'src>>,
        /// Entries by key, once there are many.
        index: HashMap<Cow<'src, str>, usize>,
    },
}

/// A key that waits for its value.
pub(super) enum Key<'src> {
    Named { name: Cow<'src, str>, bytes: Bytes },
    Merge { bytes: Bytes },
}

impl<'src> Frame<'src> {
    /// A frame that begins at these bytes, so many characters into its line.
    pub(super) fn new(
        shape: Shape<'src>,
        base: usize,
        anchor: usize,
        flow: bool,
        at: (Bytes, usize),
    ) -> Self {
        let (bytes, column) = at;
        Self {
            shape,
            base,
            anchor,
            anchor_name: None,
            tag: None,
            bytes,
            content_end: bytes.end,
            flow,
            column,
        }
    }
}

pub(super) fn bytes_of(span: &Span) -> Bytes {
    let offset = |offset: Option<usize>| u32::try_from(offset.unwrap_or(0)).unwrap_or(u32::MAX);
    Bytes { start: offset(span.start.byte_offset()), end: offset(span.end.byte_offset()) }
}
