//! Bounds on what is read.

use harness_diagnostics::YamlLimits;

/// How much a descriptor and its prompts may hold.
///
/// Reading stops with [`Fault::TooLarge`](crate::Fault::TooLarge) at the first bound that is
/// passed. The defaults are far above real descriptors and low enough that hostile input
/// (an alias bomb, a gigantic prompt) fails in milliseconds.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct Limits {
    /// Bytes of the YAML text. Default 16 MiB, at most 1 GiB.
    pub yaml_bytes: u64,
    /// Depth of lists and mappings, aliases followed. Default and maximum 100.
    pub depth: u32,
    /// Values, those behind aliases counted each time they are used. Default 2,000,000.
    pub values: u64,
    /// Bytes of all strings, those behind aliases counted each time, and of all prompts each
    /// time they are used. Default 256 MiB.
    pub text_bytes: u64,
    /// Bytes of one prompt file. Default 8 MiB.
    pub prompt_bytes: u64,
}

impl Default for Limits {
    fn default() -> Self {
        Self {
            yaml_bytes: 16 << 20,
            depth: YamlLimits::MAX_DEPTH,
            values: 2_000_000,
            text_bytes: 256 << 20,
            prompt_bytes: 8 << 20,
        }
    }
}

impl Limits {
    pub(crate) fn yaml_bytes(&self) -> u64 {
        self.yaml_bytes.min(YamlLimits::MAX_BYTES)
    }

    pub(crate) fn yaml(&self) -> YamlLimits {
        let mut limits = YamlLimits::for_text(self.yaml_bytes);
        (limits.depth, limits.values, limits.text) = (self.depth, self.values, self.text_bytes);
        limits
    }
}
