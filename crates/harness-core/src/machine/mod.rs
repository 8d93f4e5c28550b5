//! State machines without I/O: what the turn and the run share.
//!
//! A machine is plain data and one function, [`Machine::advance`]: it takes an input with the time at which it arrived,
//! and adds effects for a driver to perform, in order. It never waits, reads no clock and no randomness. Equal inputs
//! give equal effects, and replaying the inputs rebuilds the state exactly.
//!
//! The rules between a machine and its driver:
//!
//! - effects are performed in order. A machine withholds what follows an [`Op::Store`] until the store has replied. It
//!   alone knows what is stored and what to try again;
//! - each [`Effect::Perform`] gets exactly one [`Input::Reply`]; late and repeated replies are ignored;
//! - timers are not effects: the driver sends [`Input::Wake`] at [`Machine::wake_at`];
//! - after [`Effect::Done`] every input is ignored.

pub(crate) mod compaction;
mod completion;
mod continuation;
mod cx;
mod decided;
mod effect;
mod input;
mod journal;
mod outbox;
mod phase;
mod ports;

use std::sync::Arc;

pub(crate) use continuation::misplaced;
pub use continuation::{CallDecision, Resume, ResumeError, ResumeErrorKind};
pub use cx::ViewState;
pub(crate) use cx::{Cx, Shared};
pub(crate) use effect::Pending;
pub use effect::{AgentProgress, Effect, Op, Record};
pub use input::{Input, Reply, Start};
pub use journal::Journal;
pub use phase::Phase;
pub use ports::PortSet;

use completion::Completion;
use outbox::{Barrier, Held, Outbox};

use crate::event::EventKind;
use crate::ids::OpId;
use crate::limits::Amount;
use crate::origin::Origin;
use crate::outcome::End;
use crate::port::OpenCall;
use crate::time::Time;
use crate::transcript::Transcript;

/// A turn or a run, as a machine.
#[derive(Debug)]
pub struct Machine<P: Phase> {
    spec: Arc<P::Spec>,
    ports: PortSet,
    shared: Shared,
    phase: P,
    log: Transcript,
    outbox: Outbox,
    /// The end of the phase, while the memory layers take note of it.
    completion: Option<Completion>,
    /// Whether the phase has ended; the end itself may wait until it is stored.
    over: bool,
    end: Option<Arc<End>>,
}

impl<P: Phase> Machine<P> {
    /// A machine that has not started, over a transcript that may hold earlier work. A transcript with unpaired calls
    /// or results is repaired first ([`crate::transcript::repair`]).
    pub fn new(spec: Arc<P::Spec>, origin: Origin, log: Transcript) -> Self {
        let (log, defects) = log.repaired();
        for defect in &defects {
            tracing::warn!(%defect, message = defect.at, "the transcript was repaired");
        }
        Self {
            spec,
            ports: PortSet::default(),
            shared: Shared::new(origin, log.len()),
            phase: P::default(),
            outbox: Outbox { stored: log.len(), ..Outbox::default() },
            log,
            completion: None,
            over: false,
            end: None,
        }
    }

    /// Sets the ports that the driver has. Default: only those that every driver has.
    #[must_use]
    pub fn with_ports(mut self, ports: PortSet) -> Self {
        self.ports = ports;
        self
    }

    pub(crate) fn ports_mut(&mut self) -> &mut PortSet {
        &mut self.ports
    }

    /// Sets the view that an earlier machine left ([`Machine::view_state`]).
    #[must_use]
    pub fn with_view(mut self, view: ViewState) -> Self {
        self.shared.view = view;
        self
    }

    /// Declares that only the first `stored` messages of the transcript are in the session. The others are stored with
    /// the first record.
    #[must_use]
    pub fn with_stored(mut self, stored: usize) -> Self {
        self.outbox.stored = stored.min(self.log.len());
        self
    }

    /// Messages at the start of the transcript that are known to be in the session.
    pub fn stored(&self) -> usize {
        self.outbox.stored
    }

    /// Whether everything that the machine gave to its session is stored.
    pub fn is_settled(&self) -> bool {
        self.outbox.is_open() && self.outbox.owed.is_empty()
    }

    /// The phase while it waits for one operation of this kind and for nothing else, and all of the transcript is stored.
    pub(crate) fn alone_with(&self, what: Pending) -> Option<(&P, &Shared)> {
        let is_alone = matches!(&self.shared.pending[..], [(_, pending)] if *pending == what);
        let is_stored = self.is_settled() && self.outbox.stored == self.log.len();
        (is_alone && is_stored && !self.over && self.completion.is_none())
            .then_some((&self.phase, &self.shared))
    }

    /// The part of the view that outlives this machine, for [`Machine::with_view`] of the next one.
    pub fn view_state(&self) -> &ViewState {
        &self.shared.view
    }

    /// Takes one input and adds its effects.
    ///
    /// Total: an input that does not fit (an unknown operation, a repeated reply, anything before the start or after
    /// the end) changes nothing.
    pub fn advance(&mut self, input: Input, now: Time, effects: &mut Vec<Effect>) {
        let end = match input {
            Input::Reply(id, reply) => match self.outbox.replied(id) {
                Some(barrier) => self.pass(barrier, reply, now, effects),
                None => self.reply(id, reply, now, effects),
            },
            input @ (Input::Start(_)
            | Input::Wake
            | Input::Cancel { .. }
            | Input::PartFailed(_)
            | Input::Spent(_)) => self.step(input, now, effects),
        };
        self.follow(end, now, effects);
        self.release(now, effects);
    }

    /// Takes the reply to an operation of the phase.
    fn reply(&mut self, id: OpId, reply: Reply, now: Time, effects: &mut Vec<Effect>) -> Option<End> {
        let at = self.shared.pending.iter().position(|(pending, _)| *pending == id && !self.over)?;
        let (_, pending) = self.shared.pending.swap_remove(at);
        if let Some(completion) = self.completion.take_if(|_| pending == Pending::Complete) {
            let end = completion.end(&mut self.parts(now, effects).2, reply);
            self.close(end, now, effects);
            return None;
        }
        let (spec, phase, mut cx) = self.parts(now, effects);
        phase.step(spec, &mut cx, Some(pending), Input::Reply(id, reply))
    }

    fn step(&mut self, input: Input, now: Time, effects: &mut Vec<Effect>) -> Option<End> {
        let starts = matches!(input, Input::Start(_));
        if self.over || starts == self.shared.started {
            return None;
        }
        self.shared.started = true;
        self.shared.at = now;
        let mut completion = self.completion.take();
        let (spec, phase, mut cx) = self.parts(now, effects);
        let mut end = None;
        match (input, &mut completion) {
            (Input::PartFailed(fault), _) => cx.event(|| EventKind::PartFailed { fault }),
            (Input::Spent(spent), completion) => {
                cx.spend(&spent);
                match completion {
                    Some(completion) => completion.end.usage.merge(&spent),
                    None => phase.spend(&spent),
                }
            }
            (Input::Wake | Input::Cancel { .. }, Some(completion)) => completion.abort(&mut cx),
            (input, _) => {
                if starts && cx.ports.session && !cx.is_all_stored() {
                    let from = cx.outbox.stored;
                    cx.record_messages(from);
                }
                end = phase.step(spec, &mut cx, None, input);
            }
        }
        self.completion = completion;
        end
    }

    fn parts<'a>(&'a mut self, now: Time, fx: &'a mut Vec<Effect>) -> (&'a P::Spec, &'a mut P, Cx<'a>) {
        let Self { spec, ports, shared: sh, phase, log, outbox, .. } = self;
        (spec, phase, Cx { now, sh, log, fx, outbox, ports })
    }

    /// Follows a step of the phase: performs its request, and has the layers take note of its end.
    fn follow(&mut self, end: Option<End>, now: Time, effects: &mut Vec<Effect>) {
        let (_, phase, mut cx) = self.parts(now, effects);
        if let Some(request) = cx.sh.request.take() {
            cx.perform(Pending::Model, request);
        }
        match (end, cx.ports.layers) {
            (Some(end), Some(within)) => {
                let standing = phase.standing(&cx);
                self.completion = Some(Completion::start(&mut cx, end, standing, within));
            }
            (Some(end), None) => self.close(end, now, effects),
            (None, _) => {}
        }
    }

    /// Ends the machine, once all before the end is stored.
    fn close(&mut self, end: End, now: Time, effects: &mut Vec<Effect>) {
        self.over = true;
        let (_, phase, mut cx) = self.parts(now, effects);
        let end = Arc::new(end);
        phase.ended(&mut cx, &end);
        self.outbox.held.push_back(Held::Effect(Effect::Done(end)));
    }

    /// Gives the driver all effects that no store holds back.
    fn release(&mut self, now: Time, effects: &mut Vec<Effect>) {
        while self.outbox.barrier.is_none() {
            match self.outbox.held.pop_front() {
                None => return,
                Some(Held::Effect(Effect::Done(end))) => self.release_end(end, effects),
                Some(Held::Effect(effect)) => effects.push(effect),
                Some(Held::Record(record)) => self.store(Some(record), effects),
                Some(Held::Save) => {
                    if let Some(state) = self.phase.save(&self.shared, &self.log) {
                        let op = Op::Save { messages: self.log.len() as u64, state: Arc::new(state) };
                        self.perform(Barrier::Save, op, effects);
                    }
                }
                Some(Held::Rest) => {
                    let (spec, phase, mut cx) = self.parts(now, effects);
                    let end = phase.proceed(spec, &mut cx);
                    self.follow(end, now, effects);
                }
            }
        }
    }

    /// Tries once more to store what was refused. An end whose session is incomplete says why.
    fn release_end(&mut self, end: Arc<End>, effects: &mut Vec<Effect>) {
        if !self.outbox.owed.is_empty() && !std::mem::replace(&mut self.outbox.last_try, true) {
            self.outbox.held.push_front(Held::Effect(Effect::Done(end)));
            return self.store(None, effects);
        }
        let end = match self.outbox.failure() {
            Some(why) => Arc::new(End { persist_failed: Some(why.clone()), ..Arc::unwrap_or_clone(end) }),
            None => end,
        };
        self.end = Some(Arc::clone(&end));
        effects.push(Effect::Done(end));
    }

    fn store(&mut self, first: Option<Record>, effects: &mut Vec<Effect>) {
        let records = self.outbox.collect(first);
        let op = Op::Store { records: records.clone() };
        self.perform(Barrier::Store(records), op, effects);
    }

    fn perform(&mut self, barrier: Barrier, op: Op, effects: &mut Vec<Effect>) {
        let id = self.shared.next_op();
        self.outbox.barrier = Some((id, barrier));
        effects.push(Effect::Perform(id, op));
    }

    /// Takes the reply to a store or a save.
    fn pass(&mut self, barrier: Barrier, reply: Reply, now: Time, effects: &mut Vec<Effect>) -> Option<End> {
        match (barrier, reply) {
            (Barrier::Save, Reply::Saved(result)) => {
                self.parts(now, effects).2.tolerate(result);
                None
            }
            (Barrier::Save, _) => None,
            (Barrier::Store(records), Reply::Stored(Ok(()))) => {
                self.outbox.are_stored(&records);
                None
            }
            (Barrier::Store(records), Reply::Stored(Err(why))) => self.refused(records, why, now, effects),
            (Barrier::Store(records), _) => {
                self.refused(records, "the session did not reply".to_owned(), now, effects)
            }
        }
    }

    /// A store failed: the work continues in memory, except for calls that must not start before they are stored.
    fn refused(
        &mut self,
        records: Vec<Record>,
        why: String,
        now: Time,
        effects: &mut Vec<Effect>,
    ) -> Option<End> {
        let unstored = self.outbox.take_unstored(&records);
        self.outbox.are_refused(records, why.clone());
        if self.over {
            return None;
        }
        self.shared.persist_failed = Some(why.clone());
        let pending = &mut self.shared.pending;
        let cut = pending.extract_if(.., |(id, _)| unstored.contains(id)).map(|(_, what)| what).collect();
        let (spec, phase, mut cx) = self.parts(now, effects);
        cx.event(|| EventKind::PersistFailed { message: why });
        phase.not_stored(spec, &mut cx, cut)
    }

    /// When the driver must send [`Input::Wake`], unless another input comes first; `None` for never.
    pub fn wake_at(&self) -> Option<Time> {
        match &self.completion {
            _ if self.over || !self.shared.started => None,
            Some(completion) => completion.wake_at(),
            None => self.phase.wake_at(&self.shared),
        }
    }

    /// When operations in flight are cut off; `None` for never.
    pub fn cut_off(&self) -> Option<Time> {
        match &self.completion {
            Some(completion) => completion.wake_at(),
            None => self.phase.cut_off(&self.shared),
        }
    }

    pub(crate) fn phase(&self) -> &P {
        &self.phase
    }

    pub(crate) fn state_mut(&mut self) -> (&mut P, &mut Shared) {
        (&mut self.phase, &mut self.shared)
    }

    /// The transcript so far.
    pub fn log(&self) -> &Transcript {
        &self.log
    }

    /// Takes the transcript out of the machine.
    pub fn into_log(self) -> Transcript {
        self.log
    }

    /// Calls that have started and have no result in the transcript, as a session would load them. Without a session,
    /// pass them to [`Start::with_open_calls`] of the next machine.
    pub fn open_calls(&self) -> Vec<OpenCall> {
        self.phase.open_calls()
    }

    /// The ids of the work: thread, run, turn, session, user.
    pub fn origin(&self) -> &Arc<Origin> {
        &self.shared.origin
    }

    /// The turn of the run, from 1.
    pub fn turn(&self) -> u32 {
        self.shared.turn
    }

    pub(crate) fn left(&self) -> Amount {
        self.shared.budgets.left()
    }

    /// The end, once it is stored.
    pub fn end(&self) -> Option<&Arc<End>> {
        self.end.as_ref()
    }
}
