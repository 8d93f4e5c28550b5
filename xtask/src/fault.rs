//! The one error type of the chores.

use std::fmt;

/// Why a chore failed.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Fault {
    /// A sentence for the person at the terminal.
    Text(String),
    /// The output so far says it all, and its last line has to stay the last.
    Shown,
}

/// What a chore returns.
pub(crate) type Result<T> = std::result::Result<T, Fault>;

impl Fault {
    /// A fault with this text.
    pub(crate) fn new(text: impl Into<String>) -> Self {
        Self::Text(text.into())
    }

    /// A fault of something that has a cause: `doing: cause`.
    pub(crate) fn because(doing: impl fmt::Display, cause: impl fmt::Display) -> Self {
        Self::Text(format!("{doing}: {cause}"))
    }
}

impl fmt::Display for Fault {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Text(text) => f.write_str(text),
            Self::Shown => f.write_str("failed, see above"),
        }
    }
}
