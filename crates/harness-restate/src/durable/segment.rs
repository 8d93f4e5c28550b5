//! A segment: the quick operations of a run, in one journal entry.

use std::pin::pin;
use std::sync::Arc;

use futures_util::future::{Either, select};
use harness::core::driver::{OpScope, Performed, Ports, perform};
use harness::core::machine::{Input, Op, Reply};
use harness::core::{Cancel, Millis, OpId, ThreadId, Time};
use parking_lot::Mutex;

use super::context::{SegmentWork, TimedInput};
use super::host::{ThreadStore, fault};
use super::reader::Reader;
use super::running::Running;
use super::sealed::HasAgent as _;
use super::states::{States, merged};

/// Time of one operation of a segment: an engine holds the key of the thread meanwhile.
const LIMIT: Millis = Millis(5_000);

/// The way of a machine into a segment and out of it.
#[derive(Clone, Debug)]
pub(super) struct Slot(Arc<Mutex<Option<Running>>>);

impl Slot {
    pub(super) fn new(running: Running) -> Self {
        Self(Arc::new(Mutex::new(Some(running))))
    }

    pub(super) fn take(&self) -> Option<Running> {
        self.0.lock().take()
    }

    fn put(&self, running: Running) {
        *self.0.lock() = Some(running);
    }
}

/// Performs quick operations until only slow ones are outstanding.
#[derive(Debug)]
pub(super) struct Segment<S> {
    pub(super) slot: Slot,
    pub(super) ports: Ports,
    pub(super) thread: ThreadId,
    /// The first log entry of the conversation.
    pub(super) first: u64,
    pub(super) reader: Reader<S>,
}

impl<S: ThreadStore + 'static> SegmentWork for Segment<S> {
    async fn run(self) -> Vec<TimedInput> {
        let Some(mut running) = self.slot.take() else { return Vec::new() };
        let origin = Arc::clone(running.machine.origin());
        let mut states = States::restored(&self.ports, &origin, running.states.as_ref());
        let mut inputs: Vec<TimedInput> = Vec::new();
        while let Some((id, op)) = running.quick.pop_front() {
            let tool = if let Op::Tool { call, .. } = &op { Some(call.name.clone()) } else { None };
            let Performed { mut reply, spent, .. } =
                within(&self.ports, id, op, OpScope::of(&running.machine)).await;
            if let Some(tool) = tool {
                reply = states.accept(&tool, reply);
            }
            let at = self.ports.clock.now();
            let spent = spent.map(|spent| Input::Spent(Box::new(spent)));
            for input in spent.into_iter().chain([Input::Reply(id, reply)]) {
                let (input, journaled) = self.sealed(running.now.max(at), input).await;
                running.give(at, input);
                inputs.push(journaled);
            }
        }
        if let Some(last) = inputs.last_mut() {
            last.states = states.changed();
            running.states = merged(running.states, last.states.as_ref());
        }
        running.is_ahead = true;
        self.slot.put(running);
        inputs
    }
}

impl<S: ThreadStore> Segment<S> {
    /// An input, and what is journaled of it. An agent that cannot be kept is an error of its preparation.
    async fn sealed(&self, at: Time, mut input: Input) -> (Input, TimedInput) {
        let mut journaled = TimedInput { at, input: input.clone(), agent: None, states: None };
        if let Some(agent) = journaled.input.seal() {
            match (self.reader.keep(&self.thread, self.first, &agent).await, &input) {
                (Err(_), Input::Reply(id, _)) => {
                    let text = "the agent could not be kept with its thread; try again later";
                    input = Input::Reply(*id, Reply::Prepared(Err(fault("agent_not_kept", text))));
                    journaled.input = input.clone();
                }
                (hash, _) => journaled.agent = hash.ok(),
            }
        }
        (input, journaled)
    }
}

async fn within(ports: &Ports, id: OpId, op: Op, scope: OpScope<'_>) -> Performed {
    let cancel = Cancel::new();
    let work = pin!(perform(ports, id, op, scope, &cancel));
    let limit = ports.clock.sleep_until(ports.clock.now().after(LIMIT));
    match select(work, limit).await {
        Either::Left((performed, _)) => performed,
        Either::Right(((), work)) => {
            cancel.cancel();
            work.await
        }
    }
}
