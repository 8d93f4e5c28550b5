//! State of tools: one per run or thread, bounded; the least recently used is dropped.

use std::num::NonZeroUsize;

use harness_core::Origin;
use lru::LruCache;
use parking_lot::Mutex;

/// Lifetime of a tool's state.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub enum Keep {
    /// One run; a turn that is driven alone counts as a run.
    #[default]
    Run,
    /// A thread, or a session without a thread.
    Thread,
}

/// Maximum number of runs or threads with a state.
pub(crate) const MOST_KEPT: usize = 50;

/// One state per run or thread.
#[derive(Debug)]
pub(crate) struct Kept<T> {
    keep: Keep,
    states: Mutex<LruCache<Vec<String>, T>>,
}

impl<T: Default> Kept<T> {
    pub(crate) fn new(keep: Keep, most: usize) -> Self {
        let most = NonZeroUsize::new(most).unwrap_or(NonZeroUsize::MIN);
        Self { keep, states: Mutex::new(LruCache::sparse(most)) }
    }

    /// Runs `work` with the state of an origin, which is created if needed.
    pub(crate) fn with<R>(&self, origin: &Origin, work: impl FnOnce(&mut T) -> R) -> R {
        let key = self.key(origin);
        let mut states = self.states.lock();
        work(states.get_or_insert_mut(key, T::default))
    }

    /// Runs `work` with the state of an origin, if it has one.
    pub(crate) fn peek<R>(&self, origin: &Origin, work: impl FnOnce(&T) -> R) -> Option<R> {
        self.states.lock().peek(&self.key(origin)).map(work)
    }

    /// Lifetime of the states.
    pub(crate) fn keep(&self) -> Keep {
        self.keep
    }

    /// Removes the state of an origin.
    pub(crate) fn forget(&self, origin: &Origin) {
        let key = self.key(origin);
        self.states.lock().pop(&key);
    }

    /// Number of states.
    #[cfg(test)]
    fn len(&self) -> usize {
        self.states.lock().len()
    }

    fn key(&self, origin: &Origin) -> Vec<String> {
        let thread = origin.thread.as_ref().map(|id| format!("thread {id}"));
        let session = origin.session.as_ref().map(|id| format!("session {id}"));
        let run = origin.run.as_ref().map(|id| format!("run {id}"));
        // The turns of a run share its state.
        let alone = origin.turn.as_ref().filter(|_| run.is_none());
        let turn = alone.map(|id| format!("turn {id}"));
        match (self.keep, &thread, &session) {
            (Keep::Thread, Some(_), _) => thread.into_iter().collect(),
            (Keep::Thread, None, Some(_)) => session.into_iter().collect(),
            (Keep::Run, ..) | (Keep::Thread, None, None) => {
                [thread, session, run, turn].into_iter().flatten().collect()
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn origin(thread: Option<&str>, run: &str) -> Origin {
        let mut origin = Origin::default();
        origin.thread = thread.map(Into::into);
        origin.run = Some(run.into());
        origin
    }

    /// Adds one to the state of each origin; the states in order.
    #[track_caller]
    fn check(keep: Keep, origins: &[(Option<&str>, &str)], expected: &[u32]) {
        let kept = Kept::<u32>::new(keep, 2);
        let mut seen = Vec::new();
        for (thread, run) in origins {
            seen.push(kept.with(&origin(*thread, run), |n| {
                *n += 1;
                *n
            }));
            assert!(kept.len() <= 2);
        }
        assert_eq!(seen, expected);
    }

    #[test]
    fn turns_of_a_run_share_a_state_and_a_single_turn_has_its_own() {
        let kept = Kept::<u32>::new(Keep::Run, 2);
        let next = |run: Option<&str>, turn: &str| {
            let mut origin = Origin::default();
            (origin.run, origin.turn) = (run.map(Into::into), Some(turn.into()));
            kept.with(&origin, |n| {
                *n += 1;
                *n
            })
        };
        assert_eq!((next(Some("a"), "a.1"), next(Some("a"), "a.2")), (1, 2));
        assert_eq!((next(None, "1"), next(None, "2"), next(None, "2")), (1, 1, 2));
    }

    #[test]
    fn each_run_or_thread_has_its_own_state() {
        check(Keep::Run, &[(Some("t"), "a"), (Some("t"), "b"), (Some("t"), "a")], &[1, 1, 2]);
        check(Keep::Run, &[(Some("t"), "a"), (Some("u"), "a")], &[1, 1]);
        check(Keep::Thread, &[(Some("t"), "a"), (Some("t"), "b"), (Some("u"), "b")], &[1, 2, 1]);
        check(Keep::Thread, &[(None, "a"), (None, "b")], &[1, 1]);
    }

    #[test]
    fn least_recently_used_state_is_dropped() {
        check(
            Keep::Run,
            &[(None, "a"), (None, "b"), (None, "a"), (None, "c"), (None, "a"), (None, "b")],
            &[1, 1, 2, 1, 3, 1],
        );
    }

    #[test]
    fn forgotten_state_is_dropped() {
        let kept = Kept::<u32>::new(Keep::Run, 2);
        kept.with(&origin(None, "a"), |n| *n = 7);
        kept.forget(&origin(None, "a"));
        assert_eq!((kept.len(), kept.with(&origin(None, "a"), |n| *n)), (0, 0));
    }
}
