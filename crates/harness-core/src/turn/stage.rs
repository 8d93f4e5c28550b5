//! How far a turn has come, and what follows an input.

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

/// How far a turn has come. Each stage holds what is true only while the turn is in it.
#[derive(Debug)]
pub(super) enum Stage {
    /// Before the first iteration: the prompt, and calls that an earlier process left open.
    Opening(Box<Opening>),
    /// The view of the next request is made.
    Viewing(Viewing),
    /// The model is asked.
    Asking(Asking),
    /// An answer is looked at.
    Reviewing(Reviewing),
    /// The calls of an answer run.
    Calling(Box<Batch>),
    /// Waiting messages are injected.
    Draining(Draining),
    /// The turn ends: nothing starts any more.
    Closing(Box<Closing>),
    /// Over.
    Ended,
}

impl Default for Stage {
    fn default() -> Self {
        Self::Opening(Box::default())
    }
}

/// What follows an input.
#[derive(Debug)]
pub(super) enum Next {
    /// The turn waits for a reply in the stage that it is in.
    Wait,
    /// The turn goes to another stage.
    Enter(Stage),
}

/// What a handler gives: what follows, or the stop that broke it off. A stop comes once in a turn, and a step from every
/// handler: boxed, it takes no room in the others.
pub(super) type Step<T = Next> = ControlFlow<Box<Stop>, T>;

/// The turn waits.
pub(super) const WAIT: Step = ControlFlow::Continue(Next::Wait);

/// The turn goes to another stage.
pub(super) fn enter(stage: Stage) -> Step {
    ControlFlow::Continue(Next::Enter(stage))
}

/// The turn stops.
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

    /// The calls at work.
    pub(super) fn batch(&self) -> Option<&Batch> {
        match self {
            Self::Calling(batch) => Some(batch),
            Self::Closing(closing) => closing.batch(),
            Self::Opening(_)
            | Self::Viewing(_)
            | Self::Asking(_)
            | Self::Reviewing(_)
            | Self::Draining(_)
            | Self::Ended => None,
        }
    }
}
