//! How runs of a thread begin: with messages, decisions, or nothing but the transcript.

use std::sync::Arc;

use harness::core::message::Message;
use harness::core::{EntryId, Json, RunId, Time};
use harness::runtime::QueueMode;

use super::ThreadState;
use crate::durable::context::{Begin, DriveInput};
use crate::durable::request::{RunOptions, ThreadSend, ThreadStatus};

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

    /// Starts a run with the oldest message that may begin one. It supersedes a parked run.
    pub(super) fn begin(&mut self, now: Time, sends: &mut Vec<ThreadSend>) {
        let Some(first) = self.queue.beginning() else { return };
        let options = first.options.over(&self.defaults);
        let (began, prompt) = self.queue.take_beginning(QueueMode::OneAtATime).into_iter().unzip();
        self.supersede(options, began, prompt, now, sends);
    }

    /// Continues the transcript without a message.
    pub(super) fn go_on(
        &mut self,
        options: &RunOptions,
        now: Time,
        sends: &mut Vec<ThreadSend>,
    ) -> Result<(), String> {
        self.takes_messages()?;
        if let Some(run) = self.running() {
            return Err(format!("busy: run `{run}` of thread `{}` is at work", self.id()));
        }
        self.supersede(options.over(&self.defaults), Vec::new(), Vec::new(), now, sends);
        Ok(())
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
        let waiting = self.parked.take().map(|parked| parked.waiting).unwrap_or_default();
        self.held.clear();
        self.decisions.clear();
        let agent = self.options.agent.clone().or_else(|| self.agent.clone());
        self.start(Begin::Messages { prompt, waiting, agent }, now, sends);
    }

    /// Continues a parked run with the decisions so far.
    pub(super) fn resume(&mut self, now: Time, sends: &mut Vec<ThreadSend>) {
        let Some(continuation) = self.parked.take() else { return };
        let decisions = std::mem::take(&mut self.decisions);
        self.held.retain(|held| !decisions.iter().any(|decided| decided.call == *held.call()));
        self.start(Begin::Decided { continuation, decisions }, now, sends);
    }

    pub(super) fn run_id(&self, number: u64) -> RunId {
        RunId::from(format!("{}-{number}", self.id()))
    }

    pub(super) fn start(&mut self, begin: Begin, now: Time, sends: &mut Vec<ThreadSend>) {
        self.runs += 1;
        (self.turn, self.since) = (self.log, Some(now));
        let run = self.run_id(self.runs);
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
        };
        sends.push(ThreadSend::Drive(Box::new(input)));
    }
}
