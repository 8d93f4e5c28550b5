//! Model of `--backend`.

use std::sync::Arc;
use std::time::Duration;

use harness::adapters::execution::{BackendModel, DynExecutionAdapter};
use harness::adapters::local::{AgentBackend, LocalAgent};
use harness::core::port::Clock;
use harness::core::{Millis, ThreadId};
use harness::system::SystemIds;

use super::command::CommandFile;
use crate::args::{BackendArg, BackendArgs};
use crate::env;
use crate::error::CliError;

/// The backend as a model; `None` without `--backend`.
///
/// `model` is the backend's own name of the model to use.
pub(crate) fn choose(
    args: &BackendArgs,
    model: Option<&str>,
    thread: Option<ThreadId>,
    clock: &Arc<dyn Clock>,
) -> Result<Option<BackendModel>, CliError> {
    let timeout = args.backend_timeout.map(Millis::duration);
    let adapter: Arc<dyn DynExecutionAdapter> = match &args.backend {
        None => return Ok(None),
        Some(BackendArg::Agent(agent)) => Arc::new(installed(*agent, args, model, timeout, clock)),
        Some(BackendArg::Command(file)) => {
            Arc::new(CommandFile::read(file)?.adapter(model, timeout, Arc::clone(clock)))
        }
        #[cfg(feature = "relay")]
        Some(BackendArg::Relay(channel)) => super::relay::adapter(channel, args, timeout, clock)?,
        #[cfg(not(feature = "relay"))]
        Some(BackendArg::Relay(_)) => {
            return Err(crate::left_out::left_out("`--backend relay:CHANNEL`", "relay"));
        }
    };
    let backend = BackendModel::shared(adapter, Arc::new(SystemIds::new())).tools(args.backend_tool.clone());
    Ok(Some(match thread {
        Some(thread) => backend.thread(thread),
        None => backend,
    }))
}

fn installed(
    agent: LocalAgent,
    args: &BackendArgs,
    model: Option<&str>,
    timeout: Option<Duration>,
    clock: &Arc<dyn Clock>,
) -> AgentBackend {
    let backend = AgentBackend::new(agent, &env::surroundings(), Arc::clone(clock))
        .permission(args.backend_may.into())
        .model(model.unwrap_or_default());
    match timeout {
        Some(limit) => backend.timeout(limit),
        None => backend,
    }
}
