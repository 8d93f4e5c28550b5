//! Tokens of a transcript, counted once per message.

use std::sync::Arc;

use harness_core::message::Message;
use harness_core::transcript::Prefix;

use super::ask::is_developer;
use super::tokens::message_tokens;
use crate::compact::tokens::TokenCounter;

/// Tokens of the messages of one transcript, as sums, so that a stretch of it costs two look-ups.
#[derive(Debug, Default)]
pub(crate) struct Counts {
    /// Counted transcript.
    log: Prefix,
    /// Tokens of the first `n` messages, for each `n` from 1.
    sums: Vec<u64>,
    /// Positions of system messages.
    systems: Vec<usize>,
}

impl Counts {
    /// Counts what is new in `log`. Of another transcript, what it has in common with the last is kept.
    pub(crate) fn extend(&mut self, log: &Prefix, counter: &dyn TokenCounter) {
        if !self.log.is_start_of(log) {
            let same = |(a, b): &(&Arc<Message>, &Arc<Message>)| Arc::ptr_eq(a, b);
            let common = self.log.iter().zip(log.iter()).take_while(same).count();
            self.sums.truncate(common);
            self.systems.retain(|at| *at < common);
        }
        let from = self.sums.len();
        for (at, message) in (from..).zip(log.range(from..log.len())) {
            let tokens = message_tokens(counter, message);
            self.sums.push(self.before(at).saturating_add(tokens));
            if matches!(**message, Message::System(_)) && !is_developer(message) {
                self.systems.push(at);
            }
        }
        self.log = log.clone();
    }

    /// Tokens of all messages before a position.
    pub(crate) fn before(&self, at: usize) -> u64 {
        at.checked_sub(1).and_then(|last| self.sums.get(last).or(self.sums.last())).copied().unwrap_or(0)
    }

    /// Tokens of the messages from `start` to before `end`.
    pub(crate) fn between(&self, start: usize, end: usize) -> u64 {
        self.before(end).saturating_sub(self.before(start))
    }

    /// The first position from `start` on whose messages up to `end` have at most `room` tokens.
    pub(crate) fn newest(&self, start: usize, end: usize, room: u64) -> usize {
        let (mut low, mut high) = (start, end);
        while low < high {
            let middle = low + (high - low) / 2;
            if self.between(middle, end) <= room {
                high = middle;
            } else {
                low = middle + 1;
            }
        }
        low
    }

    /// Positions of system messages from `start` to before `end`.
    pub(crate) fn systems(&self, start: usize, end: usize) -> &[usize] {
        let from = self.systems.partition_point(|at| *at < start);
        let to = self.systems.partition_point(|at| *at < end);
        self.systems.get(from..to).unwrap_or_default()
    }
}

#[cfg(test)]
mod tests {
    use harness_core::message::SystemMessage;
    use harness_core::transcript::Transcript;

    use super::*;

    struct Letters;

    impl TokenCounter for Letters {
        fn count(&self, text: &str) -> u64 {
            text.matches('Q').count().try_into().unwrap()
        }

        fn name(&self) -> &'static str {
            "letters"
        }
    }

    fn user(count: usize) -> Arc<Message> {
        Arc::new(Message::user("Q".repeat(count)))
    }

    #[test]
    fn the_newest_that_fit_are_found_without_walking() {
        let log: Transcript = [5, 1, 2, 3].into_iter().map(user).collect();
        let mut counts = Counts::default();
        counts.extend(&log, &Letters);
        let newest = |room| counts.newest(0, 4, room);
        assert_eq!([0, 2, 3, 5, 6, 10, 11].map(newest), [4, 4, 3, 2, 1, 1, 0]);
    }

    #[test]
    fn another_transcript_keeps_what_is_common() {
        let shared = user(5);
        let mut counts = Counts::default();
        let first: Transcript = [Arc::clone(&shared), user(7)].into_iter().collect();
        counts.extend(&first, &Letters);
        let system = Arc::new(Message::System(SystemMessage::text("QQ")));
        let second: Transcript = [shared, system, user(1)].into_iter().collect();
        counts.extend(&second, &Letters);
        assert_eq!((counts.sums.as_slice(), counts.systems(0, 3)), (&[5, 7, 8][..], &[1][..]));
    }
}
