//! Kind `relay-message`: the relay adapter and the worker bridge over a transport that only records.

use std::sync::atomic::{AtomicI64, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use harness::adapters::execution::{ExecutionAdapter as _, ExecutionCx};
use harness::adapters::relay::{
    BridgeConfig, BridgeRunner, Registration, RelayAdapterConfig, RelayEvent, RelayEventSender, RelayEvents,
    RelayExecutionAdapter, RelayFault, RelayMessage, RelayReceipt, RelayTransport, Since, SpawnAgent,
    SpawnWorker, WorkerBridge,
};
use harness::adapters::{CliInput, CliOutcome, CliRunner};
use harness::core::port::{BoxFuture, Clock};
use harness::core::{Cancel, Json, Time};
use serde_json::{Map, Value, json};

use super::vectors;
use crate::turn::compare::same;
use crate::turn::convert::{Done, at, list, text};
use crate::vector::Vector;
use crate::verdict::Verdict;

/// `2026-01-01T00:00:00.000Z`, with which the suite's clock begins.
const T0: Time = Time(1_767_225_600_000);

/// What the source's bridge logs; ours tells more.
const LOGGED: &[&str] = &["registered", "request", "completed", "failed", "publish_failed"];

/// Runs all vectors of the file.
pub(crate) fn run(vector: &Vector) -> Verdict {
    vectors::each(vector, |vector| {
        let runtime = tokio::runtime::Builder::new_current_thread().enable_time().build();
        let runtime = runtime.map_err(|e| e.to_string())?;
        let got = match text(vector, "direction") {
            "adapter" => runtime.block_on(adapter(vector))?,
            "bridge" => runtime.block_on(bridge(vector))?,
            other => return Err(format!("`{other}` is no known direction")),
        };
        same("expected", at(vector, "expected"), &got)
    })
}

async fn adapter(vector: &Value) -> Done<Value> {
    let transport = Arc::new(Recording::new(vector, true));
    let config = adapter_config(at(vector, "config"));
    let task = SpawnWorker::default_task(&config.orchestrator_name, &config.channel_id);
    let input = Json::of(at(vector, "input")).and_then(|input| input.to());
    let request = input.map_err(|e| format!("input: {e}"))?;
    let clock = Arc::new(Steps(AtomicI64::new(T0.0)));
    let adapter = RelayExecutionAdapter::new(Arc::clone(&transport) as _, clock, config);
    let result = adapter.execute(request, ExecutionCx::new(&(), &Cancel::never())).await;

    let result = serde_json::to_value(&result).map_err(|e| e.to_string())?;
    let seen = transport.seen();
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

async fn bridge(vector: &Value) -> Done<Value> {
    let transport = Arc::new(Recording::new(vector, false));
    let runner = Arc::new(Scripted::new(vector));
    let logs = Arc::new(Mutex::new(Vec::new()));
    let told = Arc::clone(&logs);
    let bridge = WorkerBridge::new(
        Arc::clone(&transport) as _,
        BridgeRunner::Cli(Arc::clone(&runner) as _),
        bridge_config(vector),
    );
    let bridge = bridge.notes(move |note| {
        if LOGGED.contains(&note.name) {
            lock(&told).push(format!("{}:{}", note.level.as_str(), note.name));
        }
    });
    // The transport ends its events when all of them are told, which ends the bridge with a fault.
    match bridge.run(&Cancel::never(), &Cancel::never()).await {
        Ok(_) | Err(RelayFault::Closed { .. }) => {}
        Err(fault) => return Err(fault.to_string()),
    }
    Ok(json!({
        "runs": *lock(&runner.runs),
        "sent": transport.seen().sent.iter().map(sent).collect::<Vec<_>>(),
        "logs": *lock(&logs),
    }))
}

fn adapter_config(from: &Value) -> RelayAdapterConfig {
    let mut config = RelayAdapterConfig::default();
    let set = |target: &mut String, key: &str| {
        if let Some(value) = from.get(key).and_then(Value::as_str) {
            value.clone_into(target);
        }
    };
    set(&mut config.backend_id, "backendId");
    set(&mut config.channel_id, "channelId");
    set(&mut config.orchestrator_name, "orchestratorName");
    config.worker_name = optional(from, "workerName");
    config.workspace_id = optional(from, "workspaceId");
    config.timeout = Duration::from_millis(from.get("timeoutMs").and_then(Value::as_u64).unwrap_or(60_000));
    config.shutdown_after_execute = at(from, "shutdownAfterExecute") == &Value::Bool(true);
    if let Ok(capabilities) = serde_json::from_value(at(from, "capabilities").clone()) {
        config.capabilities = capabilities;
    }
    let worker = at(from, "spawnWorker");
    if at(worker, "enabled") == &Value::Bool(true) {
        let mut spawn = SpawnWorker::new(text(worker, "cli"));
        spawn.name = optional(worker, "name");
        spawn.task = optional(worker, "task");
        spawn.model = optional(worker, "model");
        spawn.cwd = optional(worker, "cwd");
        spawn.team = optional(worker, "team");
        spawn.include_workflow_conventions = at(worker, "includeWorkflowConventions") != &Value::Bool(false);
        config.spawn_worker = Some(spawn);
    }
    config
}

fn bridge_config(vector: &Value) -> BridgeConfig {
    let from = at(vector, "config");
    let mut config = BridgeConfig::new(text(from, "workerName"));
    text(from, "channelId").clone_into(&mut config.channel_id);
    config.timeout = Duration::from_millis(from.get("timeoutMs").and_then(Value::as_u64).unwrap_or(120_000));
    config.model = optional(from, "model");
    config.cwd = optional(from, "cwd").map(Into::into);
    // The source runs everything at once.
    config.concurrency = usize::MAX;
    if at(from, "registerWorker") == &Value::Bool(false) {
        config.registration = Registration::None;
    }
    config
}

fn optional(from: &Value, key: &str) -> Option<String> {
    from.get(key).and_then(Value::as_str).map(str::to_owned)
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

/// An object of the values that are there.
fn present<const N: usize>(values: [(&str, Option<Value>); N]) -> Value {
    let values = values.into_iter().filter_map(|(key, value)| Some((key.to_owned(), value?)));
    Value::Object(values.collect::<Map<_, _>>())
}

fn lock<T>(shared: &Mutex<T>) -> std::sync::MutexGuard<'_, T> {
    shared.lock().unwrap_or_else(PoisonError::into_inner)
}

/// A clock whose every reading is 250 ms after the one before.
struct Steps(AtomicI64);

impl Clock for Steps {
    fn now(&self) -> Time {
        Time(self.0.fetch_add(250, Ordering::Relaxed))
    }

    fn sleep_until(&self, _: Time) -> BoxFuture<'static, ()> {
        Box::pin(std::future::pending())
    }
}

/// A transport that notes what it is asked for. An adapter hears the vector's events after its message, a
/// bridge at once.
struct Recording {
    options: Value,
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
    fn new(vector: &Value, after_send: bool) -> Self {
        let (options, events) = (at(vector, "transport").clone(), list(vector, "inboundEvents").to_vec());
        Self { options, events, after_send, seen: Mutex::default() }
    }

    fn seen(&self) -> std::sync::MutexGuard<'_, Seen> {
        lock(&self.seen)
    }

    fn fails(&self, key: &str) -> Result<(), RelayFault> {
        self.options.get(key).and_then(Value::as_str).map_or(Ok(()), |text| Err(RelayFault::failed(text)))
    }

    async fn tell(&self, to: &RelayEventSender) {
        for event in self.events.iter().filter_map(|event| RelayEvent::parse(&event.to_string())) {
            to.send(event).await;
        }
    }
}

impl RelayTransport for Recording {
    async fn start(&self) -> Result<(), RelayFault> {
        self.fails("startError")
    }

    async fn subscribe(&self, _: Since) -> Result<RelayEvents, RelayFault> {
        let (sender, events) = RelayEvents::channel(self.events.len() + 2);
        sender.send(RelayEvent::caught_up()).await;
        if !self.after_send {
            self.tell(&sender).await;
            sender.send(RelayEvent::closed("all events are told")).await;
        }
        self.seen().subscriptions.push(sender);
        Ok(events)
    }

    async fn send(&self, message: RelayMessage) -> Result<RelayReceipt, RelayFault> {
        self.seen().sent.push(message);
        self.fails("sendError")?;
        let subscriptions = self.seen().subscriptions.clone();
        for subscription in subscriptions.iter().filter(|_| self.after_send) {
            self.tell(subscription).await;
        }
        Ok(RelayReceipt::default())
    }

    async fn agents(&self) -> Result<Vec<String>, RelayFault> {
        let names = list(&self.options, "agents").iter();
        Ok(names.map(|one| one.as_str().unwrap_or_else(|| text(one, "name")).to_owned()).collect())
    }

    async fn spawn(&self, agent: SpawnAgent) -> Result<(), RelayFault> {
        let name = agent.name.clone();
        self.seen().spawned.push(agent);
        let result = at(&self.options, "spawnResult");
        if at(result, "success") == &Value::Bool(false) {
            return Err(RelayFault::NotSpawned { name, reason: optional(result, "error") });
        }
        Ok(())
    }

    async fn release(&self, _: &str) -> Result<(), RelayFault> {
        Ok(())
    }

    async fn shutdown(&self) -> Result<(), RelayFault> {
        self.seen().shutdowns += 1;
        Ok(())
    }
}

/// A command that ends as the vector says.
struct Scripted {
    id: String,
    outcome: Value,
    runs: Mutex<Vec<Value>>,
}

impl Scripted {
    fn new(vector: &Value) -> Self {
        let id = text(at(vector, "config"), "runnerId").to_owned();
        Self { id, outcome: at(vector, "runner").clone(), runs: Mutex::default() }
    }
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
        lock(&self.runs).push(run);
        if let Some(thrown) = self.outcome.get("throws").and_then(Value::as_str) {
            std::panic::resume_unwind(Box::new(thrown_text(thrown)));
        }
        if text(&self.outcome, "status") == "completed" {
            let metadata = self.outcome.get("metadata").and_then(|metadata| Json::of(metadata).ok());
            return CliOutcome::Completed { text: text(&self.outcome, "text").to_owned(), metadata };
        }
        let exit_code = self.outcome.get("exitCode").and_then(Value::as_i64);
        CliOutcome::Failed {
            error: text(&self.outcome, "error").to_owned(),
            stderr: optional(&self.outcome, "stderr"),
            exit_code: exit_code.and_then(|code| i32::try_from(code).ok()),
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
