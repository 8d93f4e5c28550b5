//! Keeps a long conversation below a model's window: old messages become a summary.
//!
//! `cargo run -p harness --example compaction`
#![expect(clippy::print_stdout, reason = "an example prints what it shows")]

use std::error::Error;

use harness::memory::compact::{CompactionPolicy, ContextCompactor, ModelSummarizer, Recency, SummaryModel};
use harness::prelude::*;
use harness::testing::ScriptedModel;

#[tokio::main(flavor = "current_thread")]
async fn main() -> Result<(), Box<dyn Error>> {
    let answers: Vec<AssistantMessage> = (1..=6)
        .map(|day| AssistantMessage::text(format!("Day {day}: {}", "the tide is low. ".repeat(400))))
        .collect();
    let worker = ScriptedModel::new(answers);
    // A cheaper model may write the summaries.
    let summaries = ["It was low on day 1.", "It was low on days 1 and 2.", "It was low on days 1 to 3."];
    let writer = ScriptedModel::new(
        summaries.map(|fact| AssistantMessage::text(format!(r#"{{"facts":["{fact}"]}}"#))),
    );

    // A window of 8,000 tokens: one summary above 6,000 of them; the newest messages stay as they are.
    let mut policy = CompactionPolicy::summarize(8_000);
    policy.recency = Recency::new(2, 1_000);
    let compactor = ContextCompactor::new(policy)
        .with_summarizer(ModelSummarizer::new(SummaryModel::new(writer.clone(), 128_000)));
    let harness = Harness::new(worker.clone()).compactor(compactor).build()?;

    for day in 1..=6 {
        let report = harness.prompt(format!("How was day {day}?")).await?;
        let requests = worker.requests();
        let Some(request) = requests.last() else { continue };
        println!(
            "day {day}: {} messages stored, {} in the request",
            report.transcript.len(),
            request.view.len()
        );
    }
    if let Some(request) = worker.requests().last() {
        request.view.for_each(|message| {
            println!("  {}: {:.95}", message.role(), message.joined_text().replace('\n', " "));
        });
    }
    println!("summaries written: {}", writer.requests().len());
    Ok(())
}
