//! Limits and nested budgets: reserved before an operation, settled after it, on all levels at once.

mod spend;
#[cfg(test)]
mod tests;

pub use spend::{BudgetPeriod, Payer, SpendBudget};

use serde::{Deserialize, Serialize};

use crate::ids::CallId;
use crate::message::Cost;
use crate::time::{Millis, Time};

/// Amount of each limited resource.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, schemars::JsonSchema)]
#[serde(rename_all = "camelCase", default)]
#[non_exhaustive]
pub struct Amount {
    /// Model calls.
    pub iterations: u32,
    /// Tool calls.
    pub tool_calls: u32,
    /// Tokens, input and output together.
    pub tokens: u64,
    /// Cost.
    pub cost: Cost,
}

impl Amount {
    /// No limit.
    pub const UNLIMITED: Self =
        Self { iterations: u32::MAX, tool_calls: u32::MAX, tokens: u64::MAX, cost: Cost(u64::MAX) };

    /// Nothing.
    pub const NONE: Self = Self { iterations: 0, tool_calls: 0, tokens: 0, cost: Cost(0) };

    /// Smallest positive amount of each.
    const ONE: Self = Self { iterations: 1, tool_calls: 1, tokens: 1, cost: Cost(1) };

    fn zip(self, other: Self, count: fn(u32, u32) -> u32, amount: fn(u64, u64) -> u64) -> Self {
        Self {
            iterations: count(self.iterations, other.iterations),
            tool_calls: count(self.tool_calls, other.tool_calls),
            tokens: amount(self.tokens, other.tokens),
            cost: Cost(amount(self.cost.0, other.cost.0)),
        }
    }

    pub(crate) fn plus(self, other: Self) -> Self {
        self.zip(other, u32::saturating_add, u64::saturating_add)
    }

    pub(crate) fn minus(self, other: Self) -> Self {
        self.zip(other, u32::saturating_sub, u64::saturating_sub)
    }

    /// Minimum of each resource.
    #[must_use]
    pub fn min(self, other: Self) -> Self {
        self.zip(other, Ord::min, Ord::min)
    }

    fn half(self) -> Self {
        self.zip(self, |count, _| count.div_ceil(2), |amount, _| amount.div_ceil(2))
    }
}

/// Limited resource.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize, schemars::JsonSchema)]
#[serde(rename_all = "snake_case")]
#[non_exhaustive]
pub enum Limit {
    /// Model calls.
    Iterations,
    /// Tool calls.
    ToolCalls,
    /// Time since the start of the turn or run, in milliseconds.
    Elapsed,
    /// Tokens.
    Tokens,
    /// Cost in billionths of a unit.
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

/// Limit that was reached: the evidence of a stop.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, schemars::JsonSchema)]
pub struct Reached {
    /// Resource.
    pub limit: Limit,
    /// Used and reserved amount.
    pub value: u64,
    /// Ceiling.
    pub ceiling: u64,
    /// Minimum amount for the next operation, if the value is below the ceiling but that does not fit.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub needs: Option<u64>,
}

impl Reached {
    /// Creates the evidence without `needs`.
    pub fn new(limit: Limit, value: u64, ceiling: u64) -> Self {
        Self { limit, value, ceiling, needs: None }
    }
}

/// Amount reserved for one operation until it is settled.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(transparent)]
pub struct Grant(pub Amount);

/// Budget of one level: a run, a turn, or a sub-agent's share.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Budget {
    limit: Amount,
    used: Amount,
    reserved: Amount,
    deadline: Option<Time>,
}

impl Budget {
    /// Creates a budget with these ceilings and an optional deadline.
    pub fn new(limit: Amount, deadline: Option<Time>) -> Self {
        Self { limit, used: Amount::NONE, reserved: Amount::NONE, deadline }
    }

    /// Charges earlier usage.
    #[must_use]
    pub(crate) fn having_used(self, used: Amount) -> Self {
        Self { used: self.used.plus(used), ..self }
    }

    /// Returns the used amount.
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
        // An operation needs more than one token, and an unknown cost.
        let part = |limit, value: u64, want: u64, ceiling: u64| {
            let needs = (value < ceiling).then_some(want);
            over(limit, value, want, ceiling).map(|reached| Reached { needs, ..reached })
        };
        count(Limit::Iterations, taken.iterations, want.iterations, self.limit.iterations)
            .or_else(|| count(Limit::ToolCalls, taken.tool_calls, want.tool_calls, self.limit.tool_calls))
            .or_else(|| part(Limit::Cost, taken.cost.0, want.cost.0, self.limit.cost.0))
            .or_else(|| part(Limit::Tokens, taken.tokens, want.tokens, self.limit.tokens))
    }

    /// Returns the ceiling on cost or tokens that is used up. Unlimited ceilings never are.
    fn spent(&self) -> Option<Reached> {
        let at = |limit, value: u64, ceiling: u64| {
            (ceiling != u64::MAX && value >= ceiling).then_some(Reached::new(limit, value, ceiling))
        };
        at(Limit::Cost, self.used.cost.0, self.limit.cost.0)
            .or_else(|| at(Limit::Tokens, self.used.tokens, self.limit.tokens))
    }
}

/// Nested budgets of an operation: the parent's grant, the run's, the turn's. Innermost last.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(transparent)]
pub struct Budgets(Vec<Budget>);

impl Budgets {
    /// Adds an innermost level.
    pub fn push(&mut self, budget: Budget) {
        self.0.push(budget);
    }

    pub(crate) fn pop(&mut self) -> Option<Budget> {
        self.0.pop()
    }

    /// Reserves `want` on every level, or on none.
    ///
    /// # Errors
    /// The first ceiling that would be exceeded, innermost level first.
    pub fn reserve(&mut self, want: Amount) -> Result<Grant, Reached> {
        if let Some(reached) = self.would_reach(want) {
            return Err(reached);
        }
        for level in &mut self.0 {
            level.reserved = level.reserved.plus(want);
        }
        Ok(Grant(want))
    }

    /// Reserves `own` and `share`, but of each resource of `share` at most half of what is left, so that parallel work
    /// has a budget, too.
    ///
    /// # Errors
    /// The first ceiling that would be exceeded, if `own` does not fit or nothing is left to share.
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

    /// Releases a grant and charges the actual usage, even if it is more.
    pub fn settle(&mut self, grant: Grant, used: Amount) {
        self.settle_outer(usize::MAX, grant, used);
    }

    /// Settles on the outermost levels alone.
    fn settle_outer(&mut self, outermost: usize, grant: Grant, used: Amount) {
        for level in self.0.iter_mut().take(outermost) {
            level.reserved = level.reserved.minus(grant.0);
            level.used = level.used.plus(used);
        }
    }

    /// Returns the ceiling that a reservation of `want` would exceed, innermost level first.
    pub(crate) fn would_reach(&self, want: Amount) -> Option<Reached> {
        self.0.iter().rev().find_map(|level| level.reached(want))
    }

    /// Returns the ceiling on cost or tokens that is used up on any level, innermost level first.
    pub fn spent(&self) -> Option<Reached> {
        self.0.iter().rev().find_map(Budget::spent)
    }

    /// Whether any level limits tokens.
    pub(crate) fn limits_tokens(&self) -> bool {
        self.0.iter().any(|level| level.limit.tokens < u64::MAX)
    }

    /// Returns the unreserved rest of each resource: the minimum over all levels.
    pub fn left(&self) -> Amount {
        self.0.iter().fold(Amount::UNLIMITED, |left, level| left.min(level.left()))
    }

    /// Returns the outermost level.
    pub(crate) fn outermost(&self) -> Option<Budget> {
        self.0.first().copied()
    }

    /// Removes all levels. Returns the usage of the outermost.
    pub(crate) fn take_used(&mut self) -> Amount {
        let levels = std::mem::take(&mut self.0);
        levels.first().map_or(Amount::NONE, Budget::used)
    }

    /// Returns the innermost level.
    pub fn innermost(&self) -> Option<Budget> {
        self.0.last().copied()
    }

    /// Returns the earliest deadline of all levels.
    pub(crate) fn deadline(&self) -> Option<Time> {
        self.0.iter().filter_map(|level| level.deadline).min()
    }
}

/// Grants that outlive their calls, because the work that they started continues.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(transparent)]
pub(crate) struct HeldGrants(Vec<HeldGrant>);

#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
struct HeldGrant {
    call: CallId,
    grant: Grant,
    /// Number of levels with the reservation, from the outermost; a turn's level ends with it.
    levels: usize,
}

impl HeldGrants {
    /// Keeps the reservation of a call on all levels.
    pub(crate) fn keep(&mut self, call: CallId, grant: Grant, budgets: &Budgets) {
        self.0.push(HeldGrant { call, grant, levels: budgets.0.len() });
    }

    /// Releases the reservation of a call and charges the actual usage.
    pub(crate) fn settle(&mut self, call: &CallId, used: Amount, budgets: &mut Budgets) {
        if let Some(at) = self.0.iter().position(|held| held.call == *call) {
            let HeldGrant { grant, levels, .. } = self.0.remove(at);
            budgets.settle_outer(levels, grant, used);
        }
    }

    /// Drops reservations on a removed innermost level.
    pub(crate) fn level_gone(&mut self, budgets: &Budgets) {
        for held in &mut self.0 {
            held.levels = held.levels.min(budgets.0.len());
        }
        self.0.retain(|held| held.levels > 0);
    }
}

/// Limits of a turn. Finite by default; for no limit, set `u32::MAX`, `u64::MAX`, or `None` for time.
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
    /// Tool calls, excluding retried attempts. Default 128.
    pub tool_calls: u32,
    /// Duration of the turn. Default 30 minutes; `None` for no limit.
    pub elapsed: Option<Millis>,
    /// Tokens of all model calls and tools. Default 4,000,000.
    pub tokens: u64,
    /// Cost, if the provider reports it. Default 20 units.
    pub cost: Cost,
    /// Consecutive invalid outputs that end the turn. Default 2.
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
    /// Returns the ceilings as an amount.
    pub fn amount(&self) -> Amount {
        Amount {
            iterations: self.iterations,
            tool_calls: self.tool_calls,
            tokens: self.tokens,
            cost: self.cost,
        }
    }
}
