//! Limits and the budgets that hold them: reserved before, settled after, on all levels at once.

use serde::{Deserialize, Serialize};

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

    fn plus(self, other: Self) -> Self {
        Self {
            iterations: self.iterations.saturating_add(other.iterations),
            tool_calls: self.tool_calls.saturating_add(other.tool_calls),
            tokens: self.tokens.saturating_add(other.tokens),
            cost: self.cost.plus(other.cost),
        }
    }

    fn minus(self, other: Self) -> Self {
        Self {
            iterations: self.iterations.saturating_sub(other.iterations),
            tool_calls: self.tool_calls.saturating_sub(other.tool_calls),
            tokens: self.tokens.saturating_sub(other.tokens),
            cost: Cost(self.cost.0.saturating_sub(other.cost.0)),
        }
    }

    fn min(self, other: Self) -> Self {
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

    /// The level of a child that draws from its parent's grant: the smaller of the two ceilings.
    pub fn child(grant: Grant, own: Amount, deadline: Option<Time>) -> Self {
        Self::new(grant.0.min(own), deadline)
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
            (want > 0 && value.saturating_add(want) > ceiling).then_some(Reached { limit, value, ceiling })
        };
        let count = |limit, value: u32, want: u32, ceiling: u32| {
            over(limit, u64::from(value), u64::from(want), u64::from(ceiling))
        };
        count(Limit::Iterations, taken.iterations, want.iterations, self.limit.iterations)
            .or_else(|| count(Limit::ToolCalls, taken.tool_calls, want.tool_calls, self.limit.tool_calls))
            .or_else(|| over(Limit::Cost, taken.cost.0, want.cost.0, self.limit.cost.0))
            .or_else(|| over(Limit::Tokens, taken.tokens, want.tokens, self.limit.tokens))
    }

    /// A ceiling on money or tokens that has been reached. Unlimited ceilings never are.
    fn spent(&self) -> Option<Reached> {
        let at = |limit, value: u64, ceiling: u64| {
            (ceiling != u64::MAX && value >= ceiling).then_some(Reached { limit, value, ceiling })
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
    pub fn pop(&mut self) -> Option<Budget> {
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

    /// Gives a grant back and books what was really used, also when that is more.
    pub fn settle(&mut self, grant: Grant, used: Amount) {
        for level in &mut self.0 {
            level.reserved = level.reserved.minus(grant.0);
            level.used = level.used.plus(used);
        }
    }

    /// The ceiling that a reservation of `want` would pass, innermost level first.
    pub fn would_reach(&self, want: Amount) -> Option<Reached> {
        self.0.iter().rev().find_map(|level| level.reached(want))
    }

    /// A ceiling on money or tokens that is used up on any level.
    pub fn spent(&self) -> Option<Reached> {
        self.0.iter().rev().find_map(Budget::spent)
    }

    /// What is left on the tightest level of each kind.
    pub fn left(&self) -> Amount {
        self.0.iter().fold(Amount::UNLIMITED, |left, level| left.min(level.left()))
    }

    /// The innermost level.
    pub fn innermost(&self) -> Option<&Budget> {
        self.0.last()
    }

    /// The earliest deadline of all levels.
    pub fn deadline(&self) -> Option<Time> {
        self.0.iter().filter_map(|level| level.deadline).min()
    }
}

/// The limits of a turn. Finite by default; "unlimited" must be written out (`u32::MAX`, `u64::MAX`,
/// `None` for time).
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", default)]
#[non_exhaustive]
pub struct Limits {
    /// Model calls. Default 6.
    pub iterations: u32,
    /// Tool calls, retried attempts not counted. Default 8.
    pub tool_calls: u32,
    /// Time from the turn's start to its end. Default 30 s; `None` is unlimited.
    pub elapsed: Option<Millis>,
    /// Tokens of all model calls and tools. Default 1,000,000.
    pub tokens: u64,
    /// Money, where the provider reports it. Default: 5 units.
    pub cost: Cost,
    /// Invalid outputs in a row that end the turn. Default 2.
    pub invalid_outputs: u32,
}

impl Default for Limits {
    fn default() -> Self {
        Self {
            iterations: 6,
            tool_calls: 8,
            elapsed: Some(Millis(30_000)),
            tokens: 1_000_000,
            cost: Cost(5_000_000_000),
            invalid_outputs: 2,
        }
    }
}

impl Limits {
    /// The limits of a thread's turn: 32 iterations, 128 tool calls, 30 minutes, 4 million tokens,
    /// 20 units of cost.
    pub fn thread() -> Self {
        Self {
            iterations: 32,
            tool_calls: 128,
            elapsed: Some(Millis(30 * 60_000)),
            tokens: 4_000_000,
            cost: Cost(20_000_000_000),
            ..Self::default()
        }
    }

    /// No limit at all, for callers who bound the work themselves; two invalid outputs in a row still end a
    /// turn.
    pub fn unlimited() -> Self {
        Self {
            iterations: u32::MAX,
            tool_calls: u32::MAX,
            elapsed: None,
            tokens: u64::MAX,
            cost: Cost(u64::MAX),
            ..Self::default()
        }
    }

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

#[cfg(test)]
mod tests {
    use super::*;

    fn calls(n: u32) -> Amount {
        Amount { tool_calls: n, ..Amount::NONE }
    }

    #[test]
    fn a_reservation_holds_on_every_level_or_on_none() {
        let mut budgets = Budgets::default();
        budgets.push(Budget::new(calls(3), None));
        budgets.push(Budget::new(calls(5), None));
        let grant = budgets.reserve(calls(2)).expect("room");
        let reached = budgets.reserve(calls(2)).expect_err("the outer level is full");
        assert_eq!(reached, Reached { limit: Limit::ToolCalls, value: 2, ceiling: 3 });
        budgets.settle(grant, calls(1));
        assert_eq!(budgets.left().tool_calls, 2);
    }

    #[test]
    fn law_3_exactly_n_fit() {
        for n in [0, 1, 7] {
            let mut budgets = Budgets::default();
            budgets.push(Budget::new(calls(n), None));
            let ran = (0..n + 2).filter(|_| budgets.reserve(calls(1)).is_ok()).count();
            assert_eq!(ran, n as usize);
        }
    }

    #[test]
    fn what_is_not_wanted_is_not_limited() {
        let mut budgets = Budgets::default();
        budgets.push(Budget::new(Amount::NONE, None));
        assert_eq!(budgets.reserve(Amount::NONE), Ok(Grant(Amount::NONE)));
        assert!(budgets.spent().is_some(), "a ceiling of zero is used up before the first call");
    }
}
