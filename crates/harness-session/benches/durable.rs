//! What it costs to have every entry on stable storage, beside a bare loop of write and fdatasync.
//!
//! `cargo bench -p harness-session --bench durable -- [--entries N] [--folder DIR]`. Not a test: nothing
//! fails because a machine is slow. Every case writes the same bytes to the same disk; rounds alternate, and
//! of each case the round in the middle counts, since disks vary more than programs.

#![expect(
    clippy::expect_used,
    clippy::print_stdout,
    clippy::disallowed_methods,
    reason = "a benchmark may fail loudly, prints its figures and measures real time"
)]

mod input;

use std::fs::File;
use std::io::Write;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::thread;
use std::time::Instant;

use harness_core::message::Message;
use harness_core::port::{Durability, Entry, EntryHead};
use harness_core::{RunId, Time};
use harness_session::{FileSession, OpenOptions, SyncPolicy};

/// Odd, so that one is in the middle.
const ROUNDS: usize = 5;

/// A name, and what writes all entries to a file.
type Case<'a> = (&'a str, &'a dyn Fn(&Path));

fn main() {
    let entries: u16 = argument("--entries").and_then(|count| count.parse().ok()).unwrap_or(2_000);
    let folder = argument("--folder").map_or_else(std::env::temp_dir, PathBuf::from);
    let messages = input::messages(usize::from(entries));
    let lines = lines(&messages, &folder);
    let cases: [Case<'_>; 4] = [
        ("bare", &|path| bare(path, &lines)),
        ("fsync_1_thread", &|path| threads(path, &messages, 1)),
        ("fsync_8_threads", &|path| threads(path, &messages, 8)),
        ("fsync_64_threads", &|path| threads(path, &messages, 64)),
    ];
    let mut took = vec![Vec::new(); cases.len()];
    for _ in 0..ROUNDS {
        for ((_, case), took) in cases.iter().zip(&mut took) {
            let place = tempfile::tempdir_in(&folder).expect("a folder");
            let from = Instant::now();
            case(&place.path().join("session.jsonl"));
            took.push(from.elapsed().as_secs_f64());
        }
    }
    let rates: Vec<f64> = took.into_iter().map(|took| f64::from(entries) / middle(took)).collect();
    for ((name, _), rate) in cases.iter().zip(&rates) {
        let of_bare = rate / rates.first().expect("the bare loop");
        println!(r#"{{"case":"{name}","entries_per_s":{rate:.0},"of_bare":{of_bare:.2}}}"#);
    }
}

fn argument(name: &str) -> Option<String> {
    let mut arguments = std::env::args();
    arguments.by_ref().find(|argument| argument == name)?;
    arguments.next()
}

fn middle(mut took: Vec<f64>) -> f64 {
    took.sort_by(f64::total_cmp);
    took.get(took.len() / 2).copied().expect("a round")
}

/// The lines that a session writes for these messages.
fn lines(messages: &[Arc<Message>], folder: &Path) -> Vec<String> {
    let place = tempfile::tempdir_in(folder).expect("a folder");
    let path = place.path().join("session.jsonl");
    input::append(&input::open(&path), messages);
    let text = std::fs::read_to_string(&path).expect("a file");
    text.lines().skip(1).map(|line| format!("{line}\n")).collect()
}

/// The least that it could cost.
fn bare(path: &Path, lines: &[String]) {
    let mut file = File::options().append(true).create(true).open(path).expect("a file");
    for line in lines {
        file.write_all(line.as_bytes()).expect("a write");
        file.sync_data().expect("a sync");
    }
}

/// Threads that each append their part of the messages, every entry on stable storage before the next.
fn threads(path: &Path, messages: &[Arc<Message>], count: usize) {
    let session = FileSession::open(path, OpenOptions::new().sync(SyncPolicy::Always)).expect("a session");
    thread::scope(|scope| {
        for part in messages.chunks(messages.len().div_ceil(count)) {
            let session = session.clone();
            scope.spawn(move || part.iter().for_each(|message| append(&session, message)));
        }
    });
}

fn append(session: &FileSession, message: &Arc<Message>) {
    let head = EntryHead::new(Time(1_767_225_600_000), Some(RunId::from("r1")), 1, None);
    session.append_blocking(&head, &[Entry::Message(message)], Durability::Sync).expect("an append");
}
