//! The cost of a turn: a loop of model calls and tool calls with an instant model, and a thousand turns at
//! once with a slow one.
//!
//! `cargo bench -p harness --bench turn` prints a table; with `--json` one line per case, for
//! `cargo xtask bench peers`. `--only CASE` runs one case, `--quick` fewer turns of it (for profilers).
//! Not a test: nothing fails because a machine is slow.

#![expect(
    clippy::expect_used,
    clippy::indexing_slicing,
    clippy::print_stdout,
    clippy::disallowed_methods,
    reason = "a benchmark may fail loudly, prints its figures and measures real time"
)]

use std::hint::black_box;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, Instant};

use harness_core::driver::{Ports, drive};
use harness_core::event::{Event, Fold};
use harness_core::limits::Limits;
use harness_core::machine::Start;
use harness_core::message::{AssistantMessage, Block, Cost, FinishReason, Message, ToolCall, Usage};
use harness_core::port::{
    BoxFuture, Clock, DeltaPart, Deltas, DynModel, Model, ModelFault, ModelRequest, PreparedAgent,
    SingleAgent,
};
use harness_core::tool::{DynTool, RetryClass, Tool, ToolCx, ToolDef, ToolOutcome, Toolbox};
use harness_core::transcript::{Transcript, View};
use harness_core::turn::{Execution, Turn, TurnSpec};
use harness_core::{Cancel, Json, Millis, Origin, StopReason, Time};

/// Answers at once with what was prepared: `iterations - 1` calls of `tide`, then an answer.
struct Loop {
    iterations: u32,
    /// One prepared call per iteration, each with an id of its own.
    calls: Vec<Arc<ToolCall>>,
    usage: Arc<Usage>,
}

impl Loop {
    fn new(iterations: u32) -> Self {
        let arguments = Json::parse(r#"{"n":1}"#).expect("JSON");
        let call = |n: u32| Arc::new(ToolCall::new(n.to_string(), "tide", arguments.clone()));
        Self {
            iterations,
            calls: (0..iterations).map(call).collect(),
            usage: Arc::new(Usage::tokens(10, 5).with_cost(Cost(1_000_000))),
        }
    }
}

impl Model for Loop {
    async fn step(&self, request: ModelRequest, _: &dyn Deltas) -> Result<AssistantMessage, ModelFault> {
        let n = request.progress.iteration;
        let mut answer = AssistantMessage::default();
        if n >= self.iterations {
            answer.content.push(Block::text("done"));
        } else {
            answer.content = vec![Block::ToolCall(Arc::clone(&self.calls[n as usize]))];
            answer.stop_reason = FinishReason::ToolUse;
        }
        answer.usage = Some(Arc::clone(&self.usage));
        Ok(answer)
    }
}

/// Answers after a pause.
struct Slow(Loop, Duration);

impl Model for Slow {
    async fn step(&self, request: ModelRequest, deltas: &dyn Deltas) -> Result<AssistantMessage, ModelFault> {
        tokio::time::sleep(self.1).await;
        self.0.step(request, deltas).await
    }
}

struct Tide(ToolDef);

impl Tool for Tide {
    fn def(&self) -> &ToolDef {
        &self.0
    }

    async fn call(&self, cx: ToolCx) -> ToolOutcome {
        ToolOutcome::text(format!("level {}", cx.iteration))
    }
}

struct Unheard;

impl Deltas for Unheard {
    fn part(&self, _: DeltaPart) {}
}

struct SystemClock(Instant);

impl Clock for SystemClock {
    fn now(&self) -> Time {
        Time(i64::try_from(self.0.elapsed().as_millis()).unwrap_or(i64::MAX))
    }

    fn sleep_until(&self, at: Time) -> BoxFuture<'static, ()> {
        Box::pin(tokio::time::sleep(at.since(self.now()).duration()))
    }
}

struct Counting(Arc<AtomicU64>);

impl Fold for Counting {
    fn apply(&mut self, event: &Event) {
        self.0.fetch_add(1, Ordering::Relaxed);
        black_box(event);
    }
}

fn spec(iterations: u32) -> TurnSpec {
    let mut limits = Limits::default();
    limits.iterations = iterations + 1;
    limits.tool_calls = iterations + 1;
    limits.elapsed = Some(Millis(600_000));
    limits.tokens = u64::MAX;
    limits.cost = Cost(u64::MAX);
    TurnSpec { limits, ..TurnSpec::default() }
}

fn ports(model: impl Model + 'static) -> Ports {
    let clock = Arc::new(SystemClock(start_of_time()));
    let mut ports = Ports::new(Arc::new(model), clock);
    let def = ToolDef::new("tide", "t").with_class(RetryClass::Pure);
    ports.tools = Arc::new(Toolbox::new([Arc::new(Tide(def)) as _]));
    ports.agents = Arc::new(SingleAgent::new("You track a harbor."));
    ports
}

async fn one_turn(spec: &Arc<TurnSpec>, ports: &Ports, cancel: &Cancel) {
    let mut turn = Turn::new(Arc::clone(spec), Origin::default(), Transcript::default());
    let end = drive(&mut turn, ports, cancel, Start::prompt(Message::user("status?"))).await;
    assert_eq!(end.reason(), StopReason::AnswerFinalized);
    black_box(end);
}

fn start_of_time() -> Instant {
    Instant::now()
}

fn runtime() -> tokio::runtime::Runtime {
    tokio::runtime::Builder::new_current_thread().enable_time().build().expect("a runtime")
}

/// Microseconds per iteration: the median of seven repetitions.
fn loop_case(iterations: u32, turns: u32, with_fold: bool) -> f64 {
    let runtime = runtime();
    let spec = Arc::new(spec(iterations));
    let cancel = Cancel::never();
    let mut ports = ports(Loop::new(iterations));
    let events = Arc::new(AtomicU64::new(0));
    if with_fold {
        ports.hub.fold(Counting(Arc::clone(&events)));
    }
    let mut samples: Vec<f64> = (0..8)
        .map(|_| {
            let from = start_of_time();
            runtime.block_on(async {
                for _ in 0..turns {
                    one_turn(&spec, &ports, &cancel).await;
                }
            });
            from.elapsed().as_secs_f64() * 1e6 / f64::from(turns) / f64::from(iterations)
        })
        .skip(1)
        .collect();
    assert_eq!(with_fold, events.load(Ordering::Relaxed) > 0);
    samples.sort_by(f64::total_cmp);
    samples[samples.len() / 2]
}

/// Microseconds per iteration of the scripted model and tool alone, which every loop includes: the median of
/// seven repetitions. What a request and a call are made of belongs to the loop, so it is taken off.
fn scripted_case(turns: u32) -> f64 {
    const ITERATIONS: u32 = 20;
    let runtime = runtime();
    let model = Loop::new(ITERATIONS);
    let tool = Tide(ToolDef::new("tide", "t"));
    let (model, tool): (&dyn DynModel, &dyn DynTool) = (black_box(&model), black_box(&tool));
    let prepared = Arc::new(PreparedAgent::new("main", "You track a harbor.", []));
    let request = ModelRequest::new(View::whole(Transcript::default().prefix()), prepared);
    let call = ToolCx::for_call(Arc::new(ToolCall::new("1", "tide", Json::empty_object())));
    let asked = |n: u32| {
        let (mut request, mut call) = (request.clone(), call.clone());
        (request.progress.iteration, call.iteration) = (n, n);
        (request, call)
    };
    let per_iteration = |from: Instant| from.elapsed().as_secs_f64() * 1e6 / f64::from(turns * ITERATIONS);
    let mut samples: Vec<f64> = (0..8)
        .map(|_| {
            let from = start_of_time();
            for n in (0..turns).flat_map(|_| 1..=ITERATIONS) {
                black_box(asked(black_box(n)));
            }
            let asking = per_iteration(from);
            let from = start_of_time();
            runtime.block_on(async {
                for n in (0..turns).flat_map(|_| 1..=ITERATIONS) {
                    let (request, call) = asked(black_box(n));
                    black_box(model.step_boxed(request, &Unheard).await.expect("an answer"));
                    black_box(tool.call_boxed(call).await);
                }
            });
            per_iteration(from) - asking
        })
        .skip(1)
        .collect();
    samples.sort_by(f64::total_cmp);
    samples[samples.len() / 2]
}

/// One wave of `turns` concurrent turns of 20 iterations with a 10 ms model: (wall, bare sleeps), in ms.
fn concurrent_case(turns: usize) -> (f64, f64) {
    const PAUSE: Duration = Duration::from_millis(10);
    let runtime = tokio::runtime::Builder::new_multi_thread()
        .worker_threads(2)
        .enable_time()
        .build()
        .expect("a runtime");
    let spec = Arc::new(spec(20));
    let ports = Arc::new(ports(Slow(Loop::new(20), PAUSE)));
    let median = |mut walls: Vec<f64>| {
        walls.sort_by(f64::total_cmp);
        walls[walls.len() / 2]
    };
    let (mut ours, mut bare) = (Vec::new(), Vec::new());
    for _ in 0..5 {
        let from = start_of_time();
        runtime.block_on(async {
            let tasks: Vec<_> = (0..turns)
                .map(|_| {
                    tokio::spawn(async {
                        for _ in 0..20 {
                            tokio::time::sleep(PAUSE).await;
                        }
                    })
                })
                .collect();
            for task in tasks {
                task.await.expect("a task");
            }
        });
        bare.push(from.elapsed().as_secs_f64() * 1e3);
        let from = start_of_time();
        runtime.block_on(async {
            let tasks: Vec<_> = (0..turns)
                .map(|_| {
                    let (spec, ports) = (Arc::clone(&spec), Arc::clone(&ports));
                    tokio::spawn(async move { one_turn(&spec, &ports, &Cancel::never()).await })
                })
                .collect();
            for task in tasks {
                task.await.expect("a turn");
            }
        });
        ours.push(from.elapsed().as_secs_f64() * 1e3);
    }
    (median(ours), median(bare))
}

/// A tool that takes a while.
struct Nap(ToolDef, Duration);

impl Tool for Nap {
    fn def(&self) -> &ToolDef {
        &self.0
    }

    async fn call(&self, _: ToolCx) -> ToolOutcome {
        tokio::time::sleep(self.1).await;
        ToolOutcome::text("rested")
    }
}

/// Asks for everything at once, then answers.
struct Batch(Vec<Arc<ToolCall>>);

impl Model for Batch {
    async fn step(&self, request: ModelRequest, _: &dyn Deltas) -> Result<AssistantMessage, ModelFault> {
        if request.progress.iteration > 1 {
            return Ok(AssistantMessage::text("done"));
        }
        let mut answer = AssistantMessage::default();
        answer.content = self.0.iter().map(|call| Block::ToolCall(Arc::clone(call))).collect();
        answer.stop_reason = FinishReason::ToolUse;
        Ok(answer)
    }
}

/// A batch of 64 calls that take 10 ms each, eight at a time: (wall, bare sleeps behind a semaphore), in ms.
fn parallel_case() -> (f64, f64) {
    const PAUSE: Duration = Duration::from_millis(10);
    const AT_ONCE: u32 = 8;
    let runtime = runtime();
    let call = |n: u32| Arc::new(ToolCall::new(n.to_string(), "nap", Json::empty_object()));
    let clock = Arc::new(SystemClock(start_of_time()));
    let mut ports = Ports::new(Arc::new(Batch((0..64).map(call).collect())), clock);
    let def = ToolDef::new("nap", "n").with_class(RetryClass::Pure);
    ports.tools = Arc::new(Toolbox::new([Arc::new(Nap(def, PAUSE)) as _]));
    let mut spec = spec(64);
    (spec.execution, spec.longest_cycle) = (Execution::Parallel { max: AT_ONCE }, 0);
    let spec = Arc::new(spec);
    let (mut ours, mut bare) = (Vec::new(), Vec::new());
    for _ in 0..7 {
        let from = start_of_time();
        runtime.block_on(async {
            let permits = Arc::new(tokio::sync::Semaphore::new(AT_ONCE as usize));
            let naps = (0..64).map(|_| {
                let permits = Arc::clone(&permits);
                tokio::spawn(async move {
                    let _permit = permits.acquire_owned().await.expect("an open semaphore");
                    tokio::time::sleep(PAUSE).await;
                })
            });
            for nap in naps.collect::<Vec<_>>() {
                nap.await.expect("a task");
            }
        });
        bare.push(from.elapsed().as_secs_f64() * 1e3);
        let from = start_of_time();
        runtime.block_on(one_turn(&spec, &ports, &Cancel::never()));
        ours.push(from.elapsed().as_secs_f64() * 1e3);
    }
    ours.sort_by(f64::total_cmp);
    bare.sort_by(f64::total_cmp);
    (ours[ours.len() / 2], bare[bare.len() / 2])
}

/// A figure of `/proc/self/status` in MiB; absent where there is no such file.
fn memory(field: &str) -> Option<f64> {
    let status = std::fs::read_to_string("/proc/self/status").ok()?;
    let line = status.lines().find(|line| line.starts_with(field))?;
    let kib: f64 = line.split_whitespace().nth(1)?.parse().ok()?;
    Some(kib / 1024.0)
}

fn print(json: bool, name: &str, figures: &[(&str, Option<f64>)]) {
    let known = figures.iter().filter_map(|(key, value)| Some((key, (*value)?)));
    if json {
        let fields: Vec<_> = known.map(|(key, value)| format!(r#""{key}":{value:.3}"#)).collect();
        println!(r#"{{"case":"{name}",{}}}"#, fields.join(","));
    } else {
        let fields: Vec<_> = known.map(|(key, value)| format!("{key} {value:.3}")).collect();
        println!("{name:<16} {}", fields.join("  "));
    }
}

fn main() {
    let arguments: Vec<String> = std::env::args().collect();
    let has = |flag: &str| arguments.iter().any(|argument| argument == flag);
    let only =
        arguments.iter().position(|argument| argument == "--only").and_then(|at| arguments.get(at + 1));
    let wanted = |name: &str| only.is_none_or(|only| only == name);
    let (json, quick) = (has("--json"), has("--quick"));
    if wanted("concurrent1000") {
        let idle = memory("VmRSS");
        // First, so that its peak is its own.
        let (wall, baseline) = concurrent_case(1_000);
        let figures = [
            ("wall_ms", Some(wall)),
            ("baseline_ms", Some(baseline)),
            ("peak_rss_mib", memory("VmHWM")),
            ("idle_rss_mib", idle),
        ];
        print(json, "concurrent1000", &figures);
    }
    if wanted("parallel64") {
        let (wall, baseline) = parallel_case();
        print(json, "parallel64", &[("wall_ms", Some(wall)), ("baseline_ms", Some(baseline))]);
    }
    if wanted("scripted") {
        let us = scripted_case(if quick { 100 } else { 2_000 });
        print(json, "scripted", &[("us_per_iteration", Some(us))]);
    }
    for (name, iterations, turns, with_fold) in [
        ("loop1", 1, 20_000, false),
        ("loop1-fold", 1, 20_000, true),
        ("loop20", 20, 2_000, false),
        ("loop20-fold", 20, 2_000, true),
        ("loop100", 100, 400, false),
        ("loop100-fold", 100, 400, true),
        ("loop5000", 5_000, 8, false),
        ("loop5000-fold", 5_000, 8, true),
    ] {
        if !wanted(name) {
            continue;
        }
        let us = loop_case(iterations, if quick { turns / 20 + 1 } else { turns }, with_fold);
        print(json, name, &[("us_per_iteration", Some(us)), ("peak_rss_mib", memory("VmHWM"))]);
    }
}
