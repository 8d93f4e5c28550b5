//! OpenRouter without tools and without a loop: one request, one answer.

mod adapter;
mod direct;
mod single_shot;

pub use adapter::{OpenRouterExecutionAdapter, OpenRouterExecutionBuilder};
pub use single_shot::{OpenRouterSingleShotAdapter, OpenRouterSingleShotBuilder};
