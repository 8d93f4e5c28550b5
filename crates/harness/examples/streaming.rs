//! Streams an answer: deltas as they arrive, the events of the run around them, then the report.
//!
//! `cargo run -p harness --example streaming`
#![expect(clippy::print_stdout, reason = "an example prints what it shows")]

use std::error::Error;

use harness::core::port::DeltaPart;
use harness::prelude::*;
use harness::runtime::{StartAt, StreamItem, ThreadEvent};
use harness::testing::{ModelStep, ScriptedModel};

/// Stands for a provider that streams its answer in three parts.
fn model() -> ScriptedModel {
    let parts = ["Oslo is ", "4 °C ", "today."];
    let deltas = parts.map(|text| DeltaPart::Text(text.to_owned()));
    ScriptedModel::new([ModelStep::answer(AssistantMessage::text(parts.concat())).with_deltas(deltas)])
}

#[tokio::main(flavor = "current_thread")]
async fn main() -> Result<(), Box<dyn Error>> {
    let thread = Harness::new(model()).build_runtime()?.thread("weather");

    // Subscribe before the prompt; `of_one_run` ends the stream with the run.
    let mut events = thread.events(StartAt::Live).of_one_run();
    let print = async {
        while let Some(item) = events.next().await {
            match item {
                StreamItem::Event { event: ThreadEvent::Delta(DeltaPart::Text(text)), .. } => {
                    println!("delta  {text:?}");
                }
                StreamItem::Event { event: ThreadEvent::Event(event), .. } => {
                    println!("event  {}", event.kind.name());
                }
                // A reader that is too slow learns how much it missed; the transcript has everything.
                StreamItem::Lagged { missed } => println!("missed {missed} events"),
                StreamItem::Event { .. } | StreamItem::Held { .. } | _ => {}
            }
        }
    };
    let (report, ()) = tokio::join!(thread.prompt("How cold is Oslo?"), print);
    println!("report {:?}", report?.answer());
    Ok(())
}
