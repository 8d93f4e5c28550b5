//! Parents of sub-agent spans.

use std::collections::HashMap;

use harness_core::{CallId, Origin, ParentCall, RunId, TurnId};
use parking_lot::Mutex;
use tracing::Span;

/// Open spans of calls and runs, looked up by the work that they started. Each inserted span must
/// be removed, because an entry keeps it open.
#[derive(Debug, Default)]
pub(crate) struct Parents(Mutex<HashMap<Key, Span>>);

#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub(crate) struct Key {
    run: Option<RunId>,
    turn: Option<TurnId>,
    call: Option<CallId>,
}

impl Key {
    /// Of a call of that work.
    pub(crate) fn call(origin: &Origin, call: &CallId) -> Self {
        Self { run: origin.run.clone(), turn: origin.turn.clone(), call: Some(call.clone()) }
    }

    /// Of a run as a whole.
    pub(crate) fn run(origin: &Origin) -> Self {
        Self { run: origin.run.clone(), turn: None, call: None }
    }

    /// Of a turn that has no run.
    pub(crate) fn turn(origin: &Origin) -> Self {
        Self { run: origin.run.clone(), turn: origin.turn.clone(), call: None }
    }
}

impl Parents {
    pub(crate) fn put(&self, key: Key, span: Span) {
        self.0.lock().insert(key, span);
    }

    pub(crate) fn take_out(&self, key: &Key) {
        self.0.lock().remove(key);
    }

    /// Parent of the call's work: the call, or the work that made it, if the call has ended and its
    /// work continues.
    pub(crate) fn of(&self, parent: &ParentCall) -> Option<Span> {
        let (run, turn) = (parent.run.clone(), parent.turn.clone());
        let mut key = Key { run, turn, call: Some(parent.call.clone()) };
        let spans = self.0.lock();
        if let Some(span) = spans.get(&key) {
            return Some(span.clone());
        }
        key.call = None;
        if let Some(span) = spans.get(&key) {
            return Some(span.clone());
        }
        key.turn = None;
        spans.get(&key).cloned()
    }
}
