//! Counts that are made once per message.

use std::collections::HashMap;
use std::ops::Range;
use std::sync::{Arc, Weak};

use harness_core::message::Message;
use harness_core::transcript::{Plan, Prefix, Span};

use crate::compact::tokens::TokenCounter;
use crate::layer::is_developer;

/// Counts of messages outside the transcript that are remembered.
const MADE_KEPT: usize = 4_096;

/// The counts of one transcript, as running sums: a range of it costs two look-ups, and only messages that
/// were appended since are counted.
#[derive(Clone, Debug)]
pub(crate) struct Tally {
    /// Tokens of one message.
    cost: fn(&dyn TokenCounter, &Message) -> u64,
    /// Counted messages. A weak reference keeps the address from being reused.
    seen: Vec<Weak<Message>>,
    /// Tokens of all messages up to and including this one.
    sums: Vec<u64>,
    /// Positions of system messages, without those of layers.
    systems: Vec<usize>,
    made: HashMap<usize, (Weak<Message>, u64)>,
}

impl Tally {
    pub(crate) fn new(cost: fn(&dyn TokenCounter, &Message) -> u64) -> Self {
        Self { cost, seen: Vec::new(), sums: Vec::new(), systems: Vec::new(), made: HashMap::new() }
    }

    /// Tokens of what `plan` shows of `log`.
    pub(crate) fn shown(&mut self, log: &Prefix, plan: Option<&Plan>, counter: &dyn TokenCounter) -> u64 {
        self.follow(log, counter);
        let Some(plan) = plan else { return self.range(0..log.len()) };
        let spans = plan.spans.iter().map(|span| match span {
            Span::Kept(range) => self.range(range.start..range.end.min(log.len())),
            Span::Made(messages) => messages.iter().map(|message| self.made(message, counter)).sum(),
        });
        spans.sum()
    }

    /// Tokens of a range of the transcript that was followed last.
    pub(crate) fn range(&self, range: Range<usize>) -> u64 {
        self.up_to(range.end).saturating_sub(self.up_to(range.start))
    }

    /// The first position of a range from which on its messages have at most `room` tokens.
    pub(crate) fn newest(&self, range: Range<usize>, room: u64) -> usize {
        let enough = self.up_to(range.end).saturating_sub(room);
        let after = if enough == 0 { 0 } else { self.sums.partition_point(|sum| *sum < enough) + 1 };
        after.clamp(range.start, range.end)
    }

    /// Positions of system messages in a range.
    pub(crate) fn systems(&self, range: &Range<usize>) -> &[usize] {
        let from = self.systems.partition_point(|at| *at < range.start);
        let to = self.systems.partition_point(|at| *at < range.end);
        self.systems.get(from..to).unwrap_or_default()
    }

    fn up_to(&self, end: usize) -> u64 {
        end.checked_sub(1).and_then(|last| self.sums.get(last).or(self.sums.last())).copied().unwrap_or(0)
    }

    /// Tokens of a message that is not in the transcript.
    pub(crate) fn made(&mut self, message: &Arc<Message>, counter: &dyn TokenCounter) -> u64 {
        let address = Arc::as_ptr(message) as usize;
        if let Some((_, tokens)) = self.made.get(&address) {
            return *tokens;
        }
        if self.made.len() >= MADE_KEPT {
            self.made.retain(|_, (held, _)| held.strong_count() > 0);
        }
        let tokens = (self.cost)(counter, message);
        if self.made.len() < MADE_KEPT {
            self.made.insert(address, (Arc::downgrade(message), tokens));
        }
        tokens
    }

    /// Counts what is new in `log`; begins again when it is another transcript.
    pub(crate) fn follow(&mut self, log: &Prefix, counter: &dyn TokenCounter) {
        let known = self.sums.len().min(log.len());
        let same = |at: usize| match (self.seen.get(at), log.get(at)) {
            (Some(seen), Some(now)) => std::ptr::eq(seen.as_ptr(), Arc::as_ptr(now)),
            (None, _) | (_, None) => false,
        };
        // An append-only log is the same as long as its ends are.
        let keep = if known > 0 && same(0) && same(known - 1) { self.sums.len() } else { 0 };
        self.seen.truncate(keep);
        self.sums.truncate(keep);
        self.systems.retain(|at| *at < keep);
        let mut sum = self.sums.last().copied().unwrap_or(0);
        for (at, message) in (keep..).zip(log.range(keep..log.len())) {
            sum = sum.saturating_add((self.cost)(counter, message));
            if matches!(**message, Message::System(_)) && !is_developer(message) {
                self.systems.push(at);
            }
            self.seen.push(Arc::downgrade(message));
            self.sums.push(sum);
        }
    }
}

#[cfg(test)]
mod tests {
    use std::sync::atomic::{AtomicU64, Ordering};

    use harness_core::message::SystemMessage;
    use harness_core::transcript::Transcript;

    use super::*;
    use crate::compact::tokens::message_tokens;

    fn tally() -> Tally {
        Tally::new(message_tokens)
    }

    /// One token a text; knows how often it was asked.
    #[derive(Default)]
    struct Asked(AtomicU64);

    impl TokenCounter for Asked {
        fn count(&self, _: &str) -> u64 {
            self.0.fetch_add(1, Ordering::Relaxed);
            1
        }

        fn name(&self) -> &'static str {
            "asked"
        }
    }

    fn log(n: usize) -> Transcript {
        (0..n).map(|i| Arc::new(Message::user(i.to_string()))).collect()
    }

    #[test]
    fn a_message_is_counted_once() {
        let (asked, mut tally, mut log) = (Asked::default(), tally(), log(100));
        assert_eq!(tally.shown(&log, None, &asked), 500);
        log.push(Arc::new(Message::user("more")));
        assert_eq!(tally.shown(&log, None, &asked), 505);
        assert_eq!(asked.0.load(Ordering::Relaxed), 101);
    }

    #[test]
    fn a_view_costs_what_it_shows() {
        let (asked, mut tally, log) = (Asked::default(), tally(), log(10));
        let made: Arc<[_]> = Arc::from([Arc::new(Message::user("sum"))]);
        let plan = Plan { spans: Arc::from([Span::Kept(0..1), Span::Made(made), Span::Kept(7..usize::MAX)]) };
        assert_eq!(tally.shown(&log, Some(&plan), &asked), 25);
        assert_eq!(tally.shown(&log, Some(&plan), &asked), 25);
        assert_eq!(asked.0.load(Ordering::Relaxed), 11);
    }

    #[test]
    fn another_transcript_is_counted_anew() {
        let (asked, mut tally) = (Asked::default(), tally());
        tally.shown(&log(10), None, &asked);
        assert_eq!(tally.shown(&log(4), None, &asked), 20);
        assert_eq!(asked.0.load(Ordering::Relaxed), 14);
    }

    #[test]
    fn a_shorter_prefix_of_the_same_transcript_is_not() {
        let (asked, mut tally, mut log) = (Asked::default(), tally(), log(4));
        let before = log.prefix();
        log.push(Arc::new(Message::user("more")));
        tally.shown(&log, None, &asked);
        assert_eq!(tally.shown(&before, None, &asked), 20);
        assert_eq!(tally.shown(&log, None, &asked), 25);
        assert_eq!(asked.0.load(Ordering::Relaxed), 5);
    }

    #[test]
    fn the_newest_that_fit_are_found_without_walking() {
        let mut log: Transcript =
            [5, 1, 2].into_iter().map(|n| Arc::new(Message::user("Q".repeat(n)))).collect();
        log.push(Arc::new(Message::System(SystemMessage::text("QQQ"))));
        let mut tally = Tally::new(|_, message| message.joined_text().len() as u64);
        tally.follow(&log, &Asked::default());
        let newest = |room| tally.newest(0..4, room);
        assert_eq!([0, 2, 3, 5, 6, 10, 11].map(newest), [4, 4, 3, 2, 1, 1, 0]);
        assert_eq!((tally.newest(1..4, 99), tally.newest(1..3, 2)), (1, 2));
        assert_eq!((tally.systems(&(0..4)), tally.systems(&(0..3))), (&[3][..], &[][..]));
    }
}
