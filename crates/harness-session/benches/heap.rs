//! The most memory that loading a session takes.
//!
//! `cargo bench -p harness-session --bench heap -- [--messages N]`. A program of its own, because it counts
//! every allocation.

#![expect(
    clippy::expect_used,
    clippy::print_stdout,
    reason = "a benchmark may fail loudly and prints its figures"
)]

mod input;

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
    input::append(&input::open(&path), &input::messages(given.unwrap_or(100_000)));
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
