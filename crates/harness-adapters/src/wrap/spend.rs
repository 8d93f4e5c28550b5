//! Keeps what users spend on models within budgets.

use std::collections::BTreeMap;
use std::fmt;
use std::sync::Arc;
use std::time::Duration;

use harness_core::limits::SpendBudget;
use harness_core::message::{AssistantMessage, Cost, Usage};
use harness_core::port::{Clock, Deltas, Model, ModelFault, ModelFaultCode, ModelRequest, PreparedAgent};
use parking_lot::Mutex;

use super::budget::{DynSpendPool, LocalAccounts, SpendAmount, SpendCharge, Spent, reached};

/// How long an answer waits until it is paid for, at most.
const PAYMENT: Duration = Duration::from_secs(1);

/// Bytes per token: the average of English prose.
const BYTES: u64 = 4;

/// Wraps a model and keeps the spending of each user, tenant or everyone within budgets.
///
/// A call is rejected with `budget_reached` once a budget is used up: its turn ends deferred with that reason, and the run can
/// be continued in the next period. What a call costs is known only afterwards, so calls at the same moment may pass the
/// budget by what they cost. A call whose usage stays unknown, because it was cancelled or its provider reports none, is charged
/// the estimated tokens of its messages. Put it around all other wrappers. Clones share the accounts, and several processes can
/// ([`shared`](Self::shared)); those of one process are lost with it.
///
/// ```
/// use std::sync::Arc;
/// use harness_adapters::SpendLimit;
/// use harness_core::limits::{Payer, SpendBudget};
/// # use harness_core::{message::AssistantMessage, port::{Clock, Deltas, Model, ModelFault, ModelRequest}};
/// # struct Hosted;
/// # impl Model for Hosted {
/// #     async fn step(&self, _: ModelRequest, _: &dyn Deltas) -> Result<AssistantMessage, ModelFault> {
/// #         Ok(AssistantMessage::text("hi"))
/// #     }
/// # }
///
/// # fn limited(clock: Arc<dyn Clock>) -> SpendLimit<Hosted> {
/// let mut users = SpendBudget::new("users", Payer::User);
/// users.tokens = Some(1_000_000);
/// SpendLimit::new(Hosted, [users], clock)
/// # }
/// ```
#[derive(Clone)]
pub struct SpendLimit<M> {
    inner: M,
    budgets: Arc<[SpendBudget]>,
    accounts: Arc<Accounts>,
}

struct Accounts {
    pool: Arc<dyn DynSpendPool>,
    /// Amounts that are not charged yet.
    owed: Mutex<BTreeMap<String, SpendAmount>>,
}

impl<M> SpendLimit<M> {
    /// Wraps `inner`, with accounts of this process; `clock` decides the periods.
    pub fn new(inner: M, budgets: impl IntoIterator<Item = SpendBudget>, clock: Arc<dyn Clock>) -> Self {
        Self::shared(inner, budgets, Arc::new(LocalAccounts::new(clock)))
    }

    /// Wraps `inner`, with accounts that several processes share.
    pub fn shared(
        inner: M,
        budgets: impl IntoIterator<Item = SpendBudget>,
        pool: Arc<dyn DynSpendPool>,
    ) -> Self {
        let accounts = Arc::new(Accounts { pool, owed: Mutex::default() });
        Self { inner, budgets: budgets.into_iter().collect(), accounts }
    }

    /// Checks that each budget has room for a call.
    async fn check(&self, request: &ModelRequest) -> Result<(), ModelFault> {
        for budget in &*self.budgets {
            let account = budget.account(&request.origin);
            let looked = tokio::select! {
                biased;
                () = request.cancel.cancelled() => {
                    let text = "cancelled while it looked at a budget";
                    return Err(ModelFault::new(ModelFaultCode::Cancelled, text));
                }
                looked = self.accounts.settle(&account, budget) => looked,
            };
            if let Some(reached) = reached(budget, &looked?, &request.origin) {
                return Err(reached);
            }
        }
        Ok(())
    }
}

impl Accounts {
    /// Charges what is owed, and returns what was spent.
    async fn settle(&self, account: &str, budget: &SpendBudget) -> Result<Spent, ModelFault> {
        let owed = self.owed.lock().remove(account).unwrap_or_default();
        let mut open = Bill { accounts: self, to: vec![account.to_owned()], amount: owed };
        let charge = SpendCharge { id: fastrand::u64(..), amount: owed, period: budget.period };
        let spent = self.pool.charge_boxed(account, charge).await.map_err(|fault| {
            let text = format!("the budget `{}` cannot be read: {fault}", budget.name);
            ModelFault::new(ModelFaultCode::RateLimited, text).transient()
        })?;
        open.amount = SpendAmount::default();
        Ok(spent)
    }
}

/// An amount that is owed to accounts when it is dropped.
struct Bill<'a> {
    accounts: &'a Accounts,
    to: Vec<String>,
    amount: SpendAmount,
}

impl Drop for Bill<'_> {
    fn drop(&mut self) {
        if self.amount == SpendAmount::default() {
            return;
        }
        let mut all = self.accounts.owed.lock();
        for account in self.to.drain(..) {
            let owed = all.entry(account).or_default();
            *owed = owed.plus(self.amount);
        }
    }
}

/// Cost of an answer; `asked` are the estimated tokens of its request.
fn cost(answer: &AssistantMessage, asked: u64) -> SpendAmount {
    let usage = answer.usage.as_deref();
    let tokens = usage.map(Usage::all_tokens).filter(|tokens| *tokens > 0);
    let said = u64::try_from(answer.joined_text().len()).unwrap_or(u64::MAX) / BYTES;
    SpendAmount {
        tokens: tokens.unwrap_or_else(|| asked.saturating_add(said)),
        cost: usage.and_then(Usage::total_cost).unwrap_or(Cost(0)),
    }
}

impl<M> fmt::Debug for SpendLimit<M> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("SpendLimit").field("budgets", &self.budgets).finish_non_exhaustive()
    }
}

impl<M: Model> Model for SpendLimit<M> {
    async fn step(&self, request: ModelRequest, deltas: &dyn Deltas) -> Result<AssistantMessage, ModelFault> {
        self.check(&request).await?;
        let (asked, origin) = (request.estimated_tokens(), Arc::clone(&request.origin));
        let to: Vec<_> = self.budgets.iter().map(|budget| budget.account(&origin)).collect();
        let estimated = SpendAmount { tokens: asked, cost: Cost(0) };
        let mut bill = Bill { accounts: &self.accounts, to: to.clone(), amount: estimated };
        let answer = self.inner.step(request, deltas).await;
        bill.amount = match &answer {
            Ok(message) => cost(message, asked),
            Err(ModelFault { partial: Some(partial), .. }) => cost(partial, asked),
            Err(fault) if fault.code == ModelFaultCode::Cancelled => estimated,
            Err(_) => SpendAmount::default(),
        };
        drop(bill);
        let payments = async {
            for (account, budget) in to.iter().zip(&*self.budgets) {
                self.accounts.settle(account, budget).await?;
            }
            Ok::<_, ModelFault>(())
        };
        // What is not paid in time is paid with the next call.
        let _ = tokio::time::timeout(PAYMENT, payments).await;
        answer
    }

    fn has_structured_output(&self, agent: &PreparedAgent) -> bool {
        self.inner.has_structured_output(agent)
    }
}
