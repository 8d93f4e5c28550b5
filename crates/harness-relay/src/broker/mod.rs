//! Agent Relay's broker: a process beside this one, spoken to over the loopback interface.

mod api;
mod connection;
mod events;
mod launch;
mod transport;

pub use api::BrokerSession;
pub use connection::{Connection, STATE_DIRECTORIES};
pub use launch::BrokerStart;
pub use transport::{BrokerConfig, BrokerTransport};
