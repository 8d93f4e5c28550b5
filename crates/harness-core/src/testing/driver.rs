//! A driver without a runtime, on virtual time.

use std::collections::BTreeMap;
use std::fmt;
use std::ops::Range;
use std::sync::Arc;

use super::Journal;
use crate::event::Event;
use crate::ids::{OpId, RunId};
use crate::machine::{Effect, Effects, Input, Machine, Op, Phase, Record, Reply, SNAPSHOT_VERSION, Start};
use crate::message::Message;
use crate::outcome::End;
use crate::port::Checkpoint;
use crate::time::{Millis, Time};
use crate::transcript::Transcript;

/// When an operation is answered.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub enum Answer {
    /// After this time; zero is at once.
    After(Millis, Reply),
    /// Not by itself: the test answers with [`ScriptedDriver::reply`], or nobody does.
    Open,
}

impl Answer {
    /// An answer at once.
    pub fn now(reply: Reply) -> Self {
        Self::After(Millis(0), reply)
    }
}

/// What a machine reaches through a [`ScriptedDriver`]: models, tools, gates, the store.
pub trait ScriptedWorld {
    /// Decides how an operation is answered.
    fn perform(&mut self, id: OpId, op: &Op, log: &Transcript) -> Answer;

    /// Stores a record. The default always can.
    ///
    /// # Errors
    /// Nothing of it is stored then, and the machine is told why.
    fn persist(&mut self, _record: &Record) -> Result<(), String> {
        Ok(())
    }

    /// What a cut-off model had said so far. The default is nothing.
    fn partial(&mut self, _id: OpId, _op: &Op) -> Option<Arc<Message>> {
        None
    }
}

/// Why [`ScriptedDriver::run`] returned.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum Ran {
    /// The machine ended.
    Ended(Arc<End>),
    /// The process died, as asked for by [`ScriptedDriver::crash_after`]; only the journal is left.
    Crashed,
    /// Nothing will ever happen again by itself; some operations are open.
    Waiting,
    /// A million inputs led to no end.
    Endless,
}

/// Drives a machine on virtual time: performs effects in order, answers operations as an [`ScriptedWorld`]
/// decides, in the order of (time, number).
pub struct ScriptedDriver<P: Phase, O> {
    machine: Machine<P>,
    outside: O,
    now: Time,
    grace: Millis,
    queue: BTreeMap<(Time, u64), Input>,
    queued: u64,
    open: Vec<(OpId, Op)>,
    journal: Journal,
    /// Messages of the transcript that are stored, and how many were to be.
    stored: usize,
    wanted: usize,
    /// Compactions that could not be stored: of the transcript, and of the view.
    shortened: Option<Record>,
    view: Option<Record>,
    events: Vec<Event>,
    inputs: Vec<(Time, Input)>,
    performed: u64,
    crash_after: Option<u64>,
    echo: bool,
    /// Whether the state is saved at boundaries, and the last that was.
    saves: bool,
    saved: Option<Checkpoint>,
}

impl<P: Phase, O> fmt::Debug for ScriptedDriver<P, O> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("ScriptedDriver")
            .field("now", &self.now)
            .field("open", &self.open)
            .field("queue", &self.queue)
            .finish_non_exhaustive()
    }
}

/// How many inputs a run may take before it is taken for an endless one.
const INPUTS: usize = 1_000_000;

impl<P: Phase, O: ScriptedWorld> ScriptedDriver<P, O> {
    /// A driver whose time stands at `now`. The journal begins with the machine's transcript.
    pub fn new(machine: Machine<P>, outside: O, now: Time) -> Self {
        let journal = Journal::of(machine.log().iter().cloned());
        let stored = machine.log().len();
        Self {
            machine,
            outside,
            now,
            grace: Millis(0),
            queue: BTreeMap::new(),
            queued: 0,
            open: Vec::new(),
            journal,
            stored,
            wanted: stored,
            shortened: None,
            view: None,
            events: Vec::new(),
            inputs: Vec::new(),
            performed: 0,
            crash_after: None,
            echo: false,
            saves: false,
            saved: None,
        }
    }

    /// The same driver, which lets answers of an aborted turn come for this long. Default: not at all.
    #[must_use]
    pub fn with_grace(mut self, grace: Millis) -> Self {
        self.grace = grace;
        self
    }

    /// The same driver, whose process dies right after its n-th effect (from 1).
    #[must_use]
    pub fn crash_after(mut self, effects: u64) -> Self {
        self.crash_after = Some(effects);
        self
    }

    /// The same driver, which gives every reply twice. A machine must not notice.
    #[must_use]
    pub fn repeating_replies(mut self) -> Self {
        self.echo = true;
        self
    }

    /// The same driver, which saves the state after the effects of each boundary; saving is an effect, too.
    #[must_use]
    pub fn saving_checkpoints(mut self) -> Self {
        self.saves = true;
        self
    }

    /// Begins, and runs until nothing happens by itself any more.
    pub fn run(&mut self, start: Start) -> Ran {
        self.input(Input::Start(Box::new(start)));
        self.go_on()
    }

    /// Queues an input for now, behind what is queued for now already.
    pub fn input(&mut self, input: Input) {
        self.input_at(self.now, input);
    }

    /// Queues an input for a time.
    pub fn input_at(&mut self, at: Time, input: Input) {
        self.queue.insert((at, self.queued), input);
        self.queued += 1;
    }

    /// Answers an open operation now.
    pub fn reply(&mut self, op: OpId, reply: Reply) {
        self.input(Input::Reply(op, reply));
    }

    /// Takes up effects that a machine gave before this driver had it, as a restore does.
    pub fn perform(&mut self, mut effects: Effects) {
        let batch: Vec<_> = effects.drain().collect();
        self.take(batch);
    }

    /// Runs until nothing happens by itself any more, moving the time as far as needed.
    pub fn go_on(&mut self) -> Ran {
        self.run_until(None)
    }

    /// Runs all that happens now, without moving the time.
    pub fn settle(&mut self) -> Ran {
        self.run_until(Some(self.now))
    }

    /// Moves the time by `by`; what happens on the way happens.
    pub fn advance(&mut self, by: Millis) -> Ran {
        let until = self.now.after(by);
        let ran = self.run_until(Some(until));
        self.now = until;
        ran
    }

    /// Gives the machine this input at `now`, before all that is queued and all wake-ups: for whoever has a clock and
    /// answers operations of its own.
    pub fn give(&mut self, input: Input, now: Time) {
        self.now = self.now.max(now);
        self.feed(input);
    }

    /// When something happens next by itself.
    pub fn next_time(&self) -> Option<Time> {
        let queued = self.queue.first_key_value().map(|((at, _), _)| *at);
        [queued, self.machine.wake_at()].into_iter().flatten().min()
    }

    fn run_until(&mut self, until: Option<Time>) -> Ran {
        loop {
            if let Some(end) = self.machine.end() {
                return Ran::Ended(Arc::clone(end));
            }
            if self.has_crashed() {
                return Ran::Crashed;
            }
            if self.inputs.len() >= INPUTS {
                return Ran::Endless;
            }
            let Some((at, input)) = self.next(until) else { return Ran::Waiting };
            self.now = self.now.max(at);
            self.feed(input);
        }
    }

    /// The next input: what is queued, or a wake-up when that is earlier.
    fn next(&mut self, until: Option<Time>) -> Option<(Time, Input)> {
        let fits = |at: &Time| until.is_none_or(|until| *at <= until);
        let queued = self.queue.first_key_value().map(|((at, _), _)| *at);
        let wake = self.machine.wake_at().filter(|at| queued.is_none_or(|queued| *at < queued));
        if let Some(at) = wake {
            return Some((at, Input::Wake)).filter(|(at, _)| fits(at));
        }
        queued.filter(fits)?;
        self.queue.pop_first().map(|((at, _), input)| (at, input))
    }

    fn feed(&mut self, input: Input) {
        if let Input::Reply(id, _) = &input {
            self.open.retain(|(open, _)| open != id);
        }
        self.inputs.push((self.now, input.clone()));
        let mut effects = Effects::new();
        self.machine.advance(input, self.now, &mut effects);
        self.perform(effects);
    }

    /// Performs effects in order. After a failed barrier no operation is started any more, and the machine
    /// is told which.
    fn take(&mut self, batch: Vec<Effect>) {
        let mut failed: Option<String> = None;
        let mut unperformed = Vec::new();
        let (mut boundary, mut done) = (false, false);
        for effect in batch {
            if self.has_crashed() {
                return;
            }
            self.performed += 1;
            match effect {
                Effect::Persist(record) => {
                    boundary |= matches!(record, Record::Boundary { .. });
                    if let Err(message) = self.persist(&record) {
                        failed.get_or_insert(message);
                    }
                }
                Effect::Event(event) => self.events.push(event),
                Effect::Perform(id, _) if failed.is_some() => unperformed.push(id),
                Effect::Perform(id, op) => self.start(id, op),
                Effect::AbortAll => self.abort(),
                Effect::Done(_) => {
                    done = true;
                    self.queue.clear();
                }
            }
        }
        if self.saves && boundary && !done {
            self.save();
        }
        if let Some(message) = failed {
            let messages_from = self.unsaved().map(|range| range.start);
            self.feed(Input::PersistFailed { message, messages_from, unperformed });
        }
    }

    /// Saves the state, unless the process is dead.
    fn save(&mut self) {
        if self.has_crashed() {
            return;
        }
        self.performed += 1;
        if let Ok(state) = self.machine.snapshot() {
            let run = self.machine.origin().run.clone().unwrap_or_else(|| RunId::from("run"));
            let messages = self.machine.log().len() as u64;
            let state = Arc::new(state);
            self.saved = Some(Checkpoint::new(run, self.now, SNAPSHOT_VERSION, messages, state));
        }
    }

    /// Messages that could not be stored go before whatever is stored next.
    fn persist(&mut self, record: &Record) -> Result<(), String> {
        let log = self.machine.log();
        match record {
            Record::Messages(range) => self.wanted = self.wanted.max(range.end),
            Record::Compaction { permanent: true, messages, .. } => {
                (self.stored, self.wanted) = (*messages, *messages);
                (self.shortened, self.view) = (Some(record.clone()), None);
            }
            Record::Compaction { permanent: false, .. } => self.view = Some(record.clone()),
            Record::CallStarted { .. }
            | Record::CallFinished { .. }
            | Record::Boundary { .. }
            | Record::RunEnd(_) => {}
        }
        self.outside.persist(record)?;
        let messages = Record::Messages(self.stored..self.wanted);
        let before = self.shortened.take().into_iter().chain([messages]);
        for owed in before.chain(self.view.take()) {
            self.journal.write(&owed, log);
        }
        self.stored = self.wanted;
        if !matches!(record, Record::Messages(_) | Record::Compaction { .. }) {
            self.journal.write(record, log);
        }
        Ok(())
    }

    fn start(&mut self, id: OpId, op: Op) {
        let answer = self.outside.perform(id, &op, self.machine.log());
        self.open.push((id, op));
        if let Answer::After(delay, reply) = answer {
            let at = self.now.after(delay);
            if self.echo {
                self.input_at(at, Input::Reply(id, reply.clone()));
            }
            self.input_at(at, Input::Reply(id, reply));
        }
    }

    /// Answers that would come after the grace period never come; whoever has none is interrupted.
    fn abort(&mut self) {
        let last = self.now.after(self.grace);
        self.queue.retain(|(at, _), input| !matches!(input, Input::Reply(..)) || *at <= last);
        let unanswered: Vec<_> = self.open.iter().filter(|(id, _)| !self.answered(*id)).cloned().collect();
        for (id, op) in unanswered {
            let partial = self.outside.partial(id, &op);
            self.input_at(last, Input::Reply(id, Reply::Interrupted { partial }));
        }
    }

    fn answered(&self, id: OpId) -> bool {
        self.queue.values().any(|input| matches!(input, Input::Reply(op, _) if *op == id))
    }

    fn has_crashed(&self) -> bool {
        self.crash_after.is_some_and(|effects| self.performed >= effects)
    }

    /// The machine.
    pub fn machine(&self) -> &Machine<P> {
        &self.machine
    }

    /// Takes the machine out of a driver that is not needed any more.
    pub fn into_machine(self) -> Machine<P> {
        self.machine
    }

    /// What it reaches.
    pub fn outside(&self) -> &O {
        &self.outside
    }

    /// What it reaches, to change it.
    pub fn outside_mut(&mut self) -> &mut O {
        &mut self.outside
    }

    /// The time.
    pub fn now(&self) -> Time {
        self.now
    }

    /// Operations that were not answered yet, in the order in which they began.
    pub fn open(&self) -> &[(OpId, Op)] {
        &self.open
    }

    /// What is durable.
    pub fn journal(&self) -> &Journal {
        &self.journal
    }

    /// The state as it was saved last; see [`ScriptedDriver::saving_checkpoints`].
    pub fn checkpoint(&self) -> Option<&Checkpoint> {
        self.saved.as_ref()
    }

    /// The messages at the end of the transcript that could not be stored; `None` when all are.
    pub fn unsaved(&self) -> Option<Range<usize>> {
        (self.stored < self.wanted).then_some(self.stored..self.wanted)
    }

    /// The events so far.
    pub fn events(&self) -> &[Event] {
        &self.events
    }

    /// Every input that the machine was given, with its time: a replay needs no more.
    pub fn inputs(&self) -> &[(Time, Input)] {
        &self.inputs
    }

    /// Effects performed so far: the crash points of the run.
    pub fn performed(&self) -> u64 {
        self.performed
    }
}

/// Feeds recorded inputs to a machine that has not started, performing nothing. Gives all its effects.
pub fn replay<P: Phase>(machine: &mut Machine<P>, inputs: &[(Time, Input)]) -> Vec<Effect> {
    let mut effects = Effects::new();
    for (at, input) in inputs {
        machine.advance(input.clone(), *at, &mut effects);
    }
    effects.drain().collect()
}
