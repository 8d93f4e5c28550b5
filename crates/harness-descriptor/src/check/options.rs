//! Choices about a check.

use crate::graph::Registry;

/// How a descriptor is checked.
#[derive(Clone, Debug, Default)]
#[non_exhaustive]
pub struct CheckOptions {
    /// Reports warnings about the hash (`hash.lossy`) as errors. Default: `false`.
    pub strict: bool,
    /// The tools that targets stand for. Default: unknown, targets are not checked and tools are
    /// named by their ids.
    pub registry: Option<Registry>,
}

impl CheckOptions {
    /// Sets [`Self::strict`].
    #[must_use]
    pub fn strict(mut self, strict: bool) -> Self {
        self.strict = strict;
        self
    }

    /// Checks the targets of tools against these bindings.
    #[must_use]
    pub fn registry(mut self, registry: Registry) -> Self {
        self.registry = Some(registry);
        self
    }
}
