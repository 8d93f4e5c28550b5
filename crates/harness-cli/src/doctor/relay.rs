//! The relay broker of the current directory, if it has one.

use std::path::{Path, PathBuf};
use std::time::Duration;

use harness::relay::{BrokerConfig, BrokerTransport, Connection, RelayFault, RelayTransport as _};

use super::finding::{Area, Finding, Status};
use crate::env;

/// Attaches to the broker and detaches again.
pub(super) async fn finding(limit: Duration) -> Finding {
    let state = env::text(env::RELAY_STATE).map(PathBuf::from);
    match attached(state.as_deref(), limit).await {
        Ok(message) => Finding::new(Area::Relay, "broker", Status::Ok, message),
        Err(fault @ RelayFault::NoBroker { .. }) => fixed(
            Finding::new(Area::Relay, "broker", Status::Absent, "no relay broker in this directory"),
            &fault,
        ),
        Err(fault) => fixed(Finding::new(Area::Relay, "broker", Status::Fault, fault.to_string()), &fault),
    }
}

fn fixed(finding: Finding, fault: &RelayFault) -> Finding {
    match fault.hint() {
        Some(hint) => finding.fix(hint),
        None => finding,
    }
}

async fn attached(state: Option<&Path>, limit: Duration) -> Result<String, RelayFault> {
    let connection = Connection::discover(Path::new("."), state)?;
    let address = connection.address();
    let mut config = BrokerConfig::default();
    (config.call_timeout, config.start_timeout) = (limit, limit);
    let transport = BrokerTransport::attach(connection, config)?;
    transport.start().await?;
    let version = transport.session().map(|session| session.version).unwrap_or_default();
    transport.shutdown().await?;
    Ok(format!("the relay broker at {address} responds, version {version}"))
}
