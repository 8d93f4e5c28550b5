//! Holds a call until a person approves it: the run stops, and continues from plain data.
//!
//! `cargo run -p harness --example approvals`
#![expect(clippy::print_stdout, reason = "an example prints what it shows")]

use std::error::Error;

use harness::core::Json;
use harness::core::message::ToolCall;
use harness::core::outcome::Continuation;
use harness::prelude::*;
use harness::testing::ScriptedModel;

#[derive(serde::Deserialize, schemars::JsonSchema)]
struct Payment {
    euros: u32,
}

#[tokio::main(flavor = "current_thread")]
async fn main() -> Result<(), Box<dyn Error>> {
    let model = ScriptedModel::new([
        AssistantMessage::calls([ToolCall::new("call-1", "pay", Json::parse(r#"{"euros":90}"#)?)]),
        AssistantMessage::text("Your refund is on its way."),
    ]);
    let pay = tool_fn("pay", "Pays a customer", |payment: Payment, _| async move {
        println!("(the tool pays {} euros)", payment.euros);
        Ok::<_, std::io::Error>("paid")
    });
    let harness = Harness::new(model)
        .tool(pay)
        .gate(gate::needs_approval("payments", |call| {
            (call.call.name.as_str() == "pay").then(|| "money leaves the account".to_owned())
        }))
        .build()?;

    let report = harness.prompt("I want my money back.").await?;
    println!("stopped: {}", report.reason().as_str());

    // A continuation is plain data. Store it, and decide in another request, another day.
    let stored = serde_json::to_string(&report.end.continuation)?;
    let Some(continuation) = serde_json::from_str::<Option<Continuation>>(&stored)? else {
        return Err("nothing is pending".into());
    };
    // The approval holds for exactly the call that is shown.
    let from = ResumeFrom::decided(continuation, |call| {
        println!(
            "pending: {} {} ({})",
            call.tool,
            call.arguments.as_ref().map_or("{}", Json::text),
            call.reason
        );
        Decision::Granted
    });
    let report = harness.resume(from).await?;
    println!("stopped: {}", report.reason().as_str());
    println!("answer: {}", report.answer());
    Ok(())
}
