//! Gives a model two tools: one made from a function, and one with a schema and checks of its own.
//!
//! `cargo run -p harness --example custom_tool`
#![expect(clippy::print_stdout, reason = "an example prints what it shows")]

use std::error::Error;

use harness::core::Json;
use harness::core::message::{Block, ToolCall};
use harness::core::tool::{ArgumentFault, RetryClass, Tool, ToolDef};
use harness::prelude::*;
use harness::testing::ScriptedModel;

/// The arguments of `add`: the schema that the model sees is made from this type.
#[derive(serde::Deserialize, schemars::JsonSchema)]
struct Numbers {
    /// The numbers to add.
    numbers: Vec<i64>,
}

/// A tool that implements the trait: its schema is written by hand.
struct Dice(ToolDef);

impl Dice {
    fn new() -> Result<Self, Box<dyn Error>> {
        let schema = r#"{"type":"object","properties":{"sides":{"type":"integer"}},"required":["sides"]}"#;
        // Nothing happens outside, so a retry or a restart may run it again.
        let def = ToolDef::new("dice", "Rolls a die")
            .with_schema(Json::parse(schema)?)
            .with_class(RetryClass::Pure);
        Ok(Self(def))
    }

    fn sides(arguments: &Json) -> Option<u64> {
        arguments.to::<serde_json::Value>().ok()?.get("sides")?.as_u64()
    }
}

impl Tool for Dice {
    fn def(&self) -> &ToolDef {
        &self.0
    }

    fn check(&self, arguments: &Json) -> Result<(), ArgumentFault> {
        match Self::sides(arguments) {
            Some(2..=100) => Ok(()),
            _ => Err(ArgumentFault::new("sides", "expected an integer from 2 to 100")),
        }
    }

    async fn call(&self, cx: ToolCx) -> ToolOutcome {
        // Gates and approvers ask for the check first; without them the call comes at once.
        if let Err(fault) = self.check(&cx.call.arguments) {
            return ToolOutcome::error("invalid_arguments", fault.to_string());
        }
        cx.emit(vec![Block::text("rolling")]);
        // A die that is loaded, so that the example prints the same each time.
        ToolOutcome::text(format!("{}", Self::sides(&cx.call.arguments).unwrap_or(6)))
    }
}

#[tokio::main(flavor = "current_thread")]
async fn main() -> Result<(), Box<dyn Error>> {
    let call = |id: &str, tool: &str, arguments: &str| {
        Json::parse(arguments).map(|arguments| ToolCall::new(id, tool, arguments))
    };
    let model = ScriptedModel::new([
        AssistantMessage::calls([call("c1", "dice", r#"{"sides":1}"#)?]),
        AssistantMessage::calls([
            call("c2", "dice", r#"{"sides":20}"#)?,
            call("c3", "add", r#"{"numbers":[20,22]}"#)?,
        ]),
        AssistantMessage::text("You have 42."),
    ]);
    let add = tool_fn("add", "Adds numbers", |asked: Numbers, _| async move {
        let sum = asked.numbers.iter().try_fold(0_i64, |sum, number| sum.checked_add(*number));
        // An error is a result too: the model reads it and may try again.
        sum.map(|sum| sum.to_string()).ok_or("the sum is too large")
    });
    let harness = Harness::new(model).tool(add.pure()).tool(Dice::new()?).build()?;
    let report = harness.prompt("Roll, then add 22.").await?;
    for result in report.transcript.iter().filter_map(|message| message.as_tool_result()) {
        let mark = if result.is_error { "error" } else { "ok" };
        println!(
            "{} {} {mark}: {}",
            result.tool_call_id,
            result.tool_name,
            Message::from(result.clone()).joined_text()
        );
    }
    println!("answer: {}", report.answer());
    Ok(())
}
