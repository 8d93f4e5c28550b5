//! Budget of a view.

use serde::{Deserialize, Serialize};

/// How long a view may be.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", default)]
#[non_exhaustive]
pub struct ViewBudget {
    /// Tokens of a request and its answer. Default 128,000.
    pub tokens: u64,
    /// Tokens set aside for the answer. Default 4,000.
    pub response_reserve: u64,
    /// The history shows at most this many of its newest messages. Default: all that fit.
    pub window: Option<usize>,
}

impl Default for ViewBudget {
    fn default() -> Self {
        Self { tokens: 128_000, response_reserve: 4_000, window: None }
    }
}

impl ViewBudget {
    /// A request and its answer of so many tokens, with a reserve for the answer.
    pub fn new(tokens: u64, response_reserve: u64) -> Self {
        Self { tokens, response_reserve, window: None }
    }

    /// Tokens of the view itself.
    pub fn room(&self) -> u64 {
        self.tokens.saturating_sub(self.response_reserve)
    }
}

/// Tokens that are left.
pub(crate) struct Room(pub(crate) u64);

impl Room {
    /// Takes them when there are as many.
    pub(crate) fn take(&mut self, tokens: u64) -> bool {
        let left = self.0.checked_sub(tokens);
        self.0 = left.unwrap_or(self.0);
        left.is_some()
    }

    /// Takes them all, down to nothing.
    pub(crate) fn take_all(&mut self, tokens: impl Iterator<Item = u64>) {
        self.0 = tokens.fold(self.0, u64::saturating_sub);
    }
}
