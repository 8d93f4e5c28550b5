//! Limits and the budgets that hold them: reserved before, settled after, on all levels at once.

#[cfg(test)]
mod tests;

use serde::{Deserialize, Serialize};

use crate::ids::CallId;
use crate::message::Cost;
use crate::time::{Millis, Time};

/// An amount of everything that is limited.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", default)]
#[non_exhaustive]
pub struct Amount {
    /// Model calls.
    pub iterations: u32,
    /// Tool calls.
    pub tool_calls: u32,
    /// Tokens, input and output together.
    pub tokens: u64,
    /// Money.
    pub cost: Cost,
}

impl Amount {
    /// More of everything than can be used.
    pub const UNLIMITED: Self =
        Self { iterations: u32::MAX, tool_calls: u32::MAX, tokens: u64::MAX, cost: Cost(u64::MAX) };

    /// Nothing.
    pub const NONE: Self = Self { iterations: 0, tool_calls: 0, tokens: 0, cost: Cost(0) };

    /// The least of everything.
    const ONE: Self = Self { iterations: 1, tool_calls: 1, tokens: 1, cost: Cost(1) };

    pub(crate) fn plus(self, other: Self) -> Self {
        Self {
            iterations: self.iterations.saturating_add(other.iterations),
            tool_calls: self.tool_calls.saturating_add(other.tool_calls),
            tokens: self.tokens.saturating_add(other.tokens),
            cost: self.cost.plus(other.cost),
        }
    }

    /// Half of it, rounded up.
    fn half(self) -> Self {
        Self {
            iterations: self.iterations.div_ceil(2),
            tool_calls: self.tool_calls.div_ceil(2),
            tokens: self.tokens.div_ceil(2),
            cost: Cost(self.cost.0.div_ceil(2)),
        }
    }

    pub(crate) fn minus(self, other: Self) -> Self {
        Self {
            iterations: self.iterations.saturating_sub(other.iterations),
            tool_calls: self.tool_calls.saturating_sub(other.tool_calls),
            tokens: self.tokens.saturating_sub(other.tokens),
            cost: Cost(self.cost.0.saturating_sub(other.cost.0)),
        }
    }

    /// The smaller of both, kind by kind.
    #[must_use]
    pub fn min(self, other: Self) -> Self {
        Self {
            iterations: self.iterations.min(other.iterations),
            tool_calls: self.tool_calls.min(other.tool_calls),
            tokens: self.tokens.min(other.tokens),
            cost: self.cost.min(other.cost),
        }
    }
}

/// What can be limited.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
#[non_exhaustive]
pub enum Limit {
    /// Model calls.
    Iterations,
    /// Tool calls.
    ToolCalls,
    /// Milliseconds since the turn or run began.
    Elapsed,
    /// Tokens.
    Tokens,
    /// Money, in billionths of a unit.
    Cost,
    /// Turns of a run.
    Turns,
    /// Tokens of one request.
    Context,
}

impl std::fmt::Display for Limit {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(match self {
            Self::Iterations => "iterations",
            Self::ToolCalls => "tool calls",
            Self::Elapsed => "elapsed milliseconds",
            Self::Tokens => "tokens",
            Self::Cost => "cost",
            Self::Turns => "turns",
            Self::Context => "context tokens",
        })
    }
}

/// The evidence of a limit stop: what was reached, at which value, and the ceiling.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Reached {
    /// What was limited.
    pub limit: Limit,
    /// The value at the time.
    pub value: u64,
    /// The ceiling.
    pub ceiling: u64,
    /// What the next operation needs at least, where the value is below the ceiling and has no room for that.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub needs: Option<u64>,
}

impl Reached {
    /// A ceiling that was reached at a value.
    pub fn new(limit: Limit, value: u64, ceiling: u64) -> Self {
        Self { limit, value, ceiling, needs: None }
    }
}

/// An amount that is set aside for one operation, until it is settled.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(transparent)]
pub struct Grant(pub Amount);

/// One level of limits: a run, a turn, or the share of a child.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Budget {
    limit: Amount,
    used: Amount,
    reserved: Amount,
    deadline: Option<Time>,
}

impl Budget {
    /// A level with these ceilings and, optionally, a time by which all must be over.
    pub fn new(limit: Amount, deadline: Option<Time>) -> Self {
        Self { limit, used: Amount::NONE, reserved: Amount::NONE, deadline }
    }

    /// The same level, of which this much was used before.
    #[must_use]
    pub(crate) fn having_used(self, used: Amount) -> Self {
        Self { used: self.used.plus(used), ..self }
    }

    /// What has been used.
    pub fn used(&self) -> Amount {
        self.used
    }

    fn left(&self) -> Amount {
        self.limit.minus(self.used).minus(self.reserved)
    }

    fn reached(&self, want: Amount) -> Option<Reached> {
        let taken = self.used.plus(self.reserved);
        let over = |limit, value: u64, want: u64, ceiling: u64| {
            (want > 0 && value.saturating_add(want) > ceiling).then_some(Reached::new(limit, value, ceiling))
        };
        let count = |limit, value: u32, want: u32, ceiling: u32| {
            over(limit, u64::from(value), u64::from(want), u64::from(ceiling))
        };
        // Of tokens and money an operation needs more than one.
        let part = |limit, value: u64, want: u64, ceiling: u64| {
            let needs = (value < ceiling).then_some(want);
            over(limit, value, want, ceiling).map(|reached| Reached { needs, ..reached })
        };
        count(Limit::Iterations, taken.iterations, want.iterations, self.limit.iterations)
            .or_else(|| count(Limit::ToolCalls, taken.tool_calls, want.tool_calls, self.limit.tool_calls))
            .or_else(|| part(Limit::Cost, taken.cost.0, want.cost.0, self.limit.cost.0))
            .or_else(|| part(Limit::Tokens, taken.tokens, want.tokens, self.limit.tokens))
    }

    /// A ceiling on money or tokens that has been reached. Unlimited ceilings never are.
    fn spent(&self) -> Option<Reached> {
        let at = |limit, value: u64, ceiling: u64| {
            (ceiling != u64::MAX && value >= ceiling).then_some(Reached::new(limit, value, ceiling))
        };
        at(Limit::Cost, self.used.cost.0, self.limit.cost.0)
            .or_else(|| at(Limit::Tokens, self.used.tokens, self.limit.tokens))
    }
}

/// The levels that bind an operation: the run's, the turn's, a parent's grant. Innermost last.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(transparent)]
pub struct Budgets(Vec<Budget>);

impl Budgets {
    /// Adds an inner level.
    pub fn push(&mut self, budget: Budget) {
        self.0.push(budget);
    }

    /// Removes the innermost level.
    pub(crate) fn pop(&mut self) -> Option<Budget> {
        self.0.pop()
    }

    /// Sets `want` aside on every level, or on none.
    ///
    /// # Errors
    /// The first ceiling that would be passed, innermost level first.
    pub fn reserve(&mut self, want: Amount) -> Result<Grant, Reached> {
        if let Some(reached) = self.would_reach(want) {
            return Err(reached);
        }
        for level in &mut self.0 {
            level.reserved = level.reserved.plus(want);
        }
        Ok(Grant(want))
    }

    /// Sets `own` aside, and `share`, but of each kind at most half of what is left beside it: something is left
    /// for whoever shares, and for others who work at the same time.
    ///
    /// # Errors
    /// The first ceiling that is in the way, when there is no room for `own` or nothing is left of something
    /// that is shared.
    pub(crate) fn reserve_share(&mut self, own: Amount, share: Amount) -> Result<Grant, Reached> {
        if share == Amount::NONE {
            return self.reserve(own);
        }
        let least = own.plus(share.min(Amount::ONE));
        if let Some(reached) = self.would_reach(least) {
            return Err(reached);
        }
        self.reserve(own.plus(share.min(self.left().minus(own).half())))
    }

    /// Gives a grant back and books what was really used, also when that is more.
    pub fn settle(&mut self, grant: Grant, used: Amount) {
        self.settle_outer(usize::MAX, grant, used);
    }

    /// The same on the outermost levels alone.
    fn settle_outer(&mut self, outermost: usize, grant: Grant, used: Amount) {
        for level in self.0.iter_mut().take(outermost) {
            level.reserved = level.reserved.minus(grant.0);
            level.used = level.used.plus(used);
        }
    }

    /// The ceiling that a reservation of `want` would pass, innermost level first.
    pub(crate) fn would_reach(&self, want: Amount) -> Option<Reached> {
        self.0.iter().rev().find_map(|level| level.reached(want))
    }

    /// A ceiling on money or tokens that is used up on any level, innermost level first.
    pub fn spent(&self) -> Option<Reached> {
        self.0.iter().rev().find_map(Budget::spent)
    }

    /// Whether some level has a ceiling on tokens.
    pub(crate) fn limits_tokens(&self) -> bool {
        self.0.iter().any(|level| level.limit.tokens < u64::MAX)
    }

    /// What is left on the tightest level of each kind.
    pub fn left(&self) -> Amount {
        self.0.iter().fold(Amount::UNLIMITED, |left, level| left.min(level.left()))
    }

    /// The outermost level.
    pub(crate) fn outermost(&self) -> Option<Budget> {
        self.0.first().copied()
    }

    /// Takes all levels away. Gives what was used on the outermost.
    pub(crate) fn take_used(&mut self) -> Amount {
        let levels = std::mem::take(&mut self.0);
        levels.first().map_or(Amount::NONE, Budget::used)
    }

    /// The innermost level.
    pub fn innermost(&self) -> Option<Budget> {
        self.0.last().copied()
    }

    /// The earliest deadline of all levels.
    pub(crate) fn deadline(&self) -> Option<Time> {
        self.0.iter().filter_map(|level| level.deadline).min()
    }
}

/// Grants that stay set aside although their calls have answered: what was begun goes on.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(transparent)]
pub(crate) struct HeldGrants(Vec<HeldGrant>);

#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
struct HeldGrant {
    call: CallId,
    grant: Grant,
    /// The levels that it is set aside on, from the outermost; a turn takes its own with it.
    levels: usize,
}

impl HeldGrants {
    /// Keeps what is set aside on all levels for a call.
    pub(crate) fn keep(&mut self, call: CallId, grant: Grant, budgets: &Budgets) {
        self.0.push(HeldGrant { call, grant, levels: budgets.0.len() });
    }

    /// Gives back what is kept for a call, and books what was really used of it.
    pub(crate) fn settle(&mut self, call: &CallId, used: Amount, budgets: &mut Budgets) {
        if let Some(at) = self.0.iter().position(|held| held.call == *call) {
            let HeldGrant { grant, levels, .. } = self.0.remove(at);
            budgets.settle_outer(levels, grant, used);
        }
    }

    /// The innermost level is gone: nothing is kept on it any more.
    pub(crate) fn level_gone(&mut self, budgets: &Budgets) {
        for held in &mut self.0 {
            held.levels = held.levels.min(budgets.0.len());
        }
        self.0.retain(|held| held.levels > 0);
    }
}

/// The limits of a turn. Finite by default; "unlimited" must be written out (`u32::MAX`, `u64::MAX`,
/// `None` for time).
///
/// ```
/// use harness_core::Time;
/// use harness_core::limits::{Amount, Budget, Budgets, Grant, Limit, Limits, Reached};
///
/// let mut limits = Limits::default();
/// limits.iterations = 1;
/// let mut budgets = Budgets::default();
/// budgets.push(Budget::new(limits.amount(), Some(Time(60_000))));
///
/// let mut step = Amount::NONE;
/// step.iterations = 1;
/// let grant: Grant = budgets.reserve(step).unwrap();
/// let reached: Reached = budgets.reserve(step).unwrap_err();
/// assert_eq!((reached.limit, reached.ceiling), (Limit::Iterations, 1));
/// budgets.settle(grant, step);
/// ```
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", default)]
#[non_exhaustive]
pub struct Limits {
    /// Model calls. Default 32.
    pub iterations: u32,
    /// Tool calls, retried attempts not counted. Default 128.
    pub tool_calls: u32,
    /// Time from the turn's start to its end. Default 30 minutes; `None` is unlimited.
    pub elapsed: Option<Millis>,
    /// Tokens of all model calls and tools. Default 4,000,000.
    pub tokens: u64,
    /// Money, where the provider reports it. Default: 20 units.
    pub cost: Cost,
    /// Invalid outputs in a row that end the turn. Default 2.
    pub invalid_outputs: u32,
}

impl Default for Limits {
    fn default() -> Self {
        Self {
            iterations: 32,
            tool_calls: 128,
            elapsed: Some(Millis(30 * 60_000)),
            tokens: 4_000_000,
            cost: Cost(20_000_000_000),
            invalid_outputs: 2,
        }
    }
}

impl Limits {
    /// The ceilings as an amount.
    pub fn amount(&self) -> Amount {
        Amount {
            iterations: self.iterations,
            tool_calls: self.tool_calls,
            tokens: self.tokens,
            cost: self.cost,
        }
    }
}
