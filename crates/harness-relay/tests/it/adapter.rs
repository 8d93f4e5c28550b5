//! The adapter over a relay in memory: whose reply counts, and how a wait ends without one.

use std::sync::Arc;
use std::time::Duration;

use harness_adapters::execution::{
    ExecutionAdapter as _, ExecutionCx, ExecutionMessage, ExecutionPart, ExecutionRequest, ExecutionResult,
    ExecutionSink,
};
use harness_core::Cancel;
use harness_core::Time;
use harness_relay::{
    Registration, RelayAdapterConfig, RelayCounts, RelayEventKind, RelayExecutionAdapter, RelayMessage,
    RelayTransport as _, SpawnAgent,
};
use parking_lot::Mutex;

use crate::support::Stopped;
use crate::support::relay::MemoryRelay;

fn config() -> RelayAdapterConfig {
    let mut config = RelayAdapterConfig::default();
    "lab".clone_into(&mut config.channel_id);
    config.worker_name = Some("w1".to_owned());
    "orch".clone_into(&mut config.orchestrator_name);
    config
}

fn adapter(relay: &Arc<MemoryRelay>, config: RelayAdapterConfig) -> RelayExecutionAdapter {
    RelayExecutionAdapter::new(Arc::clone(relay) as _, Arc::new(Stopped(Time(0))), config)
}

fn request(turn: &str) -> ExecutionRequest {
    let mut request = ExecutionRequest::new("a", turn, "Be brief.", ExecutionMessage::new("m", "Q?"));
    request.thread_id = Some("th".to_owned());
    request
}

fn reply(turn: &str, result: &str) -> String {
    format!(
        r#"{{"type":"agent-assistant.execution-result.v1","turnId":"{turn}","threadId":"th","executionResult":{result}}}"#
    )
}

fn done(turn: &str) -> String {
    reply(turn, r#"{"backendId":"b","status":"completed","output":{"text":"done"}}"#)
}

#[derive(Default)]
struct Notes(Mutex<Vec<String>>);

impl ExecutionSink for Notes {
    fn part(&self, part: ExecutionPart) {
        if let ExecutionPart::Note(text) = part {
            self.0.lock().push(text);
        }
    }
}

/// Asks, plays `after` when the request is on its way, and gives the result with all notes.
async fn ask(
    relay: &Arc<MemoryRelay>,
    adapter: &RelayExecutionAdapter,
    turn: &str,
    after: impl AsyncFnOnce(),
) -> (ExecutionResult, Vec<String>) {
    let (notes, cancel, before) = (Notes::default(), Cancel::never(), relay.sent().len());
    let script = async {
        relay.until(|relay| relay.sent().len() > before).await;
        after().await;
    };
    let (result, ()) =
        tokio::join!(adapter.execute(request(turn), ExecutionCx::new(&notes, &cancel)), script);
    (result, notes.0.into_inner())
}

/// What others say before the worker answers `done`, and the notes about it.
#[track_caller]
fn check(others: &[(&str, &str, String)], notes: &[&str], counts: (u64, u64, u64)) {
    let runtime =
        tokio::runtime::Builder::new_current_thread().enable_time().start_paused(true).build().unwrap();
    runtime.block_on(async {
        let relay = MemoryRelay::new();
        relay.spawn(SpawnAgent::new("w1", "cat")).await.unwrap();
        let adapter = adapter(&relay, config());
        let (result, told) = ask(&relay, &adapter, "t1", async || {
            for (from, to, text) in others {
                relay.send(RelayMessage::new(*to, *from, text.clone())).await.unwrap();
            }
            relay.send(RelayMessage::new("orch", "w1", done("t1"))).await.unwrap();
        })
        .await;
        assert_eq!(result.text(), "done");
        assert_eq!(told, notes);
        let counted = adapter.counts();
        assert_eq!((counted.foreign, counted.late, counted.unreadable), counts);
        assert_eq!(relay.listeners(), 0);
    });
}

#[test]
fn w45_a_reply_of_another_sender_or_for_somebody_else_is_foreign() {
    check(
        &[("w2", "orch", done("t1"))],
        &["a reply from w2 belongs to no request of this adapter"],
        (1, 0, 0),
    );
    check(
        &[("w1", "other", done("t1"))],
        &["a reply from w1 belongs to no request of this adapter"],
        (1, 0, 0),
    );
    check(
        &[("w1", "orch", done("t9"))],
        &["a reply from w1 belongs to no request of this adapter"],
        (1, 0, 0),
    );
}

#[test]
fn a_reply_to_the_channel_or_with_a_sign_before_the_name_counts() {
    for target in ["orch", "@orch", "lab", "#lab"] {
        check(&[("w1", target, done("t1"))], &[], (0, 0, 0));
    }
}

#[test]
fn a_reply_without_a_result_is_counted_and_waited_past() {
    check(
        &[("w1", "orch", reply("t1", r#"{"text":"no status"}"#))],
        &["a reply from w1 holds no result that can be read"],
        (0, 0, 1),
    );
}

#[test]
fn what_is_no_reply_is_not_counted() {
    check(&[("w1", "orch", "null".to_owned()), ("x", "y", "hello".to_owned())], &[], (0, 0, 0));
}

#[tokio::test(start_paused = true)]
async fn a_reply_after_its_timeout_is_late() {
    let relay = MemoryRelay::new();
    let adapter = adapter(&relay, config());
    let (result, notes) = ask(&relay, &adapter, "t1", async || {}).await;
    assert_eq!(result.error.unwrap().message, "Timed out waiting for Relay execution result after 60000ms.");
    assert_eq!(notes, ["no agent beside the relay took the request for w1"]);

    let (result, notes) = ask(&relay, &adapter, "t2", async || {
        relay.send(RelayMessage::new("orch", "w1", done("t1"))).await.unwrap();
        relay.send(RelayMessage::new("orch", "w1", done("t2"))).await.unwrap();
    })
    .await;
    assert_eq!(result.text(), "done");
    assert_eq!(notes.last().unwrap(), "a reply from w1 came after its turn had ended");
    assert_eq!(adapter.counts().late, 1);
    let metadata: serde_json::Value = result.metadata.unwrap().to().unwrap();
    assert_eq!(metadata["relay"]["delivery"], "published");
}

#[tokio::test(start_paused = true)]
async fn executions_at_the_same_time_do_not_count_each_others_replies() {
    let relay = MemoryRelay::new();
    let adapter = adapter(&relay, config());
    let cancel = Cancel::never();
    let script = async {
        relay.until(|relay| relay.sent().len() == 2).await;
        for turn in ["t2", "t1"] {
            relay.send(RelayMessage::new("orch", "w1", done(turn))).await.unwrap();
        }
    };
    let cx = ExecutionCx::new(&(), &cancel);
    let (one, two, ()) =
        tokio::join!(adapter.execute(request("t1"), cx), adapter.execute(request("t2"), cx), script);
    assert_eq!((one.text(), two.text()), ("done", "done"));
    assert_eq!(adapter.counts(), RelayCounts::default());
}

#[tokio::test(start_paused = true)]
async fn the_death_of_the_worker_is_told_at_once() {
    let relay = MemoryRelay::new();
    relay.spawn(SpawnAgent::new("w1", "cat")).await.unwrap();
    let adapter = adapter(&relay, config());
    let started = tokio::time::Instant::now();
    let (result, _) = ask(&relay, &adapter, "t1", async || {
        relay.kill("w2").await;
        relay.kill("w1").await;
    })
    .await;
    let error = result.error.unwrap();
    let expected = "The Relay worker \"w1\" ended before it answered: agent_exited (signal 9).";
    assert_eq!((error.message.as_str(), error.retryable), (expected, Some(true)));
    assert_eq!(started.elapsed(), Duration::ZERO);
}

#[tokio::test(start_paused = true)]
async fn a_lost_relay_ends_the_wait() {
    let relay = MemoryRelay::new();
    let adapter = adapter(&relay, config());
    let (result, notes) = ask(&relay, &adapter, "t1", async || {
        relay.tell(RelayEventKind::Gap { requested: 4, oldest: 9 }).await;
        relay.tell(RelayEventKind::Closed { reason: "the broker went away".to_owned() }).await;
    })
    .await;
    assert_eq!(result.error.unwrap().message, "the relay's events ended: the broker went away");
    assert_eq!(notes.last().unwrap(), "the relay lost events 5..9");
}

#[tokio::test(start_paused = true)]
async fn cancelling_ends_the_wait() {
    let relay = MemoryRelay::new();
    let adapter = adapter(&relay, config());
    let cancel = Cancel::new();
    let script = async {
        relay.until(|relay| relay.sent().len() == 1).await;
        cancel.cancel();
    };
    let (result, ()) = tokio::join!(adapter.execute(request("t1"), ExecutionCx::new(&(), &cancel)), script);
    assert_eq!(
        result.error.unwrap().message,
        "The execution was cancelled before the Relay worker answered."
    );
    assert_eq!(relay.listeners(), 0);
}

#[tokio::test(start_paused = true)]
async fn our_own_name_is_registered_once_when_asked_for() {
    let relay = MemoryRelay::new();
    let mut config = config();
    config.registration = Registration::Reader { lifeline: None };
    let adapter = adapter(&relay, config);
    for turn in ["t1", "t2"] {
        let (result, _) = ask(&relay, &adapter, turn, async || {
            relay.send(RelayMessage::new("orch", "w1", done(turn))).await.unwrap();
        })
        .await;
        assert_eq!(result.text(), "done");
    }
    let mut expected = SpawnAgent::new("orch", "cat");
    expected.channels = vec!["lab".to_owned()];
    expected.include_workflow_conventions = Some(false);
    assert_eq!(relay.agents(), [expected]);
}
