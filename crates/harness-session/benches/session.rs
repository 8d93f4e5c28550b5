//! The cost of a session file: appending messages one by one, and loading it.
//!
//! `cargo bench -p harness-session --bench session -- [--messages N] [--sqlite]`. Not a test: nothing fails because a
//! machine is slow.

#![expect(
    clippy::expect_used,
    clippy::indexing_slicing,
    clippy::print_stdout,
    clippy::disallowed_methods,
    reason = "a benchmark may fail loudly, prints its figures and measures real time"
)]

mod input;

use std::hint::black_box;
use std::time::Instant;

use harness_session::{FileSession, OpenOptions};

/// How many times everything is measured; the least time counts.
const TIMES: usize = 3;

fn seconds(work: impl FnOnce()) -> f64 {
    let from = Instant::now();
    work();
    from.elapsed().as_secs_f64()
}

fn main() {
    let arguments: Vec<String> = std::env::args().collect();
    let given = arguments.iter().position(|argument| argument == "--messages");
    let given = given.and_then(|at| arguments.get(at + 1)).and_then(|count| count.parse().ok());
    let count: usize = given.unwrap_or(100_000);
    let (case, file, name) = if arguments.iter().any(|argument| argument == "--sqlite") {
        ("sqlite", "sessions.db", "sessions.db#bench")
    } else {
        ("session", "session.jsonl", "session.jsonl")
    };
    let messages = input::messages(count);
    let (first, last) = messages.split_at(count / 10);
    let tenth = last.len().min(first.len());
    let mut quickest = [f64::INFINITY; 4];
    let mut bytes = 0;
    for _ in 0..TIMES {
        let folder = tempfile::tempdir().expect("a folder");
        let path = folder.path().join(name);
        let session = input::open(&path);
        let begin = seconds(|| input::append(&session, first));
        let middle = seconds(|| input::append(&session, &last[..last.len() - tenth]));
        let end = seconds(|| input::append(&session, &last[last.len() - tenth..]));
        let load = seconds(|| {
            black_box(FileSession::read(&path, &OpenOptions::new()).expect("a session"));
        });
        drop(session);
        bytes = std::fs::metadata(folder.path().join(file)).expect("a file").len();
        for (quickest, measured) in quickest.iter_mut().zip([begin + middle + end, load, begin, end]) {
            *quickest = quickest.min(measured);
        }
    }
    let [append, load, begin, end] = quickest;
    println!(
        r#"{{"case":"{case}","messages":{count},"bytes":{bytes},"append_s":{append:.4},"load_s":{load:.4},"first_tenth_s":{begin:.4},"last_tenth_s":{end:.4}}}"#
    );
}
