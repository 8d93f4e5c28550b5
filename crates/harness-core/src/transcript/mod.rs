//! Append-only transcripts and the views of them that models receive.
//!
//! A machine owns its transcript and only appends. A request shares a *prefix* of it (one `Arc` and a length), so that
//! messages are never copied.

mod pairing;
mod plan;

use std::hash::BuildHasher as _;
use std::ops::{Deref, Range};
use std::sync::{Arc, OnceLock};

use foldhash::HashSet;
use foldhash::fast::{FixedState, RandomState};

use crate::ids::CallId;
use crate::message::{AssistantMessage, Message};

pub use pairing::{Defect, DefectKind, Provenance, Repaired, check, repair};
pub use plan::{Plan, PlanFault, Span, View};

/// Messages of a page: small enough to copy when the last page is shared while it grows.
const PAGE: usize = 16;

/// Calls whose hashes are made room for.
const CALLS: usize = 28;

type Page = [Option<Arc<Message>>; PAGE];

#[derive(Clone, Debug, Default)]
struct Log {
    /// Identity, to distinguish logs.
    id: Arc<()>,
    full: Arc<Vec<Arc<Page>>>,
    /// Page that grows.
    last: Page,
}

impl Log {
    fn get(&self, at: usize) -> Option<&Arc<Message>> {
        let page = self.full.get(at / PAGE).map_or(&self.last, |page| page);
        page.get(at % PAGE)?.as_ref()
    }

    fn push(&mut self, at: usize, message: Arc<Message>) {
        let at = at % PAGE;
        if let Some(cell) = self.last.get_mut(at) {
            *cell = Some(message);
        }
        if at + 1 == PAGE {
            let page = Arc::new(std::mem::take(&mut self.last));
            Arc::make_mut(&mut self.full).push(page);
        }
    }
}

/// Messages of a thread, in order. One owner appends; prefixes are shared. Reads go through [`Prefix`].
///
/// An append while a prefix is shared copies the references of the last page, at most fifteen; every sixteenth append
/// copies those of the list of pages, too.
///
/// A transcript accepts any messages; [`check`] and [`repair`] validate them. Machines repair their transcript first, so
/// that each call has its result.
///
/// ```
/// use std::sync::Arc;
///
/// use harness_core::message::Message;
/// use harness_core::transcript::{Prefix, Transcript};
///
/// let mut log = Transcript::default();
/// log.push(Arc::new(Message::user("Hello")));
/// let before: Prefix = log.prefix();
/// log.push(Arc::new(Message::user("Are you there?")));
/// assert_eq!((before.len(), log.len()), (1, 2));
/// assert!(before.is_start_of(&log.prefix()));
/// ```
#[derive(Debug, Default)]
pub struct Transcript {
    prefix: Prefix,
    /// Hashes of the ids of all calls, built by the first search.
    calls: OnceLock<HashSet<u64>>,
    /// Messages that are known to be legal, up to the last answer.
    legal: usize,
}

impl Transcript {
    /// Appends a message.
    pub fn push(&mut self, message: Arc<Message>) {
        if let Some(calls) = self.calls.get_mut() {
            calls.extend(hashed_ids(&message));
        }
        Arc::make_mut(&mut self.prefix.log).push(self.prefix.len, message);
        self.prefix.len += 1;
    }

    /// Whether a call may have this id. Calls that a compaction removed count, too, and so do ids with an equal hash.
    pub(crate) fn has_call(&self, id: &CallId) -> bool {
        self.calls().contains(&hashed(id))
    }

    fn calls(&self) -> &HashSet<u64> {
        self.calls.get_or_init(|| {
            let mut calls = HashSet::with_capacity_and_hasher(CALLS, RandomState::default());
            calls.extend(self.iter().flat_map(|message| hashed_ids(message)));
            calls
        })
    }

    /// Replaces the messages; ids of removed calls stay in use.
    pub(crate) fn replace(&mut self, messages: Transcript) {
        let mut calls = self.calls().clone();
        calls.extend(messages.calls());
        *self = Self { calls: OnceLock::from(calls), ..messages };
    }

    /// Repairs the transcript ([`repair`]). Reads only messages appended since the last time.
    pub(crate) fn repaired(mut self) -> (Self, Vec<Defect>) {
        let from = self.legal;
        if check(self.prefix.range(from..self.prefix.len)).is_empty() {
            let last = (from..self.prefix.len).rev().find(|at| {
                self.prefix.get(*at).is_some_and(|message| matches!(**message, Message::Assistant(_)))
            });
            self.legal = last.unwrap_or(from);
            return (self, Vec::new());
        }
        let Repaired { messages, defects } = repair(self.prefix.iter());
        (messages.into_iter().map(|(message, _)| message).collect(), defects)
    }

    /// Returns all current messages as a shared prefix. Costs one reference count.
    pub fn prefix(&self) -> Prefix {
        self.prefix.clone()
    }
}

fn hashed_ids(message: &Message) -> impl Iterator<Item = u64> + '_ {
    let answer = message.as_assistant().into_iter();
    answer.flat_map(|answer| answer.tool_calls().map(|call| hashed(&call.id)))
}

/// The hash of an id: the same in every process, so that a replay gives the same ids.
fn hashed(id: &CallId) -> u64 {
    FixedState::default().hash_one(id)
}

impl Deref for Transcript {
    type Target = Prefix;

    fn deref(&self) -> &Prefix {
        &self.prefix
    }
}

impl FromIterator<Arc<Message>> for Transcript {
    fn from_iter<I: IntoIterator<Item = Arc<Message>>>(messages: I) -> Self {
        let mut transcript = Self::default();
        for message in messages {
            transcript.push(message);
        }
        transcript
    }
}

/// First messages of a transcript, shared with it. Later appends are not visible.
#[derive(Clone, Debug, Default)]
pub struct Prefix {
    log: Arc<Log>,
    len: usize,
}

impl Prefix {
    /// Returns the number of messages.
    pub fn len(&self) -> usize {
        self.len
    }

    /// Whether there are no messages.
    pub fn is_empty(&self) -> bool {
        self.len == 0
    }

    /// Whether `other` is a prefix of the same transcript, at least as long. Constant time.
    pub fn is_start_of(&self, other: &Self) -> bool {
        self.len <= other.len && Arc::ptr_eq(&self.log.id, &other.log.id)
    }

    /// Returns the message at a position.
    pub fn get(&self, at: usize) -> Option<&Arc<Message>> {
        if at < self.len { self.log.get(at) } else { None }
    }

    /// Whether calls of the last answer lack results.
    pub fn has_open_calls(&self) -> bool {
        self.last_batch().is_some_and(|(_, answer, answered)| answered < answer.tool_calls().count())
    }

    /// The last answer, if only results follow it: its position, and the number of these.
    pub(crate) fn last_batch(&self) -> Option<(usize, &AssistantMessage, usize)> {
        let is_result = |message: &&Arc<Message>| message.as_tool_result().is_some();
        let answered = self.iter().rev().take_while(is_result).count();
        let at = self.len.checked_sub(answered + 1)?;
        Some((at, self.get(at)?.as_assistant()?, answered))
    }

    /// Returns the last message.
    pub fn last(&self) -> Option<&Arc<Message>> {
        self.log.get(self.len.checked_sub(1)?)
    }

    /// Iterates over a range of messages, cut at the end.
    pub fn range(&self, range: Range<usize>) -> impl DoubleEndedIterator<Item = &Arc<Message>> {
        (range.start..range.end.min(self.len)).filter_map(|at| self.log.get(at))
    }

    /// Iterates over all messages.
    pub fn iter(&self) -> impl DoubleEndedIterator<Item = &Arc<Message>> {
        self.range(0..self.len)
    }

    /// Creates an independent transcript that starts with these messages. Full pages are shared; the references of the
    /// last page, at most fifteen, are copied.
    pub fn fork(&self) -> Transcript {
        let pages = self.len / PAGE;
        let full = if pages == self.log.full.len() {
            Arc::clone(&self.log.full)
        } else {
            Arc::new(self.log.full.iter().take(pages).cloned().collect())
        };
        let mut log = Log { id: Arc::default(), full, last: Page::default() };
        for (cell, message) in log.last.iter_mut().zip(self.range(pages * PAGE..self.len)) {
            *cell = Some(Arc::clone(message));
        }
        let prefix = Self { log: Arc::new(log), len: self.len };
        Transcript { prefix, ..Transcript::default() }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn log(n: usize) -> Transcript {
        (0..n).map(|i| Arc::new(Message::user(i.to_string()))).collect()
    }

    #[test]
    fn prefixes_keep_their_messages_while_the_log_grows() {
        let mut log = Transcript::default();
        let mut prefixes = Vec::new();
        for n in 0..100 {
            if n % 3 == 0 {
                prefixes.push(log.prefix());
            }
            log.push(Arc::new(Message::user(n.to_string())));
        }
        let texts = |prefix: &Prefix| prefix.iter().map(|message| message.joined_text()).collect::<Vec<_>>();
        let expected: Vec<_> = (0..100).map(|n| n.to_string()).collect();
        assert_eq!(texts(&log), expected);
        for prefix in prefixes {
            assert_eq!(texts(&prefix), expected[..prefix.len()]);
            assert_eq!(prefix.get(prefix.len()), None);
            assert!(prefix.is_start_of(&log) && (prefix.is_empty() || !log.is_start_of(&prefix)));
            assert!(!prefix.is_start_of(&log.iter().cloned().collect::<Transcript>()));
        }
    }

    #[test]
    fn fault_46_fork_shares_full_pages_and_grows_independently() {
        let mut log = log(100);
        for len in [0, 1, PAGE - 1, PAGE, PAGE + 1, 99, 100] {
            let prefix = Prefix { log: Arc::clone(&log.prefix.log), len };
            let mut fork = prefix.fork();
            assert!(fork.iter().eq(prefix.iter()), "{len}");
            for (shared, page) in fork.log.full.iter().zip(log.prefix.log.full.iter()) {
                assert!(Arc::ptr_eq(shared, page), "{len}");
            }
            fork.push(Arc::new(Message::user("fork")));
            assert_eq!((fork.len(), prefix.len(), log.len()), (len + 1, len, 100));
            assert!(!log.is_start_of(&fork));
        }
        log.push(Arc::new(Message::user("later")));
    }
}
