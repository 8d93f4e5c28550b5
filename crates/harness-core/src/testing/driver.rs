//! A driver without a runtime, on virtual time.

use std::collections::BTreeMap;
use std::fmt;
use std::sync::Arc;

use super::Journal;
use crate::event::Event;
use crate::ids::{OpId, RunId};
use crate::machine::{Effect, Input, Machine, Op, Phase, Record, Reply, Start};
use crate::message::Message;
use crate::outcome::End;
use crate::port::Checkpoint;
use crate::run::SNAPSHOT_VERSION;
use crate::time::{Millis, Time};
use crate::transcript::Transcript;

/// When an operation is answered.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub enum Answer {
    /// After this time; zero is at once.
    After(Millis, Reply),
    /// Not by itself: the test may reply with [`ScriptedDriver::reply`].
    Open,
}

impl Answer {
    /// An answer at once.
    pub fn now(reply: Reply) -> Self {
        Self::After(Millis(0), reply)
    }
}

/// The world of a machine under a [`ScriptedDriver`]: models, tools, gates, the store.
pub trait ScriptedWorld {
    /// Decides how an operation is answered.
    fn perform(&mut self, id: OpId, op: &Op, log: &Transcript) -> Answer;

    /// Stores records, all or none. The default always can.
    ///
    /// # Errors
    /// The reason, when nothing of them is stored.
    fn persist(&mut self, _records: &[Record]) -> Result<(), String> {
        Ok(())
    }

    /// The answer so far of a model that is cut off. Default: none.
    fn partial(&mut self, _id: OpId, _op: &Op) -> Option<Arc<Message>> {
        None
    }
}

/// The reason why [`ScriptedDriver::run`] returned.
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
///
/// ```
/// use std::sync::Arc;
///
/// use harness_core::machine::{Op, Reply, Start};
/// use harness_core::message::{AssistantMessage, Message};
/// use harness_core::port::PreparedAgent;
/// use harness_core::testing::{Answer, Ran, ScriptedDriver, ScriptedWorld};
/// use harness_core::transcript::Transcript;
/// use harness_core::turn::{Turn, TurnSpec};
/// use harness_core::{OpId, Origin, Time};
///
/// /// A world whose model says hello.
/// struct Hello;
///
/// impl ScriptedWorld for Hello {
///     fn perform(&mut self, _: OpId, op: &Op, _: &Transcript) -> Answer {
///         match op {
///             Op::Prepare { .. } => Answer::now(Reply::Prepared(Ok(Arc::new(PreparedAgent::new("main", "", []))))),
///             Op::Model { .. } => Answer::now(Reply::Model(Ok(Arc::new(AssistantMessage::text("Hello.").into())))),
///             _ => Answer::Open,
///         }
///     }
/// }
///
/// let turn = Turn::new(Arc::new(TurnSpec::default()), Origin::default(), Transcript::default());
/// let mut driver = ScriptedDriver::new(turn, Hello, Time(0));
/// let ran = driver.run(Start::prompt(Message::user("Hi")));
/// assert!(matches!(ran, Ran::Ended(_)), "{ran:?}");
/// assert_eq!(driver.journal().messages().count(), 2);
/// ```
pub struct ScriptedDriver<P: Phase, O> {
    machine: Machine<P>,
    outside: O,
    now: Time,
    grace: Millis,
    queue: BTreeMap<(Time, u64), Input>,
    queued: u64,
    open: Vec<(OpId, Op)>,
    journal: Journal,
    events: Vec<Event>,
    inputs: Vec<(Time, Input)>,
    performed: u64,
    crash_after: Option<u64>,
    echo: bool,
    /// How long a store takes; `None` when it answers before anything else happens.
    store_takes: Option<Millis>,
    /// The state that was saved last.
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

/// Inputs after which a run counts as endless.
const INPUTS: usize = 1_000_000;

impl<P: Phase, O: ScriptedWorld> ScriptedDriver<P, O> {
    /// A driver at the time `now`. The journal starts with the machine's transcript.
    pub fn new(mut machine: Machine<P>, outside: O, now: Time) -> Self {
        machine.ports_mut().session = true;
        let journal = Journal::of(machine.log().iter().cloned());
        Self {
            machine,
            outside,
            now,
            grace: Millis(0),
            queue: BTreeMap::new(),
            queued: 0,
            open: Vec::new(),
            journal,
            events: Vec::new(),
            inputs: Vec::new(),
            performed: 0,
            crash_after: None,
            echo: false,
            store_takes: None,
            saved: None,
        }
    }

    /// Sets the grace period of aborted operations. Default 0.
    #[must_use]
    pub fn with_grace(mut self, grace: Millis) -> Self {
        self.grace = grace;
        self
    }

    /// Crashes the process right after its n-th effect (from 1).
    #[must_use]
    pub fn crash_after(mut self, effects: u64) -> Self {
        self.crash_after = Some(effects);
        self
    }

    /// Gives every reply twice. A machine must not notice.
    #[must_use]
    pub fn repeating_replies(mut self) -> Self {
        self.echo = true;
        self
    }

    /// Saves the state of a run at its rests; a save is an effect.
    #[must_use]
    pub fn saving_checkpoints(mut self) -> Self {
        self.machine.ports_mut().checkpoints = true;
        self
    }

    /// Delays the replies of stores by this time. Default: a store replies before anything else happens.
    #[must_use]
    pub fn storing_for(mut self, span: Millis) -> Self {
        self.store_takes = Some(span);
        self
    }

    /// Starts the machine, and runs until nothing more happens by itself.
    pub fn run(&mut self, start: Start) -> Ran {
        self.input(Input::Start(Box::new(start)));
        self.proceed()
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

    /// Runs until nothing more happens by itself, and moves the time as far as needed.
    pub fn proceed(&mut self) -> Ran {
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

    /// Gives the machine an input at `now`, before queued inputs and wake-ups: for a driver with its own clock.
    pub(crate) fn give(&mut self, input: Input, now: Time) {
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
        let mut effects = Vec::new();
        self.machine.advance(input, self.now, &mut effects);
        self.take(effects);
    }

    /// Performs effects in order. What is stored or saved is answered at once, before all that is queued, unless stores
    /// take their time.
    fn take(&mut self, batch: Vec<Effect>) {
        let mut answer = None;
        for effect in batch {
            if self.has_crashed() {
                return;
            }
            self.performed += 1;
            match effect {
                Effect::Event(event) => self.events.push(event),
                Effect::Perform(id, Op::Store { records }) => {
                    answer = Some((id, Reply::Stored(self.store(&records))));
                }
                Effect::Perform(id, Op::Save { messages, state }) => {
                    let run = self.machine.origin().run.clone().unwrap_or_else(|| RunId::from("run"));
                    self.saved = Some(Checkpoint::new(run, self.now, SNAPSHOT_VERSION, messages, state));
                    answer = Some((id, Reply::Saved(Ok(()))));
                }
                Effect::Perform(id, op) => self.start(id, op),
                Effect::AbortAll => self.abort(),
                Effect::Done(_) => self.queue.clear(),
            }
        }
        let Some((id, reply)) = answer.filter(|_| !self.has_crashed()) else { return };
        match self.store_takes {
            Some(span) => self.input_at(self.now.after(span), Input::Reply(id, reply)),
            None => self.feed(Input::Reply(id, reply)),
        }
    }

    /// Stores all of it or nothing. A process that dies on the way has written the first part.
    fn store(&mut self, records: &[Record]) -> Result<(), String> {
        self.outside.persist(records)?;
        for (at, record) in records.iter().enumerate() {
            if at > 0 {
                self.performed += 1;
            }
            self.journal.write(record);
            if self.has_crashed() {
                return Err("the process died".to_owned());
            }
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

    /// Drops replies that would come after the grace period, and interrupts operations without a reply.
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

    /// The machine that it drives.
    pub fn machine(&self) -> &Machine<P> {
        &self.machine
    }

    /// Takes the machine out of the driver.
    pub(crate) fn into_machine(self) -> Machine<P> {
        self.machine
    }

    /// The world of the machine.
    pub fn outside(&self) -> &O {
        &self.outside
    }

    /// The world, for changes.
    pub fn outside_mut(&mut self) -> &mut O {
        &mut self.outside
    }

    /// The virtual time.
    pub fn now(&self) -> Time {
        self.now
    }

    /// Operations without a reply, in the order of their start.
    pub fn open(&self) -> &[(OpId, Op)] {
        &self.open
    }

    /// The durable records.
    pub fn journal(&self) -> &Journal {
        &self.journal
    }

    /// The state as it was saved last; see [`ScriptedDriver::saving_checkpoints`].
    pub fn checkpoint(&self) -> Option<&Checkpoint> {
        self.saved.as_ref()
    }

    /// The events so far.
    pub fn events(&self) -> &[Event] {
        &self.events
    }

    /// Every input that the machine was given, with its time: a replay needs no more.
    pub fn inputs(&self) -> &[(Time, Input)] {
        &self.inputs
    }
}

/// Feeds the inputs of a [`ScriptedDriver`] to a machine like its, performing nothing. Gives all effects.
pub fn replay<P: Phase>(machine: &mut Machine<P>, inputs: &[(Time, Input)]) -> Vec<Effect> {
    machine.ports_mut().session = true;
    let mut effects = Vec::new();
    for (at, input) in inputs {
        machine.advance(input.clone(), *at, &mut effects);
    }
    effects
}
