//! What records of runs add to the turns of a thread: a turn has two model calls and a tool call, and everything answers
//! at once.
//!
//! `cargo bench -p harness --bench recording` prints a table. Not a test: nothing fails because a machine is slow.

#![expect(
    clippy::expect_used,
    clippy::print_stdout,
    clippy::disallowed_methods,
    clippy::cast_precision_loss,
    reason = "a benchmark may fail loudly, prints its figures and measures real time"
)]

use std::time::Instant;

use harness::Harness;
use harness::core::message::{AssistantMessage, Message, ToolCall};
use harness::core::port::Secret;
use harness::core::{Json, Redactor, StopReason};
use harness::prelude::*;
use harness::record::{RecentRuns, Recording, Redaction};
use harness::runtime::Thread;

/// Calls the tool, then answers.
struct Instantly;

impl Model for Instantly {
    async fn step(&self, request: ModelRequest, _: &dyn Deltas) -> Result<AssistantMessage, ModelFault> {
        let last = request.view.last();
        if matches!(last.map(|message| &**message), Some(Message::ToolResult(_))) {
            return Ok(AssistantMessage::text("The tide is high at noon and low at six. ".repeat(5)));
        }
        let arguments = Json::parse(r#"{"place":"Oslo harbour","day":"today"}"#).expect("JSON");
        Ok(AssistantMessage::calls([ToolCall::new(
            format!("call-{}", request.view.len()),
            "tide",
            arguments,
        )]))
    }
}

#[derive(serde::Deserialize, schemars::JsonSchema)]
struct Where {
    #[expect(dead_code, reason = "the arguments are only parsed")]
    place: String,
}

/// A thread whose runs are recorded, or not.
fn thread(recording: Option<Recording>) -> Thread {
    let tide = tool_fn("tide", "Returns the tide", |_: Where, _| async move {
        Ok::<_, std::io::Error>(r#"{"high":"12:00","low":"18:00","unit":"UTC","source":"harbour office"}"#)
    });
    let builder = Harness::new(Instantly).instructions("You look after a harbour. ".repeat(40)).tool(tide);
    let builder = recording.into_iter().fold(builder, harness::Builder::record);
    builder.build_runtime().expect("a runtime").thread("ada")
}

async fn turn(thread: &Thread) {
    let report =
        thread.prompt("When is the water high enough for a boat of two meters?").await.expect("a report");
    assert_eq!(report.end.reason(), StopReason::AnswerFinalized);
}

/// Median microseconds of a turn behind so many messages.
async fn measure(recording: Option<Recording>, before: usize) -> f64 {
    let thread = thread(recording);
    for _ in 0..before / 4 {
        turn(&thread).await;
    }
    let mut samples = Vec::new();
    for _ in 0..41 {
        let start = Instant::now();
        turn(&thread).await;
        samples.push(start.elapsed().as_nanos() as f64 / 1e3);
    }
    samples.sort_by(f64::total_cmp);
    samples.get(samples.len() / 2).copied().unwrap_or_default()
}

fn main() {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_time().build().expect("a runtime");
    println!(
        "{:>16} {:>12} {:>16} {:>16}",
        "earlier messages", "no record", "without prompts", "as in serve"
    );
    for before in [0, 200, 2_000] {
        let mut rounds: [Vec<f64>; 3] = Default::default();
        for _ in 0..5 {
            // Known secrets are looked for in every record, as by the program.
            let secrets = || Redactor::new([Secret::new("sk-0123456789abcdef")]);
            let recorded =
                || Recording::new().recent(RecentRuns::new()).redact(Redaction::none().secrets(secrets()));
            for (case, samples) in
                [None, Some(recorded().without_prompts()), Some(recorded())].into_iter().zip(&mut rounds)
            {
                samples.push(runtime.block_on(measure(case, before)));
            }
        }
        let [none, small, whole] = rounds.map(|mut samples| {
            samples.sort_by(f64::total_cmp);
            samples.get(samples.len() / 2).copied().unwrap_or_default()
        });
        println!("{before:>16} {none:>9.0} us {small:>13.0} us {whole:>13.0} us");
    }
}
