//! Records the traffic of a run with a model, and replays it without one: the same run, offline and free.
//!
//! `cargo run -p harness --example recording`
#![expect(clippy::print_stdout, reason = "an example prints what it shows")]

use std::error::Error;
use std::sync::Arc;

use harness::core::Evidence;
use harness::core::port::DynModel;
use harness::prelude::*;
use harness::testing::{Recorder, Replay, ScriptedModel};

use harness::record::{CompareOptions, Recording, compare_records};

#[tokio::main(flavor = "current_thread")]
async fn main() -> Result<(), Box<dyn Error>> {
    let folder = tempfile::tempdir()?;
    let path = folder.path().join("run.jsonl");

    // In a real program the recorder wraps a provider's model.
    let live = ScriptedModel::new([AssistantMessage::text("It is 4 °C.")]);
    let harness = Harness::new(Recorder::create(live, &path)?).record(Recording::new()).build()?;
    let recorded = harness.prompt("How cold is Oslo?").await?;
    println!("recorded: {}", recorded.answer());

    // The replay checks each request against the recorded one.
    let replay = Arc::new(Replay::open(&path)?);
    let harness = Harness::new(Arc::clone(&replay) as Arc<dyn DynModel>).record(Recording::new()).build()?;
    let replayed = harness.prompt("How cold is Oslo?").await?;
    println!("replayed: {}", replayed.answer());
    replay.finish()?;

    if let (Some(before), Some(after)) = (&recorded.record, &replayed.record) {
        println!(
            "differences: {}",
            compare_records(before, after, &CompareOptions::default()).differences.len()
        );
    }

    // A different question is a different request: the run fails and names the first difference.
    let harness = Harness::new(Replay::open(&path)?).build()?;
    let report = harness.prompt("How cold is Rome?").await?;
    println!("another question: {}", report.reason().as_str());
    if let Evidence::Fault(fault) = &report.end.stop.evidence {
        println!("{}", fault.message.replace(&path.display().to_string(), "run.jsonl"));
    }
    Ok(())
}
