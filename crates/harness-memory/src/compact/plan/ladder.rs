//! The strategies that a ladder is made of, and their settings.

use super::record::Action;

/// Puts a placeholder in the place of old tool results; what must outlive them stays.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Clear {
    /// The newest messages are left alone. Default 12.
    pub preserve_recent_messages: usize,
    /// A result of fewer tokens stays. Default 100.
    pub min_tokens_to_clear: u64,
}

impl Default for Clear {
    fn default() -> Self {
        Self { preserve_recent_messages: 12, min_tokens_to_clear: 100 }
    }
}

/// Moves large messages into a store; a pointer stays.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Externalize {
    /// The newest messages are left alone. Default 12.
    pub preserve_recent_messages: usize,
    /// A message of fewer tokens stays, unless the policy of its tool says less. Default 1,000.
    pub externalize_threshold_tokens: u64,
}

impl Default for Externalize {
    fn default() -> Self {
        Self { preserve_recent_messages: 12, externalize_threshold_tokens: 1_000 }
    }
}

/// Puts one summary in the place of everything old but what the user said first.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Summarize {
    /// The newest messages are left alone. Default 12.
    pub preserve_recent_messages: usize,
    /// How large a summary is hoped to be, as a share of what it stands for. Default 0.25.
    pub target_ratio: f64,
    /// Fewer tokens are not summarized. Default 500.
    pub min_span_tokens: u64,
    /// Fewer messages are not summarized. Default 3.
    pub min_span_messages: usize,
}

impl Default for Summarize {
    fn default() -> Self {
        Self { preserve_recent_messages: 12, target_ratio: 0.25, min_span_tokens: 500, min_span_messages: 3 }
    }
}

/// Leaves out what was cleared before.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Drop {
    /// The newest messages are left alone. Default 12.
    pub preserve_recent_messages: usize,
}

impl Default for Drop {
    fn default() -> Self {
        Self { preserve_recent_messages: 12 }
    }
}

/// One rung of a ladder.
#[derive(Clone, Copy, Debug, PartialEq)]
#[non_exhaustive]
pub enum Strategy {
    /// Clears.
    Clear(Clear),
    /// Stores elsewhere.
    Externalize(Externalize),
    /// Summarizes.
    Summarize(Summarize),
    /// Leaves out.
    Drop(Drop),
}

impl Strategy {
    /// How much it hurts: the ladder is climbed from 1 on.
    pub fn aggressiveness(&self) -> u8 {
        match self {
            Self::Clear(_) => 1,
            Self::Externalize(_) => 2,
            Self::Summarize(_) => 3,
            Self::Drop(_) => 4,
        }
    }

    /// What it does.
    pub fn action(&self) -> Action {
        match self {
            Self::Clear(_) => Action::Clear,
            Self::Externalize(_) => Action::Externalize,
            Self::Summarize(_) => Action::Summarize,
            Self::Drop(_) => Action::Drop,
        }
    }
}

impl From<Clear> for Strategy {
    fn from(clear: Clear) -> Self {
        Self::Clear(clear)
    }
}

impl From<Externalize> for Strategy {
    fn from(externalize: Externalize) -> Self {
        Self::Externalize(externalize)
    }
}

impl From<Summarize> for Strategy {
    fn from(summarize: Summarize) -> Self {
        Self::Summarize(summarize)
    }
}

impl From<Drop> for Strategy {
    fn from(drop: Drop) -> Self {
        Self::Drop(drop)
    }
}
