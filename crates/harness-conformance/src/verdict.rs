//! The outcome of one vector.

/// The outcome of one vector.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Verdict {
    /// Everything that the vector compares is as expected.
    Passed,
    /// The first difference, for a person: what was expected, what came, where.
    Failed(String),
    /// Differs as the vector allows and the page of deviations says, with the difference; or the driver has no part in it,
    /// with the reason.
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
