//! Keeps the requests to a provider within its quota.

use std::fmt;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use harness_core::message::AssistantMessage;
use harness_core::port::{Clock, Deltas, Model, ModelFault, ModelFaultCode, ModelRequest, PreparedAgent};
use tokio::sync::Mutex;
use tokio::time::Instant;

const MINUTE: f64 = 60.0;

/// Rate limits of a provider.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct RateQuota {
    /// Requests per minute; `None` is unlimited. Default none. 0 counts as 1.
    pub requests: Option<u32>,
    /// Tokens per minute, of input and output together; `None` is unlimited. Default none. 0 counts as 1.
    pub tokens: Option<u32>,
    /// Requests that may wait at once; one more fails at once. Default 1,000.
    pub waiting: usize,
}

impl Default for RateQuota {
    fn default() -> Self {
        Self { requests: None, tokens: None, waiting: 1_000 }
    }
}

impl RateQuota {
    /// So many requests per minute.
    pub fn requests(per_minute: u32) -> Self {
        Self { requests: Some(per_minute), ..Self::default() }
    }
}

/// Wraps a model and lets requests wait, in their order, until the quota has room for them.
///
/// What is not used of a minute may be used at once, never more than one minute's worth. Tokens are known
/// only afterwards: a request waits until earlier ones are paid for, so one long answer may pass the quota and
/// the next ones wait for it. A wait ends with the request's cancellation and, with a [`clock`](Self::clock),
/// fails at once when it would reach the request's deadline. Clones share the quota.
///
/// ```
/// use harness_adapters::{RateLimit, RateQuota};
/// # use harness_core::{message::AssistantMessage, port::{Deltas, Model, ModelFault, ModelRequest}};
/// # struct Hosted;
/// # impl Model for Hosted {
/// #     async fn step(&self, _: ModelRequest, _: &dyn Deltas) -> Result<AssistantMessage, ModelFault> {
/// #         Ok(AssistantMessage::text("hi"))
/// #     }
/// # }
///
/// let mut quota = RateQuota::requests(60);
/// quota.tokens = Some(100_000);
/// let model = RateLimit::new(Hosted, quota);
/// ```
#[derive(Clone)]
pub struct RateLimit<M> {
    inner: M,
    quota: RateQuota,
    clock: Option<Arc<dyn Clock>>,
    shared: Arc<Shared>,
}

struct Shared {
    /// Held while a request waits: the lock is fair, so requests keep their order.
    turn: Mutex<()>,
    buckets: std::sync::Mutex<Buckets>,
    waiting: AtomicUsize,
}

/// Available requests and tokens. Tokens may be negative.
#[derive(Default)]
struct Buckets {
    filled_at: Option<Instant>,
    requests: f64,
    tokens: f64,
}

impl<M> RateLimit<M> {
    /// Wraps `inner`.
    pub fn new(inner: M, quota: RateQuota) -> Self {
        let shared = Shared {
            turn: Mutex::new(()),
            buckets: std::sync::Mutex::new(Buckets::default()),
            waiting: AtomicUsize::new(0),
        };
        Self { inner, quota, clock: None, shared: Arc::new(shared) }
    }

    /// The clock by which a request's deadline is read. Without it the deadline is left to the driver.
    #[must_use]
    pub fn clock(mut self, clock: Arc<dyn Clock>) -> Self {
        self.clock = Some(clock);
        self
    }

    fn with_buckets<T>(&self, f: impl FnOnce(&mut Buckets) -> T) -> T {
        let mut buckets = self.shared.buckets.lock().unwrap_or_else(std::sync::PoisonError::into_inner);
        f(&mut buckets)
    }

    /// Takes a request from the quota, or returns the time to wait for one.
    fn take(&self, now: Instant) -> Result<(), Duration> {
        let (requests, tokens) = (per_minute(self.quota.requests), per_minute(self.quota.tokens));
        self.with_buckets(|buckets| {
            buckets.fill(now, requests, tokens);
            let missing = [
                requests.map(|quota| (1.0 - buckets.requests) / quota),
                tokens.map(|quota| -buckets.tokens / quota),
            ];
            let minutes = missing.into_iter().flatten().fold(0.0, f64::max);
            if minutes > 0.0 {
                // At least a millisecond, so that rounding never leaves a wait of nothing.
                return Err(Duration::from_secs_f64((minutes * MINUTE).clamp(0.001, 3_600.0)));
            }
            buckets.requests -= 1.0;
            Ok(())
        })
    }

    fn pay(&self, tokens: u64) {
        #[expect(clippy::cast_precision_loss, reason = "a quota is not exact to the token")]
        self.with_buckets(|buckets| buckets.tokens -= tokens as f64);
    }

    async fn wait(&self, request: &ModelRequest) -> Result<(), ModelFault> {
        let _waiting = Waiting::new(&self.shared.waiting, self.quota.waiting)?;
        let _turn = tokio::select! {
            biased;
            () = request.cancel.cancelled() => return Err(cancelled()),
            turn = self.shared.turn.lock() => turn,
        };
        while let Err(wait) = self.take(Instant::now()) {
            let deadline = request.deadline.zip(self.clock.as_ref());
            if deadline.is_some_and(|(deadline, clock)| clock.now().after(wait.into()) >= deadline) {
                let message =
                    format!("the quota leaves no room for {} s, longer than the deadline", wait.as_secs());
                let fault = ModelFault::new(ModelFaultCode::RateLimited, message).transient();
                return Err(ModelFault { retry_after: Some(wait.into()), ..fault });
            }
            tokio::select! {
                biased;
                () = request.cancel.cancelled() => return Err(cancelled()),
                () = tokio::time::sleep(wait) => {}
            }
        }
        Ok(())
    }
}

fn per_minute(quota: Option<u32>) -> Option<f64> {
    quota.map(|quota| f64::from(quota.max(1)))
}

fn cancelled() -> ModelFault {
    ModelFault::new(ModelFaultCode::Cancelled, "cancelled while it waited for the quota")
}

impl Buckets {
    /// Adds what has come since the last look; full at the first one.
    fn fill(&mut self, now: Instant, requests: Option<f64>, tokens: Option<f64>) {
        let minutes = match self.filled_at.replace(now) {
            Some(before) => now.saturating_duration_since(before).as_secs_f64() / MINUTE,
            None => 1.0,
        };
        let fill = |bucket: &mut f64, quota: Option<f64>| {
            if let Some(quota) = quota {
                *bucket = (*bucket + minutes * quota).min(quota);
            }
        };
        fill(&mut self.requests, requests);
        fill(&mut self.tokens, tokens);
    }
}

/// One of the requests that wait.
struct Waiting<'a>(&'a AtomicUsize);

impl<'a> Waiting<'a> {
    fn new(waiting: &'a AtomicUsize, most: usize) -> Result<Self, ModelFault> {
        let before = waiting.fetch_add(1, Ordering::Relaxed);
        let this = Self(waiting);
        if before < most {
            return Ok(this);
        }
        let message = format!("{before} requests already wait for the quota, the most that may");
        Err(ModelFault::new(ModelFaultCode::RateLimited, message).transient())
    }
}

impl Drop for Waiting<'_> {
    fn drop(&mut self) {
        self.0.fetch_sub(1, Ordering::Relaxed);
    }
}

impl<M> fmt::Debug for RateLimit<M> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("RateLimit").field("quota", &self.quota).finish_non_exhaustive()
    }
}

impl<M: Model> Model for RateLimit<M> {
    async fn step(&self, request: ModelRequest, deltas: &dyn Deltas) -> Result<AssistantMessage, ModelFault> {
        self.wait(&request).await?;
        let answer = self.inner.step(request, deltas).await;
        let told = match &answer {
            Ok(message) => message.usage.as_ref(),
            Err(fault) => fault.partial.as_ref().and_then(|partial| partial.usage.as_ref()),
        };
        self.pay(told.map_or(0, |usage| usage.all_tokens()));
        answer
    }

    fn has_structured_output(&self, agent: &PreparedAgent) -> bool {
        self.inner.has_structured_output(agent)
    }
}
