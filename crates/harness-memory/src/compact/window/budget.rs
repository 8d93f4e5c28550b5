//! Strategies one after another, until a budget is met.

use std::fmt;
use std::sync::Arc;

use harness_core::port::TokenCounter;

use super::state::{ExcludeReason, Window};
use super::strategy::{Measure, Truncation, WindowStrategy};
use super::tools::ToolResults;
use crate::compact::error::CompactError;
use crate::compact::group::GroupKind;
use crate::compact::pressure::share;

/// Runs strategies in order until what is shown fits a budget; when they do not free enough, the oldest
/// groups go.
///
/// ```
/// use std::sync::Arc;
///
/// use harness_core::message::Message;
/// use harness_memory::compact::item::Item;
/// use harness_memory::compact::window::{
///     FlooredCharacters, SelectiveToolCall, TokenBudgetComposed, Window, WindowStrategy,
/// };
///
/// let items: Vec<_> =
///     (0..9).map(|n| Item::new(format!("u{n}"), Message::user("a".repeat(400)))).collect();
/// let mut window = Window::of(&items, &FlooredCharacters);
/// let budget = TokenBudgetComposed::new(300, [Arc::new(SelectiveToolCall::default()) as Arc<_>]);
/// assert!(budget.apply(&mut window, &FlooredCharacters));
/// assert!(window.included_tokens() <= 300);
/// ```
#[derive(Clone)]
#[non_exhaustive]
pub struct TokenBudgetComposed {
    /// The tokens that what is shown may have.
    pub token_budget: u64,
    /// The strategies in order.
    pub strategies: Vec<Arc<dyn WindowStrategy>>,
    /// Whether a strategy is left out when the budget is met before it. Default true.
    pub early_stop: bool,
    /// Whether the system part goes, too, when nothing else is left: law 6 only allows it to who asks for
    /// it here. Default false.
    pub is_strict: bool,
}

impl fmt::Debug for TokenBudgetComposed {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("TokenBudgetComposed")
            .field("token_budget", &self.token_budget)
            .field("strategies", &self.strategies.len())
            .field("early_stop", &self.early_stop)
            .field("is_strict", &self.is_strict)
            .finish()
    }
}

impl TokenBudgetComposed {
    /// Strategies in order, for a budget.
    pub fn new(token_budget: u64, strategies: impl IntoIterator<Item = Arc<dyn WindowStrategy>>) -> Self {
        let strategies = strategies.into_iter().collect();
        Self { token_budget, strategies, early_stop: true, is_strict: false }
    }

    fn is_met(&self, window: &Window) -> bool {
        window.included_tokens() <= self.token_budget
    }

    fn leave_out(&self, window: &mut Window, system: bool, reason: ExcludeReason) -> bool {
        let mut changed = false;
        for index in window.shown(|group| (group.kind == GroupKind::System) == system) {
            if self.is_met(window) {
                break;
            }
            changed |= window.exclude(index, reason);
        }
        changed
    }
}

impl WindowStrategy for TokenBudgetComposed {
    fn apply(&self, window: &mut Window, counter: &dyn TokenCounter) -> bool {
        if self.is_met(window) {
            return false;
        }
        let mut changed = false;
        for strategy in &self.strategies {
            changed |= strategy.apply(window, counter);
            if self.early_stop && self.is_met(window) {
                return changed;
            }
        }
        changed |= self.leave_out(window, false, ExcludeReason::TokenBudgetFallback);
        if self.is_strict {
            changed |= self.leave_out(window, true, ExcludeReason::TokenBudgetFallbackStrict);
        }
        changed
    }
}

/// Fits a transcript into the window of a model: from half of what a request may have on, old tool results
/// become one line each; from four fifths on, the oldest groups go.
#[derive(Clone, Copy, Debug, PartialEq)]
#[non_exhaustive]
pub struct ContextWindow {
    /// What the model can hold.
    pub max_context_window_tokens: u64,
    /// What of it is for the answer.
    pub max_output_tokens: u64,
    /// The share of the rest from which tool results are collapsed. Default 0.5.
    pub tool_eviction_threshold: f64,
    /// The share of the rest from which groups go. Default 0.8.
    pub truncation_threshold: f64,
    /// How many groups of tool calls stay as they are. Default 4.
    pub keep_last_tool_call_groups: usize,
    /// See [`TokenBudgetComposed::is_strict`]. Default false.
    pub is_strict: bool,
}

impl ContextWindow {
    /// The strategy for a model.
    ///
    /// # Errors
    /// When the window is 0, or nothing of it is left for a request.
    pub fn new(max_context_window_tokens: u64, max_output_tokens: u64) -> Result<Self, CompactError> {
        if max_output_tokens >= max_context_window_tokens {
            return Err(CompactError::InvalidSetting {
                setting: "max_output_tokens",
                value: max_output_tokens.to_string(),
                wanted: "less than `max_context_window_tokens`",
            });
        }
        Ok(Self {
            max_context_window_tokens,
            max_output_tokens,
            tool_eviction_threshold: 0.5,
            truncation_threshold: 0.8,
            keep_last_tool_call_groups: 4,
            is_strict: false,
        })
    }

    /// The same with other shares.
    ///
    /// # Errors
    /// When one is not above 0 and at most 1, or the first is the greater one.
    pub fn with_thresholds(self, tool_eviction: f64, truncation: f64) -> Result<Self, CompactError> {
        let within = |share: f64| share > 0.0 && share <= 1.0;
        if !within(tool_eviction) || !within(truncation) || truncation < tool_eviction {
            return Err(CompactError::InvalidSetting {
                setting: "thresholds",
                value: format!("{tool_eviction}, {truncation}"),
                wanted: "0 < tool eviction <= truncation <= 1",
            });
        }
        Ok(Self { tool_eviction_threshold: tool_eviction, truncation_threshold: truncation, ..self })
    }

    /// What a request may have.
    pub fn input_budget(&self) -> u64 {
        self.max_context_window_tokens.saturating_sub(self.max_output_tokens)
    }
}

impl WindowStrategy for ContextWindow {
    fn apply(&self, window: &mut Window, counter: &dyn TokenCounter) -> bool {
        let eviction = share(self.input_budget(), self.tool_eviction_threshold);
        let truncation = share(self.input_budget(), self.truncation_threshold);
        let keep_last_tool_call_groups = self.keep_last_tool_call_groups;
        let collapse = ToolResults { keep_last_tool_call_groups, ..ToolResults::default() };
        let truncate = Truncation {
            measure: Measure::Tokens,
            max_n: truncation,
            compact_to: eviction,
            preserve_system: true,
            preserve_first_user: false,
        };
        let composed = |budget, strategy: Arc<dyn WindowStrategy>| TokenBudgetComposed {
            is_strict: self.is_strict,
            ..TokenBudgetComposed::new(budget, [strategy])
        };
        let collapsed = window.included_tokens() > eviction && collapse.apply(window, counter);
        composed(truncation, Arc::new(truncate)).apply(window, counter) || collapsed
    }
}
