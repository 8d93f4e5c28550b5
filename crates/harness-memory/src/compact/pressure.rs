//! When a view is too long, and how much of it has to go.

/// Windows of models by a part of their name; the first that fits counts.
const WINDOWS: &[(&str, u64)] = &[
    ("gpt-4o-mini", 128_000),
    ("gpt-4o", 128_000),
    ("gpt-4-turbo", 128_000),
    ("gpt-4-32k", 32_768),
    ("gpt-4", 8_192),
    ("gpt-3.5-turbo", 16_385),
    ("o1-preview", 128_000),
    ("o1-mini", 128_000),
    ("o1", 200_000),
    ("claude-3", 200_000),
    ("claude-2", 100_000),
];

/// The window of a model that nothing is known of.
pub const DEFAULT_WINDOW: u64 = 128_000;

/// The window of a model in tokens, by a part of its name; [`DEFAULT_WINDOW`] when none fits.
///
/// ```
/// use harness_memory::compact::pressure::window_of;
///
/// assert_eq!(window_of("openai/gpt-4-0613"), 8_192);
/// assert_eq!(window_of("somebody's"), 128_000);
/// ```
pub fn window_of(model: &str) -> u64 {
    WINDOWS.iter().find(|(part, _)| model.contains(part)).map_or(DEFAULT_WINDOW, |(_, window)| *window)
}

/// The tokens of a request: what it may have, what it has, and what of that is no message.
///
/// ```
/// use harness_memory::compact::pressure::TokenBudget;
///
/// let budget = TokenBudget { current_estimate: 102_400, ..TokenBudget::default() };
/// assert!(budget.is_under_pressure());
/// assert_eq!(budget.tokens_to_free(), 15_300);
/// ```
#[derive(Clone, Debug, PartialEq)]
pub struct TokenBudget {
    /// What a request may have. Default 128,000.
    pub max_input_tokens: u64,
    /// The share of it from which views are made shorter. Default 0.80.
    pub soft_threshold_percent: f64,
    /// The share of it from which no request is sent before its view is shorter. Default 0.95.
    pub blocking_threshold_percent: f64,
    /// The whole request as it is: messages, instructions, tools and form.
    pub current_estimate: u64,
    /// Tokens of the instructions.
    pub system_prompt_tokens: u64,
    /// Tokens of the definitions of tools.
    pub tool_schema_tokens: u64,
    /// Tokens of the form of the request.
    pub formatting_overhead_tokens: u64,
    /// Kept free because estimates err. Default 500.
    pub safety_buffer_tokens: u64,
    /// Kept free for stored contents that are shown again. Default 2,000.
    pub rehydration_reserve_tokens: u64,
    /// How many stored contents are shown again in one turn at most. Default 3.
    pub max_rehydration_artifacts: u32,
}

impl Default for TokenBudget {
    fn default() -> Self {
        Self {
            max_input_tokens: DEFAULT_WINDOW,
            soft_threshold_percent: 0.80,
            blocking_threshold_percent: 0.95,
            current_estimate: 0,
            system_prompt_tokens: 0,
            tool_schema_tokens: 0,
            formatting_overhead_tokens: 0,
            safety_buffer_tokens: 500,
            rehydration_reserve_tokens: 2_000,
            max_rehydration_artifacts: 3,
        }
    }
}

impl TokenBudget {
    /// The defaults for the window of a model.
    pub fn for_model(model: &str) -> Self {
        Self { max_input_tokens: window_of(model), ..Self::default() }
    }

    /// From here on views are made shorter.
    pub fn soft_threshold(&self) -> u64 {
        share(self.max_input_tokens, self.soft_threshold_percent)
    }

    /// From here on no request is sent before its view is shorter.
    pub fn blocking_threshold(&self) -> u64 {
        share(self.max_input_tokens, self.blocking_threshold_percent)
    }

    /// What is set aside for everything that is no message.
    pub fn total_overhead(&self) -> u64 {
        self.sent_overhead() + self.safety_buffer_tokens + self.rehydration_reserve_tokens
    }

    /// The part of the overhead that is sent, and so is in the estimate already.
    fn sent_overhead(&self) -> u64 {
        self.system_prompt_tokens + self.tool_schema_tokens + self.formatting_overhead_tokens
    }

    /// What messages may have below the soft threshold.
    pub fn available_for_messages(&self) -> u64 {
        self.soft_threshold().saturating_sub(self.total_overhead())
    }

    /// Whether the request reaches the soft threshold.
    pub fn is_under_pressure(&self) -> bool {
        self.current_estimate >= self.soft_threshold()
    }

    /// Whether the request reaches the blocking threshold.
    pub fn is_blocking(&self) -> bool {
        self.current_estimate >= self.blocking_threshold()
    }

    /// By how much the request is over the soft threshold.
    pub fn tokens_over(&self) -> u64 {
        self.current_estimate.saturating_sub(self.soft_threshold())
    }

    /// By how much messages of so many tokens are over what they may have.
    pub fn messages_over(&self, message_tokens: u64) -> u64 {
        message_tokens.saturating_sub(self.available_for_messages())
    }

    /// By how much the messages of the request are over what they may have. The overhead counts
    /// once.
    pub fn tokens_over_threshold(&self) -> u64 {
        self.messages_over(self.current_estimate.saturating_sub(self.sent_overhead()))
    }

    /// What has to go: what is over, and a tenth of the window, so that not every request compacts.
    pub fn tokens_to_free(&self) -> u64 {
        self.tokens_over_threshold() + self.room_to_grow()
    }

    /// What has to go of messages of so many tokens; see [`TokenBudget::tokens_to_free`].
    pub fn tokens_to_free_of(&self, message_tokens: u64) -> u64 {
        self.messages_over(message_tokens) + self.room_to_grow()
    }

    fn room_to_grow(&self) -> u64 {
        share(self.max_input_tokens, 0.1)
    }
}

/// A share of tokens, rounded down.
#[expect(
    clippy::cast_precision_loss,
    clippy::cast_possible_truncation,
    clippy::cast_sign_loss,
    reason = "counts of tokens are far below 2^52, and a share below nothing is nothing"
)]
pub(super) fn share(tokens: u64, fraction: f64) -> u64 {
    (tokens as f64 * fraction) as u64
}

#[cfg(test)]
mod tests {
    use super::*;

    #[track_caller]
    fn check(model: &str, window: u64) {
        assert_eq!(TokenBudget::for_model(model).max_input_tokens, window);
    }

    #[test]
    fn the_first_part_of_a_name_that_fits_counts() {
        check("gpt-4o-mini", 128_000);
        check("gpt-4-32k-0314", 32_768);
        check("gpt-4", 8_192);
        check("gpt-3.5-turbo-16k", 16_385);
        check("o1-mini", 128_000);
        check("o1", 200_000);
        check("claude-3-opus", 200_000);
        check("claude-2.1", 100_000);
    }

    #[test]
    fn what_is_sent_anyway_is_not_taken_off_twice() {
        let budget = TokenBudget {
            max_input_tokens: 100_000,
            tool_schema_tokens: 6_000,
            current_estimate: 82_000,
            ..TokenBudget::default()
        };
        assert_eq!((budget.tokens_over_threshold(), budget.tokens_to_free()), (4_500, 14_500));
        assert_eq!(budget.tokens_to_free_of(76_000), 14_500);
    }

    #[test]
    fn an_overhead_above_the_window_leaves_nothing_and_does_not_wrap() {
        let budget = TokenBudget { max_input_tokens: 1_000, current_estimate: 500, ..TokenBudget::default() };
        assert_eq!((budget.available_for_messages(), budget.tokens_to_free()), (0, 600));
    }
}
