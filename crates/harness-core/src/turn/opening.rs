//! Before the first iteration: calls that an earlier process left open are settled, then the prompt enters the
//! transcript, through checks and layers when there are any, and the agent is prepared.

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

/// A turn before its first iteration.
#[derive(Debug, Default)]
pub(super) struct Opening {
    /// What an earlier process left open, until it is settled.
    pub(super) start: Option<Box<Start>>,
    /// What the turn had used when an earlier process ended.
    pub(super) prior: Option<Box<PriorUsage>>,
    /// What is to be appended.
    pub(super) prompt: Vec<Arc<Message>>,
    /// What the checks of prompts look at.
    checking: Option<Subject>,
    /// Whether they let it pass.
    is_checked: bool,
}

impl Opening {
    /// The turn of a run that an earlier process had started.
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
        // Layers are told with the first turn of this machine.
        if cx.ports.layers.is_some() && cx.sh.turn == 1 {
            let standing = Box::new(turn.standing());
            turn.cx.perform(Pending::Begin, Op::Begin { standing });
            return WAIT;
        }
        self.open(turn)
    }

    /// Goes on with the prompt: nothing is left open.
    pub(super) fn enter(&mut self, turn: &mut TurnCx<'_>) -> Step {
        if self.asks_checks(turn) {
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

    /// What comes first: calls that an earlier process left open, or else the prompt. Which of those calls may run is
    /// told by the agent's tools.
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

    /// Asks the checks of prompts, unless they have let it pass; gives whether anything was asked.
    fn asks_checks(&mut self, turn: &mut TurnCx<'_>) -> bool {
        if self.is_checked || turn.cx.ports.next_check(Point::Prompt, 0).is_none() {
            return false;
        }
        let said: Vec<_> = self.prompt.iter().filter(|message| is_said(message)).cloned().collect();
        if said.is_empty() {
            return false;
        }
        turn.ask_check(Point::Prompt, 0, self.checking.insert(Subject::Prompt(said)))
    }

    fn on_check(&mut self, turn: &mut TurnCx<'_>, at: (Point, u32), asked: Answered<CheckDecision>) -> Step {
        let Some(subject) = &mut self.checking else { return WAIT };
        if matches!(turn.on_check(at, subject, asked)?, Checked::Asking) {
            return WAIT;
        }
        if let Some(Subject::Prompt(said)) = self.checking.take() {
            let at = self.prompt.iter().position(|message| is_said(message)).unwrap_or(0);
            self.prompt.retain(|message| !is_said(message));
            self.prompt.splice(at..at, said);
        }
        self.is_checked = true;
        self.enter(turn)
    }

    /// Takes what a check says that comes too late.
    pub(super) fn take_check(&self, turn: &mut TurnCx<'_>, at: (Point, u32), asked: Answered<CheckDecision>) {
        if let Some(subject) = &self.checking {
            turn.take_check(at, subject, asked);
        }
    }

    /// Appends what layers gave in place of the prompt.
    pub(super) fn take_seen(&mut self, turn: &mut TurnCx<'_>, result: Result<Vec<Arc<Message>>, Fault>) {
        let prompt = admitted(&mut turn.cx, std::mem::take(&mut self.prompt), result);
        turn.cx.append(prompt);
    }

    /// What of the prompt is not in the transcript. What somebody said that no check has let pass comes into none.
    pub(super) fn into_prompt(mut self, turn: &TurnCx<'_>) -> Vec<Arc<Message>> {
        if turn.cx.ports.next_check(Point::Prompt, 0).is_some() && !self.is_checked {
            self.prompt.retain(|message| !is_said(message));
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

/// Whether somebody said it: what the turn itself adds to a prompt is not checked.
fn is_said(message: &Message) -> bool {
    !matches!(message, Message::User(said) if said.origin.as_deref() == Some("hook"))
}
