//! Workers that the adapter starts.

use super::adapter::RelayAdapterConfig;
use super::fault::RelayFault;
use super::message::{REQUEST_TYPE, RESULT_TYPE};
use super::transport::{DynRelayTransport, SpawnAgent};

/// The worker that is started when none of its name runs.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct SpawnWorker {
    /// Its name; the adapter's worker name when `None`.
    pub name: Option<String>,
    /// The agent program.
    pub cli: String,
    /// First message to it; `None` sends [`default_task`](Self::default_task).
    pub task: Option<String>,
    /// The model that it should use.
    pub model: Option<String>,
    /// Working directory. `None` uses that of the relay.
    pub cwd: Option<String>,
    /// Name of a team to join, if any.
    pub team: Option<String>,
    /// Whether it receives the conventions of the relay's workflows. Default true.
    pub include_workflow_conventions: bool,
}

impl SpawnWorker {
    /// An agent program with the default task.
    pub fn new(cli: impl Into<String>) -> Self {
        Self {
            name: None,
            cli: cli.into(),
            task: None,
            model: None,
            cwd: None,
            team: None,
            include_workflow_conventions: true,
        }
    }

    /// Instructions for a model behind a relay: the form of its reply.
    pub fn default_task(orchestrator: &str, channel: &str) -> String {
        format!(
            "You are a local execution worker behind Agent Relay.\n\
             Wait for messages from `{orchestrator}` whose body is JSON with \"type\": \"{REQUEST_TYPE}\".\n\
             For each of them do what `request.message.text` asks, under `request.instructions`; keep the \
             identity that they give you, and use only tools that `request.tools` describes or that you \
             have yourself.\n\
             Answer with one message to `{orchestrator}` on the same thread. Its body is JSON and nothing \
             else: the result type, the turnId and threadId of the request, and a canonical \
             executionResult. The status of a good answer is \"completed\", not \"ok\", and the answer \
             is in output.text. For example:\n\
             {{\"type\":\"{RESULT_TYPE}\",\"turnId\":\"<turnId>\",\"threadId\":\"<threadId>\",\
             \"executionResult\":{{\"backendId\":\"agent-relay-worker\",\"status\":\"completed\",\
             \"output\":{{\"text\":\"<answer>\"}}}}}}\n\
             The default channel is `{channel}`."
        )
    }

    fn agent(&self, name: &str, config: &RelayAdapterConfig) -> SpawnAgent {
        let task = self.task.clone();
        let task = task.unwrap_or_else(|| Self::default_task(&config.orchestrator_name, &config.channel_id));
        let mut agent = SpawnAgent::new(name, self.cli.clone());
        agent.task = Some(task);
        agent.model.clone_from(&self.model);
        agent.cwd.clone_from(&self.cwd);
        agent.team.clone_from(&self.team);
        agent.include_workflow_conventions = Some(self.include_workflow_conventions);
        agent
    }
}

/// Starts the worker of the configuration unless an agent of its name runs.
pub(super) async fn ensure_worker(
    config: &RelayAdapterConfig,
    transport: &dyn DynRelayTransport,
) -> Result<(), RelayFault> {
    let Some(worker) = &config.spawn_worker else { return Ok(()) };
    let name = worker.name.as_ref().or(config.worker_name.as_ref());
    let name = name.filter(|name| !name.is_empty()).ok_or(RelayFault::NoWorkerName)?;
    if transport.agents_boxed().await?.iter().any(|known| known == name) {
        return Ok(());
    }
    transport.spawn_boxed(worker.agent(name, config)).await
}
