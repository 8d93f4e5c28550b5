//! Requests that were taken before.

use std::num::NonZeroUsize;

use lru::LruCache;

use super::job::Job;
use crate::message::Key;

/// Bytes of an answer that is kept to be sent again.
const LONGEST_KEPT: usize = 64 * 1024;

/// State of a request.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Known {
    /// Never seen, or its last run failed.
    New,
    /// It waits, runs, or its answer was too long to keep.
    Taken,
    /// It was answered with this text.
    Answered(String),
}

/// Requests by turn and thread, the oldest forgotten first.
#[derive(Debug)]
pub(super) struct Seen {
    known: LruCache<Name, Known>,
}

#[derive(Clone, Debug, PartialEq, Eq, Hash)]
enum Name {
    Request(Key),
    /// The message, for a request without ids.
    Event(String),
}

impl Seen {
    pub(super) fn new(limit: usize) -> Self {
        Self { known: LruCache::sparse(NonZeroUsize::new(limit).unwrap_or(NonZeroUsize::MIN)) }
    }

    /// Returns the state of the request, and takes a new one.
    pub(super) fn take(&mut self, job: &Job) -> Known {
        let Some(name) = name(job) else { return Known::New };
        if let Some(known) = self.known.peek(&name) {
            return known.clone();
        }
        self.note(name, Known::Taken);
        Known::New
    }

    /// Notes a reply of this worker among the stored events.
    pub(super) fn heard(&mut self, key: Key) {
        self.note(Name::Request(key), Known::Taken);
    }

    /// The request was answered. A completed one is not run again; a failed one may be.
    pub(super) fn answered(&mut self, job: &Job, completed: bool, reply: &str) {
        let Some(name) = name(job) else { return };
        if !completed {
            self.known.pop(&name);
        } else if reply.len() <= LONGEST_KEPT {
            self.note(name, Known::Answered(reply.to_owned()));
        }
    }

    fn note(&mut self, name: Name, known: Known) {
        match self.known.peek_mut(&name) {
            Some(noted) => *noted = known,
            None => drop(self.known.put(name, known)),
        }
    }
}

fn name(job: &Job) -> Option<Name> {
    let event = || (!job.event_id.is_empty()).then(|| Name::Event(job.event_id.clone()));
    job.key().map(Name::Request).or_else(event)
}

#[cfg(test)]
mod tests {
    use harness_core::Json;

    use super::*;

    fn job(turn: &str) -> Job {
        Job {
            turn_id: Some(turn.to_owned()),
            thread_id: Some("h".to_owned()),
            reply_to: "o".to_owned(),
            request: Json::empty_object(),
            event_id: String::new(),
        }
    }

    #[test]
    fn w46_a_request_is_taken_once_and_again_only_after_a_failure() {
        let mut seen = Seen::new(8);
        assert_eq!(seen.take(&job("a")), Known::New);
        assert_eq!(seen.take(&job("a")), Known::Taken);
        seen.answered(&job("a"), false, "no");
        assert_eq!(seen.take(&job("a")), Known::New);
        seen.answered(&job("a"), true, "yes");
        assert_eq!(seen.take(&job("a")), Known::Answered("yes".to_owned()));
    }

    #[test]
    fn the_oldest_are_forgotten_and_long_answers_are_not_kept() {
        let mut seen = Seen::new(2);
        for turn in ["a", "b", "c"] {
            assert_eq!(seen.take(&job(turn)), Known::New);
        }
        assert_eq!((seen.take(&job("c")), seen.take(&job("a"))), (Known::Taken, Known::New));
        seen.answered(&job("c"), true, &"x".repeat(LONGEST_KEPT + 1));
        assert_eq!(seen.take(&job("c")), Known::Taken);
    }
}
