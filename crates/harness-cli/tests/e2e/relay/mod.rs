//! Real brokers between this project and its source, in both directions: the source's adapter and bridge, and three
//! versions of the broker.

mod desk;
mod service;

use std::fs;
use std::path::{Path, PathBuf};
use std::time::Duration;

use harness::adapters::execution::ExecutionResult;
use harness::relay::{RelayEventKind, RelayFault, RelayMessage, RelayTransport as _, Since, SpawnAgent};
use rustix::process::{Pid, Signal, kill_process};
use serde_json::Value;

use self::desk::Desk;
use crate::support::{PATIENCE, Running, harness, until};
use crate::{installed, ran, timed};

/// Within which the end of a worker is told: far from the timeout of the one who waits.
const AT_ONCE: Duration = Duration::from_secs(20);

/// The oldest broker, which comes with the source's adapter and bridge.
#[test]
fn the_oldest_broker_carries_both_directions() {
    check(&installed("relay/source").join("node_modules/@agent-relay/sdk/bin/agent-relay-broker-linux-x64"));
}

#[test]
fn a_broker_of_version_6_carries_both_directions() {
    check(&broker("relay/broker-6"));
}

#[test]
fn a_broker_of_version_9_carries_both_directions() {
    check(&broker("relay/broker-9"));
}

fn broker(folder: &str) -> PathBuf {
    installed(folder).join("node_modules/@agent-relay/broker-linux-x64/bin/agent-relay-broker")
}

/// A script beside the source's packages.
fn script(name: &str, text: &str) -> PathBuf {
    let path = installed("relay/source").join(name);
    fs::write(&path, text).unwrap();
    path
}

fn check(broker: &Path) {
    let desk = Desk::open(broker, &service::start());
    println!("broker {}", desk.transport.session().unwrap().version);
    upstream_answers_us(&desk);
    we_answer_upstream(&desk);
    our_bridge_killed(&desk);
}

/// The source's bridge answers our adapter, and its worker is killed in the next turn.
fn upstream_answers_us(desk: &Desk) {
    const LOG: &str = "source-bridge.log";
    let pid = desk.spawn_reader("source-worker");
    let bridge = script("bridge.mjs", include_str!("bridge.mjs"));
    let _bridge = desk.start(desk.node(&bridge, &["source-worker"]), LOG);
    desk.until_printed(LOG, "ready");
    let result = desk.block_on(desk.ask("source-worker", "turn-1", "ping"));
    assert_eq!(result.text(), "echo: Be brief.\n\nping", "{result:?}");

    let project = &desk.project;
    let (result, after) = timed(|| {
        desk.ask_while("source-worker", "turn-2", || {
            until(PATIENCE, "the second request", || project.read(LOG).matches("request").count() == 2);
            let pid = Pid::from_raw(project.read(&pid).trim().parse().unwrap()).unwrap();
            kill_process(pid, Signal::KILL).unwrap();
        })
    });
    told_of_death(&result, "source-worker", after);
}

/// Our bridge answers the source's adapter, what the message holds is not run, and Ctrl-C ends the bridge in
/// order.
fn we_answer_upstream(desk: &Desk) {
    desk.spawn_reader("source");
    let bridge = our_bridge(desk, "our-worker", "cat");
    let touched = desk.project.path().join("touched");
    let text = format!("ping $(touch {0}) `touch {0}`", touched.display());
    let ask = script("ask.mjs", include_str!("ask.mjs"));
    let answer: Value =
        serde_json::from_str(&ran(desk.node(&ask, &["our-worker", "source", &text]))).unwrap();
    assert_eq!(answer["output"]["text"], format!("Be brief.\n\n{text}"), "{answer}");

    typed(desk, "our-worker");
    typed_into_a_shell_it_would_run(desk);
    assert!(!touched.exists(), "a message was run as a command");
    bridge.signal(Signal::INT);
    assert_eq!(bridge.end().code, Some(0), "{}", desk.project.read("our-worker.log"));
    let agents = desk.block_on(desk.transport.agents()).unwrap();
    assert!(!agents.iter().any(|name| name == "our-worker"), "the worker is released: {agents:?}");
}

/// Waits until the broker has typed the message into the terminal of the worker's agent.
fn typed(desk: &Desk, worker: &str) {
    let injected = async {
        let mut events = desk.transport.subscribe(Since::Seq(0)).await?;
        let (mut sent, mut typed) = (false, 0);
        // One for the request, one for the reply.
        while typed < 2 {
            let kind = events.next().await.kind;
            if let RelayEventKind::Inbound(inbound) = &kind {
                sent |= inbound.target.as_deref() == Some(worker);
            }
            if let RelayEventKind::Other(kind) = &kind
                && kind == "delivery_injected"
            {
                typed += u32::from(sent);
            }
            if let RelayEventKind::Closed { reason } = kind {
                return Err(RelayFault::Closed { reason });
            }
        }
        Ok(())
    };
    desk.block_on(async { tokio::time::timeout(AT_ONCE, injected).await }).unwrap().unwrap();
}

/// The same text, typed into a shell, does run: so it is known how long that takes, and the worker's own
/// must not have run by then.
fn typed_into_a_shell_it_would_run(desk: &Desk) {
    desk.block_on(desk.transport.spawn(SpawnAgent::new("shell", "bash"))).unwrap();
    let control = desk.project.path().join("control");
    let message = RelayMessage::new("shell", "source", format!("$(touch {})", control.display()));
    desk.block_on(desk.transport.send(message)).unwrap();
    until(PATIENCE, "a shell to run what is typed into it", || control.exists());
    desk.block_on(desk.transport.release("shell")).unwrap();
}

/// Our bridge is killed in the middle of a turn, and who waits is told by the end of its agent.
fn our_bridge_killed(desk: &Desk) {
    let bridge = our_bridge(desk, "our-slow-worker", "sleep 15");
    let (result, after) = timed(|| {
        desk.ask_while("our-slow-worker", "turn-3", || {
            desk.until_printed("our-slow-worker.log", "request turn-3");
            bridge.kill();
        })
    });
    told_of_death(&result, "our-slow-worker", after);
}

fn our_bridge(desk: &Desk, worker: &str, script: &str) -> Running {
    let bridge = ["bridge", "--cli", "bash", "--cli-args", script, "--worker-name", worker];
    let mut command = harness(desk.project.path(), &bridge);
    command.args(["--timeout-ms", "30000"]);
    let log = format!("{worker}.log");
    let bridge = desk.start(command, &log);
    desk.until_printed(&log, "registered");
    bridge
}

#[track_caller]
fn told_of_death(result: &ExecutionResult, worker: &str, after: Duration) {
    let told = result.error.as_ref().map(|error| error.message.as_str()).unwrap_or_default();
    assert!(
        told.starts_with(&format!("The Relay worker \"{worker}\" ended before it answered")),
        "{result:?}"
    );
    assert!(after < AT_ONCE, "told after {after:?}");
}
