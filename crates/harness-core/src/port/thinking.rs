//! How hard a model thinks.

use serde::{Deserialize, Serialize};

/// How hard to think, from not at all to as hard as possible.
///
/// ```
/// use harness_core::port::ThinkingLevel;
///
/// assert_eq!(ThinkingLevel::parse("high"), Some(ThinkingLevel::High));
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
#[non_exhaustive]
pub enum ThinkingLevel {
    /// Not at all.
    Off,
    /// As little as possible.
    Minimal,
    /// A little.
    Low,
    /// What suits most tasks.
    Medium,
    /// Much.
    High,
    /// As hard as possible.
    XHigh,
}

impl ThinkingLevel {
    /// All levels, from the lowest.
    pub const ALL: [Self; 6] = [Self::Off, Self::Minimal, Self::Low, Self::Medium, Self::High, Self::XHigh];

    /// The usual word for it: `off`, `minimal`, `low`, `medium`, `high` or `xhigh`.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Off => "off",
            Self::Minimal => "minimal",
            Self::Low => "low",
            Self::Medium => "medium",
            Self::High => "high",
            Self::XHigh => "xhigh",
        }
    }

    /// The level of that word.
    pub fn parse(word: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|level| level.as_str() == word)
    }
}
