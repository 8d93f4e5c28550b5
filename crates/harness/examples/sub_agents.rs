//! Delegates to a sub-agent, which has its own instructions and spends of its caller's budget.
//!
//! `cargo run -p harness --example sub_agents`
#![expect(clippy::print_stdout, reason = "an example prints what it shows")]

use std::error::Error;

use harness::core::Json;
use harness::core::message::{ToolCall, Usage};
use harness::prelude::*;
use harness::testing::ScriptedModel;
use harness::tools::Subagent;

#[tokio::main(flavor = "current_thread")]
async fn main() -> Result<(), Box<dyn Error>> {
    let task = Json::parse(r#"{"subagent_type":"scout","description":"Which file names the berths?"}"#)?;
    let used = |message: AssistantMessage| message.with_usage(Usage::tokens(100, 10));
    let model = ScriptedModel::new([
        used(AssistantMessage::calls([ToolCall::new("call-1", "task", task)])),
        used(AssistantMessage::text("berths.md")),
        used(AssistantMessage::text("The berths are in berths.md.")),
    ]);

    let mut scout = Subagent::new("scout", "finds things in files", "You look around and answer briefly.");
    scout.max_iterations = 4;
    scout.max_tokens = 50_000;
    let harness = Harness::new(model.clone()).instructions("You lead.").subagents([scout]).build()?;
    let report = harness.prompt("Where are the berths?").await?;

    for request in model.requests() {
        let last = request.view.last().map(|message| message.joined_text()).unwrap_or_default();
        println!("{} ({}) {last}", request.prepared.agent, request.prepared.instructions);
    }
    println!("answer: {}", report.answer());
    println!(
        "tokens of both: {} in, {} out",
        shown(report.end.usage.input_tokens),
        shown(report.end.usage.output_tokens)
    );
    Ok(())
}

fn shown(tokens: Option<u64>) -> String {
    tokens.map_or_else(|| "unknown".to_owned(), |tokens| tokens.to_string())
}
