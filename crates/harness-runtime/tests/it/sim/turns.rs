//! What a turn may use: requests, calls and time, counted from outside.

use std::collections::HashSet;
use std::sync::Arc;

use harness_core::event::{Event, EventKind, Fold};
use harness_core::{CallId, Origin, ThreadId, Time};
use harness_runtime::Listen;

use super::world::World;

/// What sessions may add to the time of a turn or an abort: nothing cuts off what they write.
pub(super) const SESSION_TIME: u64 = 500;

/// What the turn of a thread has used.
pub(super) struct Used {
    began: Time,
    requests: u32,
    calls: HashSet<CallId>,
}

/// Follows the turns of a thread from inside.
struct Watch {
    world: Arc<World>,
    thread: String,
}

pub(super) fn watch(world: &Arc<World>) -> Arc<Listen> {
    let world = Arc::clone(world);
    Arc::new(move |thread: &ThreadId| {
        Box::new(Watch { world: Arc::clone(&world), thread: thread.to_string() })
    })
}

impl Fold for Watch {
    fn apply(&mut self, event: &Event) {
        let (world, name) = (&self.world, &self.thread);
        match &event.kind {
            EventKind::TurnStarted { .. } => {
                let used = Used { began: world.now(), requests: 0, calls: HashSet::new() };
                world.lock().turns.insert(name.clone(), used);
            }
            EventKind::TurnFinished { .. } => {
                world.look_at_turn(name);
                world.lock().turns.remove(name);
            }
            _ => {}
        }
    }

    fn abandoned(&mut self, _: &Origin) {
        self.world.lock().turns.remove(&self.thread);
    }
}

impl World {
    fn longest(&self) -> u64 {
        self.plan.elapsed.0 + SESSION_TIME
    }

    /// More time than any turn has.
    pub(super) fn beyond_turns(&self) -> u64 {
        self.longest() + self.plan.grace.0 + 1
    }

    /// The turn of the thread, if there is one, is not older than it may be.
    pub(super) fn look_at_turn(&self, name: &str) {
        let now = self.now();
        let Some(old) = self.lock().turns.get(name).map(|used| now.since(used.began).0) else { return };
        let most = self.longest() + self.plan.grace.0;
        self.expect(old <= most, || format!("{name}: a turn is {old} ms old, at most {most}"));
    }

    /// A model of the thread is asked.
    pub(super) fn is_asked(&self, name: &str) {
        let (plan, now) = (self.plan, self.now());
        let (requests, at) = {
            let mut inner = self.lock();
            let Some(used) = inner.turns.get_mut(name) else { return };
            used.requests += 1;
            (used.requests, now.since(used.began).0)
        };
        let (most, longest) = (plan.iterations, self.longest());
        self.expect(requests <= most, || format!("{name}: request {requests} of a turn, at most {most}"));
        self.expect(at <= longest, || format!("{name}: a request after {at} ms, at most {longest}"));
    }

    /// A tool of the thread is called.
    pub(super) fn is_called(&self, name: &str, call: &CallId) {
        let most = self.plan.tool_calls;
        let calls = {
            let mut inner = self.lock();
            let Some(used) = inner.turns.get_mut(name) else { return };
            // An attempt that is made again is the same call.
            used.calls.insert(call.clone());
            used.calls.len()
        };
        let fits = u32::try_from(calls).is_ok_and(|calls| calls <= most);
        self.expect(fits, || format!("{name}: call {calls} of a turn, at most {most}"));
    }
}
