//! Tokens of a run.

use harness::runtime::Report;

/// Tokens of all model calls of a run.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Tokens {
    /// Input tokens, including cached ones.
    pub(crate) input: u64,
    /// Input tokens that were read from a cache.
    pub(crate) cached: u64,
    /// Output tokens, including reasoning.
    pub(crate) output: u64,
    /// Reasoning tokens.
    pub(crate) reasoning: u64,
}

impl Tokens {
    /// Tokens of a run; `None` if no model reported any.
    pub(crate) fn of(report: &Report) -> Option<Self> {
        let usage = &report.end.usage;
        let output = usage.output_tokens.unwrap_or(0);
        let all = usage.amount().tokens;
        if all == 0 && usage.input_tokens.is_none() && usage.output_tokens.is_none() {
            return None;
        }
        let (mut cached, mut reasoning) = (0_u64, 0_u64);
        for usage in report.messages().filter_map(|message| message.as_assistant()?.usage.clone()) {
            cached = cached.saturating_add(usage.cache_read.unwrap_or(0));
            reasoning = reasoning.saturating_add(usage.reasoning.unwrap_or(0));
        }
        Some(Self { input: all.saturating_sub(output), cached, output, reasoning })
    }

    pub(crate) fn total(self) -> u64 {
        self.input.saturating_add(self.output)
    }
}
