//! Models around models: each is a `Model` over an inner one, so they stack in any order.

mod breaker;
mod cache;
mod fallback;
mod rate;
mod retry;
mod watched;

pub use breaker::{Breaker, BreakerPolicy};
pub use cache::{CachePolicy, ResponseCache};
pub use fallback::{Fallback, FallbackPolicy};
pub use rate::{RateLimit, RateQuota};
pub use retry::{Retry, RetryPolicy};
