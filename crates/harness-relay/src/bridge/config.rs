//! Configuration of a bridge.

use std::path::PathBuf;
use std::time::Duration;

use crate::lifeline::Registration;
use crate::transport::Since;

/// Configuration of a bridge.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct BridgeConfig {
    /// The worker's name: requests for exactly this name are answered.
    pub worker_name: String,
    /// The channel that the worker joins.
    pub channel_id: String,
    /// How long one run may take. Default 120 s.
    pub timeout: Duration,
    /// The model for the runner. Default none: the runner's own.
    pub model: Option<String>,
    /// Working directory of the runner. Default: that of the process.
    pub cwd: Option<PathBuf>,
    /// Registration of the worker. Default: a reader without a lifeline.
    pub registration: Registration,
    /// Runs at the same time, at least one. Default 4.
    pub concurrency: usize,
    /// Requests that wait for a run at most; further ones are answered with a failure that may be retried.
    /// Default 64.
    pub waiting: usize,
    /// First request to read. Default: the oldest that the relay still holds. Requests from before the
    /// worker existed are answered; those that it has already answered are not run again.
    pub since: Since,
    /// Requests that are remembered, so that none is run twice. Default 4096.
    pub remembered: usize,
}

impl BridgeConfig {
    /// The defaults for a worker of this name on the channel `specialists`.
    pub fn new(worker_name: impl Into<String>) -> Self {
        Self {
            worker_name: worker_name.into(),
            channel_id: "specialists".to_owned(),
            timeout: Duration::from_mins(2),
            model: None,
            cwd: None,
            registration: Registration::Reader { lifeline: None },
            concurrency: 4,
            waiting: 64,
            since: Since::Seq(0),
            remembered: 4096,
        }
    }
}
