//! The worker bridge over a relay in memory.

use std::sync::Arc;
use std::time::Duration;

use harness_adapters::execution::{
    ExecutionAdapter, ExecutionCapabilities, ExecutionCx, ExecutionMessage, ExecutionRequest, ExecutionResult,
};
use harness_core::Cancel;
use harness_core::Time;
use harness_relay::{
    BridgeConfig, BridgeReport, BridgeRunner, Registration, RelayAdapterConfig, RelayExecutionAdapter,
    RelayFault, RelayMessage, RelayTransport as _, SpawnAgent, WorkerBridge,
};
use parking_lot::Mutex;
use serde_json::{Value, json};

use crate::support::Stopped;
use crate::support::relay::{Gated, MemoryRelay};

/// A bridge at work, with what it told.
struct Desk {
    relay: Arc<MemoryRelay>,
    runner: Arc<Gated>,
    notes: Arc<Mutex<Vec<String>>>,
    drain: Cancel,
    stop: Cancel,
    bridge: tokio::task::JoinHandle<Result<BridgeReport, RelayFault>>,
}

impl Desk {
    async fn open(runner: Arc<Gated>) -> Self {
        Self::with(MemoryRelay::new(), runner, |_| {}).await
    }

    async fn with(
        relay: Arc<MemoryRelay>,
        runner: Arc<Gated>,
        change: impl FnOnce(&mut BridgeConfig),
    ) -> Self {
        let desk = Self::backend(relay, BridgeRunner::Cli(Arc::clone(&runner) as _), change).await;
        Self { runner, ..desk }
    }

    async fn backend(
        relay: Arc<MemoryRelay>,
        runner: BridgeRunner,
        change: impl FnOnce(&mut BridgeConfig),
    ) -> Self {
        let mut config = BridgeConfig::new("w1");
        change(&mut config);
        let notes = Arc::<Mutex<Vec<String>>>::default();
        let told = Arc::clone(&notes);
        let bridge = WorkerBridge::new(Arc::clone(&relay) as _, runner, config)
            .notes(move |note| told.lock().push(note.to_string()));
        let (drain, stop) = (Cancel::new(), Cancel::new());
        let task = tokio::spawn({
            let (drain, stop) = (drain.clone(), stop.clone());
            async move { bridge.run(&drain, &stop).await }
        });
        relay.until(|relay| relay.listeners() == 1).await;
        Self { relay, runner: Gated::open(), notes, drain, stop, bridge: task }
    }

    async fn request(&self, turn: &str, text: &str) {
        send_request(&self.relay, turn, text).await;
    }

    /// The replies so far: turn and text or error.
    fn replies(&self) -> Vec<String> {
        replies(&self.relay)
    }

    async fn until_replies(&self, count: usize) {
        self.relay.until(|relay| replies(relay).len() >= count).await;
    }

    async fn close(self) -> (Result<BridgeReport, RelayFault>, Vec<String>) {
        self.drain.cancel();
        let report = self.bridge.await.unwrap();
        (report, self.notes.lock().clone())
    }
}

async fn send_request(relay: &MemoryRelay, turn: &str, text: &str) {
    let body = json!({
        "type": "agent-assistant.execution-request.v1", "turnId": turn, "threadId": "th",
        "request": { "assistantId": "a", "turnId": turn, "message": { "id": "m", "text": text },
                     "instructions": { "systemPrompt": "" } },
        "replyTo": { "agentId": "orch" },
    });
    relay.send(RelayMessage::new("w1", "orch", body.to_string())).await.unwrap();
}

fn replies(relay: &MemoryRelay) -> Vec<String> {
    let to_orchestrator = relay.sent().into_iter().filter(|message| message.to == "orch");
    to_orchestrator
        .map(|message| {
            let body: Value = serde_json::from_str(&message.text).unwrap();
            let result = &body["executionResult"];
            let said = [&result["output"]["text"], &result["error"]["message"]];
            let said = said.into_iter().find_map(Value::as_str).unwrap_or_default();
            format!("{} {said}", body["turnId"].as_str().unwrap_or("-"))
        })
        .collect()
}

fn counts(report: BridgeReport) -> [u64; 5] {
    [report.completed, report.failed, report.refused, report.duplicates, report.unpublished]
}

#[tokio::test(start_paused = true)]
async fn adapter_and_bridge_understand_each_other() {
    let desk = Desk::open(Gated::open()).await;
    let mut config = RelayAdapterConfig::default();
    config.worker_name = Some("w1".to_owned());
    "orch".clone_into(&mut config.orchestrator_name);
    let adapter =
        RelayExecutionAdapter::new(Arc::clone(&desk.relay) as _, Arc::new(Stopped(Time(0))), config);
    let request = ExecutionRequest::new("a", "t1", "Be brief.", ExecutionMessage::new("m", "Q?"));
    let result = adapter.execute(request, ExecutionCx::new(&(), &Cancel::never())).await;
    assert_eq!(result.text(), "echo: Be brief.\n\nQ?");
    let metadata: Value = result.metadata.unwrap().to().unwrap();
    assert_eq!(metadata["relay"]["workerBackendId"], "byoh-worker:gated");
    let (report, notes) = desk.close().await;
    assert_eq!(counts(report.unwrap()), [1, 0, 0, 0, 0]);
    let expected = [
        "registered: w1 on specialists",
        "request t1: Be brief.\n\nQ?",
        "completed t1",
        "draining: 0 running, 0 waiting",
        "stopped",
    ];
    assert_eq!(notes, expected);
}

#[tokio::test(start_paused = true)]
async fn w46_a_request_that_comes_again_is_not_run_again() {
    let desk = Desk::open(Gated::closed()).await;
    desk.request("t1", "one").await;
    desk.runner.until_started(1).await;
    desk.request("t1", "one").await;
    desk.runner.let_end(1);
    desk.until_replies(1).await;
    desk.request("t1", "one").await;
    desk.until_replies(2).await;
    assert_eq!(desk.replies(), ["t1 echo: one", "t1 echo: one"]);
    assert_eq!(desk.runner.prompts(), ["one"]);
    assert_eq!(counts(desk.close().await.0.unwrap()), [1, 0, 0, 2, 0]);
}

#[tokio::test(start_paused = true)]
async fn a_request_whose_run_failed_is_run_again() {
    let desk = Desk::open(Gated::open()).await;
    for count in 1..=2 {
        desk.request("t1", "fail").await;
        desk.until_replies(count).await;
        // The bridge has taken note of the end before it takes the next request.
        tokio::time::sleep(Duration::from_millis(1)).await;
    }
    assert_eq!(desk.replies(), ["t1 it failed", "t1 it failed"]);
    assert_eq!(counts(desk.close().await.0.unwrap()), [0, 2, 0, 0, 0]);
}

#[tokio::test(start_paused = true)]
async fn requests_from_before_the_worker_existed_are_run_once() {
    let relay = MemoryRelay::new();
    send_request(&relay, "t1", "early").await;
    send_request(&relay, "t1", "early").await;
    let desk = Desk::with(Arc::clone(&relay), Gated::open(), |_| {}).await;
    desk.until_replies(1).await;
    assert_eq!(counts(desk.close().await.0.unwrap()), [1, 0, 0, 1, 0]);

    send_request(&relay, "t2", "late").await;
    let again = Desk::with(relay, Gated::open(), |_| {}).await;
    again.until_replies(2).await;
    assert_eq!(again.replies(), ["t1 echo: early", "t2 echo: late"]);
    assert_eq!(again.runner.prompts(), ["late"], "the other worker has answered the rest");
    again.close().await.0.unwrap();
}

#[tokio::test(start_paused = true)]
async fn w47_a_request_that_names_nobody_to_answer_to_is_not_run() {
    let desk = Desk::open(Gated::open()).await;
    let body = r#"{"type":"agent-assistant.execution-request.v1","turnId":"t1","threadId":"th"}"#;
    desk.relay.send(RelayMessage::new("w1", "orch", body)).await.unwrap();
    desk.request("t2", "next").await;
    desk.until_replies(1).await;
    assert_eq!(desk.runner.prompts(), ["next"]);
    let (_, notes) = desk.close().await;
    assert!(
        notes.contains(&"unanswerable t1: a request from orch has no address for the reply".to_owned()),
        "{notes:?}"
    );
}

#[tokio::test(start_paused = true)]
async fn w48_bodies_that_are_no_requests_do_no_harm() {
    let desk = Desk::open(Gated::open()).await;
    for body in ["null", "", "[]", "{}", "hello", "```json\n{}\n```", "{\"type\":null}"] {
        desk.relay.send(RelayMessage::new("w1", "orch", body)).await.unwrap();
    }
    desk.request("t1", "next").await;
    desk.until_replies(1).await;
    assert_eq!(desk.replies(), ["t1 echo: next"]);
    assert_eq!(counts(desk.close().await.0.unwrap()), [1, 0, 0, 0, 0]);
}

#[tokio::test(start_paused = true)]
async fn a_runner_that_panics_gives_a_failure() {
    let desk = Desk::open(Gated::open()).await;
    desk.request("t1", "panic").await;
    desk.request("t2", "fine").await;
    desk.until_replies(2).await;
    assert_eq!(desk.replies(), ["t1 Runner 'gated' threw: kaput", "t2 echo: fine"]);
    desk.close().await.0.unwrap();
}

#[tokio::test(start_paused = true)]
async fn runs_and_waiting_requests_are_bounded() {
    let desk = Desk::with(MemoryRelay::new(), Gated::closed(), |config| {
        (config.concurrency, config.waiting) = (1, 1);
    })
    .await;
    for turn in ["t1", "t2", "t3"] {
        desk.request(turn, turn).await;
    }
    desk.until_replies(1).await;
    assert_eq!(desk.replies(), ["t3 The worker has too many requests waiting."]);
    assert_eq!(desk.runner.prompts(), ["t1"]);
    desk.runner.let_end(2);
    desk.until_replies(3).await;
    assert_eq!(desk.replies()[1..], ["t1 echo: t1", "t2 echo: t2"]);
    assert_eq!(counts(desk.close().await.0.unwrap()), [2, 0, 1, 0, 0]);
}

#[tokio::test(start_paused = true)]
async fn draining_ends_what_runs_refuses_what_waits_and_releases_the_worker() {
    let desk = Desk::with(MemoryRelay::new(), Gated::closed(), |config| config.concurrency = 1).await;
    desk.request("t1", "one").await;
    desk.request("t2", "two").await;
    desk.runner.until_started(1).await;
    desk.drain.cancel();
    desk.until_replies(1).await;
    desk.request("t3", "three").await;
    desk.until_replies(2).await;
    assert_eq!(desk.replies(), ["t2 The worker is stopping.", "t3 The worker is stopping."]);
    assert_eq!(desk.relay.released(), [""; 0]);
    desk.runner.let_end(1);
    desk.until_replies(3).await;
    assert_eq!(desk.replies()[2], "t1 echo: one");
    let relay = Arc::clone(&desk.relay);
    assert_eq!(counts(desk.close().await.0.unwrap()), [1, 0, 2, 0, 0]);
    assert_eq!((relay.released(), relay.agents().len()), (vec!["w1".to_owned()], 0));
}

#[tokio::test(start_paused = true)]
async fn stopping_stops_what_runs_and_says_so() {
    let desk = Desk::open(Gated::closed()).await;
    desk.request("t1", "one").await;
    desk.runner.until_started(1).await;
    desk.stop.cancel();
    desk.until_replies(1).await;
    assert_eq!(desk.replies(), ["t1 stopped"]);
    let runner = Arc::clone(&desk.runner);
    desk.close().await.0.unwrap();
    assert_eq!(runner.stopped(), 1);
}

#[tokio::test(start_paused = true)]
async fn a_reply_is_sent_again_when_the_relay_was_out_of_reach_and_the_rest_is_told() {
    let desk = Desk::open(Gated::closed()).await;
    desk.request("t1", "one").await;
    desk.runner.until_started(1).await;
    let refused = RelayFault::failed("Agent \"orch\" not found");
    desk.relay.refuse(Some(refused));
    desk.runner.let_end(1);
    tokio::time::sleep(Duration::from_secs(10)).await;
    desk.relay.refuse(None);
    let (report, notes) = desk.close().await;
    assert_eq!(counts(report.unwrap()), [1, 0, 0, 0, 1]);
    assert!(notes.contains(&"publish_failed t1: Agent \"orch\" not found".to_owned()), "{notes:?}");
}

#[tokio::test(start_paused = true)]
async fn a_worker_whose_agent_ended_is_made_known_again() {
    let desk = Desk::open(Gated::open()).await;
    desk.relay.kill("w1").await;
    desk.relay.until(|relay| relay.agents().len() == 1).await;
    desk.request("t1", "one").await;
    desk.until_replies(1).await;
    let (_, notes) = desk.close().await;
    assert_eq!(notes.iter().filter(|note| note.starts_with("registered")).count(), 2);
}

#[tokio::test(start_paused = true)]
async fn an_agent_that_keeps_ending_ends_the_bridge() {
    let desk = Desk::open(Gated::open()).await;
    let relay = Arc::clone(&desk.relay);
    let ends = async {
        loop {
            relay.until(|relay| !relay.agents().is_empty()).await;
            relay.kill("w1").await;
        }
    };
    let fault = tokio::select! {
        () = ends => None,
        ended = desk.bridge => ended.unwrap().err(),
    };
    let expected =
        "Failed to register worker 'w1' with broker: its agent keeps ending: agent_exited (signal 9)";
    assert_eq!(fault.unwrap().to_string(), expected);
}

#[tokio::test(start_paused = true)]
async fn w50_a_worker_is_known_by_a_program_that_reads_and_forgets() {
    let folder = tempfile::tempdir().unwrap();
    let lifeline = || Registration::Reader { lifeline: Some(folder.path().to_owned()) };
    let desk = Desk::open(Gated::open()).await;
    let mut expected = SpawnAgent::new("w1", "cat");
    expected.channels = vec!["specialists".to_owned()];
    expected.include_workflow_conventions = Some(false);
    assert_eq!(desk.relay.agents(), [expected]);
    desk.close().await.0.unwrap();

    let desk = Desk::with(MemoryRelay::new(), Gated::open(), |config| config.registration = lifeline()).await;
    let [agent] = desk.relay.agents().try_into().unwrap();
    assert_eq!((agent.task, agent.args.len()), (None, 3));
    assert_eq!(agent.args[0], "-c", "a shell with a script does not read commands from its input");
    assert!(std::path::Path::new(&agent.args[2]).exists());
    desk.close().await.0.unwrap();
    assert_eq!(std::fs::read_dir(folder.path()).unwrap().count(), 0, "the pipe is gone");

    let desk = Desk::with(MemoryRelay::new(), Gated::open(), |config| {
        config.registration = Registration::None;
    })
    .await;
    assert_eq!(desk.relay.agents(), []);
    let relay = Arc::clone(&desk.relay);
    desk.close().await.0.unwrap();
    assert_eq!(relay.released(), [""; 0]);
}

/// Answers with the request's assistant, or never.
struct Backend;

impl ExecutionAdapter for Backend {
    fn backend_id(&self) -> &'static str {
        "own"
    }

    fn capabilities(&self) -> ExecutionCapabilities {
        ExecutionCapabilities::none()
    }

    async fn execute(&self, request: ExecutionRequest, cx: ExecutionCx<'_>) -> ExecutionResult {
        if request.message.text == "hang" {
            cx.cancel.cancelled().await;
        }
        ExecutionResult::completed("own", format!("{} for {}", request.message.text, request.assistant_id))
    }
}

#[tokio::test(start_paused = true)]
async fn a_backend_gets_the_request_as_it_is_and_its_time_is_bounded() {
    let runner = BridgeRunner::Backend(Arc::new(Backend));
    let desk = Desk::backend(MemoryRelay::new(), runner, |_| {}).await;
    desk.request("t1", "Q?").await;
    desk.request("t2", "hang").await;
    let body = json!({
        "type": "agent-assistant.execution-request.v1", "turnId": "t3", "threadId": "th",
        "request": {}, "replyTo": { "agentId": "orch" },
    });
    desk.relay.send(RelayMessage::new("w1", "orch", body.to_string())).await.unwrap();
    desk.until_replies(3).await;
    let mut replies = desk.replies();
    replies.sort();
    assert_eq!(replies[..2], ["t1 Q? for a", "t2 Backend 'own' timed out after 120000ms"]);
    assert!(replies[2].starts_with("t3 The request cannot be read: missing field"), "{}", replies[2]);
    assert_eq!(counts(desk.close().await.0.unwrap()), [1, 2, 0, 0, 0]);
}
