//! How far a turn has come.

use super::closing::Closing;
use super::state::TurnState;
use crate::outcome::Stop;

/// How far a turn has come.
#[derive(Debug, Default)]
pub(super) enum Stage {
    /// It works.
    #[default]
    Working,
    /// Nothing begins any more; it ends when nothing is outstanding.
    Stopping {
        /// Why.
        stop: Stop,
        /// Whether everything outstanding was told to stop; until then it waits for what still runs.
        aborted: bool,
    },
    /// The layers take note of the end.
    Closing(Box<Closing>),
    /// Over.
    Ended,
}

impl TurnState {
    /// Stops the turn, unless it does already: the first stop stays.
    pub(super) fn stop(&mut self, stop: Stop) {
        if let Stage::Working = self.stage {
            self.stage = Stage::Stopping { stop, aborted: false };
        }
    }

    pub(super) fn is_stopping(&self) -> bool {
        matches!(self.stage, Stage::Stopping { .. })
    }
}
