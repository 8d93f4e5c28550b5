//! Models around models: each is a `Model` over an inner one, so they stack in any order.

mod breaker;
mod budget;
mod cache;
mod fallback;
mod quota;
mod rate;
mod retry;
mod spend;
mod turns;
mod watched;

pub use breaker::{Breaker, BreakerPolicy};
pub use budget::{DynSpendPool, SpendAccount, SpendAmount, SpendCharge, SpendPool, Spent};
pub use cache::{CachePolicy, ResponseCache};
pub use fallback::{Fallback, FallbackPolicy};
pub use quota::{DynQuotaPool, QuotaAsk, QuotaGrant, QuotaLevel, QuotaPool, RateQuota};
pub use rate::RateLimit;
pub use retry::{Retry, RetryPolicy};
pub use spend::SpendLimit;
