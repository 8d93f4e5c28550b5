//! Workers behind a relay: the adapter that asks them, and the bridge that makes a program one of them.
//!
//! - [`RelayExecutionAdapter`] sends a whole turn to a worker and waits for its result.
//! - [`WorkerBridge`] answers such requests with a [`CliRunner`](harness_adapters::CliRunner) or with any execution
//!   adapter.
//! - [`RelayTransport`] is the way between them; [`BrokerTransport`] is the one over an Agent Relay broker,
//!   found by its connection file or started here.
//!
//! The messages are those of `@agent-assistant/harness`, so that either side understands the other side there. Requests
//! are text: nothing of them is ever typed into a shell. The broker types each message into the terminal of
//! the agent whom it is for, which is why a bridge makes itself known by a program that reads and forgets,
//! and receives requests as events.

mod adapter;
mod bridge;
mod broker;
mod event;
mod fault;
mod ledger;
mod lifeline;
mod message;
mod normalize;
mod spawn;
mod transport;

pub use adapter::{RelayAdapterConfig, RelayExecutionAdapter};
pub use bridge::{BridgeConfig, BridgeNote, BridgeReport, BridgeRunner, NoteLevel, WorkerBridge};
pub use broker::{BrokerConfig, BrokerSession, BrokerStart, BrokerTransport, Connection, STATE_DIRECTORIES};
pub use event::{RelayEvent, RelayEventKind, RelayEventSender, RelayEvents, RelayInbound};
pub use fault::RelayFault;
pub use ledger::RelayCounts;
pub use lifeline::Registration;
pub use message::{REQUEST_TYPE, RESULT_TYPE};
pub use spawn::SpawnWorker;
pub use transport::{
    Delivery, DynRelayTransport, RelayMessage, RelayReceipt, RelayTransport, Since, SpawnAgent,
};
