//! Models for *harness* runs, and what can be put around them.
//!
//! - `chat::ChatModel` calls OpenRouter and every endpoint with chat completions,
//!   `messages::MessagesModel` Anthropic's Messages API, and `responses::ResponsesModel` the Responses
//!   API of OpenAI and OpenRouter: streamed, with tools (feature `http`, on by default).
//! - [`Retry`] repeats calls after transient errors, [`Fallback`] calls other models after an error,
//!   [`RateLimit`] keeps within a provider's quota, [`Breaker`] spares a provider that is down, and
//!   [`ResponseCache`] answers equal requests once.
//! - `local` runs whole turns by programs of this machine: any command, or an installed agent such as
//!   Claude Code (feature `local-command`, on by default, Unix).
//!
//! The models and wrappers are ordinary implementations of harness-core's `Model` port, so they stack in
//! any order. What is not here: the loop, tools, sessions, and the reading of environment variables.
//!
#![cfg_attr(feature = "http", doc = "```no_run")]
#![cfg_attr(not(feature = "http"), doc = "```text")]
//! use std::sync::Arc;
//!
//! use harness_adapters::chat::ChatModel;
//! use harness_adapters::{ApiKey, Retry, RetryPolicy};
//! use harness_core::message::Message;
//! use harness_core::port::{DeltaPart, Deltas, Model, ModelRequest, PreparedAgent};
//! use harness_core::transcript::{Transcript, View};
//!
//! struct Print;
//!
//! impl Deltas for Print {
//!     fn part(&self, part: DeltaPart) {
//!         if let DeltaPart::Text(text) = part {
//!             print!("{text}");
//!         }
//!     }
//! }
//!
//! async fn ask(key: ApiKey) -> Result<(), Box<dyn std::error::Error>> {
//!     let model = ChatModel::openrouter("openai/gpt-5-mini", key).build()?;
//!     let model = Retry::new(model, RetryPolicy::default());
//!     let log: Transcript = [Arc::new(Message::user("How cold is Oslo?"))].into_iter().collect();
//!     let prepared = Arc::new(PreparedAgent::new("main", "Answer briefly.", []));
//!     let answer = model.step(ModelRequest::new(View::whole(log.prefix()), prepared), &Print).await?;
//!     println!("\n{:?}", answer.usage);
//!     Ok(())
//! }
//! ```

#[cfg(feature = "http")]
pub mod chat;
mod error;
pub mod execution;
#[cfg(feature = "http")]
mod history;
#[cfg(feature = "http")]
pub mod http;
mod label;
#[cfg(feature = "local-command")]
pub mod local;
#[cfg(feature = "http")]
pub mod messages;
pub mod price;
#[cfg(feature = "http")]
pub mod responses;
mod runner;
#[cfg(any(feature = "http", feature = "local-command"))]
mod seam;
mod secret;
pub mod structured;
mod thinking;
mod wrap;

pub use error::AdapterError;
pub use label::MAX_LABEL_BYTES;
pub use price::{PriceTable, TokenPrices};
pub use runner::{CliInput, CliOutcome, CliRunner, DynCliRunner};
pub use secret::ApiKey;
pub use structured::{OutputSchema, read_answer};
pub use thinking::ThinkingLevels;
pub use wrap::{
    Breaker, BreakerPolicy, CachePolicy, DynQuotaPool, DynSpendPool, Fallback, FallbackPolicy, QuotaAsk,
    QuotaGrant, QuotaLevel, QuotaPool, RateLimit, RateQuota, ResponseCache, Retry, RetryPolicy, SpendAccount,
    SpendAmount, SpendCharge, SpendLimit, SpendPool, Spent,
};

/// The code of the cookbook's page compiles.
#[cfg(all(doctest, feature = "local-command"))]
#[doc = include_str!("../../../docs/cookbook/local-agents.md")]
struct LocalAgents;
