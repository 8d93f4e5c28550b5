//! Kind `relay-message`: the relay adapter and the worker bridge over a transport that only records.

use std::sync::Arc;
use std::time::Duration;

use harness::adapters::execution::{ExecutionAdapter as _, ExecutionCx};
use harness::adapters::{CliInput, CliOutcome, CliRunner};
use harness::core::Cancel;
use harness::relay::{
    BridgeConfig, BridgeRunner, Registration, RelayAdapterConfig, RelayEvent, RelayEventSender, RelayEvents,
    RelayExecutionAdapter, RelayFault, RelayMessage, RelayReceipt, RelayTransport, Since, SpawnAgent,
    SpawnWorker, WorkerBridge,
};
use parking_lot::Mutex;
use serde_json::{Value, json};

use super::clock::Steps;
use super::vectors::present;
use super::words::{Direction, RelayConfig, RelayTransportWords, RelayVector, RunnerStatus, RunnerWords};
use crate::Done;
use crate::case::block_on;
use crate::turn::compare::same;
use crate::vector::Vector;
use crate::verdict::Verdict;

/// Log lines of the source's bridge; the product has some of them.
const LOGGED: &[&str] = &["registered", "request", "completed", "failed", "publish_failed"];

/// Judges a vector.
pub(crate) fn run(vector: &Vector) -> Verdict {
    vector.parse().and_then(check).into()
}

fn check(mut vector: RelayVector) -> Done<()> {
    let expected = std::mem::take(&mut vector.expected);
    let got = match vector.direction {
        Direction::Adapter => block_on(adapter(vector))?,
        Direction::Bridge => block_on(bridge(vector))?,
    };
    same("expected", &expected, &got?)
}

async fn adapter(vector: RelayVector) -> Done<Value> {
    let transport = Arc::new(Recording::new(vector.transport, vector.inbound_events, true));
    let config = adapter_config(vector.config);
    let task = SpawnWorker::default_task(&config.orchestrator_name, &config.channel_id);
    let request = vector.input.ok_or("an adapter is asked with an input")?.0;
    let clock = Arc::new(Steps::default());
    let adapter = RelayExecutionAdapter::new(Arc::clone(&transport) as _, clock, config);
    let result = adapter.execute(request, ExecutionCx::new(&(), &Cancel::never())).await;

    let result = serde_json::to_value(&result).map_err(|e| e.to_string())?;
    let seen = transport.seen.lock();
    let mut got = json!({
        "accepted": result.pointer("/metadata/relay").is_some(),
        "sent": seen.sent.iter().map(sent).collect::<Vec<_>>(),
        "subscriptionsLeft": seen.subscriptions.iter().filter(|one| !one.is_closed()).count(),
        "shutdowns": seen.shutdowns,
        "result": result,
    });
    if let (false, Value::Object(got)) = (seen.spawned.is_empty(), &mut got) {
        let agents = seen.spawned.iter().map(|agent| spawned(agent, &task)).collect();
        got.insert("spawned".to_owned(), agents);
    }
    Ok(got)
}

async fn bridge(mut vector: RelayVector) -> Done<Value> {
    let transport = Arc::new(Recording::new(vector.transport, vector.inbound_events, false));
    let id = vector.config.runner_id.take().unwrap_or_default();
    let runner = Arc::new(Scripted { id, words: vector.runner.unwrap_or_default(), runs: Mutex::default() });
    let logs = Arc::new(Mutex::new(Vec::new()));
    let told = Arc::clone(&logs);
    let bridge = WorkerBridge::new(
        Arc::clone(&transport) as _,
        BridgeRunner::Cli(Arc::clone(&runner) as _),
        bridge_config(vector.config),
    );
    let bridge = bridge.notes(move |note| {
        if LOGGED.contains(&note.name) {
            told.lock().push(format!("{}:{}", note.level.as_str(), note.name));
        }
    });
    // The transport ends its events when all of them are told, which ends the bridge with a fault.
    match bridge.run(&Cancel::never(), &Cancel::never()).await {
        Ok(_) | Err(RelayFault::Closed { .. }) => {}
        Err(fault) => return Err(fault.to_string()),
    }
    Ok(json!({
        "runs": *runner.runs.lock(),
        "sent": transport.seen.lock().sent.iter().map(sent).collect::<Vec<_>>(),
        "logs": *logs.lock(),
    }))
}

fn adapter_config(words: RelayConfig) -> RelayAdapterConfig {
    let mut config = RelayAdapterConfig::default();
    config.backend_id = words.backend_id.unwrap_or(config.backend_id);
    config.channel_id = words.channel_id.unwrap_or(config.channel_id);
    config.orchestrator_name = words.orchestrator_name.unwrap_or(config.orchestrator_name);
    (config.worker_name, config.workspace_id) = (words.worker_name, words.workspace_id);
    config.timeout = words.timeout_ms.map_or(config.timeout, Duration::from_millis);
    config.shutdown_after_execute = words.shutdown_after_execute;
    config.capabilities = words.capabilities.map_or(config.capabilities, |known| known.0);
    config.spawn_worker = words.spawn_worker.filter(|worker| worker.enabled).map(|worker| {
        let mut spawn = SpawnWorker::new(worker.cli);
        (spawn.name, spawn.task, spawn.model) = (worker.name, worker.task, worker.model);
        (spawn.cwd, spawn.team) = (worker.cwd, worker.team);
        let conventions = worker.include_workflow_conventions;
        spawn.include_workflow_conventions = conventions.unwrap_or(spawn.include_workflow_conventions);
        spawn
    });
    config
}

fn bridge_config(words: RelayConfig) -> BridgeConfig {
    let mut config = BridgeConfig::new(words.worker_name.unwrap_or_default());
    config.channel_id = words.channel_id.unwrap_or(config.channel_id);
    config.timeout = words.timeout_ms.map_or(config.timeout, Duration::from_millis);
    (config.model, config.cwd) = (words.model, words.cwd.map(Into::into));
    // The source runs everything at once.
    config.concurrency = usize::MAX;
    if words.register_worker == Some(false) {
        config.registration = Registration::None;
    }
    config
}

/// A message with its text parsed, as the suite writes it.
fn sent(message: &RelayMessage) -> Value {
    let text = serde_json::from_str(&message.text).unwrap_or_else(|_| json!(message.text));
    let data = message.data.as_ref().and_then(|data| data.to::<Value>().ok());
    present([
        ("to", Some(json!(message.to))),
        ("text", Some(text)),
        ("from", Some(json!(message.from))),
        ("threadId", message.thread_id.as_ref().map(|id| json!(id))),
        ("workspaceId", message.workspace_id.as_ref().map(|id| json!(id))),
        ("data", data),
    ])
}

fn spawned(agent: &SpawnAgent, default_task: &str) -> Value {
    let task =
        agent.task.as_deref().map(|task| if task == default_task { "<default worker task>" } else { task });
    present([
        ("name", Some(json!(agent.name))),
        ("cli", Some(json!(agent.cli))),
        ("task", task.map(|task| json!(task))),
        ("model", agent.model.as_ref().map(|model| json!(model))),
        ("cwd", agent.cwd.as_ref().map(|cwd| json!(cwd))),
        ("team", agent.team.as_ref().map(|team| json!(team))),
        ("includeWorkflowConventions", agent.include_workflow_conventions.map(|include| json!(include))),
    ])
}

/// A transport that records its requests. An adapter receives the vector's events after its message, a
/// bridge at once.
struct Recording {
    words: RelayTransportWords,
    events: Vec<Value>,
    after_send: bool,
    seen: Mutex<Seen>,
}

#[derive(Default)]
struct Seen {
    sent: Vec<RelayMessage>,
    spawned: Vec<SpawnAgent>,
    subscriptions: Vec<RelayEventSender>,
    shutdowns: u32,
}

impl Recording {
    fn new(words: Option<RelayTransportWords>, events: Option<Vec<Value>>, after_send: bool) -> Self {
        let (words, events) = (words.unwrap_or_default(), events.unwrap_or_default());
        Self { words, events, after_send, seen: Mutex::default() }
    }

    async fn tell(&self, to: &RelayEventSender) {
        for event in self.events.iter().filter_map(|event| RelayEvent::parse(&event.to_string())) {
            to.send(event).await;
        }
    }
}

impl RelayTransport for Recording {
    async fn start(&self) -> Result<(), RelayFault> {
        failed(self.words.start_error.as_ref())
    }

    async fn subscribe(&self, _: Since) -> Result<RelayEvents, RelayFault> {
        let (sender, events) = RelayEvents::channel(self.events.len() + 2);
        sender.send(RelayEvent::caught_up()).await;
        if !self.after_send {
            self.tell(&sender).await;
            sender.send(RelayEvent::closed("all events are sent")).await;
        }
        self.seen.lock().subscriptions.push(sender);
        Ok(events)
    }

    async fn send(&self, message: RelayMessage) -> Result<RelayReceipt, RelayFault> {
        self.seen.lock().sent.push(message);
        failed(self.words.send_error.as_ref())?;
        let subscriptions = self.seen.lock().subscriptions.clone();
        for subscription in subscriptions.iter().filter(|_| self.after_send) {
            self.tell(subscription).await;
        }
        Ok(RelayReceipt::default())
    }

    async fn agents(&self) -> Result<Vec<String>, RelayFault> {
        Ok(self.words.agents.clone())
    }

    async fn spawn(&self, agent: SpawnAgent) -> Result<(), RelayFault> {
        let name = agent.name.clone();
        self.seen.lock().spawned.push(agent);
        match &self.words.spawn_result {
            Some(result) if !result.success => {
                Err(RelayFault::NotSpawned { name, reason: result.error.clone() })
            }
            Some(_) | None => Ok(()),
        }
    }

    async fn release(&self, _: &str) -> Result<(), RelayFault> {
        Ok(())
    }

    async fn shutdown(&self) -> Result<(), RelayFault> {
        self.seen.lock().shutdowns += 1;
        Ok(())
    }
}

fn failed(text: Option<&String>) -> Result<(), RelayFault> {
    text.map_or(Ok(()), |text| Err(RelayFault::failed(text)))
}

/// A command that ends as the vector says.
struct Scripted {
    id: String,
    words: RunnerWords,
    runs: Mutex<Vec<Value>>,
}

impl CliRunner for Scripted {
    fn id(&self) -> &str {
        &self.id
    }

    async fn run(&self, input: CliInput) -> CliOutcome {
        let run = present([
            ("prompt", Some(json!(input.prompt))),
            ("timeoutMs", Some(json!(u64::try_from(input.timeout.as_millis()).unwrap_or(u64::MAX)))),
            ("model", input.model.map(|model| json!(model))),
            ("cwd", input.cwd.map(|cwd| json!(cwd))),
        ]);
        self.runs.lock().push(run);
        let words = &self.words;
        if let Some(thrown) = &words.throws {
            std::panic::resume_unwind(Box::new(thrown_text(thrown)));
        }
        match words.status {
            Some(RunnerStatus::Completed) => {
                CliOutcome::Completed { text: words.text.clone(), metadata: words.metadata.clone() }
            }
            Some(RunnerStatus::Failed) | None => CliOutcome::Failed {
                error: words.error.clone(),
                stderr: words.stderr.clone(),
                exit_code: words.exit_code,
            },
        }
    }
}

/// The text of something thrown, which the suite writes as `Error("text")`.
fn thrown_text(thrown: &str) -> String {
    let quoted = thrown.split_once('"').and_then(|(_, rest)| rest.rsplit_once('"')).map(|(inner, _)| inner);
    quoted.unwrap_or(thrown).to_owned()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_vector_passes_as_it_is_and_fails_when_anything_else_is_expected() {
        let named = |id: &str| Vector::own("relay-message", id).value;
        let judge = |value: &Value| format!("{:?}", run(&Vector::made("relay-message", value.clone())));
        let mut adapter = named("canonical");
        assert_eq!(judge(&adapter), "Passed");
        adapter["expected"]["result"]["output"]["text"] = json!("other");
        assert_eq!(
            judge(&adapter),
            r#"Failed("expected.result.output.text: expected \"other\", got \"done\"")"#
        );
        let mut bridge = named("bridge-completed");
        assert_eq!(judge(&bridge), "Passed");
        bridge["expected"]["logs"] = json!([]);
        assert_eq!(
            judge(&bridge),
            r#"Failed("expected.logs[0]: expected nothing, got \"info:registered\"")"#
        );
    }
}
