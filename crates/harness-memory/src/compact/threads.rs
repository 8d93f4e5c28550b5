//! State of a compactor for each thread.

use std::collections::VecDeque;
use std::fmt;
use std::sync::{Arc, Mutex, PoisonError};

use harness_core::Origin;

/// Threads that are remembered; the one that was not asked about for the longest time is forgotten first.
/// A forgotten thread continues from the plan of the request.
const KEPT: usize = 256;

type Known<S> = VecDeque<(Box<str>, Arc<Mutex<S>>)>;

/// One state per thread.
pub(crate) struct Threads<S>(Mutex<Known<S>>);

impl<S> Default for Threads<S> {
    fn default() -> Self {
        Self(Mutex::new(VecDeque::new()))
    }
}

impl<S> fmt::Debug for Threads<S> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Threads").finish_non_exhaustive()
    }
}

impl<S: Clone> Threads<S> {
    /// Separate copies of the states.
    pub(crate) fn copied(&self) -> Self {
        let known = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let apart = |state: &Mutex<S>| state.lock().unwrap_or_else(PoisonError::into_inner).clone();
        let copies = known.iter().map(|(key, state)| (key.clone(), Arc::new(Mutex::new(apart(state)))));
        Self(Mutex::new(copies.collect()))
    }
}

impl<S> Threads<S> {
    /// State of the thread of this work, created with `new` if it is unknown.
    pub(crate) fn or_new(&self, origin: &Origin, new: impl FnOnce() -> S) -> Arc<Mutex<S>> {
        let thread = origin.thread.as_ref().map_or("", |id| id.as_str());
        let session = origin.session.as_ref().map_or("", |id| id.as_str());
        // A sub-agent has a view of its own in the thread of its caller.
        let child = origin.run.as_ref().filter(|_| origin.parent.is_some()).map_or("", |id| id.as_str());
        let name = format!("{thread}\n{session}\n{child}");
        let mut known = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let place = known.iter().rposition(|(key, _)| **key == *name);
        let entry = place.and_then(|at| known.remove(at));
        let entry = entry.unwrap_or_else(|| (name.into(), Arc::new(Mutex::new(new()))));
        let state = Arc::clone(&entry.1);
        if known.len() >= KEPT {
            known.pop_front();
        }
        known.push_back(entry);
        state
    }
}

#[cfg(test)]
mod tests {
    use harness_core::ParentCall;

    use super::*;

    fn origin(thread: usize) -> Origin {
        let mut origin = Origin::default();
        origin.thread = Some(thread.to_string().into());
        origin
    }

    #[test]
    fn the_thread_that_was_asked_about_longest_ago_is_forgotten() {
        let threads = Threads::<usize>::default();
        let of = |origin: &Origin| threads.or_new(origin, usize::default);
        for thread in 0..KEPT {
            *of(&origin(thread)).lock().unwrap() = thread;
        }
        of(&origin(0));
        *of(&origin(KEPT)).lock().unwrap() = KEPT;
        *of(&origin(0)).lock().unwrap() += 7;
        let value = |thread| *of(&origin(thread)).lock().unwrap();
        assert_eq!((value(0), value(2), value(KEPT), value(1)), (7, 2, KEPT, 0));
    }
    #[test]
    fn a_sub_agent_has_a_state_of_its_own() {
        let threads = Threads::<usize>::default();
        let caller = origin(1);
        let mut child = caller.child(ParentCall::new("c1", "desk", &caller));
        child.run = Some("child".into());
        *threads.or_new(&child, usize::default).lock().unwrap() = 5;
        assert_eq!(*threads.or_new(&caller, usize::default).lock().unwrap(), 0);
    }
}
