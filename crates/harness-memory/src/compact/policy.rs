//! When to compact, what to keep, how far to go.

/// When a view is too long.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum Trigger {
    /// Above the window without these tokens, which are for the answer; at most a quarter of the window.
    Reserve(u64),
    /// From this share of the window on, in thousandths.
    Share(u64),
}

/// Above what a request is not sent.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum HardStop {
    /// The window without the tokens of the longest answer.
    Answer(u64),
    /// This share of the window, in thousandths.
    Share(u64),
}

/// What is kept as it is: the newest groups that have at least so many messages *and* tokens.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct Recency {
    /// Messages.
    pub messages: usize,
    /// Tokens; at most a quarter of the window.
    pub tokens: u64,
}

impl Recency {
    /// At least so many messages and tokens.
    pub fn new(messages: usize, tokens: u64) -> Self {
        Self { messages, tokens }
    }
}

/// One way to make a view shorter. A rung is taken, oldest group first, until the target is met.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
#[non_exhaustive]
pub enum Rung {
    /// Results become a line with their outcome and key fields. What could not be got again stays.
    Clear,
    /// Calls with their results become one line of text.
    Collapse,
    /// Large results and images go to the artifact store; an excerpt and the way to read more stay.
    Externalize,
    /// Everything that is old becomes one summary.
    Summarize,
    /// What was cleared or collapsed goes.
    Drop,
}

impl Rung {
    /// The word for it, in events and notes.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Clear => "clear",
            Self::Collapse => "collapse",
            Self::Externalize => "externalize",
            Self::Summarize => "summarize",
            Self::Drop => "drop",
        }
    }
}

/// When [`crate::compact::LadderCompactor`] compacts, what it keeps and how far it goes.
///
/// ```
/// use harness_memory::compact::{CompactionPolicy, Rung};
///
/// let mut policy = CompactionPolicy::ladder(200_000);
/// assert_eq!((policy.trigger(), policy.target(), policy.ceiling()), (160_000, 140_000, 190_000));
/// policy.ladder.retain(|rung| *rung != Rung::Drop);
/// ```
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct CompactionPolicy {
    /// Tokens that the model can read and write together; 0 when nobody knows. Nothing is compacted then
    /// before a provider refuses a request or somebody asks for it.
    pub window: u64,
    /// When a view is too long.
    pub trigger: Trigger,
    /// What is kept as it is.
    pub recency: Recency,
    /// What is done, in order.
    pub ladder: Vec<Rung>,
    /// How far below the trigger a compaction goes, in thousandths of the window.
    pub slack: u64,
    /// Gains below this are not worth that the provider's prompt cache is lost; `None` is 4,096 tokens or 3 %
    /// of the window, whichever is less. Above the hard stop every gain counts.
    pub min_gain: Option<u64>,
    /// Above what a request is not sent.
    pub hard_stop: HardStop,
    /// Results of fewer tokens are not cleared.
    pub clear_from: u64,
    /// Results of fewer tokens stay in the view, unless their tool's policy says otherwise.
    pub externalize_from: u64,
    /// Characters of an excerpt.
    pub excerpt: usize,
    /// Tokens of a summary, at most.
    pub summary_tokens: u64,
}

impl CompactionPolicy {
    /// One summary: above `window - 16,384` everything but the newest 20,000 tokens is summarized.
    pub fn projection(window: u64) -> Self {
        Self {
            trigger: Trigger::Reserve(16_384),
            recency: Recency { messages: 0, tokens: 20_000 },
            ladder: vec![Rung::Summarize],
            hard_stop: HardStop::Answer(4_096),
            ..Self::ladder(window)
        }
    }

    /// The whole ladder: from 80 % of the window on results are cleared, collapsed and stored elsewhere, and if
    /// that is not enough the old part is summarized, and what was cleared is dropped; above 95 % nothing
    /// is sent. The newest 12 messages are kept.
    pub fn ladder(window: u64) -> Self {
        Self {
            window,
            trigger: Trigger::Share(800),
            recency: Recency { messages: 12, tokens: 20_000 },
            ladder: vec![Rung::Clear, Rung::Collapse, Rung::Externalize, Rung::Summarize, Rung::Drop],
            slack: 100,
            min_gain: None,
            hard_stop: HardStop::Share(950),
            clear_from: 100,
            externalize_from: 1_000,
            excerpt: 800,
            summary_tokens: (window / 16).clamp(512, 13_107),
        }
    }

    /// Tokens above which a view is too long; with a share, from which on.
    pub fn trigger(&self) -> u64 {
        match self.trigger {
            Trigger::Reserve(reserve) => self.window - reserve.min(self.window / 4),
            Trigger::Share(share) => self.share(share),
        }
    }

    /// Tokens that a compaction aims at.
    pub fn target(&self) -> u64 {
        self.trigger().saturating_sub(self.share(self.slack))
    }

    /// Tokens above which a request is not sent.
    pub fn ceiling(&self) -> u64 {
        match self.hard_stop {
            HardStop::Answer(answer) => self.window - answer.min(self.window / 4),
            HardStop::Share(share) => self.share(share),
        }
    }

    /// The least gain that is worth it.
    pub fn min_gain(&self) -> u64 {
        self.min_gain.unwrap_or_else(|| 4_096.min(self.share(30)))
    }

    /// Tokens of the newest groups that are kept, at least.
    pub(crate) fn keep_tokens(&self) -> u64 {
        if self.window == 0 { self.recency.tokens } else { self.recency.tokens.min(self.window / 4) }
    }

    /// Whether a view of so many tokens is too long.
    pub fn is_due(&self, tokens: u64) -> bool {
        match self.trigger {
            _ if self.window == 0 => false,
            Trigger::Reserve(_) => tokens > self.trigger(),
            Trigger::Share(_) => tokens >= self.trigger(),
        }
    }

    fn share(&self, thousandths: u64) -> u64 {
        self.window.saturating_mul(thousandths) / 1_000
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[track_caller]
    fn check(policy: &CompactionPolicy, trigger: u64, target: u64, ceiling: u64, min_gain: u64, keep: u64) {
        let got =
            (policy.trigger(), policy.target(), policy.ceiling(), policy.min_gain(), policy.keep_tokens());
        assert_eq!(got, (trigger, target, ceiling, min_gain, keep));
    }

    #[test]
    fn presets_have_their_figures() {
        check(&CompactionPolicy::projection(200_000), 183_616, 163_616, 195_904, 4_096, 20_000);
        check(&CompactionPolicy::ladder(128_000), 102_400, 89_600, 121_600, 3_840, 20_000);
    }

    #[test]
    fn small_windows_keep_room_to_work_in() {
        check(&CompactionPolicy::projection(16_000), 12_000, 10_400, 12_000, 480, 4_000);
        check(&CompactionPolicy::ladder(16_000), 12_800, 11_200, 15_200, 480, 4_000);
    }

    #[test]
    fn a_window_that_nobody_knows_is_never_too_small() {
        let policy = CompactionPolicy::ladder(0);
        assert!(!policy.is_due(u64::MAX));
        assert!(CompactionPolicy::ladder(1_000).is_due(800));
        assert!(!CompactionPolicy::projection(1_000).is_due(750));
    }
}
