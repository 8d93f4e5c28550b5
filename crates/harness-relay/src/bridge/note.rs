//! Log of a bridge.

use std::fmt;

/// How much a note matters.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum NoteLevel {
    /// The ordinary course.
    Info,
    /// Something was left out.
    Warn,
    /// Something failed.
    Error,
}

impl NoteLevel {
    /// `info`, `warn` or `error`.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Info => "info",
            Self::Warn => "warn",
            Self::Error => "error",
        }
    }
}

/// One line of a bridge's log.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct BridgeNote {
    /// How much it matters.
    pub level: NoteLevel,
    /// Kind of event: `registered`, `request`, `completed`, `failed`, `publish_failed`, `duplicate`,
    /// `unanswerable`, `busy`, `gap`, `draining` or `stopped`.
    pub name: &'static str,
    /// The turn, where it is about one.
    pub turn_id: Option<String>,
    /// Human-readable details; of a request at most the first 80 characters of its prompt.
    pub text: String,
}

impl BridgeNote {
    pub(super) fn new(level: NoteLevel, name: &'static str, text: impl Into<String>) -> Self {
        Self { level, name, turn_id: None, text: text.into() }
    }

    pub(super) fn of_turn(mut self, turn_id: Option<&str>) -> Self {
        self.turn_id = turn_id.map(str::to_owned);
        self
    }
}

impl fmt::Display for BridgeNote {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name)?;
        if let Some(turn) = &self.turn_id {
            write!(f, " {turn}")?;
        }
        if self.text.is_empty() { Ok(()) } else { write!(f, ": {}", self.text) }
    }
}
