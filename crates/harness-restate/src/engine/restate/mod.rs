//! Threads on [Restate](https://restate.dev): workers that serve the durable services, and the client of their threads.
//!
//! | service | kind | handlers |
//! |---|---|---|
//! | `HarnessThread` | object, by thread | `start` `prompt` `steer` `follow_up` `interrupt` `abort` `decide` `edit` `reorder` `cancel` `configure` `settle` `forget`; private `take` `hold` `ended` `delegate` `begin` `expire` `forgotten` `stop_run` `child`; shared `snapshot` `queue` `approvals` |
//! | `HarnessRun` | object, by thread | private `drive` `forget` |
//! | `HarnessStep` | service | private `perform` |
//! | `HarnessLog` | object, by thread | `keep` `remove` `forget`; private `append`; shared `read` `kept` |
//! | `HarnessQuota` | object, by model | `take` |
//! | `HarnessBudget` | object, by account | `charge` |
//! | `HarnessStorage` | object, by directory | `set` `delete`; private `adopt` `disown`; shared `get` `list` |
//!
//! A server of Restate is a separate program, under the Business Source License; it is not part of this crate. Its ports
//! have no authentication and belong into a private network.
//!
//! This module alone names types of the SDK, of which it uses hidden parts; the version is exact.

mod admin;
mod call;
mod client;
mod effects;
mod engine;
mod follow;
mod list;
mod log;
mod quota;
mod reach;
mod relay;
mod run;
mod service;
mod spend;
mod step;
mod storage;
mod store;
mod thread;
mod threads;
mod worker;

pub use admin::{Deployment, EngineStatus, Failure, RunAtWork, RunFilter, RunState};
pub use client::DurableThreads;
pub use engine::{Engine, EngineError};
pub use quota::EngineQuota;
pub use relay::{RelayError, RelayHub, Relays};
pub use spend::EngineSpend;
pub use store::EngineStore;
pub use worker::{Worker, WorkerBuilder, WorkerError, WorkerOptions};
