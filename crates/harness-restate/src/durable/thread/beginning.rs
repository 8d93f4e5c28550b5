//! How runs of a thread begin: with messages, decisions, or nothing but the transcript.

use std::sync::Arc;

use harness::core::message::Message;
use harness::core::{End, EntryId, Json, Outcome, RunId, Time};
use harness::runtime::DeliveryMode;

use super::ThreadState;
use crate::durable::context::{Begin, DriveInput};
use crate::durable::request::{Queued, ResumeAsk, RunOptions, ThreadSend, ThreadStatus};

/// Bytes of a given history, at most.
const HISTORY_BYTES: usize = 128 << 10;

impl ThreadState {
    pub(super) fn seed(&mut self, messages: Vec<Arc<Message>>) -> Result<(), String> {
        self.takes_messages()?;
        if self.running().is_some() || self.log > self.first {
            return Err(format!("not_new: thread `{}` has a history already, which stays", self.id()));
        }
        let bytes = Json::size_of(&messages);
        if bytes > HISTORY_BYTES {
            return Err(format!(
                "history_too_large: {bytes} bytes of history, {HISTORY_BYTES} are permitted"
            ));
        }
        self.history = messages;
        Ok(())
    }

    /// Starts a run with the messages that begin one: the oldest, or all that agree on its options. It supersedes a parked run.
    pub(super) fn begin(&mut self, now: Time, sends: &mut Vec<ThreadSend>) {
        let Some(first) = self.queue.beginning() else { return };
        let options = first.options.over(&self.defaults);
        let (began, prompt) = self.queue.take_beginning(self.delivery.follow_up).into_iter().unzip();
        self.supersede(options, began, prompt, now, sends);
    }

    /// Starts a run of an idle thread with these messages, before what waits. They are in the queue until the transcript has
    /// them, under the name of the request.
    pub(super) fn prompt(
        &mut self,
        entry: &EntryId,
        messages: Vec<Arc<Message>>,
        options: &RunOptions,
        now: Time,
        sends: &mut Vec<ThreadSend>,
    ) -> Result<(), String> {
        if self.remembered.contains(entry) {
            return Ok(());
        }
        self.takes_messages()?;
        self.is_free()?;
        if messages.is_empty() {
            return Err("no_message: a run begins with at least one message; `Continue` begins without one"
                .to_owned());
        }
        let name_of = |at: usize| if at == 0 { entry.clone() } else { format!("{entry}/{at}").into() };
        let queued = messages.into_iter().enumerate().map(|(at, message)| {
            Queued::new(name_of(at), message, DeliveryMode::NextTurn, true, options.clone(), now)
        });
        let queued: Vec<_> = queued.collect();
        self.has_room(&queued)?;
        let names: Vec<_> = queued.iter().map(|queued| queued.id.clone()).collect();
        for queued in queued {
            self.note_name(queued.id.clone());
            self.queue.push(queued);
        }
        let (began, prompt) = self.queue.take_named(&names).into_iter().unzip();
        self.supersede(options.over(&self.defaults), began, prompt, now, sends);
        Ok(())
    }

    pub(super) fn is_free(&self) -> Result<(), String> {
        match self.running() {
            Some(run) => Err(format!("busy: run `{run}` of thread `{}` is at work", self.id())),
            None => Ok(()),
        }
    }

    /// Continues the transcript without a message. Behind an answer it begins with what waits.
    pub(super) fn go_on(
        &mut self,
        options: &RunOptions,
        now: Time,
        sends: &mut Vec<ThreadSend>,
    ) -> Result<(), String> {
        self.takes_messages()?;
        self.is_free()?;
        let mut entries = Vec::new();
        if self.has_answer()? {
            entries = self.queue.take_steering(self.delivery.steering);
            self.has_steering = !entries.is_empty();
            if entries.is_empty() {
                entries = self.queue.take_beginning(self.delivery.follow_up);
            }
            if entries.is_empty()
                && let Some(Ok(end)) = &self.last
            {
                return Err(format!("nothing_to_resume: {}", end.reason()));
            }
        }
        let (began, prompt) = entries.into_iter().unzip();
        self.supersede(options.over(&self.defaults), began, prompt, now, sends);
        Ok(())
    }

    /// Whether the transcript ends with an answer: that of a completed run, or that of a given history. What a run left that was
    /// stopped or failed is not known here, so it is continued before anything else is said.
    fn has_answer(&self) -> Result<bool, String> {
        if self.log > self.first {
            let is_completed = |end: &Arc<End>| end.outcome() == Outcome::Completed;
            return Ok(self.parked.is_none() && matches!(&self.last, Some(Ok(end)) if is_completed(end)));
        }
        let last = self.history.last();
        let last = last.ok_or_else(|| format!("empty_transcript: thread `{}` has no messages", self.id()))?;
        Ok(last.as_assistant().is_some_and(|answer| answer.tool_calls().next().is_none()))
    }

    /// Starts a run in place of a parked one.
    fn supersede(
        &mut self,
        options: RunOptions,
        began: Vec<EntryId>,
        prompt: Vec<Arc<Message>>,
        now: Time,
        sends: &mut Vec<ThreadSend>,
    ) {
        (self.options, self.began) = (options, began);
        let waiting = self.drop_parked(sends);
        let agent = self.options.agent.clone().or_else(|| self.agent.clone());
        self.start(Begin::Messages { prompt, waiting, agent }, now, sends);
    }

    /// Continues a parked run, if it can continue. That of a child is continued by its caller.
    pub(super) fn resume(&mut self, now: Time, sends: &mut Vec<ThreadSend>) {
        if self.parent().is_none()
            && let Some(from) = self.unpark()
        {
            self.start(Begin::Resumed { from: Box::new(from), prompt: Vec::new(), agent: None }, now, sends);
        }
    }

    /// Stops the run at hand. A parked run is resumed to be stopped at once, so each of its calls gets a result; that of a child
    /// is stopped by its caller.
    pub(super) fn abort(&mut self, by: Arc<str>, now: Time, sends: &mut Vec<ThreadSend>) {
        if self.parent().is_some() || self.parked.is_none() {
            return self.stop(by, sends);
        }
        let parked = self.parked.clone();
        self.drop_parked(sends);
        self.stop = Some(by);
        if let Some(parked) = parked {
            let from = Box::new(ResumeAsk::new(*parked, None));
            self.start(Begin::Resumed { from, prompt: Vec::new(), agent: None }, now, sends);
        }
    }

    /// Resumes an earlier run. Its driver checks that nothing was said since. A parked run is refused: a continuation that does
    /// not fit would remove its calls.
    pub(super) fn resume_from(
        &mut self,
        entry: EntryId,
        from: Box<ResumeAsk>,
        prompt: Vec<Arc<Message>>,
        options: &RunOptions,
        now: Time,
        sends: &mut Vec<ThreadSend>,
    ) -> Result<(), String> {
        if self.remembered.contains(&entry) {
            return Ok(());
        }
        self.takes_messages()?;
        self.is_free()?;
        if self.parked.is_some() {
            let id = self.id();
            return Err(format!(
                "refused: calls of thread `{id}` wait for decisions; decide about each, or say something else"
            ));
        }
        self.note_name(entry);
        (self.options, self.began) = (options.over(&self.defaults), Vec::new());
        let agent = self.options.agent.clone();
        self.start(Begin::Resumed { from, prompt, agent }, now, sends);
        Ok(())
    }

    pub(super) fn run_id(&self, number: u64) -> RunId {
        RunId::from(format!("{}-{number}", self.id()))
    }

    pub(super) fn start(&mut self, begin: Begin, now: Time, sends: &mut Vec<ThreadSend>) {
        self.runs += 1;
        self.turn = self.log;
        self.drive(self.run_id(self.runs), begin, now, sends);
    }

    /// Starts a driver for a run, or for other work that has such an id.
    pub(super) fn drive(&mut self, run: RunId, begin: Begin, now: Time, sends: &mut Vec<ThreadSend>) {
        self.since = Some(now);
        let mut origin = self.origin.clone();
        let RunOptions { user, metadata, allowed_tools, agents, .. } = self.options.clone();
        (origin.run, origin.user, origin.metadata) = (Some(run.clone()), user, metadata);
        origin.allowed_tools = allowed_tools;
        self.status = ThreadStatus::Running(run);
        let (first, log, spent) = (self.first, self.log, self.spent.take());
        let (takes, injected, delegation) = (0, Vec::new(), None);
        let history = self.history.clone();
        let input = DriveInput {
            origin,
            begin,
            at: now,
            first,
            log,
            history,
            spent,
            takes,
            injected,
            agents,
            delegation,
            began: self.began.clone(),
            states: self.states.clone(),
            mode: None,
            stop: self.stop.clone(),
        };
        sends.push(ThreadSend::Drive(Box::new(input)));
    }
}
