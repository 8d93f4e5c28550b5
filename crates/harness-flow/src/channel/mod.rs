//! Channels between the steps of an execution, and from outside into it.
//!
//! | | value | queue | topic |
//! |---|---|---|---|
//! | send | keeps it, wakes all who wait; never waits | to the one who waits longest, else into the buffer, else it waits for a place | to all who wait now, else it is lost; never waits |
//! | receive | the present value, which stays; else waits | the oldest; else waits | waits for the next |
//! | try | the present value | the oldest | never anything |
//!
//! A wait ends after 30 s with [`ChannelError::Timeout`] unless another time is set, and with
//! [`ChannelError::Cancelled`] when the work that waits is aborted. A value that is sent is checked by the
//! channel's schema first. A value of a sender whose wait ended never enters; a value that was handed to a
//! receiver which is dropped before it could look goes back to the head of the queue.
//!
//! A channel belongs to the root execution that first names it, unless it is [`ChannelSpec::shared`]: two
//! conversations that use one name do not hear each other.
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
