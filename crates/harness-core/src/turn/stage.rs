//! The stages of a turn, and the step to the next one.

use std::ops::ControlFlow;

use super::asking::Asking;
use super::calling::Batch;
use super::closing::Closing;
use super::draining::Draining;
use super::opening::Opening;
use super::reviewing::Reviewing;
use super::state::TurnCx;
use super::viewing::Viewing;
use crate::machine::{Pending, Reply};
use crate::outcome::{Evidence, Stop, StopReason};

/// The stage of a turn. Each stage holds the data that exists only in it.
#[derive(Debug)]
pub(super) enum Stage {
    /// Before the first iteration: the prompt, and calls that an earlier process left open.
    Opening(Box<Opening>),
    /// The view of the next request is made.
    Viewing(Viewing),
    /// The model is called.
    Asking(Asking),
    /// An answer is reviewed.
    Reviewing(Reviewing),
    /// The calls of an answer run.
    Calling(Box<Batch>),
    /// Queued messages are injected.
    Draining(Draining),
    /// The turn ends: nothing new starts.
    Closing(Box<Closing>),
    /// The turn has ended.
    Ended,
}

impl Default for Stage {
    fn default() -> Self {
        Self::Opening(Box::default())
    }
}

/// The transition after an input.
#[derive(Debug)]
pub(super) enum Next {
    /// Wait for a reply in the current stage.
    Wait,
    /// Enter another stage.
    Enter(Stage),
}

/// The result of a handler: a transition, or the stop that ends the turn. A stop is rare, so it is boxed.
pub(super) type Step<T = Next> = ControlFlow<Box<Stop>, T>;

pub(super) const WAIT: Step = ControlFlow::Continue(Next::Wait);

pub(super) fn enter(stage: Stage) -> Step {
    ControlFlow::Continue(Next::Enter(stage))
}

pub(super) fn stop<T>(reason: StopReason, evidence: Evidence) -> Step<T> {
    ControlFlow::Break(Box::new(Stop::new(reason, evidence)))
}

impl Stage {
    /// Does what the stage starts with.
    pub(super) fn enter(&mut self, turn: &mut TurnCx<'_>) -> Step {
        match self {
            Self::Opening(opening) => opening.enter(turn),
            Self::Viewing(viewing) => viewing.enter(turn),
            Self::Asking(asking) => asking.enter(turn),
            Self::Reviewing(reviewing) => reviewing.enter(turn),
            Self::Calling(batch) => batch.enter(turn),
            Self::Draining(draining) => draining.enter(turn),
            Self::Closing(_) | Self::Ended => WAIT,
        }
    }

    /// Takes a reply to an operation of this stage. One of the wrong kind ends the turn with `internal_invariant`: the
    /// driver broke its contract.
    pub(super) fn reply(&mut self, turn: &mut TurnCx<'_>, pending: Pending, reply: Reply) -> Step {
        match self {
            Self::Opening(opening) => opening.reply(turn, pending, reply),
            Self::Viewing(viewing) => viewing.reply(turn, pending, reply),
            Self::Asking(asking) => asking.reply(turn, pending, reply),
            Self::Reviewing(reviewing) => reviewing.reply(turn, pending, reply),
            Self::Calling(batch) => batch.reply(turn, pending, reply),
            Self::Draining(draining) => draining.reply(turn, pending, reply),
            Self::Closing(_) | Self::Ended => WAIT,
        }
    }

    pub(super) fn batch(&self) -> Option<&Batch> {
        if let Self::Closing(closing) = self {
            return closing.batch();
        }
        if let Self::Calling(batch) = self { Some(batch) } else { None }
    }
}
