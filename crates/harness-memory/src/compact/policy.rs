//! When to compact, what to keep, how far to go.

/// When a view is too long.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum Trigger {
    /// Above the window without these tokens, which are for the answer; at most a quarter of the window.
    Reserve(u64),
    /// From this share of the window on, in thousandths.
    Share(u64),
    /// Above so many tokens of messages, as counted: without instructions and tools.
    Tokens(u64),
    /// Above so many messages.
    Messages(usize),
    /// Before every request.
    Always,
}

/// How far a compaction goes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum Target {
    /// So far below the trigger, in thousandths of the window.
    Slack(u64),
    /// Down to so many tokens of messages, as counted: without instructions and tools.
    Tokens(u64),
    /// Down to so many messages.
    Messages(usize),
    /// To the end: everything old.
    Everything,
}

/// The size of a request.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Size {
    /// Tokens of the whole request, corrected by what the provider reports.
    pub(crate) request: u64,
    /// Tokens of its messages, as counted.
    pub(crate) tokens: u64,
    /// Messages of the group.
    pub(crate) messages: usize,
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

/// The newest groups, which stay as they are: those that reach every number given here.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct Recency {
    /// Messages.
    pub messages: usize,
    /// Tokens; at most a quarter of the window.
    pub tokens: u64,
    /// Groups that are not of the system.
    pub groups: usize,
    /// Groups of calls with their results.
    pub calls: usize,
}

impl Recency {
    /// At least so many messages and tokens.
    pub fn new(messages: usize, tokens: u64) -> Self {
        Self { messages, tokens, ..Self::default() }
    }

    /// At least so many groups that are not of the system.
    pub fn of_groups(groups: usize) -> Self {
        Self { groups, ..Self::default() }
    }

    /// At least so many groups of calls with their results.
    pub fn of_calls(calls: usize) -> Self {
        Self { calls, ..Self::default() }
    }
}

/// One way to make a view shorter. A rung is taken, oldest group first, until the target is met.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, strum::Display)]
#[non_exhaustive]
#[strum(serialize_all = "snake_case")]
pub enum Rung {
    /// Results become a line with their outcome and key fields. What could not be got again stays.
    Clear,
    /// Calls with their results become one line of text.
    Collapse,
    /// Large results and images go to the artifact store; an excerpt and the way to read more stay.
    Externalize,
    /// Everything that is old becomes one summary.
    Summarize,
    /// Cleared and collapsed groups are removed.
    Drop,
    /// The oldest groups go, with everything that they say.
    Truncate,
    /// The oldest calls go with their results.
    Select,
}

impl Rung {
    /// Whether it waits in a turn in which a stored content was shown again: it would remove content in use,
    /// and the two would undo each other.
    pub(crate) fn waits_for_stored(self) -> bool {
        match self {
            Self::Externalize | Self::Summarize | Self::Drop => true,
            Self::Clear | Self::Collapse | Self::Truncate | Self::Select => false,
        }
    }
}

/// When [`crate::compact::ContextCompactor`] compacts, what it keeps and how far it goes.
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
    /// Tokens that the model can read and write together; 0 when unknown. Then nothing is compacted
    /// before a provider rejects a request or a caller requests it.
    pub window: u64,
    /// When a view is too long.
    pub trigger: Trigger,
    /// Protected recent part.
    pub recency: Recency,
    /// Rungs in order.
    pub ladder: Vec<Rung>,
    /// How far a compaction goes.
    pub target: Target,
    /// Gains below this are not worth that the provider's prompt cache is lost; `None` is 4,096 tokens or 3 %
    /// of the window, whichever is less. Above the hard stop every gain counts.
    pub min_gain: Option<u64>,
    /// Above what a request is not sent.
    pub hard_stop: HardStop,
    /// Results that say fewer tokens are not cleared.
    pub clear_from: u64,
    /// Results that say fewer tokens stay in the view, unless their tool's policy says otherwise.
    pub externalize_from: u64,
    /// Characters of an excerpt.
    pub excerpt: usize,
    /// Tokens of a summary, at most.
    pub summary_tokens: u64,
    /// Whether the first message of the user stays: it states the task.
    pub keep_first_prompt: bool,
    /// Groups that one compaction before a request changes, at most, a summary being one change: bounds how long the
    /// request waits for a store. The next request continues. `None` is unbounded, as is every
    /// request above the hard stop.
    pub max_changes: Option<u32>,
}

impl CompactionPolicy {
    /// One summary: above `window - 16,384` everything but the first prompt and the newest 20,000 tokens is
    /// summarized.
    pub fn summarize(window: u64) -> Self {
        Self {
            trigger: Trigger::Reserve(16_384),
            recency: Recency::new(0, 20_000),
            ladder: vec![Rung::Summarize],
            hard_stop: HardStop::Answer(4_096),
            ..Self::ladder(window)
        }
    }

    /// Above so many tokens of messages the oldest groups go, down to `to` tokens. The first prompt goes, too,
    /// unless [`CompactionPolicy::keep_first_prompt`] is set.
    pub fn truncate(above: u64, to: u64) -> Self {
        Self { target: Target::Tokens(to), ..Self::counting(Trigger::Tokens(above), Rung::Truncate) }
    }

    /// Only the newest groups stay, and the system part: a group is one message, or calls with their results.
    /// The first prompt goes, too, unless [`CompactionPolicy::keep_first_prompt`] is set.
    pub fn sliding_window(groups: usize) -> Self {
        Self { recency: Recency::of_groups(groups), ..Self::counting(Trigger::Always, Rung::Truncate) }
    }

    /// Of all calls with their results only the newest groups stay.
    pub fn selective(calls: usize) -> Self {
        Self { recency: Recency::of_calls(calls), ..Self::counting(Trigger::Always, Rung::Select) }
    }

    /// All but the newest groups of calls become one line each, with the beginnings of their results.
    pub fn tool_results(calls: usize) -> Self {
        Self { recency: Recency::of_calls(calls), ..Self::counting(Trigger::Always, Rung::Collapse) }
    }

    /// One rung over a history that is counted without a window.
    fn counting(trigger: Trigger, rung: Rung) -> Self {
        Self {
            trigger,
            target: Target::Everything,
            recency: Recency::default(),
            ladder: vec![rung],
            min_gain: Some(0),
            keep_first_prompt: !matches!(rung, Rung::Truncate),
            ..Self::ladder(0)
        }
    }

    /// The whole ladder: from 80 % of the window on results are cleared, collapsed and stored elsewhere, and if
    /// that is not enough the old part is summarized, and what was cleared is dropped; above 95 % nothing
    /// is sent. The newest 12 messages are kept.
    pub fn ladder(window: u64) -> Self {
        Self {
            window,
            trigger: Trigger::Share(800),
            recency: Recency::new(12, 20_000),
            ladder: vec![Rung::Clear, Rung::Collapse, Rung::Externalize, Rung::Summarize, Rung::Drop],
            target: Target::Slack(100),
            min_gain: None,
            hard_stop: HardStop::Share(950),
            clear_from: 100,
            externalize_from: 1_000,
            excerpt: 800,
            summary_tokens: (window / 16).clamp(512, 13_107),
            keep_first_prompt: true,
            max_changes: None,
        }
    }

    /// Tokens above which a view is too long; with a share, from which on. 0 where messages are counted.
    pub fn trigger(&self) -> u64 {
        match self.trigger {
            Trigger::Reserve(reserve) => self.window - reserve.min(self.window / 4),
            Trigger::Share(share) => self.share(share),
            Trigger::Tokens(tokens) => tokens,
            Trigger::Messages(_) | Trigger::Always => 0,
        }
    }

    /// Tokens that a compaction aims at. 0 where messages are counted, and where everything old goes.
    pub fn target(&self) -> u64 {
        match self.target {
            Target::Slack(slack) => self.trigger().saturating_sub(self.share(slack)),
            Target::Tokens(tokens) => tokens,
            Target::Messages(_) | Target::Everything => 0,
        }
    }

    /// Tokens that have to go from a request of so many; 0 when it may stay as it is.
    pub fn excess(&self, tokens: u64) -> u64 {
        if self.is_due(tokens) { tokens.saturating_sub(self.target()) } else { 0 }
    }

    /// Whether a request of so many tokens is not sent as it is.
    pub fn is_too_long(&self, tokens: u64) -> bool {
        self.window > 0 && tokens > self.ceiling()
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

    /// Whether a request of so many tokens is too long for its window. Triggers that count messages, or their
    /// tokens alone, do not look at it.
    pub fn is_due(&self, tokens: u64) -> bool {
        match self.trigger {
            _ if self.window == 0 => false,
            Trigger::Reserve(_) => tokens > self.trigger(),
            Trigger::Share(_) => tokens >= self.trigger(),
            Trigger::Tokens(_) | Trigger::Messages(_) | Trigger::Always => false,
        }
    }

    /// Whether a request of this size is made shorter.
    pub(crate) fn is_due_at(&self, size: Size) -> bool {
        match self.trigger {
            Trigger::Reserve(_) | Trigger::Share(_) => self.is_due(size.request),
            Trigger::Tokens(tokens) => size.tokens > tokens,
            Trigger::Messages(messages) => size.messages > messages,
            Trigger::Always => true,
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
        check(&CompactionPolicy::summarize(200_000), 183_616, 163_616, 195_904, 4_096, 20_000);
        check(&CompactionPolicy::ladder(128_000), 102_400, 89_600, 121_600, 3_840, 20_000);
    }

    #[test]
    fn small_windows_keep_room_to_work_in() {
        check(&CompactionPolicy::summarize(16_000), 12_000, 10_400, 12_000, 480, 4_000);
        check(&CompactionPolicy::ladder(16_000), 12_800, 11_200, 15_200, 480, 4_000);
    }

    #[test]
    fn a_request_is_measured_against_trigger_target_and_ceiling() {
        let policy = CompactionPolicy::ladder(128_000);
        assert_eq!([102_399, 102_400, 110_000].map(|tokens| policy.excess(tokens)), [0, 12_800, 20_400]);
        assert_eq!([121_600, 121_601].map(|tokens| policy.is_too_long(tokens)), [false, true]);
    }

    #[test]
    fn messages_are_counted_without_a_window() {
        let mut policy = CompactionPolicy::truncate(200, 150);
        let size = |tokens, messages| Size { request: 1_000_000, tokens, messages };
        assert_eq!([200, 201].map(|tokens| policy.is_due_at(size(tokens, 3))), [false, true]);
        policy.trigger = Trigger::Messages(3);
        assert_eq!([3, 4].map(|messages| policy.is_due_at(size(0, messages))), [false, true]);
        assert!(CompactionPolicy::selective(1).is_due_at(size(0, 0)));
        assert!(!policy.is_due(u64::MAX) && !policy.is_too_long(u64::MAX));
    }

    #[test]
    fn a_window_that_nobody_knows_is_never_too_small() {
        let policy = CompactionPolicy::ladder(0);
        assert!(!policy.is_due(u64::MAX));
        assert!(CompactionPolicy::ladder(1_000).is_due(800));
        assert!(!CompactionPolicy::summarize(1_000).is_due(750));
    }
}
