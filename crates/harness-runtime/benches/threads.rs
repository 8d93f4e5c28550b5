//! What a thread costs: a turn, an abort, and how late events are with a thousand threads at work.
//!
//! `cargo bench -p harness-runtime --bench threads` prints one line for each figure, with its bar; with
//! `-- --json` one line for all. Not a test: nothing fails because a machine is slow.

#![expect(
    clippy::expect_used,
    clippy::print_stdout,
    clippy::disallowed_methods,
    clippy::wildcard_enum_match_arm,
    clippy::cast_precision_loss,
    clippy::cast_possible_truncation,
    clippy::cast_sign_loss,
    reason = "a benchmark may fail loudly, prints its figures and measures real time"
)]

mod parts;

use std::sync::Arc;
use std::time::{Duration, Instant};

use harness_core::message::{AssistantMessage, FinishReason, ToolCall};
use harness_core::port::{DeltaPart, Deltas, Model, ModelFault, ModelRequest};
use harness_core::tool::{Tool, ToolCx, ToolDef, ToolOutcome, Toolbox};
use harness_core::{Json, StopReason};
use harness_runtime::{StartAt, StreamItem, Thread, ThreadEvent};
use tokio::sync::{Notify, broadcast};

use parts::{Instantly, as_json, at, median, runtime};

const THREADS: usize = 1_000;
const PIECES: usize = 20;
const PAUSE: Duration = Duration::from_millis(10);

fn workers(threads: usize) -> tokio::runtime::Runtime {
    tokio::runtime::Builder::new_multi_thread()
        .worker_threads(threads)
        .enable_time()
        .build()
        .expect("a runtime")
}

/// Microseconds of each of so many turns of one thread.
async fn turns(thread: &Thread, count: usize) -> Vec<f64> {
    let mut samples = Vec::with_capacity(count);
    for _ in 0..count {
        let from = Instant::now();
        let report = thread.prompt("How is it?").await.expect("a report");
        samples.push(from.elapsed().as_secs_f64() * 1e6);
        assert_eq!(report.end.reason(), StopReason::AnswerFinalized);
    }
    samples
}

/// The medians of turns alone, beside a reader that never reads, and beside ten that read slowly.
fn turn_cases() -> [f64; 3] {
    let tokio = tokio::runtime::Builder::new_current_thread().enable_time().build().expect("a runtime");
    tokio.block_on(async {
        let mut medians: [Vec<f64>; 3] = Default::default();
        for round in 0..15 {
            for (case, samples) in medians.iter_mut().enumerate() {
                let runtime = runtime(Instantly, Instant::now(), true, |_| {}, |_| {});
                let thread = runtime.thread(format!("{round}"));
                let stalled = (case == 1).then(|| thread.events(StartAt::Live));
                let slow: Vec<_> = (0..if case == 2 { 10 } else { 0 })
                    .map(|_| tokio::spawn(dawdle(thread.clone())))
                    .collect();
                turns(&thread, 20).await;
                samples.push(median(turns(&thread, 300).await));
                slow.iter().for_each(tokio::task::JoinHandle::abort);
                drop(stalled);
            }
        }
        medians.map(median)
    })
}

async fn dawdle(thread: Thread) {
    let mut events = thread.events(StartAt::Live);
    while events.next().await.is_some() {
        tokio::time::sleep(Duration::from_millis(5)).await;
    }
}

/// Answers in pieces, one each 10 ms, that say when they were told.
struct Late(Instant);

impl Model for Late {
    async fn step(&self, _: ModelRequest, deltas: &dyn Deltas) -> Result<AssistantMessage, ModelFault> {
        for _ in 0..PIECES {
            tokio::time::sleep(PAUSE).await;
            deltas.part(DeltaPart::Text(piece(self.0)));
        }
        Ok(AssistantMessage::text("It is fine."))
    }
}

/// A piece of an answer that says when it was told.
fn piece(from: Instant) -> String {
    from.elapsed().as_nanos().to_string()
}

/// Microseconds since a piece was told.
fn delay(piece: &str, from: Instant) -> f64 {
    let told: f64 = piece.parse().expect("a time");
    (from.elapsed().as_nanos() as f64 - told) / 1e3
}

/// Microseconds from the piece of each model to its reader, of threads that are all at work.
fn delays_of_threads() -> Vec<f64> {
    workers(2).block_on(async {
        let from = Instant::now();
        let runtime = runtime(Late(from), from, true, |_| {}, |limits| limits.loaded = THREADS);
        let threads: Vec<Thread> = (0..THREADS).map(|n| runtime.thread(format!("t{n}"))).collect();
        let readers: Vec<_> = threads.iter().map(|thread| tokio::spawn(read(thread.clone(), from))).collect();
        let runs: Vec<_> = threads
            .iter()
            .map(|thread| {
                let thread = thread.clone();
                tokio::spawn(async move { thread.prompt("How is it?").await })
            })
            .collect();
        for run in runs {
            run.await.expect("a task").expect("a report");
        }
        let mut delays = Vec::new();
        for reader in readers {
            delays.extend(reader.await.expect("a task"));
        }
        delays
    })
}

async fn read(thread: Thread, from: Instant) -> Vec<f64> {
    let mut events = thread.events(StartAt::Live);
    let mut delays = Vec::with_capacity(PIECES);
    while delays.len() < PIECES {
        match events.next().await {
            Some(StreamItem::Event { event: ThreadEvent::Delta(DeltaPart::Text(text)), .. }) => {
                delays.push(delay(&text, from));
            }
            Some(_) => {}
            None => break,
        }
    }
    delays
}

/// The same of a bare program: as many timers, and the same pieces over as many broadcast channels.
fn delays_of_channels() -> Vec<f64> {
    workers(2).block_on(async {
        let from = Instant::now();
        let channels: Vec<broadcast::Sender<String>> =
            (0..THREADS).map(|_| broadcast::channel(1_024).0).collect();
        let readers: Vec<_> = channels
            .iter()
            .map(|channel| {
                let mut told = channel.subscribe();
                tokio::spawn(async move {
                    let mut delays = Vec::with_capacity(PIECES);
                    while let Ok(text) = told.recv().await {
                        delays.push(delay(&text, from));
                    }
                    delays
                })
            })
            .collect();
        let runs: Vec<_> = channels
            .iter()
            .map(|channel| {
                let channel = channel.clone();
                tokio::spawn(async move {
                    for _ in 0..PIECES {
                        tokio::time::sleep(PAUSE).await;
                        channel.send(piece(from)).expect("a reader");
                    }
                })
            })
            .collect();
        for run in runs {
            run.await.expect("a task");
        }
        drop(channels);
        let mut delays = Vec::new();
        for reader in readers {
            delays.extend(reader.await.expect("a task"));
        }
        delays
    })
}

/// Calls a tool that works until it is asked to stop.
struct Calls;

impl Model for Calls {
    async fn step(&self, _: ModelRequest, _: &dyn Deltas) -> Result<AssistantMessage, ModelFault> {
        let mut answer = AssistantMessage::calls([ToolCall::new("c1", "works", Json::empty_object())]);
        answer.stop_reason = FinishReason::ToolUse;
        Ok(answer)
    }
}

struct Works(ToolDef, Arc<Notify>);

impl Tool for Works {
    fn def(&self) -> &ToolDef {
        &self.0
    }

    async fn call(&self, cx: ToolCx) -> ToolOutcome {
        self.1.notify_one();
        cx.cancel.cancelled().await;
        ToolOutcome::text("stopped")
    }
}

/// Milliseconds from the abort to the event that tells of it.
fn aborts() -> Vec<f64> {
    workers(2).block_on(async {
        let working = Arc::new(Notify::new());
        let tool = Arc::new(Works(ToolDef::new("works", ""), Arc::clone(&working)));
        let tools = Arc::new(Toolbox::new([tool as _]));
        let runtime = runtime(Calls, Instant::now(), true, |config| config.ports.tools = tools, |_| {});
        let mut samples = Vec::new();
        for n in 0..200 {
            let thread = runtime.thread(format!("t{n}"));
            let mut events = thread.events(StartAt::Live).of_one_run();
            let prompted = tokio::spawn({
                let thread = thread.clone();
                async move { thread.prompt("Go").await }
            });
            working.notified().await;
            let from = Instant::now();
            thread.abort("enough");
            while events.next().await.is_some() {}
            samples.push(from.elapsed().as_secs_f64() * 1e3);
            let report = prompted.await.expect("a task").expect("a report");
            assert_eq!(report.end.reason(), StopReason::Cancelled);
        }
        samples
    })
}

fn main() {
    let [alone, stalled, slow] = turn_cases();
    let (mut ours, mut bare): (Vec<f64>, Vec<f64>) = (Vec::new(), Vec::new());
    for _ in 0..5 {
        bare.push(at(&mut delays_of_channels(), 0.99));
        ours.push(at(&mut delays_of_threads(), 0.99));
    }
    let (ours, bare, abort) = (median(ours), median(bare), median(aborts()));
    if as_json() {
        let turns = format!(r#""turn_us":{alone:.2},"stalled_us":{stalled:.2},"slow_us":{slow:.2}"#);
        let rest = format!(r#""delay_us":{ours:.2},"bare_us":{bare:.2},"abort_ms":{abort:.4}"#);
        println!(r#"{{"case":"threads",{turns},"threads":{THREADS},{rest}}}"#);
        return;
    }
    println!("turn of a thread: {alone:.1} us (bar 25)");
    println!("beside a reader that never reads: {stalled:.1} us, {:.2} times", stalled / alone);
    println!("beside ten readers that read slowly: {slow:.1} us, {:.2} times", slow / alone);
    println!(
        "p99 delay of an event, {THREADS} threads: {ours:.1} us, bare {bare:.1} us, {:.2} times (bar 3)",
        ours / bare
    );
    println!("abort to its event, median of 200: {abort:.3} ms (bar 5)");
}
