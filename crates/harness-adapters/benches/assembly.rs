//! The cost of reading a streamed answer: framing, parsing and assembly, without a network.
//!
//! `cargo bench -p harness-adapters --bench assembly [-- --bytes N]`. On one core, to which the process pins
//! itself, by the time that the core works for it: neighbours do not count. Not a test: nothing fails because
//! a machine is slow.

#![expect(
    clippy::expect_used,
    clippy::print_stdout,
    clippy::cast_precision_loss,
    reason = "a benchmark may fail loudly and prints its figures"
)]

mod input;

use std::hint::black_box;

use harness_adapters::chat::{Assembler, ReplyLimits, Verdict};
use rustix::thread::CpuSet;
use rustix::time::{ClockId, clock_gettime};

/// How many times the transcript is read.
const TIMES: usize = 5;
/// Bytes that arrive at once.
const READ: usize = 16 << 10;

fn main() {
    pin();
    let arguments: Vec<String> = std::env::args().collect();
    let given = arguments.iter().position(|argument| argument == "--bytes");
    let given = given.and_then(|at| arguments.get(at + 1)).and_then(|bytes| bytes.parse().ok());
    let transcript = transcript(given.unwrap_or(64 << 20));
    let events = transcript.matches("\n\n").count();
    let mut seconds: Vec<f64> = (0..TIMES)
        .map(|_| {
            let from = worked();
            read(black_box(&transcript));
            worked() - from
        })
        .collect();
    seconds.sort_by(f64::total_cmp);
    let median = seconds.get(TIMES / 2).copied().expect("it was read");
    let (bytes, best) = (transcript.len(), seconds.first().copied().expect("it was read"));
    let rate = bytes as f64 / median / 1e6;
    let (each, best) = (median / events as f64 * 1e9, bytes as f64 / best / 1e6);
    println!(
        r#"{{"case":"assembly","bytes":{bytes},"events":{events},"mb_per_s":{rate:.1},"best_mb_per_s":{best:.1},"ns_per_event":{each:.0}}}"#
    );
}

/// A transcript of small deltas, a tenth of it reasoning, a fifth the arguments of a call, the rest text,
/// now and then a comment. At least `bytes` long.
fn transcript(bytes: usize) -> String {
    let mut out = String::with_capacity(bytes + 4_096);
    let started = r#"{"tool_calls":[{"index":0,"id":"call_1","type":"function","function":{"name":"write","arguments":"{\"lines\":["}}]}"#;
    let mut n = 0;
    while out.len() < bytes / 10 {
        let word = input::word(n);
        out += &input::event(&format!(r#"{{"role":"assistant","content":"","reasoning":"{word}"}}"#));
        n += 1;
    }
    while out.len() < bytes / 10 * 8 {
        out += &input::text(n);
        n += 1;
        if n.is_multiple_of(1_000) {
            out += ": OPENROUTER PROCESSING\n\n";
        }
    }
    out += &input::event(started);
    while out.len() < bytes {
        let piece =
            r#"{"tool_calls":[{"index":0,"type":"function","function":{"arguments":"\"a line\","}}]}"#;
        out += &input::event(piece);
    }
    out += &input::event(
        r#"{"tool_calls":[{"index":0,"type":"function","function":{"arguments":"\"the end\"]}"}}]}"#,
    );
    out + &input::end("tool_calls")
}

/// Reads a transcript as a network would deliver it.
fn read(transcript: &str) {
    let mut limits = ReplyLimits::default();
    limits.body = usize::MAX;
    let mut assembler = Assembler::new(limits);
    for bytes in transcript.as_bytes().chunks(READ) {
        assembler.feed(bytes, &mut |part| drop(black_box(part))).expect("it is within the bounds");
    }
    let answer = black_box(assembler.finish());
    assert_eq!(answer.verdict(), Verdict::ToolRequest, "the transcript was read to its end");
    assert_eq!(answer.malformed_events, 0, "every event was understood");
}

/// Seconds that a core has worked for this thread.
fn worked() -> f64 {
    let time = clock_gettime(ClockId::ThreadCPUTime);
    time.tv_sec as f64 + time.tv_nsec as f64 / 1e9
}

fn pin() {
    let mut cores = CpuSet::new();
    cores.set(0);
    rustix::thread::sched_setaffinity(None, &cores).expect("the process may choose its core");
}
