//! The most memory that loading a session takes.
//!
//! `cargo bench -p harness-session --bench heap -- [--messages N]`. A program of its own, because it counts
//! every allocation. Each call has its result, or the load would make them.

#![expect(
    clippy::expect_used,
    clippy::print_stdout,
    reason = "a benchmark may fail loudly and prints its figures"
)]

mod input;

use std::sync::Arc;

use harness_core::message::{AssistantMessage, Block, Message, ToolResultMessage};
use harness_session::{FileSession, OpenOptions};
use peak_alloc::PeakAlloc;

#[global_allocator]
static ALLOCATOR: PeakAlloc = PeakAlloc;

fn main() {
    let arguments: Vec<String> = std::env::args().collect();
    let given = arguments.iter().position(|argument| argument == "--messages");
    let given = given.and_then(|at| arguments.get(at + 1)).and_then(|count| count.parse().ok());
    let folder = tempfile::tempdir().expect("a folder");
    let path = folder.path().join("session.jsonl");
    let messages = input::messages(given.unwrap_or(100_000)).into_iter().flat_map(with_results);
    input::append(&input::open(&path), &messages.collect::<Vec<_>>());
    let bytes = std::fs::metadata(&path).expect("a file").len();
    let before = ALLOCATOR.current_usage();
    ALLOCATOR.reset_peak_usage();
    let stored = FileSession::read(&path, &OpenOptions::new()).expect("a session");
    let peak = ALLOCATOR.peak_usage() - before;
    let kept = ALLOCATOR.current_usage() - before;
    let messages = stored.loaded.messages.len();
    println!(
        r#"{{"case":"heap","messages":{messages},"bytes":{bytes},"peak_bytes":{peak},"kept_bytes":{kept}}}"#
    );
}

/// A message, and a result of each of its calls.
fn with_results(message: Arc<Message>) -> Vec<Arc<Message>> {
    let calls = message.as_assistant().into_iter().flat_map(AssistantMessage::tool_calls);
    let results = calls.map(|call| {
        let found = vec![Block::text(format!("found {}", "x".repeat(180)))];
        Arc::new(Message::from(ToolResultMessage::new(call, found, false)))
    });
    let results: Vec<_> = results.collect();
    std::iter::once(message).chain(results).collect()
}
