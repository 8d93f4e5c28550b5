//! Connects a model of your own: one method that takes a request and gives a message.
//!
//! `cargo run -p harness --example custom_model`
#![expect(clippy::print_stdout, reason = "an example prints what it shows")]

use std::error::Error;

use harness::core::message::Usage;
use harness::core::port::{DeltaPart, ModelFaultCode};
use harness::prelude::*;

/// A model that answers in capitals. A real one sends the request to a provider.
struct Capitals;

impl Model for Capitals {
    async fn step(&self, request: ModelRequest, deltas: &dyn Deltas) -> Result<AssistantMessage, ModelFault> {
        // The view is what the model sees: history after compaction and memory.
        let Some(question) = request.view.last().map(|message| message.joined_text()) else {
            return Err(ModelFault::new(ModelFaultCode::InvalidRequest, "the request has no message"));
        };
        let mut answer = String::new();
        for word in question.split_whitespace() {
            // Stop soon when the run is cancelled or its deadline passes.
            if request.cancel.is_cancelled() {
                return Err(ModelFault::new(ModelFaultCode::Cancelled, "the run was cancelled"));
            }
            let part = format!("{} ", word.to_uppercase());
            deltas.part(DeltaPart::Text(part.clone()));
            answer.push_str(&part);
        }
        // Report usage, so that budgets count. Tools would come back as `AssistantMessage::calls`.
        let tokens = question.split_whitespace().count() as u64;
        Ok(AssistantMessage::text(answer.trim_end()).with_usage(Usage::tokens(tokens, tokens)))
    }
}

#[tokio::main(flavor = "current_thread")]
async fn main() -> Result<(), Box<dyn Error>> {
    let harness = Harness::new(Capitals).instructions("You shout.").build()?;
    let report = harness.prompt("the tide is high").await?;
    println!("answer: {}", report.answer());
    println!("tokens: {:?} in, {:?} out", report.end.usage.input_tokens, report.end.usage.output_tokens);
    Ok(())
}
