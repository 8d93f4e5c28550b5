//! What it costs to make a long view short, and to count tokens exactly.
//!
//! `cargo bench -p harness-memory --features tokenizer --bench compactor`. The bars: below 20 ms for 2,000
//! messages of 500,000 tokens, linear to 20,000; exact counts at most 10 % over the tokenizer alone.

#![expect(clippy::unwrap_used, reason = "a panic is how a benchmark fails")]

use std::sync::Arc;

use divan::{Bencher, black_box};
use futures_util::FutureExt as _;
use harness_core::message::{AssistantMessage, Block, Message, ToolCall, ToolResultMessage};
use harness_core::port::{CompactAsk, Compactor as _, ViewCx};
use harness_core::transcript::{Transcript, View};
use harness_core::{Json, Origin, Time};
use harness_memory::compact::{CompactionPolicy, ContextCompactor};

fn main() {
    divan::main();
}

/// Messages of 250 tokens on average, most of which are results.
fn transcript(messages: usize) -> Transcript {
    let mut log = Transcript::default();
    let mut push = |message: Message| log.push(Arc::new(message));
    push(Message::user("Find the bug. ".repeat(20)));
    for n in 1..messages / 2 {
        let call = ToolCall::new(format!("c{n}"), "read_file", Json::parse(r#"{"path":"a.rs"}"#).unwrap());
        push(AssistantMessage::calls([call.clone()]).into());
        push(ToolResultMessage::new(&call, vec![Block::text("let x = 1; ".repeat(180))], false).into());
    }
    push(AssistantMessage::text("So far nothing.").into());
    log
}

fn ask(log: &Transcript) -> CompactAsk {
    let cx = ViewCx::new(log.prefix(), Arc::new(Origin::default()), Time(0));
    CompactAsk::new(View::whole(log.prefix()), None, cx)
}

/// From the whole transcript to a plan for a window of 128,000, with counting.
#[divan::bench(args = [2_000, 20_000])]
fn plan(bencher: Bencher<'_, '_>, messages: usize) {
    let log = transcript(messages);
    bencher
        .with_inputs(|| (ContextCompactor::new(CompactionPolicy::ladder(128_000)), ask(&log)))
        .bench_local_values(|(compactor, ask)| {
            let compaction = compactor.compact(ask).now_or_never().unwrap().unwrap();
            assert!(compaction.note.is_some());
            (compactor, compaction)
        });
}

/// The policies that count groups and calls, from the whole transcript on.
#[divan::bench(args = [2_000, 20_000])]
fn policies(bencher: Bencher<'_, '_>, messages: usize) {
    let log = transcript(messages);
    let policies = [CompactionPolicy::truncate(102_400, 64_000), CompactionPolicy::tool_results(4)];
    bencher
        .with_inputs(|| policies.clone().map(|policy| (ContextCompactor::new(policy), ask(&log))))
        .bench_local_values(|both| {
            both.map(|(compactor, ask)| {
                let compaction = compactor.compact(ask).now_or_never().unwrap().unwrap();
                assert!(compaction.note.is_some());
                (compactor, compaction)
            })
        });
}

/// A request that needs no compaction, when all but the newest message were counted before.
#[divan::bench(args = [200, 2_000, 20_000])]
fn request(bencher: Bencher<'_, '_>, messages: usize) {
    let mut log = transcript(messages);
    let compactor = ContextCompactor::new(CompactionPolicy::ladder(100_000_000));
    compactor.compact(ask(&log)).now_or_never().unwrap().unwrap();
    log.push(Arc::new(Message::user("And now?")));
    bencher
        .with_inputs(|| ask(&log))
        .bench_local_values(|ask| compactor.compact(black_box(ask)).now_or_never().unwrap().unwrap());
}

#[cfg(feature = "tokenizer")]
mod exact {
    use harness_memory::compact::tokens::{ExactCounter, TokenCounter as _, Vocabulary};

    use super::{Bencher, black_box};

    fn text() -> String {
        let lines: Vec<_> =
            (0..4_000).map(|n| format!("Line {n} says: let value_{n} = {};\n", n * 7)).collect();
        lines.concat()
    }

    #[divan::bench]
    fn counter(bencher: Bencher<'_, '_>) {
        let (text, counter) = (text(), ExactCounter::new(Vocabulary::O200k));
        bencher.bench_local(|| counter.count(black_box(&text)));
    }

    #[divan::bench]
    fn tokenizer_alone(bencher: Bencher<'_, '_>) {
        let (text, encoding) = (text(), tiktoken_rs::o200k_base_singleton());
        bencher.bench_local(|| encoding.count_ordinary(black_box(&text)));
    }
}
