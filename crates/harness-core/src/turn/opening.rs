//! Before the first iteration: calls that an earlier process left open are settled, the prompt passes checks and layers
//! into the transcript, and the agent is prepared.

use std::sync::Arc;

use super::checks::Checked;
use super::draining::Then;
use super::repair::PriorUsage;
use super::stage::{Step, WAIT};
use super::state::{TurnCx, admitted, drain, or_stop, unexpected};
use crate::decide::{Answered, CheckDecision, Point, Subject};
use crate::limits::Budget;
use crate::machine::{Op, Pending, Reply, Start};
use crate::message::Message;
use crate::outcome::Fault;
use crate::port::AppendSource;

#[derive(Debug, Default)]
pub(super) struct Opening {
    /// The start, until calls of an earlier process are settled.
    pub(super) start: Option<Box<Start>>,
    /// The usage of the turn in an earlier process.
    pub(super) prior: Option<Box<PriorUsage>>,
    /// Messages that are to be appended.
    pub(super) prompt: Vec<Arc<Message>>,
    /// Whether the prompt passed these checks.
    is_checked: bool,
}

impl Opening {
    /// The opening of a turn that an earlier process started.
    pub(super) fn resumed(prior: PriorUsage) -> Self {
        Self { prior: Some(Box::new(prior)), ..Self::default() }
    }

    pub(super) fn start(&mut self, turn: &mut TurnCx<'_>, start: Start) -> Step {
        let TurnCx { spec, data, cx } = turn;
        data.started_at = cx.now;
        data.began = cx.log.len();
        data.resumed = start.continuation.is_some();
        data.agent.clone_from(&start.agent);
        let deadline = spec.limits.elapsed.map(|span| cx.now.after(span));
        cx.sh.budgets.push(Budget::new(spec.limits.amount(), deadline));
        if let Some(prior) = &self.prior {
            prior.charge(data, cx);
        }
        data.deadline = cx.sh.budgets.deadline();
        self.prompt.clone_from(&start.prompt);
        if self.prompt.is_empty() {
            data.waiting.clone_from(&start.waiting);
        } else {
            self.prompt.splice(0..0, start.waiting.iter().cloned());
        }
        self.start = Some(Box::new(start));
        // Layers are notified with the first turn of this machine.
        if cx.ports.layers.is_some() && cx.sh.turn == 1 {
            let standing = Box::new(turn.standing());
            turn.cx.perform(Pending::Begin, Op::Begin { standing });
            return WAIT;
        }
        self.open(turn)
    }

    /// Continues with the prompt: no call is open.
    pub(super) fn enter(&mut self, turn: &mut TurnCx<'_>) -> Step {
        if !self.is_checked && self.starts_checks(turn) {
            return WAIT;
        }
        if turn.cx.ports.layers.is_some() && !self.prompt.is_empty() {
            let (source, messages, standing) =
                (AppendSource::Prompt, self.prompt.clone(), Box::new(turn.standing()));
            turn.cx.perform(Pending::AppendPrompt, Op::Append { source, messages, standing });
            return WAIT;
        }
        turn.cx.append(std::mem::take(&mut self.prompt));
        finish(turn)
    }

    pub(super) fn reply(&mut self, turn: &mut TurnCx<'_>, pending: Pending, reply: Reply) -> Step {
        match (pending, reply) {
            (Pending::Begin, Reply::Noted(result)) => {
                or_stop(result)?;
                self.open(turn)
            }
            (Pending::Prepare, Reply::Prepared(result)) => {
                turn.take_prepared(result)?;
                match self.start.take() {
                    Some(start) => self.reopen(turn, &start),
                    None => begin(turn),
                }
            }
            (Pending::Check(point, check), Reply::Check(asked)) => {
                self.on_check(turn, (point, check), *asked)
            }
            (Pending::AppendPrompt, Reply::Appended(result)) => {
                self.take_seen(turn, result);
                finish(turn)
            }
            (pending, reply) => unexpected(pending, &reply),
        }
    }

    /// Settles calls that an earlier process left open, or else continues with the prompt. The agent's tools decide which
    /// of those calls may run.
    fn open(&mut self, turn: &mut TurnCx<'_>) -> Step {
        let log = &turn.cx.log;
        if !log.has_open_calls() && !self.follows_last(turn) {
            self.start = None;
            return self.enter(turn);
        }
        if turn.data.agent.is_none() {
            let mut answers = log.iter().rev().filter_map(|message| message.as_assistant());
            turn.data.agent = answers.find_map(|answer| answer.agent.clone());
        }
        turn.prepare_agent();
        WAIT
    }

    /// Starts the checks of the prompt. Returns whether there is one.
    fn starts_checks(&self, turn: &mut TurnCx<'_>) -> bool {
        let written: Vec<_> = self.prompt.iter().filter(|message| is_written(message)).cloned().collect();
        !written.is_empty() && turn.start_checks(Point::Prompt, |_| Subject::Prompt(written))
    }

    fn on_check(
        &mut self,
        turn: &mut TurnCx<'_>,
        at: (Point, u32),
        answered: Answered<CheckDecision>,
    ) -> Step {
        let Checked::Accepted(subject) = turn.on_check(at, answered)? else { return WAIT };
        if let Subject::Prompt(written) = subject {
            let at = self.prompt.iter().position(|message| is_written(message)).unwrap_or(0);
            self.prompt.retain(|message| !is_written(message));
            self.prompt.splice(at..at, written);
        }
        self.is_checked = true;
        self.enter(turn)
    }

    /// Appends the prompt as layers changed it.
    pub(super) fn take_seen(&mut self, turn: &mut TurnCx<'_>, result: Result<Vec<Arc<Message>>, Fault>) {
        let prompt = admitted(&mut turn.cx, std::mem::take(&mut self.prompt), result);
        turn.cx.append(prompt);
    }

    /// The part of the prompt that is not in the transcript. A message that has not passed the checks never enters one.
    pub(super) fn into_prompt(mut self, turn: &TurnCx<'_>) -> Vec<Arc<Message>> {
        if turn.cx.ports.next_check(Point::Prompt, 0).is_some() && !self.is_checked {
            self.prompt.retain(|message| !is_written(message));
        }
        self.prompt
    }
}

/// The prompt is in the transcript: the agent comes next.
fn finish(turn: &mut TurnCx<'_>) -> Step {
    if turn.data.prepared.is_some() && !turn.data.is_stale {
        return begin(turn);
    }
    turn.prepare_agent();
    WAIT
}

fn begin(turn: &mut TurnCx<'_>) -> Step {
    turn.announce();
    drain(Then::Iterate)
}

/// Whether the caller wrote it: messages that the turn itself adds are not checked.
fn is_written(message: &Message) -> bool {
    !matches!(message, Message::User(user) if user.origin.as_deref() == Some("hook"))
}
