//! Nested budgets of steps.

use std::sync::Arc;

use harness_core::limits::{Amount, Budget, Budgets, Grant, Reached};
use harness_core::message::Cost;
use parking_lot::Mutex;

/// One level of a budget, limited by its parent.
#[derive(Debug)]
pub(super) struct SharedBudget {
    own: Mutex<Budgets>,
    parent: Option<Arc<SharedBudget>>,
}

impl SharedBudget {
    pub(super) fn new(limit: Amount, parent: Option<Arc<Self>>) -> Arc<Self> {
        let mut own = Budgets::default();
        own.push(Budget::new(limit, None));
        Arc::new(Self { own: Mutex::new(own), parent })
    }

    fn levels(&self) -> impl Iterator<Item = &Self> {
        std::iter::successors(Some(self), |level| level.parent.as_deref())
    }

    /// Reserves `want` on all levels, or on none.
    pub(super) fn reserve(self: &Arc<Self>, want: Amount) -> Result<Reservation, Reached> {
        for (at, level) in self.levels().enumerate() {
            if let Err(reached) = level.own.lock().reserve(want) {
                self.levels().take(at).for_each(|level| level.own.lock().settle(Grant(want), Amount::NONE));
                return Err(reached);
            }
        }
        Ok(Reservation { budget: Arc::clone(self), grant: Some(Grant(want)) })
    }

    /// The first limit on tokens or cost that is reached.
    pub(super) fn exhausted(&self) -> Option<Reached> {
        self.levels().find_map(|level| level.own.lock().spent())
    }

    /// Charges usage without a reservation to all levels.
    pub(super) fn charge(&self, used: Amount) {
        self.levels().for_each(|level| level.own.lock().settle(Grant(Amount::NONE), used));
    }

    /// Charges usage of an earlier process to this level.
    pub(super) fn remember(&self, used: Amount) {
        self.own.lock().settle(Grant(Amount::NONE), used);
    }

    /// Usage of this level, including its children.
    pub(super) fn used(&self) -> Amount {
        self.own.lock().innermost().map(|level| level.used()).unwrap_or_default()
    }

    /// Rest of the tightest level.
    pub(super) fn left(&self) -> Amount {
        self.levels().fold(Amount::UNLIMITED, |left, level| smaller(left, level.own.lock().left()))
    }
}

/// Reserved budget until it is settled; released when dropped.
#[derive(Debug)]
pub(super) struct Reservation {
    budget: Arc<SharedBudget>,
    grant: Option<Grant>,
}

impl Reservation {
    pub(super) fn settle(mut self, used: Amount) {
        self.close(used);
    }

    fn close(&mut self, used: Amount) {
        if let Some(grant) = self.grant.take() {
            self.budget.levels().for_each(|level| level.own.lock().settle(grant, used));
        }
    }
}

impl Drop for Reservation {
    fn drop(&mut self) {
        self.close(Amount::NONE);
    }
}

/// Minimum of each part.
pub(super) fn smaller(a: Amount, b: Amount) -> Amount {
    amount(
        a.iterations.min(b.iterations),
        a.tool_calls.min(b.tool_calls),
        a.tokens.min(b.tokens),
        a.cost.min(b.cost),
    )
}

/// Sum of each part.
pub(crate) fn sum(a: Amount, b: Amount) -> Amount {
    amount(
        a.iterations.saturating_add(b.iterations),
        a.tool_calls.saturating_add(b.tool_calls),
        a.tokens.saturating_add(b.tokens),
        a.cost.plus(b.cost),
    )
}

pub(super) fn amount(iterations: u32, tool_calls: u32, tokens: u64, cost: Cost) -> Amount {
    let mut amount = Amount::NONE;
    amount.iterations = iterations;
    amount.tool_calls = tool_calls;
    amount.tokens = tokens;
    amount.cost = cost;
    amount
}

#[cfg(test)]
mod tests {
    use super::*;

    fn calls(n: u32) -> Amount {
        amount(n, 0, 0, Cost(0))
    }

    #[test]
    fn law_3_what_is_set_aside_binds_every_level() {
        let root = SharedBudget::new(calls(3), None);
        let (a, b) = (
            SharedBudget::new(calls(9), Some(Arc::clone(&root))),
            SharedBudget::new(calls(9), Some(Arc::clone(&root))),
        );
        let held = a.reserve(calls(2)).expect("room");
        let reached = b.reserve(calls(2)).expect_err("the root has one left");
        assert_eq!((reached.value, reached.ceiling), (2, 3));
        assert_eq!((b.left().iterations, b.used()), (1, Amount::NONE), "nothing stays set aside below");
        held.settle(calls(1));
        assert_eq!((a.used(), root.used(), b.left().iterations), (calls(1), calls(1), 2));
        drop(b.reserve(calls(2)).expect("room"));
        assert_eq!(b.left().iterations, 2, "what is dropped goes back");
    }

    #[test]
    fn what_is_charged_counts_up_to_the_root() {
        let root = SharedBudget::new(amount(0, 0, 10, Cost(u64::MAX)), None);
        let child = SharedBudget::new(Amount::UNLIMITED, Some(Arc::clone(&root)));
        child.charge(amount(0, 0, 10, Cost(0)));
        assert!(child.exhausted().is_some_and(|reached| reached.ceiling == 10));
        child.remember(amount(0, 0, 5, Cost(0)));
        assert_eq!((child.used().tokens, root.used().tokens), (15, 10));
    }
}
