//! Agent Relay: this program as a worker.

mod bridge;
mod own;

use std::path::Path;
use std::sync::Arc;

use harness::relay::{BrokerConfig, BrokerTransport, Connection, RelayFault};

pub(crate) use bridge::bridge;

use crate::args::BrokerArgs;
use crate::error::CliError;

impl From<RelayFault> for CliError {
    fn from(fault: RelayFault) -> Self {
        Self::part(fault.kind(), &fault, fault.hint())
    }
}

/// Attaches to the running broker of the relay directory, and returns its transport and connection.
pub(crate) fn attach(args: &BrokerArgs) -> Result<(Arc<BrokerTransport>, Connection), RelayFault> {
    let folder = args.relay_dir.as_deref().unwrap_or(Path::new("."));
    let connection = Connection::discover(folder, args.relay_state_dir.as_deref())?;
    let transport = BrokerTransport::attach(connection.clone(), BrokerConfig::default())?;
    Ok((Arc::new(transport), connection))
}
