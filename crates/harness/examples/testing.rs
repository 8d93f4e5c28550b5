//! Tests an agent without a provider: a scripted model, its requests, and the events of the run.
//!
//! `cargo run -p harness --example testing`
#![expect(clippy::print_stdout, reason = "an example prints what it shows")]

use std::error::Error;
use std::sync::Arc;

use harness::core::message::ToolCall;
use harness::core::tool::ToolDef;
use harness::core::{Json, Millis, Time};
use harness::prelude::*;
use harness::testing::{EventLog, ModelStep, ScriptedModel, ScriptedTools, VirtualClock};

#[tokio::main(flavor = "current_thread")]
async fn main() -> Result<(), Box<dyn Error>> {
    // The model calls a tool, and answers after 20 s of virtual time.
    let clock = VirtualClock::jumping(Time(0));
    let call = ToolCall::new("call-1", "find_order", Json::parse(r#"{"id":1042}"#)?);
    let model = ScriptedModel::new([
        ModelStep::answer(AssistantMessage::calls([call])),
        ModelStep::answer(AssistantMessage::text("It arrives on Friday.")).taking(Millis(20_000)),
    ])
    .with_clock(clock.clone());
    let tools = ScriptedTools::new([ToolDef::new("find_order", "Finds an order")])
        .answering([ToolOutcome::text("arrives Friday")]);
    let events = EventLog::default();

    let harness = Harness::new(model.clone())
        .registry(tools.clone())
        .clock(Arc::new(clock))
        .fold(events.clone())
        .build()?;
    let report = harness.prompt("Where is my order 1042?").await?;

    println!("{}", events.lines().join("\n"));
    for execution in tools.executions() {
        println!("the tool ran with {}", execution.call.arguments.text());
    }
    println!("answer after {} s: {}", report.end.elapsed.0 / 1_000, report.answer());
    println!("steps left: {} of the model, {} of the tools", model.unused(), tools.unused());
    Ok(())
}
