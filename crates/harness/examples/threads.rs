//! Runs two conversations at once, keeps them in files, and opens them again.
//!
//! `cargo run -p harness --example threads`
#![expect(clippy::print_stdout, reason = "an example prints what it shows")]

use std::error::Error;

use harness::SessionStore;
use harness::prelude::*;
use harness::runtime::Runtime;

/// Answers with the number of messages that it sees.
struct Counter;

impl Model for Counter {
    async fn step(&self, request: ModelRequest, _: &dyn Deltas) -> Result<AssistantMessage, ModelFault> {
        Ok(AssistantMessage::text(format!("I see {} messages.", request.view.len())))
    }
}

fn runtime(sessions: &SessionStore) -> Result<Runtime, harness::HarnessError> {
    Harness::new(Counter).sessions(sessions.clone()).build_runtime()
}

#[tokio::main(flavor = "current_thread")]
async fn main() -> Result<(), Box<dyn Error>> {
    let folder = tempfile::tempdir()?;
    let sessions = SessionStore::new(folder.path());

    let first = runtime(&sessions)?;
    let (ada, bob) = (first.thread("ada"), first.thread("bob"));
    let (to_ada, to_bob) = tokio::join!(ada.prompt("I am Ada."), bob.prompt("I am Bob."));
    println!("ada: {}", to_ada?.answer());
    println!("bob: {}", to_bob?.answer());
    first.shutdown().await;

    let mut list = sessions.list()?;
    list.sort_by(|a, b| a.thread.as_str().cmp(b.thread.as_str()));
    for stored in list {
        println!(
            "stored: {} {:?}, {} messages",
            stored.thread,
            stored.title.unwrap_or_default(),
            stored.messages
        );
    }

    // Another process: the thread continues where its file ends.
    let second = runtime(&sessions)?;
    println!("ada: {}", second.thread("ada").prompt("Who am I?").await?.answer());
    second.shutdown().await;
    Ok(())
}
