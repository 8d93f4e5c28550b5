//! Remembers facts about a user, and shows them to the model in another conversation.
//!
//! `cargo run -p harness --example memory`
#![expect(clippy::print_stdout, reason = "an example prints what it shows")]

use std::error::Error;
use std::sync::Arc;

use harness::core::message::ToolCall;
use harness::core::port::Clock;
use harness::core::{Json, Time};
use harness::memory::builtin::notes::{LocalNotes, LongTermMemory};
use harness::memory::builtin::{SemanticRecall, memory_tools};
use harness::memory::layer::{LayerSetup, Pipeline};
use harness::prelude::*;
use harness::testing::{ScriptedModel, VirtualClock};

/// A conversation of a user, with the memory that all of them share.
fn conversation(
    model: &ScriptedModel,
    facts: &LongTermMemory,
    (user, thread): (&str, &str),
) -> Result<Harness, Box<dyn Error>> {
    let clock: Arc<dyn Clock> = Arc::new(VirtualClock::still(Time(0)));
    let setup = LayerSetup::new()
        .with(SemanticRecall::new(facts.clone()))
        .with_tools(memory_tools(Some(facts.clone()), Arc::clone(&clock)));
    let memory = Pipeline::build(setup, Arc::clone(&clock))?;
    Ok(Harness::new(model.clone()).user(user).thread(thread).clock(clock).memory(memory).build()?)
}

#[tokio::main(flavor = "current_thread")]
async fn main() -> Result<(), Box<dyn Error>> {
    let facts = LongTermMemory::new(Arc::new(LocalNotes::default()));
    let remember = Json::parse(r#"{"content":"Ada likes cod","scope":"user"}"#)?;
    let model = ScriptedModel::new([
        AssistantMessage::calls([ToolCall::new("call-1", "memory_remember", remember)]),
        AssistantMessage::text("I will remember that."),
        AssistantMessage::text("Cod, as always?"),
        AssistantMessage::text("What do you like?"),
    ]);

    conversation(&model, &facts, ("ada", "monday"))?.prompt("I like cod.").await?;
    conversation(&model, &facts, ("ada", "tuesday"))?.prompt("What cod is there?").await?;
    conversation(&model, &facts, ("bob", "tuesday"))?.prompt("What cod is there?").await?;

    // The facts are in the view of the model, never in the transcript.
    for (request, who) in model.requests().iter().skip(2).zip(["ada", "bob"]) {
        println!("{who}'s model sees:");
        request.view.for_each(|message| {
            println!("  {}: {}", message.role(), message.joined_text().replace('\n', "\n    "));
        });
    }
    Ok(())
}
