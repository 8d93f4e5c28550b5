//! The bridge: requests in, replies out.

use std::fmt;
use std::sync::Arc;
use std::time::Duration;

use harness_adapters::execution::{ExecutionError, ExecutionErrorCode, ExecutionResult, ExecutionStatus};
use harness_core::Cancel;

use super::config::BridgeConfig;
use super::job::Job;
use super::note::{BridgeNote, NoteLevel};
use super::prompt::prompt;
use super::runner::BridgeRunner;
use super::session::Session;
use crate::fault::RelayFault;
use crate::lifeline::Lifeline;
use crate::message::{RESULT_TYPE, ResultBody};
use crate::transport::{DynRelayTransport, RelayMessage, SpawnAgent};

/// Waits before further attempts to send a reply that the relay could not take.
const AGAIN: [Duration; 2] = [Duration::from_millis(250), Duration::from_secs(1)];

/// Characters of a prompt that a note shows.
const SHOWN: usize = 80;

type Notes = Arc<dyn Fn(&BridgeNote) + Send + Sync>;

/// Answers execution requests that come over a relay.
///
/// - A request is answered once: its turn and thread name it. One that comes again while it runs is left
///   alone, one that was completed gets the same answer, one that failed is run again.
/// - Requests from before the worker existed are answered, too, as far as the relay still holds them.
/// - A request without an address for the reply is not run.
/// - Runs are bounded in number and time; a request beyond the bound is rejected.
///
/// ```no_run
/// use std::sync::Arc;
///
/// use harness_relay::{BridgeConfig, BridgeRunner, BrokerTransport, WorkerBridge};
/// # use harness_adapters::{CliInput, CliOutcome, CliRunner};
/// use harness_core::Cancel;
/// # struct Echo;
/// # impl CliRunner for Echo {
/// #     fn id(&self) -> &str { "echo" }
/// #     async fn run(&self, input: CliInput) -> CliOutcome {
/// #         CliOutcome::Completed { text: input.prompt, metadata: None }
/// #     }
/// # }
///
/// async fn work(transport: BrokerTransport, drain: Cancel) -> Result<(), Box<dyn std::error::Error>> {
///     let runner = BridgeRunner::Cli(Arc::new(Echo));
///     let bridge = WorkerBridge::new(Arc::new(transport), runner, BridgeConfig::new("specialist-worker"));
///     bridge.run(&drain, &Cancel::never()).await?;
///     Ok(())
/// }
/// ```
pub struct WorkerBridge(Arc<Work>);

/// Common state of all runs.
pub(super) struct Work {
    pub(super) transport: Arc<dyn DynRelayTransport>,
    pub(super) config: BridgeConfig,
    runner: BridgeRunner,
    notes: Option<Notes>,
}

/// Counts of a bridge, from its start to its end.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct BridgeReport {
    /// Runs that ended with anything but a failure.
    pub completed: u64,
    /// Runs that failed.
    pub failed: u64,
    /// Requests that were rejected.
    pub refused: u64,
    /// Requests that came again.
    pub duplicates: u64,
    /// Replies that could not be sent.
    pub unpublished: u64,
}

impl fmt::Debug for WorkerBridge {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let work = &self.0;
        f.debug_struct("WorkerBridge")
            .field("config", &work.config)
            .field("runner", &work.runner)
            .finish_non_exhaustive()
    }
}

impl WorkerBridge {
    /// A bridge over a transport, which stays the caller's: it is not shut down.
    pub fn new(transport: Arc<dyn DynRelayTransport>, runner: BridgeRunner, config: BridgeConfig) -> Self {
        Self(Arc::new(Work { transport, config, runner, notes: None }))
    }

    /// Passes notes about the bridge's work to `notes`. They are also logged.
    #[must_use]
    pub fn notes(self, notes: impl Fn(&BridgeNote) + Send + Sync + 'static) -> Self {
        let Work { transport, config, runner, .. } = &*self.0;
        let (transport, config, runner) = (Arc::clone(transport), config.clone(), runner.clone());
        Self(Arc::new(Work { transport, config, runner, notes: Some(Arc::new(notes)) }))
    }

    /// Makes the worker known and answers requests.
    ///
    /// When `drain` fires, no further request is run; running ones are answered, waiting ones are rejected,
    /// and the worker is released. When `stop` fires, running ones are stopped as well.
    ///
    /// # Errors
    /// The worker cannot be registered, or the relay is permanently lost.
    pub async fn run(&self, drain: &Cancel, stop: &Cancel) -> Result<BridgeReport, RelayFault> {
        let work = &self.0;
        work.transport.start_boxed().await?;
        // Lives as long as this call: the worker's agent ends with it, however it ends.
        let config = &work.config;
        let (agent, _lifeline) =
            Lifeline::agent(&config.registration, &config.worker_name, &config.channel_id)?;
        if let Some(agent) = &agent {
            work.register(agent).await?;
        }
        let ended = match work.transport.subscribe_boxed(work.config.since).await {
            Ok(events) => Session::new(Arc::clone(work), agent.as_ref()).run(events, drain, stop).await,
            Err(fault) => Err(fault),
        };
        if agent.is_some()
            && let Err(fault) = work.transport.release_boxed(&work.config.worker_name).await
        {
            tracing::warn!(%fault, "the worker was not released");
        }
        work.note(NoteLevel::Info, "stopped", None, "");
        ended
    }
}

impl Work {
    /// Starts the agent that stands for the worker.
    pub(super) async fn register(&self, agent: &SpawnAgent) -> Result<(), RelayFault> {
        let name = &self.config.worker_name;
        let spawned = self.transport.spawn_boxed(agent.clone()).await;
        spawned
            .map_err(|fault| RelayFault::NotRegistered { name: name.clone(), reason: fault.to_string() })?;
        let text = format!("{name} on {}", self.config.channel_id);
        self.note(NoteLevel::Info, "registered", None, text);
        Ok(())
    }

    /// Runs a request and answers it.
    pub(super) async fn serve(&self, job: Job, cancel: Cancel) -> Finished {
        let prompt = prompt(&job.request);
        let shown: String = prompt.chars().take(SHOWN).collect();
        let turn = job.turn_id.as_deref();
        self.note(NoteLevel::Info, "request", turn, shown);
        let result = self.runner.run(&job.request, prompt, &self.config, &cancel).await;
        let completed = result.status != ExecutionStatus::Failed;
        match &result.error {
            Some(error) if !completed => self.note(NoteLevel::Error, "failed", turn, error.message.clone()),
            Some(_) | None => self.note(NoteLevel::Info, "completed", turn, ""),
        }
        let reply = reply(&job, &result);
        let published = self.publish(&job, &reply).await;
        Finished { job, reply, ran: Some(completed), published }
    }

    /// Answers a request that is not run.
    pub(super) async fn refuse(&self, job: Job, why: &'static str) -> Finished {
        self.note(NoteLevel::Warn, "busy", job.turn_id.as_deref(), why);
        let error = ExecutionError::new(ExecutionErrorCode::BackendExecutionError, why).retryable(true);
        let reply = reply(&job, &ExecutionResult::failed("byoh-worker", error));
        let published = self.publish(&job, &reply).await;
        Finished { job, reply, ran: None, published }
    }

    /// Sends an answer once more.
    pub(super) async fn repeat(&self, job: Job, reply: String) -> Finished {
        let published = self.publish(&job, &reply).await;
        Finished { job, reply, ran: None, published }
    }

    /// Sends a reply; tries again when the relay could not be reached. The first of several equal replies
    /// counts, so sending one twice does no harm.
    async fn publish(&self, job: &Job, reply: &str) -> bool {
        let mut waits = AGAIN.into_iter();
        loop {
            let mut message = RelayMessage::new(job.reply_to.clone(), self.config.worker_name.clone(), reply);
            message.thread_id.clone_from(&job.thread_id);
            let Err(fault) = self.transport.send_boxed(message).await else { return true };
            let Some(wait) = waits.next().filter(|_| fault.is_passing()) else {
                self.note(NoteLevel::Error, "publish_failed", job.turn_id.as_deref(), fault.to_string());
                return false;
            };
            tokio::time::sleep(wait).await;
        }
    }

    pub(super) fn note(
        &self,
        level: NoteLevel,
        name: &'static str,
        turn: Option<&str>,
        text: impl Into<String>,
    ) {
        let note = BridgeNote::new(level, name, text).of_turn(turn);
        match level {
            NoteLevel::Info => tracing::info!(%note, "bridge"),
            NoteLevel::Warn => tracing::warn!(%note, "bridge"),
            NoteLevel::Error => tracing::error!(%note, "bridge"),
        }
        if let Some(notes) = &self.notes {
            notes(&note);
        }
    }
}

/// Outcome of a request.
pub(super) struct Finished {
    pub(super) job: Job,
    pub(super) reply: String,
    /// Whether its run completed; `None` when it was not run.
    pub(super) ran: Option<bool>,
    pub(super) published: bool,
}

fn reply(job: &Job, result: &ExecutionResult) -> String {
    let body = ResultBody {
        kind: RESULT_TYPE,
        turn_id: job.turn_id.as_deref(),
        thread_id: job.thread_id.as_deref(),
        execution_result: result,
    };
    serde_json::to_string(&body).unwrap_or_default()
}
