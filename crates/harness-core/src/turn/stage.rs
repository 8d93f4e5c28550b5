//! How far a turn has come.

use std::sync::Arc;

use super::closing::Closing;
use super::state::TurnState;
use crate::message::{ApprovalRequest, Message};
use crate::outcome::Stop;

/// How far a turn has come.
#[derive(Debug, Default)]
pub(super) enum Stage {
    /// It works.
    #[default]
    Working,
    /// An answer of its model is looked at.
    Reviewing(Reviewing),
    /// Nothing begins any more; it ends when nothing is outstanding.
    Stopping {
        /// Why.
        stop: Stop,
        /// Whether everything outstanding was told to stop; until then it waits for what still runs.
        aborted: bool,
        /// What was looked at when it stopped.
        reviewing: Option<Reviewing>,
    },
    /// The layers take note of the end.
    Closing(Box<Closing>),
    /// Over.
    Ended,
}

/// Who looks at an answer.
#[derive(Debug)]
pub(super) enum Reviewing {
    /// The layers, before it is in the transcript.
    Layers(Arc<Message>),
    /// The layers, which learn from it; it is the last message of the transcript.
    Learning(Arc<Message>),
    /// The approver, who takes note of the model's own request.
    Approver(Box<ApprovalRequest>),
}

impl TurnState {
    /// Stops the turn, unless it does already: the first stop stays.
    pub(super) fn stop(&mut self, stop: Stop) {
        let reviewing = match &mut self.stage {
            Stage::Working | Stage::Reviewing(_) => self.take_reviewing(),
            Stage::Stopping { .. } | Stage::Closing(_) | Stage::Ended => return,
        };
        self.stage = Stage::Stopping { stop, aborted: false, reviewing };
    }

    pub(super) fn is_stopping(&self) -> bool {
        matches!(self.stage, Stage::Stopping { .. })
    }

    /// Who looks at an answer, if anybody does.
    pub(super) fn reviewing(&self) -> Option<&Reviewing> {
        match &self.stage {
            Stage::Reviewing(reviewing) => Some(reviewing),
            Stage::Stopping { reviewing, .. } => reviewing.as_ref(),
            Stage::Working | Stage::Closing(_) | Stage::Ended => None,
        }
    }

    /// Nobody looks at it any more.
    pub(super) fn take_reviewing(&mut self) -> Option<Reviewing> {
        if let Stage::Stopping { reviewing, .. } = &mut self.stage {
            return reviewing.take();
        }
        if !matches!(self.stage, Stage::Reviewing(_)) {
            return None;
        }
        match std::mem::take(&mut self.stage) {
            Stage::Reviewing(reviewing) => Some(reviewing),
            Stage::Working | Stage::Stopping { .. } | Stage::Closing(_) | Stage::Ended => None,
        }
    }
}
