//! The thread service: queue, decisions and status of one conversation.
//!
//! Every request is a pure step of [`ThreadState`], whose state is stored with the reply. A request that is given twice
//! has an equal reply and no second effect.

use std::collections::VecDeque;
use std::sync::Arc;

use harness::core::machine::CallDecision;
use harness::core::message::Message;
use harness::core::outcome::{Continuation, ContinuationKind};
use harness::core::port::{Decision, DrainPoint};
use harness::core::{
    AgentId, CallDigest, CallId, End, EntryId, Json, Millis, Origin, Outcome, Redactor, RunId, ThreadId, Time,
};
use harness::runtime::{DeliveryMode, DeliveryRules, Queue};
use serde::{Deserialize, Serialize};

use super::blob::BlobHash;
use super::context::{ControlAsk, ControlReply};
use super::request::{Held, Queued, RunOptions, ThreadAsk, ThreadReply, ThreadSend, ThreadStatus};

mod beginning;
mod compaction;
mod deciding;
mod family;
mod parking;

pub use family::ChildReport;

use compaction::Compactions;
use deciding::named;
use family::Family;

/// Messages that wait, at most.
const QUEUE: usize = 64;
/// Bytes of the messages that wait with their options, at most: the state of an object stays small.
const QUEUE_BYTES: usize = 128 << 10;
/// Bytes of the options of later runs, at most.
const OPTION_BYTES: usize = 32 << 10;
/// Names of messages that are remembered, so that a client may send one again.
const REMEMBERED: usize = 256;
/// How long a parked call waits for a decision: 7 days.
const EXPIRES: Millis = Millis(7 * 24 * 3_600_000);

/// The state of one thread.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct ThreadState {
    origin: Origin,
    status: ThreadStatus,
    queue: Queue<RunOptions>,
    remembered: VecDeque<EntryId>,
    /// When it received its first request.
    #[serde(default)]
    created: Option<Time>,
    /// When the run at hand, or the last one, was started.
    #[serde(default)]
    since: Option<Time>,
    /// Runs so far.
    runs: u64,
    /// The first log entry of the conversation: those before it are forgotten.
    #[serde(default)]
    first: u64,
    /// Entries of the log before the run at hand, or before the last one.
    #[serde(default)]
    turn: u64,
    /// Entries of the log before the run at hand.
    log: u64,
    /// Messages before the first one, until a run has stored them.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    history: Vec<Arc<Message>>,
    /// A state that the last run left.
    #[serde(default)]
    spent: Option<BlobHash>,
    /// Whether the conversation is being forgotten.
    #[serde(default)]
    is_forgetting: bool,
    stop: Option<Arc<str>>,
    /// The first messages of the run at hand, and its options.
    began: Vec<EntryId>,
    options: RunOptions,
    /// The options of runs whose messages have none.
    #[serde(default)]
    defaults: RunOptions,
    /// The last request for messages, and its reply.
    taken: Option<(RunId, u64, ControlReply)>,
    held: Vec<Held>,
    decisions: Vec<CallDecision>,
    /// Digests of the calls that were decided last, with their decisions.
    #[serde(default)]
    decided: VecDeque<(CallDigest, BlobHash)>,
    parked: Option<Box<Continuation>>,
    agent: Option<AgentId>,
    /// How it delivers messages, as its last run sent it.
    #[serde(default, skip_serializing_if = "DeliveryRules::is_default")]
    delivery: DeliveryRules,
    /// Whether the run at hand started with steering: it takes no more at its beginning.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    has_steering: bool,
    last: Option<Result<Arc<End>, String>>,
    #[serde(default, skip_serializing_if = "Family::is_none")]
    family: Family,
    /// States of tools that belong to the thread.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    states: Option<Json>,
    #[serde(default, skip_serializing_if = "Compactions::is_none")]
    compactions: Compactions,
}

impl ThreadState {
    /// A thread without messages; the origin names it, and the descriptor of its agents.
    pub fn new(id: ThreadId, descriptor: Option<Arc<str>>) -> Self {
        let mut origin = Origin::default();
        // Keys of tools must be equal in all runs that a decision continues.
        origin.session = Some(id.as_str().into());
        (origin.thread, origin.descriptor_hash) = (Some(id), descriptor);
        Self::of(origin)
    }

    /// A thread without messages whose runs have the ids and the data of `origin`, which names the thread. User, data and
    /// tools are those of messages without any.
    pub fn of(mut origin: Origin) -> Self {
        let (user, metadata) = (origin.user.take(), origin.metadata.take());
        let allowed_tools = origin.allowed_tools.take();
        let defaults = RunOptions { user, metadata, allowed_tools, ..RunOptions::default() };
        Self { origin, defaults, ..Self::default() }
    }

    /// Its id; empty if its origin names none.
    pub fn id(&self) -> ThreadId {
        self.origin.thread.clone().unwrap_or_default()
    }

    /// Status of the thread.
    pub fn status(&self) -> &ThreadStatus {
        &self.status
    }

    /// The messages that wait, in the order of their delivery.
    pub fn queue(&self) -> impl Iterator<Item = &Queued> {
        self.queue.iter()
    }

    /// The calls that wait for a decision, those of its children included: the origin of a call names its thread.
    pub fn approvals(&self) -> impl Iterator<Item = &Held> {
        let decided = |call: &CallId| self.decisions.iter().any(|decision| decision.call == *call);
        self.held.iter().filter(move |held| !decided(held.call())).chain(self.family.held())
    }

    /// The thread whose call this one works for; `None` for a thread that no call started.
    pub fn parent(&self) -> Option<&ThreadId> {
        self.family.parent()
    }

    /// The threads that work for calls of the run at hand.
    pub fn children(&self) -> impl Iterator<Item = &ThreadId> {
        self.family.at_work()
    }

    /// The end of the last run, or why it could not begin.
    pub fn last(&self) -> Option<&Result<Arc<End>, String>> {
        self.last.as_ref()
    }

    /// Entries of the log at the end of the last run.
    pub fn log(&self) -> u64 {
        self.log
    }

    /// The first log entry of the conversation: those before it are forgotten.
    pub fn first(&self) -> u64 {
        self.first
    }

    /// Whether its conversation is being forgotten.
    pub fn is_forgetting(&self) -> bool {
        self.is_forgetting
    }

    /// Entries of the log before the run at hand; before the last run of an idle thread.
    pub fn turn(&self) -> u64 {
        self.turn.max(self.first)
    }

    /// When the thread received its first request; `None` for a thread that does not exist, or is being forgotten.
    pub fn created(&self) -> Option<Time> {
        self.created.filter(|_| !self.is_forgetting)
    }

    /// When the run at hand, or the last one, was started.
    pub fn since(&self) -> Time {
        self.since.unwrap_or_default()
    }

    /// Whether the run at hand is being stopped.
    pub fn is_stopping(&self) -> bool {
        self.stop.is_some()
    }

    /// Id of the last run that ended or could not begin.
    pub fn last_run(&self) -> Option<RunId> {
        if let Some(run) = self.family.run() {
            return self.running().is_none().then(|| run.clone());
        }
        let at_work = u64::from(self.running().is_some() && !self.is_compacting());
        self.runs.checked_sub(at_work).filter(|number| *number > 0).map(|number| self.run_id(number))
    }

    /// Options of runs whose messages have none.
    pub fn defaults(&self) -> &RunOptions {
        &self.defaults
    }

    /// Hash of the descriptor of its agents.
    pub fn descriptor(&self) -> Option<&Arc<str>> {
        self.origin.descriptor_hash.as_ref()
    }

    /// Whether this decision was given about a call that waits no longer; `None` if none is known. The last 64 are.
    pub fn decided(&self, digest: &CallDigest, decision: &Decision) -> Option<bool> {
        let (_, earlier) = self.decided.iter().rev().find(|(decided, _)| decided == digest)?;
        Some(*earlier == named(decision))
    }

    /// The messages that the run at hand started with.
    pub fn began(&self) -> &[EntryId] {
        &self.began
    }

    /// Takes one request, without the secrets that `redactor` knows. The state, the reply and what is sent are stored
    /// together.
    pub fn handle(
        &mut self,
        ask: ThreadAsk,
        now: Time,
        redactor: Option<&Redactor>,
    ) -> (ThreadReply, Vec<ThreadSend>) {
        let mut sends = Vec::new();
        self.created.get_or_insert(now);
        let before = self.shown();
        let reply = match ask.redacted(redactor) {
            Ok(ThreadAsk::Run(control)) => ThreadReply::Run(self.control(control, now, &mut sends)),
            Ok(ask) => self
                .change(ask, now, &mut sends)
                .map_or_else(ThreadReply::Refused, |()| ThreadReply::Accepted(self.running().cloned())),
            Err(why) => ThreadReply::Refused(why),
        };
        if let Some(shown) = self.shown().filter(|after| Some(after) != before.as_ref()) {
            sends.extend(self.family.tell(self.id(), shown));
        }
        (reply, sends)
    }

    fn change(&mut self, ask: ThreadAsk, now: Time, sends: &mut Vec<ThreadSend>) -> Result<(), String> {
        match ask {
            ThreadAsk::Forget => {
                self.forget(sends);
                Ok(())
            }
            ThreadAsk::Forgotten { before } => {
                self.forgotten(before);
                Ok(())
            }
            ThreadAsk::Settle { run, why, injected, log } => {
                self.settle(run, why, now, &injected, log, sends)
            }
            ThreadAsk::StopRun(run) => {
                self.stop_run(run, sends);
                Ok(())
            }
            ThreadAsk::Child(report) => {
                self.family.note(*report);
                self.resume(now, sends);
                Ok(())
            }
            _ if self.is_forgetting => Err(format!(
                "forgetting: the conversation of thread `{}` is being removed; try again in a moment",
                self.id()
            )),
            ThreadAsk::Deliver { entry, message, mode, wakes, options } => {
                self.deliver(Queued::new(entry, message, mode, wakes, options, now), sends)
            }
            ThreadAsk::Abort { reason } => {
                self.abort(reason.unwrap_or_else(|| Arc::from("caller")), now, sends);
                Ok(())
            }
            ThreadAsk::Decide(decision) => self.decide(decision, now, sends),
            ThreadAsk::Edit { entry, message } => {
                let waiting = self.queue.waiting_mut(&entry).ok_or_else(|| not_waiting(&entry));
                waiting.map(|queued| queued.message = message)
            }
            ThreadAsk::Reorder { entry, place } => {
                self.queue.move_waiting(&entry, place).then_some(()).ok_or_else(|| not_waiting(&entry))
            }
            ThreadAsk::Cancel { entry } => {
                self.queue.remove_waiting(&entry).map(drop).ok_or_else(|| not_waiting(&entry))
            }
            ThreadAsk::Configure(options) => self.configure(options),
            ThreadAsk::Seed { messages } => self.seed(messages),
            ThreadAsk::Start { entry, messages, resume: None, options } => {
                self.prompt(&entry, messages, &options, now, sends)
            }
            ThreadAsk::Start { entry, messages, resume: Some(from), options } => {
                self.resume_from(entry, from, messages, &options, now, sends)
            }
            ThreadAsk::Continue { options } => self.go_on(&options, now, sends),
            ThreadAsk::Compact { entry, instructions } => self.compact(entry, instructions, now, sends),
            ThreadAsk::Expire { run, since } => {
                self.expire(&run, since, now, sends);
                Ok(())
            }
            ThreadAsk::Run(_) => Err("run: this is a request of a driver".to_owned()),
        }
    }

    fn running(&self) -> Option<&RunId> {
        if let ThreadStatus::Running(run) = &self.status { Some(run) } else { None }
    }

    fn deliver(&mut self, queued: Queued, sends: &mut Vec<ThreadSend>) -> Result<(), String> {
        let now = queued.queued_at;
        if self.remembered.contains(&queued.id) {
            return Ok(());
        }
        self.takes_messages()?;
        self.has_room(std::slice::from_ref(&queued))?;
        self.note_name(queued.id.clone());
        if queued.mode == DeliveryMode::Interrupt {
            self.queue.push_interrupt(queued);
            if !self.is_compacting() {
                self.stop(Arc::from("interrupt"), sends);
            }
        } else {
            self.queue.push(queued);
        }
        if self.running().is_none() && self.queue.wakes() {
            self.begin(now, sends);
        }
        Ok(())
    }

    /// Whether these may wait, too.
    fn has_room(&self, more: &[Queued]) -> Result<(), String> {
        if self.queue.iter().count() + more.len() > QUEUE {
            return Err(format!("queue_full: {QUEUE} messages wait already; try again later"));
        }
        let waiting: usize = self.queue.iter().map(Json::size_of).sum();
        let bytes = more.iter().map(Json::size_of).fold(waiting, usize::saturating_add);
        if bytes > QUEUE_BYTES {
            return Err(format!("queue_full: {bytes} bytes would wait, {QUEUE_BYTES} are permitted"));
        }
        Ok(())
    }

    /// Remembers the name of a request, so that a client may send it again.
    fn note_name(&mut self, name: EntryId) {
        self.remembered.push_back(name);
        if self.remembered.len() > REMEMBERED {
            self.remembered.pop_front();
        }
    }

    fn takes_messages(&self) -> Result<(), String> {
        let Some(parent) = self.parent() else { return Ok(()) };
        let text = "works for a call and takes no messages; send them to";
        Err(format!("child: thread `{}` {text} `{parent}`", self.id()))
    }

    fn configure(&mut self, options: RunOptions) -> Result<(), String> {
        let bytes = Json::size_of(&options);
        if bytes > OPTION_BYTES {
            return Err(format!("options_too_large: {bytes} bytes of options, {OPTION_BYTES} are permitted"));
        }
        self.agent = options.agent.clone().or(self.agent.take());
        self.defaults = options;
        Ok(())
    }

    fn stop(&mut self, by: Arc<str>, sends: &mut Vec<ThreadSend>) {
        if let Some(run) = self.running().cloned() {
            self.stop.get_or_insert(by);
            sends.push(ThreadSend::Ring(run));
        }
    }

    /// Stops the run at hand, and has the conversation removed when there is none.
    fn forget(&mut self, sends: &mut Vec<ThreadSend>) {
        if std::mem::replace(&mut self.is_forgetting, true) {
            return;
        }
        self.queue = Queue::default();
        self.drop_parked(sends);
        if self.running().is_some() {
            self.stop(Arc::from("forgotten"), sends);
        } else {
            self.remove(sends);
        }
    }

    fn remove(&mut self, sends: &mut Vec<ThreadSend>) {
        self.family.forget(sends);
        sends.push(ThreadSend::Forget { before: self.log });
    }

    /// Begins anew. Numbers of runs and log entries continue, and the session is another: keys of tools are not repeated.
    fn forgotten(&mut self, before: u64) {
        if self.is_forgetting && self.running().is_none() && before == self.log {
            let (mut origin, runs, log) = (self.origin.clone(), self.runs, self.log);
            origin.session = Some(format!("{}#{log}", self.id()).into());
            let compactions = self.compactions.forgotten();
            *self = Self { origin, runs, log, first: log, compactions, ..Self::default() };
        }
    }

    fn control(&mut self, ask: ControlAsk, now: Time, sends: &mut Vec<ThreadSend>) -> ControlReply {
        match ask {
            ControlAsk::Take { run, number, point, injected, delivery } => {
                if self.running() == Some(&run) {
                    self.delivery = delivery;
                }
                self.take(run, number, point, &injected, now)
            }
            ControlAsk::Hold { run, calls } => {
                if self.running() == Some(&run) {
                    self.decisions.retain(|decided| calls.iter().any(|held| *held.call() == decided.call));
                    self.held = calls;
                }
                ControlReply::Noted
            }
            ControlAsk::Ended { run, end, at, injected, log, state, states } => {
                if self.running() == Some(&run) {
                    self.spent = state;
                    self.states = states.or(self.states.take());
                    self.ended(run, end, at.max(now), &injected, log, sends);
                }
                ControlReply::Noted
            }
            ControlAsk::Compacted { run, result, log } => {
                if self.running() == Some(&run) {
                    self.compacted(result, log, now, sends);
                }
                ControlReply::Noted
            }
            ControlAsk::Delegate { run, child, begins } => {
                if self.running() == Some(&run) {
                    self.family.delegate(child, begins, sends);
                }
                ControlReply::Noted
            }
            ControlAsk::BeginChild { origin, parent, caller, continues, at } => {
                self.begin_child(*origin, parent, (caller, continues), at.max(now), sends)
            }
            ControlAsk::Append { .. } => ControlReply::Refused("entries belong to the log".to_owned()),
        }
    }

    fn take(
        &mut self,
        run: RunId,
        number: u64,
        point: Option<DrainPoint>,
        injected: &[EntryId],
        now: Time,
    ) -> ControlReply {
        if let Some((_, _, reply)) = self.taken.as_ref().filter(|(of, at, _)| (of, *at) == (&run, number)) {
            return reply.clone();
        }
        if self.running() != Some(&run) {
            return ControlReply::Refused(format!("run `{run}` is not the run of this thread"));
        }
        self.queue.delivered(injected);
        let DeliveryRules { steering, late_steering, .. } = self.delivery;
        let entries = match point {
            Some(DrainPoint::Begin) if std::mem::take(&mut self.has_steering) => Vec::new(),
            Some(point) => self.queue.take_at(point, steering, late_steering),
            None => Vec::new(),
        };
        let reply = ControlReply::Taken {
            at: now,
            entries,
            stop: self.stop.clone(),
            decisions: self.decisions.clone(),
        };
        self.taken = Some((run, number, reply.clone()));
        reply
    }

    fn ended(
        &mut self,
        run: RunId,
        end: Result<Arc<End>, String>,
        now: Time,
        injected: &[EntryId],
        log: u64,
        sends: &mut Vec<ThreadSend>,
    ) {
        if let (true, Err(why)) = (self.is_compacting(), &end) {
            return self.compacted(Err(compaction::lost(why)), log, now, sends);
        }
        // What could not begin cannot begin at once again: its messages wait until somebody speaks.
        let is_lost = end.is_err();
        self.queue.delivered(injected);
        let began = std::mem::take(&mut self.began);
        if !is_lost {
            self.queue.delivered(&began);
        }
        self.queue.restore();
        if log > self.log {
            self.history.clear();
        }
        let stopped = self.stop.take();
        (self.log, self.status) = (log, ThreadStatus::Idle);
        self.has_steering = false;
        if self.is_forgetting {
            return self.remove(sends);
        }
        let is_completed = end.as_ref().is_ok_and(|end| end.outcome() == Outcome::Completed);
        self.parked = None;
        if let Ok(end) = &end {
            self.agent = end.agent.clone().or(self.agent.take());
            let parked = end.continuation.clone();
            self.parked = parked.filter(|parked| parked.kind == ContinuationKind::Approval);
        }
        self.last = Some(end);
        let pending = |call: &CallId| {
            self.parked.as_ref().is_some_and(|parked| parked.pending.iter().any(|at| at.call_id == *call))
        };
        self.held.retain(|held| pending(held.call()));
        // What was put off waits for another decision.
        self.decisions.retain(|decided| pending(&decided.call) && decided.decision != Decision::Later);
        self.family.stop_parked(|child| self.waits_for(child), sends);
        self.held.extend(self.requested(now));
        if self.parked.is_some() {
            let expire = ThreadAsk::Expire { run: run.clone(), since: self.since };
            sends.push(ThreadSend::Later(now.after(EXPIRES), Box::new(expire)));
            self.status = ThreadStatus::Parked(run);
        }
        // It parked while the abort was on its way.
        if let Some(by) = stopped.filter(|_| self.parked.is_some() && !self.queue.wakes()) {
            return self.abort(by, now, sends);
        }
        self.resume(now, sends);
        let is_free = self.running().is_none() && self.parent().is_none();
        if is_free && !is_lost && (self.queue.wakes() || is_completed) {
            self.begin(now, sends);
        }
    }

    fn settle(
        &mut self,
        run: RunId,
        why: String,
        now: Time,
        injected: &[EntryId],
        log: u64,
        sends: &mut Vec<ThreadSend>,
    ) -> Result<(), String> {
        if self.running() != Some(&run) || log < self.log {
            return Err(format!("not_running: run `{run}` is not the run of this thread"));
        }
        self.ended(run, Err(why), now, injected, log, sends);
        Ok(())
    }
}

fn not_waiting(entry: &EntryId) -> String {
    format!("not_waiting: message `{entry}` does not wait; a run may have taken it")
}
