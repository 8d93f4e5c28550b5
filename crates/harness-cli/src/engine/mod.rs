//! The durable engine: workers for it, and commands for its operator.

mod operate;
mod report;
mod worker;

use harness_restate::engine::restate::{Engine, EngineError, RelayError, WorkerError};

pub(crate) use operate::engine;
pub(crate) use worker::worker;

use crate::args::{AdminArg, EngineArgs};
use crate::error::CliError;

impl From<EngineError> for CliError {
    fn from(error: EngineError) -> Self {
        let hint = match &error {
            EngineError::Url(_) => Some("use a URL such as http://127.0.0.1:8080"),
            EngineError::NoAdmin(_) => Some("pass `--admin URL`"),
            EngineError::Unreachable { .. } => Some(
                "start the engine, or pass its URLs with `--engine` (default port 8080) and `--admin` (default port 9070)",
            ),
            EngineError::Failed { status: 400 | 404, .. } | EngineError::Invalid { .. } => Some(
                "check the URL: `--engine` is the ingress (default port 8080), `--admin` the admin API (default port 9070); \
                 services of harness exist once a worker was started with `--register`",
            ),
            EngineError::Failed { .. } | _ => None,
        };
        Self::part(error.kind(), &error, hint)
    }
}

impl From<WorkerError> for CliError {
    fn from(error: WorkerError) -> Self {
        let hint = match &error {
            WorkerError::Open(_) => Some(
                "pass `--identity-key KEY` with the public key that the engine prints at its start, or `--insecure` in a \
                 private network",
            ),
            WorkerError::IdentityKey { .. } => Some("copy the key from the engine's log: publickeyv1_…"),
            WorkerError::Listener(_) | WorkerError::Definition(_) | _ => None,
        };
        Self::part(error.kind(), &error, hint)
    }
}

impl From<RelayError> for CliError {
    fn from(error: RelayError) -> Self {
        let hint = match &error {
            RelayError::Url(_) => {
                Some("pass the address of `harness serve --relay-listen`, such as http://front:8788")
            }
            RelayError::Open(_) => Some("pass `--relay-token-file FILE`, also to the workers"),
            RelayError::WeakToken => Some("use a random value, for example from `openssl rand -hex 32`"),
            RelayError::Listener(_) | _ => None,
        };
        Self::part(error.kind(), &error, hint)
    }
}

/// The engine with these URLs of ingresses.
pub(crate) fn ingress(urls: &[String]) -> Result<Engine, EngineError> {
    let mut servers = urls.iter();
    let first = Engine::new(servers.next().map_or("", |url| url))?;
    servers.try_fold(first, |engine, url| engine.or(url))
}

/// The engine at these URLs.
fn open(args: &EngineArgs) -> Result<Engine, EngineError> {
    ingress(&args.engine)?.admin(&args.admin.admin)
}

/// The engine behind an admin API. Requests to threads need the other URL.
fn open_admin(args: &AdminArg) -> Result<Engine, EngineError> {
    Engine::new(&args.admin)?.admin(&args.admin)
}
