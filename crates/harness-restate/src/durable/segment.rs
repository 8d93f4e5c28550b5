//! A segment: the quick operations of a run, in one journal entry.

use std::pin::pin;
use std::sync::{Arc, Mutex, PoisonError};

use futures_util::future::{Either, select};
use harness::core::driver::{OpScope, Performed, Ports, perform};
use harness::core::machine::{Input, Op};
use harness::core::{Cancel, Millis, OpId};

use super::context::{SegmentWork, TimedInput};
use super::running::Running;

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
        self.0.lock().unwrap_or_else(PoisonError::into_inner).take()
    }

    fn put(&self, running: Running) {
        *self.0.lock().unwrap_or_else(PoisonError::into_inner) = Some(running);
    }
}

/// Performs quick operations until only slow ones are outstanding.
#[derive(Debug)]
pub(super) struct Segment {
    pub(super) slot: Slot,
    pub(super) ports: Ports,
}

impl SegmentWork for Segment {
    async fn run(self) -> Vec<TimedInput> {
        let Some(mut running) = self.slot.take() else { return Vec::new() };
        let mut inputs = Vec::new();
        while let Some((id, op)) = running.quick.pop_front() {
            let Performed { reply, spent, .. } =
                within(&self.ports, id, op, OpScope::of(&running.machine)).await;
            let at = self.ports.clock.now();
            if let Some(spent) = spent {
                inputs.push(running.give(at, Input::Spent(Box::new(spent))));
            }
            inputs.push(running.give(at, Input::Reply(id, reply)));
        }
        running.is_ahead = true;
        self.slot.put(running);
        inputs
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
