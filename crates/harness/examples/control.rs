//! Decides when a run is done with a `Control` of your own: here, when the model has cited two sources.
//!
//! `cargo run -p harness --example control`
#![expect(clippy::print_stdout, reason = "an example prints what it shows")]

use std::error::Error;
use std::sync::Arc;

use harness::core::port::{Checked, Control, Review, RunNext, RunStop, TurnEnd};
use harness::core::{Json, Outcome};
use harness::prelude::*;
use harness::testing::ScriptedModel;

/// Continues until the answers of the run hold so many links.
#[derive(Debug)]
struct Cites {
    wanted: usize,
    found: usize,
}

impl Control for Cites {
    // Every message of the transcript, once and in order.
    fn observe(&mut self, _event: u64, message: &Message) {
        if message.as_assistant().is_some() {
            self.found += message.joined_text().matches("https://").count();
        }
    }

    // A turn ended: does it claim that the work is done?
    fn review(&mut self, turn: &TurnEnd<'_>, _facts: Option<&Json>) -> Review {
        if turn.end.outcome() == Outcome::Completed { Review::done() } else { Review::NotDone }
    }

    // Stop, or another turn that starts with this text. Limits of the run hold whatever is decided.
    fn decide(&mut self, turn: &TurnEnd<'_>, _checks: &[Checked]) -> RunNext {
        if self.found >= self.wanted || turn.end.outcome() != Outcome::Completed {
            return RunNext::Stop(RunStop::default());
        }
        let missing = self.wanted - self.found;
        RunNext::Continue(Some(format!("Cite {missing} more.")))
    }

    // What another process needs to continue.
    fn save(&self) -> Json {
        Json::of(&self.found).unwrap_or_default()
    }

    fn restore(&mut self, saved: &Json) -> Result<(), serde_json::Error> {
        self.found = saved.to()?;
        Ok(())
    }
}

#[tokio::main(flavor = "current_thread")]
async fn main() -> Result<(), Box<dyn Error>> {
    let model = ScriptedModel::new([
        AssistantMessage::text("Herring spawn in spring."),
        AssistantMessage::text("So says https://example.org/herring."),
        AssistantMessage::text("And https://example.com/spring."),
    ]);
    let thread = Harness::new(model).build_runtime()?.thread("report");
    thread.configure(|config| config.control = Some(Arc::new(|| Box::new(Cites { wanted: 2, found: 0 }))));

    let report = thread.prompt("When do herring spawn? Cite two sources.").await?;
    for message in report.transcript.iter() {
        println!("{}: {}", message.role(), message.joined_text());
    }
    println!("{} turns, stopped: {}", report.end.turns, report.end.reason().as_str());
    Ok(())
}
