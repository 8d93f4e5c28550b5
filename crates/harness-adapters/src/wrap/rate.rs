//! Keeps the requests to a provider within its quota.

use std::fmt;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, AtomicUsize, Ordering};
use std::time::Duration;

use harness_core::limits::Payer;
use harness_core::message::AssistantMessage;
use harness_core::port::{Clock, Deltas, Model, ModelFault, ModelFaultCode, ModelRequest, PreparedAgent};
use parking_lot::Mutex;
use tokio::time::Instant;

use super::quota::{DynQuotaPool, LocalPool, QuotaAsk, QuotaGrant, RateQuota};
use super::turns::Turns;

/// How long a grant of a shared quota is good.
const GRANT: Duration = Duration::from_secs(1);

/// How long an answer waits until its tokens are paid for, at most.
const PAYMENT: Duration = Duration::from_secs(1);

/// Wraps a model and lets requests wait until the quota has room for them. Users take turns, so that one with many requests
/// delays each other user by one at a time; requests of one user keep their order ([`turns`](Self::turns)).
///
/// What is not used of a minute may be used at once, never more than one minute's worth. Tokens are known
/// only afterwards: a request waits until earlier ones are paid for, so one long answer may pass the quota and
/// the next ones wait for it. A wait ends with the request's cancellation and, with a [`clock`](Self::clock),
/// fails at once when it would reach the request's deadline. Clones share the quota, and several processes can
/// ([`shared`](Self::shared)).
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
    turns: Payer,
    shared: Arc<Shared>,
}

struct Shared {
    pool: Arc<dyn DynQuotaPool>,
    /// Held while a request waits for the quota.
    turns: Arc<Turns>,
    /// Granted requests that are left, and when they were granted.
    granted: Mutex<Option<(u32, Instant)>>,
    /// Tokens that were used and are not paid for yet.
    unpaid: AtomicU64,
    waiting: AtomicUsize,
}

impl<M> RateLimit<M> {
    /// Wraps `inner`, with a quota of this process.
    pub fn new(inner: M, quota: RateQuota) -> Self {
        Self::shared(inner, quota, Arc::new(LocalPool::new()))
    }

    /// Wraps `inner`, with a quota that several processes share.
    pub fn shared(inner: M, quota: RateQuota, pool: Arc<dyn DynQuotaPool>) -> Self {
        let shared = Shared {
            pool,
            turns: Arc::default(),
            granted: Mutex::default(),
            unpaid: AtomicU64::new(0),
            waiting: AtomicUsize::new(0),
        };
        Self { inner, quota, clock: None, turns: Payer::User, shared: Arc::new(shared) }
    }

    /// The clock by which a request's deadline is read. Without it the deadline is left to the driver.
    #[must_use]
    pub fn clock(mut self, clock: Arc<dyn Clock>) -> Self {
        self.clock = Some(clock);
        self
    }

    /// Sets who takes turns. Default: each user. [`Payer::All`] serves all requests in their order.
    #[must_use]
    pub fn turns(mut self, by: Payer) -> Self {
        self.turns = by;
        self
    }

    /// Takes a request that was granted before.
    fn take_granted(&self) -> bool {
        match &mut *self.shared.granted.lock() {
            Some((left @ 1.., at)) if at.elapsed() < GRANT => {
                *left -= 1;
                true
            }
            Some(_) | None => false,
        }
    }

    /// Takes a request from the quota, or returns the time to wait for one.
    async fn take(&self) -> Result<Option<Duration>, ModelFault> {
        if self.take_granted() {
            return Ok(None);
        }
        let waiting = self.shared.waiting.load(Ordering::Relaxed);
        let grant = self.ask(u32::try_from(waiting).unwrap_or(u32::MAX)).await?;
        let granted = grant.requests.checked_sub(1).map(|left| (left, Instant::now()));
        *self.shared.granted.lock() = granted;
        Ok(if granted.is_some() { None } else { Some(grant.wait.duration()) })
    }

    /// Pays for the tokens that were used, and asks for requests.
    async fn ask(&self, requests: u32) -> Result<QuotaGrant, ModelFault> {
        let payment = Payment::new(&self.shared.unpaid);
        let ask = QuotaAsk { requests, tokens: payment.tokens };
        let grant = self.shared.pool.take_boxed(self.quota, ask).await.map_err(|fault| {
            ModelFault::new(ModelFaultCode::RateLimited, format!("the quota cannot be read: {fault}"))
                .transient()
        })?;
        payment.done();
        Ok(grant)
    }

    async fn wait(&self, request: &ModelRequest) -> Result<(), ModelFault> {
        let _waiting = Waiting::new(&self.shared.waiting, self.quota.waiting)?;
        let payer = self.turns.of(&request.origin).unwrap_or_default();
        let _turn = tokio::select! {
            biased;
            () = request.cancel.cancelled() => return Err(cancelled()),
            turn = self.shared.turns.take(payer) => turn,
        };
        loop {
            let taken = tokio::select! {
                biased;
                () = request.cancel.cancelled() => return Err(cancelled()),
                taken = self.take() => taken?,
            };
            let Some(wait) = taken else { return Ok(()) };
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
    }
}

fn cancelled() -> ModelFault {
    ModelFault::new(ModelFaultCode::Cancelled, "cancelled while it waited for the quota")
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

/// Tokens on their way to the quota. When it did not answer, they are paid with a later request.
struct Payment<'a> {
    unpaid: &'a AtomicU64,
    tokens: u64,
}

impl<'a> Payment<'a> {
    fn new(unpaid: &'a AtomicU64) -> Self {
        Self { unpaid, tokens: unpaid.swap(0, Ordering::Relaxed) }
    }

    fn done(mut self) {
        self.tokens = 0;
    }
}

impl Drop for Payment<'_> {
    fn drop(&mut self) {
        self.unpaid.fetch_add(self.tokens, Ordering::Relaxed);
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
        self.shared.unpaid.fetch_add(told.map_or(0, |usage| usage.all_tokens()), Ordering::Relaxed);
        if self.quota.tokens.is_some() {
            // What is not paid in time is paid with the next request.
            let _ = tokio::time::timeout(PAYMENT, self.ask(0)).await;
        }
        answer
    }

    fn has_structured_output(&self, agent: &PreparedAgent) -> bool {
        self.inner.has_structured_output(agent)
    }
}
