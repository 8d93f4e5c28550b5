//! Accounts of spending on models, of one process or shared by several.

use std::collections::{HashMap, VecDeque};
use std::sync::Arc;

use harness_core::limits::{BudgetPeriod, Payer, SpendBudget};
use harness_core::message::Cost;
use harness_core::port::{Clock, ModelFault, ModelFaultCode};
use harness_core::{Fault, FaultSource, Origin, Time};
use parking_lot::Mutex;
use serde::{Deserialize, Serialize};

/// Users whose spending one process counts, at most.
const COUNTED: usize = 100_000;

/// Charges that are remembered, so that one which arrives twice counts once.
const REMEMBERED: usize = 64;

/// Error of a call that exceeds a budget; `None` while the budget has room.
pub(super) fn reached(budget: &SpendBudget, spent: &Spent, origin: &Origin) -> Option<ModelFault> {
    let so_far = if let Some(most) = budget.tokens.filter(|most| spent.amount.tokens >= *most) {
        format!("{} of {most} tokens", spent.amount.tokens)
    } else {
        let most = budget.cost.filter(|most| spent.amount.cost >= *most)?;
        format!("{} of {most} US dollars", spent.amount.cost)
    };
    let whose = match (&budget.per, budget.per.of(origin).as_deref()) {
        (Payer::User, Some("")) => " of work without a user".to_owned(),
        (Payer::User, Some(user)) => format!(" of user `{user}`"),
        (Payer::Metadata(key), Some("")) => format!(" of work without `{key}`"),
        (Payer::Metadata(key), Some(value)) => format!(" of {key} `{value}`"),
        _ => String::new(),
    };
    let text =
        format!("the budget `{}`{whose} is used up: {so_far}; it is renewed at {}", budget.name, spent.until);
    Some(ModelFault::new(ModelFaultCode::BudgetReached, text))
}

/// An amount of tokens and cost.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct SpendAmount {
    /// Tokens.
    pub tokens: u64,
    /// Cost.
    pub cost: Cost,
}

impl SpendAmount {
    /// Adds an amount, saturating.
    #[must_use]
    pub fn plus(self, more: Self) -> Self {
        Self { tokens: self.tokens.saturating_add(more.tokens), cost: self.cost.plus(more.cost) }
    }
}

/// An amount for an account.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct SpendCharge {
    /// Number of the charge: one that is delivered twice counts once.
    pub id: u64,
    /// The amount; zero only asks.
    pub amount: SpendAmount,
    /// Periods of the account.
    pub period: BudgetPeriod,
}

/// Spending of an account in the current period.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Spent {
    /// The amount so far.
    pub amount: SpendAmount,
    /// End of the period.
    pub until: Time,
}

/// Port: accounts that several processes charge together.
///
/// [`SpendLimit::shared`](super::SpendLimit::shared) charges one. Workers of a durable engine have
/// `harness_restate::engine::restate::EngineSpend`.
pub trait SpendPool: Send + Sync {
    /// Charges an account, and returns its spending in the current period.
    ///
    /// # Errors
    /// If the accounts cannot be reached. The charge may have been made, and is then made once more with the next one.
    fn charge(&self, account: &str, charge: SpendCharge)
    -> impl Future<Output = Result<Spent, Fault>> + Send;
}

harness_core::twin! {
    DynSpendPool of SpendPool {
        async fn charge_boxed = charge(account: &'a str, charge: SpendCharge) -> Result<Spent, Fault>;
    }
}

/// An account: the spending of the current period.
///
/// ```
/// use harness_adapters::{SpendAccount, SpendAmount, SpendCharge};
/// use harness_core::Time;
/// use harness_core::limits::BudgetPeriod;
/// use harness_core::message::Cost;
///
/// let mut account = SpendAccount::default();
/// let amount = SpendAmount { tokens: 10, cost: Cost(0) };
/// let charge = SpendCharge { id: 1, amount, period: BudgetPeriod::Hour };
/// let noon = Time::parse_iso("2026-01-01T12:00:00Z").unwrap();
/// // Delivered twice, counted once.
/// account.charge(noon, charge);
/// let spent = account.charge(noon, charge);
/// assert_eq!((spent.amount.tokens, spent.until.iso().as_str()), (10, "2026-01-01T13:00:00.000Z"));
/// // In the next period.
/// let later = SpendCharge { id: 2, ..charge };
/// assert_eq!(account.charge(spent.until, later).amount.tokens, 10);
/// ```
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct SpendAccount {
    spent: Spent,
    charges: VecDeque<u64>,
}

impl SpendAccount {
    /// Charges an amount to the period of `now`. A time before the current period counts as in it.
    pub fn charge(&mut self, now: Time, charge: SpendCharge) -> Spent {
        if now >= self.spent.until {
            self.spent = Spent { amount: SpendAmount::default(), until: charge.period.end(now) };
        }
        if charge.amount != SpendAmount::default() && !self.charges.contains(&charge.id) {
            self.charges.push_back(charge.id);
            if self.charges.len() > REMEMBERED {
                self.charges.pop_front();
            }
            self.spent.amount = self.spent.amount.plus(charge.amount);
        }
        self.spent
    }
}

/// The accounts of this process.
pub(super) struct LocalAccounts {
    clock: Arc<dyn Clock>,
    accounts: Mutex<HashMap<String, SpendAccount>>,
}

impl LocalAccounts {
    pub(super) fn new(clock: Arc<dyn Clock>) -> Self {
        Self { clock, accounts: Mutex::default() }
    }
}

impl SpendPool for LocalAccounts {
    async fn charge(&self, account: &str, charge: SpendCharge) -> Result<Spent, Fault> {
        let now = self.clock.now();
        let mut accounts = self.accounts.lock();
        if !accounts.contains_key(account) && accounts.len() >= COUNTED {
            accounts.retain(|_, account| account.spent.until > now);
            if accounts.len() >= COUNTED {
                let text = format!("{COUNTED} accounts have spent something in this period already");
                return Err(Fault::new(FaultSource::Model, "too_many_accounts", text));
            }
        }
        Ok(accounts.entry(account.to_owned()).or_default().charge(now, charge))
    }
}
