//! Survives a crash: a run is dropped in the middle, and the next process finishes it.
//!
//! `cargo run -p harness --example crash`
#![expect(clippy::print_stdout, reason = "an example prints what it shows")]

use std::error::Error;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use harness::core::Json;
use harness::core::message::ToolCall;
use harness::prelude::*;
use harness::session::MemorySession;
use harness::session::checkpoint::MemoryCheckpoints;
use harness::testing::ScriptedModel;
use tokio::sync::Notify;

#[derive(serde::Deserialize, schemars::JsonSchema)]
struct Nothing {}

/// What survives the process: the transcript, and the state of the run.
#[derive(Default)]
struct Disk {
    session: MemorySession,
    checkpoints: MemoryCheckpoints,
}

/// A process: two tools, of which `pay` must never run twice. It hangs while `hangs` is set.
fn process(
    model: &ScriptedModel,
    disk: &Disk,
    hangs: &Arc<AtomicBool>,
    paid: &Arc<Notify>,
) -> Result<Harness, harness::HarnessError> {
    let (hangs, paid) = (Arc::clone(hangs), Arc::clone(paid));
    let pay = tool_fn("pay", "Pays", move |_: Nothing, _| {
        let (hangs, paid) = (Arc::clone(&hangs), Arc::clone(&paid));
        async move {
            println!("(money leaves the account)");
            paid.notify_one();
            if hangs.load(Ordering::Relaxed) {
                std::future::pending::<()>().await;
            }
            Ok::<_, std::io::Error>("paid")
        }
    });
    let look = tool_fn("look", "Looks", |_: Nothing, _| async { Ok::<_, std::io::Error>("all is well") });
    Harness::new(model.clone())
        .tool(pay)
        .tool(look.pure())
        .session(disk.session.clone())
        .checkpoints(disk.checkpoints.clone())
        .build()
}

/// A tokio runtime of a process's own: whatever runs on it dies with it.
fn runtime() -> std::io::Result<tokio::runtime::Runtime> {
    tokio::runtime::Builder::new_current_thread().enable_all().build()
}

fn main() -> Result<(), Box<dyn Error>> {
    let call = |id: &str, tool: &str| ToolCall::new(id, tool, Json::empty_object());
    let model = ScriptedModel::new([
        AssistantMessage::calls([call("c1", "look"), call("c2", "pay")]),
        AssistantMessage::text("The payment has an unknown state; I have asked the bank."),
    ]);
    let disk = Disk::default();
    let (hangs, paid) = (Arc::new(AtomicBool::new(true)), Arc::new(Notify::new()));

    let first = process(&model, &disk, &hangs, &paid)?;
    runtime()?.block_on(async {
        tokio::select! {
            report = first.prompt("Pay the bill.") => println!("unexpected: {}", report?.answer()),
            () = paid.notified() => {
                println!("the process dies after the money left, before the result is stored");
            }
        }
        Ok::<(), Box<dyn Error>>(())
    })?;
    drop(first);

    hangs.store(false, Ordering::Relaxed);
    let second = process(&model, &disk, &hangs, &paid)?;
    let report = runtime()?.block_on(async {
        let run = second.thread().unfinished_run().await?.ok_or("the run is lost")?;
        Ok::<_, Box<dyn Error>>(second.resume(ResumeFrom::Checkpoint(run)).await?)
    })?;
    for message in report.transcript.iter() {
        println!("{}: {}", message.role(), message.joined_text());
    }
    println!("stopped: {}", report.reason().as_str());
    Ok(())
}
