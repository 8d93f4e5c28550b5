//! Bounds of reading YAML.

/// Bounds on a YAML text.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct YamlLimits {
    /// Bytes of the text. At most 1 GiB.
    pub bytes: u64,
    /// Depth of lists and mappings, aliases followed. Default and maximum 100.
    pub depth: u32,
    /// Values, those behind aliases counted each time they are used.
    pub values: u64,
    /// Bytes of all strings, those behind aliases counted each time.
    pub text: u64,
}

impl YamlLimits {
    /// The maximum depth: values are visited recursively, and this keeps the stack small.
    pub const MAX_DEPTH: u32 = 100;
    /// The maximum size of a text: places are 32-bit offsets.
    pub const MAX_BYTES: u64 = 1 << 30;

    /// Limits for a text of at most `bytes`: one value and one byte of string per byte of text, so
    /// aliases cannot multiply it.
    pub fn for_text(bytes: u64) -> Self {
        Self { bytes, depth: Self::MAX_DEPTH, values: bytes, text: bytes }
    }

    pub(super) fn depth(&self) -> u32 {
        self.depth.min(Self::MAX_DEPTH)
    }
}
