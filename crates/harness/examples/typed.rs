//! Gets an answer as a type: the answer is validated, and the model corrects one that does not match.
//!
//! `cargo run -p harness --example typed`
#![expect(clippy::print_stdout, reason = "an example prints what it shows")]

use std::error::Error;

use harness::prelude::*;
use harness::testing::ScriptedModel;

/// The JSON Schema of this type reaches the model, with the comments.
#[derive(serde::Deserialize, schemars::JsonSchema)]
struct Invoice {
    /// Number on the invoice.
    number: String,
    /// Amount in euros.
    euros: f64,
    /// Date as YYYY-MM-DD, when the invoice has one.
    due: Option<String>,
}

#[tokio::main(flavor = "current_thread")]
async fn main() -> Result<(), Box<dyn Error>> {
    // The first answer lacks the amount.
    let model = ScriptedModel::new([
        AssistantMessage::text(r#"{"number":"A-17"}"#),
        AssistantMessage::text(r#"{"number":"A-17","euros":90.5,"due":null}"#),
        AssistantMessage::text("I see no invoice."),
        AssistantMessage::text("There is none."),
    ]);
    let harness = Harness::new(model).build()?;

    let answer = harness.prompt("Read invoice A-17.").typed::<Invoice>().await?;
    let Invoice { number, euros, due } = answer.value?;
    println!("{number}: {euros} euros, due {}", due.as_deref().unwrap_or("at once"));
    for message in answer.report.transcript.iter() {
        println!("{}: {}", message.role(), message.joined_text());
    }

    // No answer matches: the run says so, and the report has everything else.
    let answer = harness.prompt("And the next one.").typed::<Invoice>().await?;
    if let Err(no_answer) = answer.value {
        println!("{no_answer}");
    }
    Ok(())
}
