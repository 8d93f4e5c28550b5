//! Injects queued messages: those of the steering queue, and those of the turn itself.

use std::sync::Arc;

use serde::{Deserialize, Serialize};

use super::stage::{Stage, Step, WAIT, enter};
use super::state::{TurnCx, admitted, unexpected};
use super::viewing::Viewing;
use crate::event::EventKind;
use crate::ids::EntryId;
use crate::machine::{Cx, Op, Pending, Reply};
use crate::message::Message;
use crate::outcome::Fault;
use crate::port::{AppendSource, DrainPoint};

/// The step after an empty queue.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(super) enum Then {
    /// The next iteration.
    Iterate,
    /// The end that the model's answer asks for.
    Complete,
}

#[derive(Debug)]
pub(super) struct Draining {
    then: Then,
    /// Messages that the layers look at.
    shown: Option<Box<Injection>>,
}

/// Messages on their way into the transcript.
#[derive(Debug)]
struct Injection {
    messages: Vec<Arc<Message>>,
    /// The entries of the queue.
    entries: Vec<EntryId>,
}

impl Draining {
    pub(super) fn new(then: Then) -> Self {
        Self { then, shown: None }
    }

    /// Next step, while only the queue is waited for.
    pub(super) fn only_queue(&self) -> Option<Then> {
        self.shown.is_none().then_some(self.then)
    }

    /// Drains the queue, if there is one.
    pub(super) fn enter(&mut self, turn: &mut TurnCx<'_>) -> Step {
        if !turn.cx.ports.steering {
            return self.on_drained(turn, Vec::new());
        }
        let point = match self.then {
            Then::Complete => DrainPoint::Answer,
            Then::Iterate if turn.cx.sh.iteration == 0 => DrainPoint::Begin,
            Then::Iterate => DrainPoint::Round,
        };
        turn.cx.perform(Pending::Drain, Op::Drain { point });
        WAIT
    }

    pub(super) fn reply(&mut self, turn: &mut TurnCx<'_>, pending: Pending, reply: Reply) -> Step {
        match (pending, reply) {
            (Pending::Drain, Reply::Drained(entries)) => self.on_drained(turn, entries),
            (Pending::AppendSteering, Reply::Appended(result)) => {
                self.take_seen(&mut turn.cx, result);
                iterate(turn)
            }
            (pending, reply) => unexpected(pending, &reply),
        }
    }

    fn on_drained(&mut self, turn: &mut TurnCx<'_>, drained: Vec<(EntryId, Arc<Message>)>) -> Step {
        if drained.is_empty() && turn.data.waiting.is_empty() {
            return match self.then {
                Then::Complete => turn.stop_with_answer(),
                Then::Iterate => iterate(turn),
            };
        }
        let (entries, mut messages): (Vec<_>, Vec<_>) = drained.into_iter().unzip();
        messages.append(&mut turn.data.waiting);
        if turn.cx.ports.layers.is_none() {
            Injection { messages, entries }.append(&mut turn.cx);
            return iterate(turn);
        }
        let (source, standing) = (AppendSource::Steering, Box::new(turn.standing()));
        let op = Op::Append { source, messages: messages.clone(), standing };
        turn.cx.perform(Pending::AppendSteering, op);
        self.shown = Some(Box::new(Injection { messages, entries }));
        WAIT
    }

    /// Injects the messages as layers changed them.
    pub(super) fn take_seen(&mut self, cx: &mut Cx<'_>, result: Result<Vec<Arc<Message>>, Fault>) {
        let Some(shown) = self.shown.take() else { return };
        let Injection { messages, entries } = *shown;
        Injection { messages: admitted(cx, messages, result), entries }.append(cx);
    }

    /// The turn ends while layers look at messages: they are injected as they are.
    pub(super) fn abandon(self, cx: &mut Cx<'_>) {
        if let Some(injection) = self.shown {
            injection.append(cx);
        }
    }
}

fn iterate(turn: &mut TurnCx<'_>) -> Step {
    turn.data.answer = None;
    enter(Stage::Viewing(Viewing::default()))
}

impl Injection {
    fn append(self, cx: &mut Cx<'_>) {
        cx.append(self.messages);
        cx.event(|| EventKind::SteeringInjected { entries: self.entries });
    }
}
