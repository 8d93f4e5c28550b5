//! The object `HarnessQuota`: what is left of the quota of one model, for all workers together.

use std::sync::Arc;
use std::time::Duration;

use harness::adapters::{QuotaAsk, QuotaGrant, QuotaLevel, QuotaPool, RateQuota};
use harness::core::Fault;
use harness::core::port::Clock;
use restate_sdk::endpoint::{ContextInternal, Error};
use restate_sdk::errors::TerminalError;
use restate_sdk::serde::Json;
use serde::{Deserialize, Serialize};

use super::engine::Engine;
use super::log::value;
use super::service::{HandlerSpec, Handlers, QUOTA, ServiceSpec, input, journaled, output};
use crate::durable::fault;

/// The quota of one model for all workers of an engine: a
/// [`QuotaPool`] for [`RateLimit::shared`](harness::adapters::RateLimit::shared).
///
/// A worker takes up to the requests of one second at once, so it asks the engine at most a few times in a second. Workers that wait
/// are served in the order of their requests. Without the engine, model calls fail as rate limited, and may be repeated.
///
/// ```
/// use std::sync::Arc;
/// use harness::adapters::{RateLimit, RateQuota};
/// use harness::core::port::DynModel;
/// use harness_restate::engine::restate::{Engine, EngineQuota};
///
/// fn limited(model: Arc<dyn DynModel>, engine: &Engine) -> RateLimit<Arc<dyn DynModel>> {
///     let pool = Arc::new(EngineQuota::new(engine.clone(), "fast"));
///     RateLimit::shared(model, RateQuota::requests(600), pool)
/// }
/// ```
#[derive(Clone, Debug)]
pub struct EngineQuota {
    engine: Engine,
    model: Arc<str>,
}

impl EngineQuota {
    /// The quota of a model, by its name. Workers that give one name share one quota.
    pub fn new(engine: Engine, model: impl Into<Arc<str>>) -> Self {
        Self { engine, model: model.into() }
    }
}

impl QuotaPool for EngineQuota {
    async fn take(&self, quota: RateQuota, ask: QuotaAsk) -> Result<QuotaGrant, Fault> {
        let ask = TakeAsk { quota, ask };
        let taken = self.engine.call([QUOTA, &self.model, "take"], &ask).await;
        taken.map_err(|error| fault("quota_unreachable", error))
    }
}

/// Input of `take`.
#[derive(Clone, Copy, Debug, Serialize, Deserialize)]
struct TakeAsk {
    quota: RateQuota,
    ask: QuotaAsk,
}

pub(super) fn spec() -> ServiceSpec {
    ServiceSpec {
        name: QUOTA,
        is_object: true,
        is_lazy: false,
        handlers: vec![HandlerSpec { name: "take", ..HandlerSpec::default() }],
        keeps_journal: Duration::ZERO,
        inactivity: Duration::from_mins(1),
        attempts: (u64::from(u32::MAX), false),
    }
}

pub(super) struct Quota {
    pub(super) clock: Arc<dyn Clock>,
}

impl Handlers for Quota {
    async fn handle(&self, ctx: &ContextInternal, handler: &str) -> Result<(), Error> {
        if handler != "take" {
            return Err(Error::unknown_handler(QUOTA, handler));
        }
        let (ask, _) = input(ctx).await;
        output(ctx, self.take(ctx, ask).await);
        Ok(())
    }
}

impl Quota {
    async fn take(&self, ctx: &ContextInternal, ask: TakeAsk) -> Result<QuotaGrant, TerminalError> {
        let TakeAsk { quota, ask } = ask;
        let mut level: QuotaLevel = value(ctx, "level").await?.unwrap_or_default();
        let now = journaled(ctx, || self.clock.now()).await?;
        let requests = ask.requests.min(quota.requests_per_second());
        let grant = level.take(now, &quota, QuotaAsk { requests, ..ask });
        ctx.set("level", Json(level));
        Ok(grant)
    }
}
