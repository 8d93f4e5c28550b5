//! Channels between the steps of an execution, and to the outside.
//!
//! | | value | queue | topic |
//! |---|---|---|---|
//! | send | replaces the value, wakes all receivers; never waits | to the longest waiting receiver, else into the buffer, else waits for room | to all waiting receivers, else the value is dropped; never waits |
//! | receive | the current value, which stays; else waits | the oldest; else waits | waits for the next |
//! | try | the current value | the oldest | nothing |
//!
//! A wait times out after 30 s by default, and ends when the waiting step is aborted. The channel's schema
//! validates each value before it is sent.
//!
//! A channel belongs to the root execution that opens it first, unless it is [`ChannelSpec::shared`]: equal names
//! in two executions are different channels.
//!
//! ```
//! use std::sync::Arc;
//!
//! use harness_core::testing::VirtualClock;
//! use harness_core::{Json, Time};
//! use harness_flow::channel::{ChannelSpec, Channels};
//! use harness_core::Cancel;
//!
//! # tokio::runtime::Builder::new_current_thread().build()?.block_on(async {
//! let channels = Channels::new(Arc::new(VirtualClock::still(Time(0))));
//! let orders = channels.open(&ChannelSpec::queue("orders", 10).of::<u64>(), &Cancel::new())?;
//! orders.send(Json::parse("7")?).await?;
//! assert_eq!(orders.recv().await?.text(), "7");
//! assert!(orders.send(Json::string("seven")).await.is_err());
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! # })?;
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```

mod error;
mod external;
mod handle;
mod scope;
mod spec;
mod state;

pub use error::ChannelError;
pub use external::{ExternalChannel, ExternalStream};
pub use handle::Channel;
pub use scope::Channels;
pub use spec::{ChannelSpec, Mode};
