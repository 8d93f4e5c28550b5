//! Real brokers between this project and its source, in both directions.
//!
//! Brokers and the source's adapter and bridge come from the package registry of Node. Where they cannot be
//! had, the check says so and does not fail.

mod desk;
mod service;

use std::fs;
use std::path::{Path, PathBuf};
use std::time::Duration;

use harness::adapters::relay::{
    RelayEventKind, RelayFault, RelayMessage, RelayTransport as _, Since, SpawnAgent,
};
use harness::core::port::ExecutionResult;
use serde_json::Value;

use self::desk::{Desk, Running, until};
use super::npm;
use super::program::Program;
use xtask::fault::{Fault, Result};
use xtask::process;
use xtask::repo::{Workspace, read};
use xtask::stopwatch::Stopwatch;

/// The source's adapter and bridge; they bring the oldest broker.
const SOURCE: &str = "@agent-assistant/harness@0.10.4";

const OLDEST: &str = "node_modules/@agent-relay/sdk/bin/agent-relay-broker-linux-x64";

/// Folders and packages of the other brokers.
const BROKERS: [(&str, &str); 2] = [
    ("broker-6", "@agent-relay/broker-linux-x64@6.3.6"),
    ("broker-9", "@agent-relay/broker-linux-x64@9.1.6"),
];

const BROKER: &str = "node_modules/@agent-relay/broker-linux-x64/bin/agent-relay-broker";

/// Within which the end of a worker is told: far from the timeout of the one who waits.
const AT_ONCE: Duration = Duration::from_secs(20);

/// What is installed.
struct Tools {
    bridge: PathBuf,
    ask: PathBuf,
    brokers: Vec<PathBuf>,
}

pub(super) fn run(program: &Program) -> Result<String> {
    if !cfg!(all(target_os = "linux", target_arch = "x86_64")) {
        return Ok("skipped: the brokers are for Linux on x86-64".to_owned());
    }
    let tools = match install() {
        Ok(tools) => tools,
        Err(fault) => return Ok(format!("skipped, because the brokers cannot be had: {fault}")),
    };
    let service = service::start()?;
    let checks = std::thread::scope(|scope| {
        let checks: Vec<_> = tools
            .brokers
            .iter()
            .map(|broker| scope.spawn(|| check(broker, &service, &tools, program)))
            .collect();
        checks.into_iter().map(std::thread::ScopedJoinHandle::join).collect::<Vec<_>>()
    });
    let mut versions = Vec::new();
    for check in checks {
        versions.push(check.map_err(|_| Fault::new("a check panicked"))??);
    }
    Ok(format!("both directions, killed workers and harmless messages with brokers {}", versions.join(", ")))
}

fn install() -> Result<Tools> {
    let folder = Workspace::load()?.target_directory.join("e2e").join("relay");
    let source = folder.join("source");
    npm::install(&source, &[SOURCE])?;
    let mut brokers = vec![source.join(OLDEST)];
    for (name, package) in BROKERS {
        npm::install(&folder.join(name), &[package])?;
        brokers.push(folder.join(name).join(BROKER));
    }
    let script = |name: &str, text: &str| {
        let path = source.join(name);
        fs::write(&path, text).map_err(|e| Fault::because(name, e))?;
        Ok::<_, Fault>(path)
    };
    let bridge = script("bridge.mjs", include_str!("bridge.mjs"))?;
    Ok(Tools { bridge, ask: script("ask.mjs", include_str!("ask.mjs"))?, brokers })
}

/// All checks with one broker; its version.
fn check(broker: &Path, service: &str, tools: &Tools, program: &Program) -> Result<String> {
    let desk = Desk::open(broker, service)?;
    let version = desk.version();
    let failed = |what: &str, fault: Fault| {
        Fault::because(format!("broker {version}, {what}"), format!("{fault}\n{}", desk.broker_log()))
    };
    upstream_answers_us(&desk, tools).map_err(|e| failed("the source's bridge answers our adapter", e))?;
    we_answer_upstream(&desk, tools, program)
        .map_err(|e| failed("our bridge answers the source's adapter", e))?;
    our_bridge_killed(&desk, program).map_err(|e| failed("our bridge killed in a turn", e))?;
    Ok(version)
}

/// The source's bridge answers our adapter, and its worker is killed in the next turn.
fn upstream_answers_us(desk: &Desk, tools: &Tools) -> Result<()> {
    let pid = desk.spawn_reader("source-worker")?;
    let mut bridge = desk.start(desk.node(&tools.bridge, ["source-worker"]), "source-bridge.log")?;
    bridge.until_printed("ready")?;
    let result = desk.block_on(desk.ask("source-worker", "turn-1", "ping"));
    expect("the answer", result.text(), "echo: Be brief.\n\nping", &result)?;

    let log = bridge.log.clone();
    let watch = Stopwatch::start();
    let result = desk.ask_while("source-worker", "turn-2", || {
        until("the second request", || Ok(read(&log)?.matches("request").count() == 2))?;
        let pid = read(&pid)?;
        process::run(process::command("kill").args(["-s", "KILL", pid.trim()]))
    })?;
    told_of_death(&result, "source-worker", watch.elapsed())
}

/// Our bridge answers the source's adapter, what the message holds is not run, and Ctrl-C ends the bridge in
/// order.
fn we_answer_upstream(desk: &Desk, tools: &Tools, program: &Program) -> Result<()> {
    desk.spawn_reader("source")?;
    let mut bridge = our_bridge(desk, program, "our-worker", "cat")?;
    let touched = desk.folder.path().join("touched");
    let text = format!("ping $(touch {0}) `touch {0}`", touched.display());
    let answer = process::capture(&mut desk.node(&tools.ask, ["our-worker", "source", &text]))?;
    let answer: Value = serde_json::from_str(&answer).map_err(|e| Fault::because(&answer, e))?;
    let got = answer.pointer("/output/text").and_then(Value::as_str).unwrap_or_default();
    expect("the answer", got, &format!("Be brief.\n\n{text}"), &answer)?;

    typed(desk, "our-worker")?;
    harmless(desk, &touched)?;
    if !bridge.interrupt()? {
        return Err(Fault::new(format!("the bridge did not end well: {}", read(&bridge.log)?)));
    }
    let agents = desk.block_on(desk.transport.agents()).map_err(|e| Fault::because("agents", e))?;
    if agents.iter().any(|name| name == "our-worker") {
        return Err(Fault::new("the worker was not released"));
    }
    Ok(())
}

/// Waits until the broker has typed the message into the terminal of the worker's agent.
fn typed(desk: &Desk, worker: &str) -> Result<()> {
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
    let waited = desk.block_on(async { tokio::time::timeout(AT_ONCE, injected).await });
    waited
        .map_err(|e| Fault::because("waiting for the broker to type the message", e))?
        .map_err(|e| Fault::because("events", e))
}

/// The same text, typed into a shell, does run: so it is known how long that takes, and the worker's own
/// must not have run by then.
fn harmless(desk: &Desk, touched: &Path) -> Result<()> {
    desk.spawn(SpawnAgent::new("shell", "bash"))?;
    let control = desk.folder.path().join("control");
    let text = format!("$(touch {})", control.display());
    let message = RelayMessage::new("shell", "source", text);
    desk.block_on(desk.transport.send(message)).map_err(|e| Fault::because("send", e))?;
    until("a shell to run what is typed into it", || Ok(control.exists()))?;
    desk.block_on(desk.transport.release("shell")).map_err(|e| Fault::because("release", e))?;
    if touched.exists() { Err(Fault::new("a message was run as a command")) } else { Ok(()) }
}

/// Our bridge is killed in the middle of a turn, and who waits is told by the end of its agent.
fn our_bridge_killed(desk: &Desk, program: &Program) -> Result<()> {
    let mut bridge = our_bridge(desk, program, "our-slow-worker", "sleep 15")?;
    let watch = Stopwatch::start();
    let result = desk.ask_while("our-slow-worker", "turn-3", || {
        bridge.until_printed("request turn-3")?;
        bridge.kill()
    })?;
    told_of_death(&result, "our-slow-worker", watch.elapsed())
}

fn our_bridge(desk: &Desk, program: &Program, worker: &str, script: &str) -> Result<Running> {
    let command = program.command([
        "bridge",
        "--cli",
        "bash",
        "--cli-args",
        script,
        "--worker-name",
        worker,
        "--timeout-ms",
        "30000",
    ]);
    let mut bridge = desk.start(command, &format!("{worker}.log"))?;
    bridge.until_printed("registered")?;
    Ok(bridge)
}

fn told_of_death(result: &ExecutionResult, worker: &str, after: Duration) -> Result<()> {
    let told = result.error.as_ref().map(|error| error.message.as_str()).unwrap_or_default();
    if told.starts_with(&format!("The Relay worker \"{worker}\" ended before it answered")) && after < AT_ONCE
    {
        return Ok(());
    }
    Err(Fault::new(format!("the death of {worker} was told after {after:?} as {result:?}")))
}

fn expect(what: &str, got: &str, expected: &str, all: &dyn std::fmt::Debug) -> Result<()> {
    if got == expected {
        return Ok(());
    }
    Err(Fault::new(format!("{what}: expected {expected:?}, got {got:?} in {all:?}")))
}
