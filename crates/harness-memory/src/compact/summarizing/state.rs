//! What is in force in a thread.

use std::sync::{Arc, Weak};

use harness_core::message::Message;
use harness_core::transcript::{Plan, Prefix};

use crate::compact::shown::Shown;
use crate::compact::summarize::{Breaker, SummaryCache};

/// What is known of one thread.
#[derive(Clone, Debug, Default)]
pub(crate) struct State {
    pub(super) cache: SummaryCache,
    pub(super) breaker: Breaker,
    projection: Option<Projection>,
    version: u32,
}

/// A shortened view of a whole transcript.
#[derive(Clone, Debug)]
pub(crate) struct Projection {
    /// The first message that is kept.
    pub(super) cut: usize,
    /// How long the transcript was when it was made: answers from here on were asked with it.
    pub(super) made_at: usize,
    pub(super) plan: Plan,
    covered: Covered,
}

/// The messages before the cut: by identity, and by content where a transcript was loaded anew.
#[derive(Clone, Debug)]
struct Covered {
    first: Weak<Message>,
    last: Weak<Message>,
    key: String,
}

fn key_of(log: &Prefix, cut: usize) -> String {
    let messages: Vec<_> = log.range(0..cut).cloned().collect();
    SummaryCache::default().look_up("", &messages).key
}

impl Covered {
    fn of(log: &Prefix, cut: usize) -> Option<Self> {
        let end = |at: usize| log.get(at).map(Arc::downgrade);
        Some(Self { first: end(0)?, last: end(cut.checked_sub(1)?)?, key: key_of(log, cut) })
    }

    /// An append-only transcript is the same as long as the ends of it are.
    fn is_same(&self, log: &Prefix, cut: usize) -> bool {
        let same = |held: &Weak<Message>, at: Option<usize>| {
            at.and_then(|at| log.get(at)).is_some_and(|now| std::ptr::eq(held.as_ptr(), Arc::as_ptr(now)))
        };
        same(&self.first, Some(0)) && same(&self.last, cut.checked_sub(1))
    }

    fn is_alike(&self, log: &Prefix, cut: usize) -> bool {
        log.len() >= cut && key_of(log, cut) == self.key
    }
}

impl Projection {
    /// A view of a whole transcript that is cut at `cut`; `None` when the view that it was made of did not
    /// show all of it.
    pub(super) fn new(cut: usize, items: &[Shown], log: &Prefix, plan: Plan) -> Option<Self> {
        let whole = items.iter().enumerate().all(|(at, item)| item.at == Some(at));
        let covered = Covered::of(log, cut).filter(|_| whole)?;
        Some(Self { cut, made_at: log.len(), plan, covered })
    }
}

impl State {
    /// The projection that stands for the beginning of this transcript; `None` when there is none, when the
    /// transcript is another one, or when the view in force is somebody else's.
    pub(super) fn in_force(&mut self, log: &Prefix, asked: Option<&Plan>) -> Option<Projection> {
        let held = self.projection.take()?;
        let same = held.covered.is_same(log, held.cut);
        if !same && !held.covered.is_alike(log, held.cut) {
            return None;
        }
        let covered = if same { Some(held.covered) } else { Covered::of(log, held.cut) };
        let held = Projection { covered: covered?, ..held };
        self.projection = Some(held.clone());
        asked.is_none_or(|plan| *plan == held.plan).then_some(held)
    }

    /// Puts a projection in force; gives its number.
    pub(super) fn put(&mut self, projection: Option<Projection>) -> u32 {
        self.version = self.version.saturating_add(1);
        self.projection = projection;
        self.version
    }
}
