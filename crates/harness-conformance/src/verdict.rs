//! What became of one vector.

/// What became of one vector.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Verdict {
    /// Everything that the vector compares is as expected.
    Passed,
    /// The first difference, for a person: what was expected, what came, where.
    Failed(String),
    /// Not run or not judged. The text is a key of `[reasons]` in `skips.toml`; a key that is not
    /// written there turns the verdict into a failure.
    Skipped(String),
}

impl From<Result<(), String>> for Verdict {
    fn from(compared: Result<(), String>) -> Self {
        match compared {
            Ok(()) => Self::Passed,
            Err(difference) => Self::Failed(difference),
        }
    }
}
