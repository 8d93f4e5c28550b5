//! Quotas of requests and tokens, in one process or shared by several.

use harness_core::{Fault, Millis, Time};
use parking_lot::Mutex;
use serde::{Deserialize, Serialize};
use tokio::time::Instant;

const MINUTE: f64 = 60_000.0;

/// Half a request in a million: what rounding may take from a whole one.
const HALF: f64 = 5e-7;

/// The longest wait between two looks at a quota.
const LONGEST_WAIT: f64 = 3_600_000.0;

/// Rate limits of a provider.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
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

    /// Requests of one second, at least one: what a process may take from a shared quota at once.
    pub fn requests_per_second(&self) -> u32 {
        self.requests.map_or(u32::MAX, |requests| (requests / 60).max(1))
    }
}

/// Request of a process for a part of a quota.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct QuotaAsk {
    /// Requests that wait.
    pub requests: u32,
    /// Tokens that were used since it last asked.
    pub tokens: u64,
}

/// Part of a quota that a request received.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct QuotaGrant {
    /// Requests that may be sent within one second, at most as many as wait.
    pub requests: u32,
    /// If none may be sent: time until as many may as wait.
    pub wait: Millis,
}

/// Port: a quota that several processes share.
///
/// [`RateLimit::shared`](super::RateLimit::shared) takes its requests from one. Workers of a durable engine have one per model:
/// `harness_restate::engine::restate::EngineQuota`.
pub trait QuotaPool: Send + Sync {
    /// Pays for tokens, and takes requests from the quota. Must not wait until there are any.
    ///
    /// # Errors
    /// If the quota cannot be reached. What was asked for may have been granted, and is then lost.
    fn take(&self, quota: RateQuota, ask: QuotaAsk)
    -> impl Future<Output = Result<QuotaGrant, Fault>> + Send;
}

harness_core::twin! {
    DynQuotaPool of QuotaPool {
        async fn take_boxed = take(quota: RateQuota, ask: QuotaAsk) -> Result<QuotaGrant, Fault>;
    }
}

/// Rest of a quota. A new one is full.
///
/// What is not used of a minute may be used at once, never more than one minute's worth. Tokens are known only
/// afterwards, so they may be negative: no request is granted until they are not.
///
/// ```
/// use harness_adapters::{QuotaAsk, QuotaLevel, RateQuota};
/// use harness_core::{Millis, Time};
///
/// let (mut level, quota) = (QuotaLevel::default(), RateQuota::requests(60));
/// let ask = QuotaAsk { requests: 100, tokens: 0 };
/// assert_eq!(level.take(Time(0), &quota, ask).requests, 60);
/// let ask = QuotaAsk { requests: 1, tokens: 0 };
/// assert_eq!(level.take(Time(0), &quota, ask).wait, Millis(1_000));
/// assert_eq!(level.take(Time(1_000), &quota, ask).requests, 1);
/// ```
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct QuotaLevel {
    filled_at: Option<Time>,
    requests: f64,
    tokens: f64,
}

impl QuotaLevel {
    /// Pays for tokens, and takes requests. A time before the last one counts as the last one.
    pub fn take(&mut self, now: Time, quota: &RateQuota, ask: QuotaAsk) -> QuotaGrant {
        let (requests, tokens) = (per_minute(quota.requests), per_minute(quota.tokens));
        self.fill(now, requests, tokens);
        #[expect(clippy::cast_precision_loss, reason = "a quota is not exact to the token")]
        if tokens.is_some() {
            self.tokens -= ask.tokens as f64;
        }
        let missing =
            [requests.map(|quota| (1.0 - self.requests) / quota), tokens.map(|quota| -self.tokens / quota)];
        let minutes = missing.into_iter().flatten().fold(0.0, f64::max);
        if minutes > 0.0 {
            // At least a millisecond, so that rounding never leaves a wait of nothing.
            return QuotaGrant { requests: 0, wait: millis(minutes * MINUTE) };
        }
        let granted = match requests {
            Some(_) => whole(self.requests).min(ask.requests),
            None => ask.requests,
        };
        self.requests -= f64::from(granted);
        QuotaGrant { requests: granted, wait: Millis(0) }
    }

    /// Adds what has come since the last look; full at the first one.
    fn fill(&mut self, now: Time, requests: Option<f64>, tokens: Option<f64>) {
        let now = self.filled_at.map_or(now, |last| now.max(last));
        #[expect(clippy::cast_precision_loss, reason = "times apart are small")]
        let minutes = self.filled_at.map_or(1.0, |last| now.since(last).0 as f64 / MINUTE);
        self.filled_at = Some(now);
        let fill = |level: &mut f64, quota: Option<f64>| {
            if let Some(quota) = quota {
                *level = (*level + minutes * quota).min(quota);
            }
        };
        fill(&mut self.requests, requests);
        fill(&mut self.tokens, tokens);
    }
}

fn per_minute(quota: Option<u32>) -> Option<f64> {
    quota.map(|quota| f64::from(quota.max(1)))
}

#[expect(
    clippy::cast_possible_truncation,
    clippy::cast_sign_loss,
    reason = "clamped; casts of floats saturate"
)]
fn millis(wait: f64) -> Millis {
    Millis(wait.ceil().clamp(1.0, LONGEST_WAIT) as u64)
}

#[expect(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "casts of floats saturate")]
fn whole(requests: f64) -> u32 {
    (requests + HALF).floor() as u32
}

/// The quota of this process.
#[derive(Debug)]
pub(super) struct LocalPool {
    level: Mutex<QuotaLevel>,
    start: Mutex<Option<Instant>>,
}

impl LocalPool {
    pub(super) fn new() -> Self {
        Self { level: Mutex::default(), start: Mutex::default() }
    }

    /// Time since the first look.
    fn now(&self) -> Time {
        let now = Instant::now();
        let start = *self.start.lock().get_or_insert(now);
        let past = now.saturating_duration_since(start).as_millis();
        Time(i64::try_from(past).unwrap_or(i64::MAX))
    }
}

impl QuotaPool for LocalPool {
    async fn take(&self, quota: RateQuota, ask: QuotaAsk) -> Result<QuotaGrant, Fault> {
        // One at a time: tokens of earlier requests may be paid in between.
        let ask = QuotaAsk { requests: ask.requests.min(1), ..ask };
        let now = self.now();
        Ok(self.level.lock().take(now, &quota, ask))
    }
}
