//! Relay workers as backends.

use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use harness::adapters::execution::DynExecutionAdapter;
use harness::core::port::Clock;
use harness::relay::{Registration, RelayAdapterConfig, RelayExecutionAdapter};

use crate::args::BackendArgs;
use crate::error::CliError;
use crate::relay::attach;

/// Default time limit of a turn.
const TURN: Duration = Duration::from_mins(10);

/// Workers of a channel, through the broker of the current directory.
pub(super) fn adapter(
    channel: &str,
    args: &BackendArgs,
    timeout: Option<Duration>,
    clock: &Arc<dyn Clock>,
) -> Result<Arc<dyn DynExecutionAdapter>, CliError> {
    let (transport, connection) = attach(&args.broker)?;
    let mut config = RelayAdapterConfig::default();
    // A name of this process's own, known to the broker: replies to others may go astray.
    config.orchestrator_name = format!("harness-{}", std::process::id());
    config.registration = Registration::Reader { lifeline: connection.state_directory().map(Path::to_owned) };
    channel.clone_into(&mut config.channel_id);
    config.worker_name.clone_from(&args.backend_worker);
    config.timeout = timeout.unwrap_or(TURN);
    Ok(Arc::new(RelayExecutionAdapter::new(transport, Arc::clone(clock), config)))
}
