//! What idle threads take beyond their transcripts.
//!
//! `cargo bench -p harness-runtime --bench idle`; with `-- --json` the figures come as one line. A program of its own, because it counts every allocation.

#![expect(
    clippy::expect_used,
    clippy::print_stdout,
    clippy::disallowed_methods,
    clippy::wildcard_enum_match_arm,
    clippy::cast_precision_loss,
    clippy::cast_possible_truncation,
    clippy::cast_sign_loss,
    dead_code,
    reason = "a benchmark may fail loudly, prints its figures and shares its parts with another"
)]

mod parts;

use std::sync::Arc;
use std::time::Instant;

use harness_core::Json;
use harness_core::message::Message;
use harness_core::transcript::Transcript;
use harness_runtime::Thread;
use parts::{Instantly, as_json, runtime};
use peak_alloc::PeakAlloc;

#[global_allocator]
static ALLOCATOR: PeakAlloc = PeakAlloc;

const THREADS: usize = 10_000;

/// Bytes of each of these threads beyond its transcript, after a number of turns.
fn bytes(tokio: &tokio::runtime::Runtime, stored: bool, turns: usize) -> f64 {
    tokio.block_on(async {
        let names: Vec<String> = (0..THREADS).map(|n| format!("t{n}")).collect();
        let runtime = runtime(Instantly, Instant::now(), stored, |_| {}, |_| {});
        let before = ALLOCATOR.current_usage();
        let threads: Vec<Thread> = names.iter().map(|name| runtime.thread(name.as_str())).collect();
        for thread in &threads {
            for _ in 0..turns {
                thread.prompt("How is it?").await.expect("a report");
            }
            thread.wait_idle().await;
        }
        tokio::task::yield_now().await;
        let all = ALLOCATOR.current_usage() - before;
        let first = threads.first().expect("a thread");
        let messages = first.messages().await.expect("a transcript");
        // A clone would share its blocks.
        let text: Vec<Json> = messages.iter().map(|message| Json::of(message).expect("JSON")).collect();
        let copy = |text: &Json| Arc::new(text.to::<Message>().expect("a message"));
        let before = ALLOCATOR.current_usage();
        let copies: Vec<Transcript> = (0..THREADS).map(|_| text.iter().map(copy).collect()).collect();
        let transcripts = ALLOCATOR.current_usage() - before;
        drop(copies);
        (all as f64 - transcripts as f64) / THREADS as f64
    })
}

fn main() {
    let tokio = tokio::runtime::Builder::new_current_thread().enable_time().build().expect("a runtime");
    let cases = [
        ("never prompted", true, 0),
        ("after a turn, in sessions", true, 1),
        ("after ten turns, in sessions", true, 10),
        ("after a turn, in memory alone", false, 1),
        ("after ten turns, in memory alone", false, 10),
    ];
    let figures = cases.map(|(what, stored, turns)| (what, bytes(&tokio, stored, turns)));
    if as_json() {
        let figures = figures.map(|(what, bytes)| format!(r#"{{"what":"{what}","bytes":{bytes:.0}}}"#));
        println!(r#"{{"case":"idle","threads":{THREADS},"figures":[{}]}}"#, figures.join(","));
        return;
    }
    for (what, bytes) in figures {
        println!("{THREADS} idle threads {what}: {bytes:.0} bytes each (bar 2048)");
    }
}
