//! The object `HarnessBudget`: what one account has spent, for all workers together.

use std::sync::Arc;
use std::time::Duration;

use harness::adapters::{SpendAccount, SpendCharge, SpendPool, Spent};
use harness::core::Fault;
use harness::core::port::Clock;
use restate_sdk::endpoint::{ContextInternal, Error};
use restate_sdk::errors::TerminalError;
use restate_sdk::serde::Json;

use super::engine::Engine;
use super::log::value;
use super::service::{BUDGET, HandlerSpec, Handlers, ServiceSpec, input, journaled, output};
use crate::durable::fault;

/// Spending of budgets by all workers of an engine: a [`SpendPool`] for
/// [`SpendLimit::shared`](harness::adapters::SpendLimit::shared).
///
/// It outlasts workers and restarts. Each model call asks the engine before it, and charges what it cost after it. Without the
/// engine, model calls fail as rate limited, and may be repeated.
///
/// ```
/// use std::sync::Arc;
/// use harness::adapters::SpendLimit;
/// use harness::core::limits::{Payer, SpendBudget};
/// use harness::core::port::DynModel;
/// use harness_restate::engine::restate::{Engine, EngineSpend};
///
/// fn limited(model: Arc<dyn DynModel>, engine: &Engine) -> SpendLimit<Arc<dyn DynModel>> {
///     let mut users = SpendBudget::new("users", Payer::User);
///     users.tokens = Some(1_000_000);
///     SpendLimit::shared(model, [users], Arc::new(EngineSpend::new(engine.clone())))
/// }
/// ```
#[derive(Clone, Debug)]
pub struct EngineSpend(Engine);

impl EngineSpend {
    /// Spending of the workers of an engine.
    pub fn new(engine: Engine) -> Self {
        Self(engine)
    }
}

impl SpendPool for EngineSpend {
    async fn charge(&self, account: &str, charge: SpendCharge) -> Result<Spent, Fault> {
        let charged = self.0.call([BUDGET, account, "charge"], &charge).await;
        charged.map_err(|error| fault("budget_unreachable", error))
    }
}

pub(super) fn spec() -> ServiceSpec {
    ServiceSpec {
        name: BUDGET,
        is_object: true,
        is_lazy: false,
        handlers: vec![HandlerSpec { name: "charge", ..HandlerSpec::default() }],
        keeps_journal: Duration::ZERO,
        inactivity: Duration::from_mins(1),
        attempts: (u64::from(u32::MAX), false),
    }
}

pub(super) struct Spend {
    pub(super) clock: Arc<dyn Clock>,
}

impl Handlers for Spend {
    async fn handle(&self, ctx: &ContextInternal, handler: &str) -> Result<(), Error> {
        if handler != "charge" {
            return Err(Error::unknown_handler(BUDGET, handler));
        }
        let (charge, _) = input(ctx).await;
        output(ctx, self.charge(ctx, charge).await);
        Ok(())
    }
}

impl Spend {
    async fn charge(&self, ctx: &ContextInternal, charge: SpendCharge) -> Result<Spent, TerminalError> {
        let mut account: SpendAccount = value(ctx, "account").await?.unwrap_or_default();
        let now = journaled(ctx, || self.clock.now()).await?;
        let spent = account.charge(now, charge);
        ctx.set("account", Json(account));
        Ok(spent)
    }
}
