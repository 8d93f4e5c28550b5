//! The durable driver, over an engine in this process: the turn is a run of a thread.
//!
//! The vector's message is delivered to a thread, its cancellation is a request of the user, and its listeners hear what the
//! stream of the thread said when the run is over.

use std::future::poll_fn;
use std::pin::pin;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::task::Poll;

use harness_core::driver::Ports;
use harness_core::event::{Delta, Hub};
use harness_core::message::{AssistantMessage, Message};
use harness_core::port::{
    BoxFuture, Clock as _, Deltas, DynModel, Model, ModelFault, ModelRequest, PreparedAgent,
};
use harness_core::run::{RunLimits, RunSpec};
use harness_core::transcript::Transcript;
use harness_core::{Cancel, End, EntryId, Fault, Millis, OpId, RunId, ThreadId};
use harness_restate::durable::sim::{SimClient, SimClock, SimEvents, SimFaults};
use harness_restate::durable::{
    Agent, AgentHost, DriveOptions, HostAsk, ResumeAsk, RunOptions, SimEngine, ThreadAsk, ThreadReply,
    ThreadState, ThreadStatus, fold, report,
};
use harness_runtime::{DeliveryMode, DeliveryRules, Report, Runtime, ThreadEvent};
use parking_lot::Mutex;
use serde_json::Value;

use super::{Driver, Threads, TurnCase};
use crate::Done;
use crate::vector::Vector;

/// The driver of threads on an engine.
pub(super) struct Durable;

impl Driver for Durable {
    fn name(&self) -> &'static str {
        "durable"
    }

    fn skips(&self, vector: &Vector) -> Option<&'static str> {
        match vector.kind() {
            "streams" => {
                let is_late = vector.value.pointer("/input/late") == Some(&Value::Bool(true));
                is_late.then_some(LATE)
            }
            "orchestrator" => crate::orchestrator::engine::skips(vector),
            "turn" | "turn-ext" => {
                let turns = vector.value.get("turns").and_then(Value::as_array);
                turns.into_iter().flatten().find_map(skips_turn)
            }
            _ => None,
        }
    }

    fn threads(&self) -> Option<Threads> {
        Some(Threads::OnEngine)
    }

    fn turn<'a>(&self, case: TurnCase<'a>) -> BoxFuture<'a, Done<(Arc<End>, Transcript)>> {
        Box::pin(async move { run(case) })
    }
}

const LATE: &str = "it reads deltas behind the end of a run; an engine keeps none";
const FROZEN: &str = "its clock does not move while a retry waits; on an engine a timer moves it";
const IN_QUICK_WORK: &str =
    "it cancels during quick work; a run on an engine learns of it behind that work, and has ended by then";

/// The reason in one turn.
fn skips_turn(turn: &Value) -> Option<&'static str> {
    let events = turn.pointer("/expect/events").and_then(Value::as_array).into_iter().flatten();
    let waits = |event: &Value| event.get("backoffMs").and_then(Value::as_u64).is_some_and(|wait| wait > 0);
    let place = turn.pointer("/abort/where").and_then(Value::as_str);
    let reasons = [(events.into_iter().any(waits), FROZEN), (place == Some("approval"), IN_QUICK_WORK)];
    reasons.into_iter().find_map(|(applies, reason)| applies.then_some(reason))
}

fn run(case: TurnCase<'_>) -> Done<(Arc<End>, Transcript)> {
    let TurnCase { spec, mut origin, log, ports, cancel, mut start } = case;
    let mut options = DriveOptions::default();
    // The vectors' approver decides later: nobody is waited for.
    options.park_after = Millis(0);
    let now = ports.clock.now();
    // A parked run waits longer than a vector looks.
    let engine = SimEngine::new(SimFaults::default()).with_options(options);
    let engine = engine.with_time(now).with_stop(now.after(Millis(24 * 3_600_000)));
    let is_unnamed = origin.thread.is_none();
    // A thread on an engine has a name, and resumes only what is its own.
    let resumed = start.continuation.as_ref().and_then(|continuation| continuation.thread_id.clone());
    let thread = origin.thread.get_or_insert_with(|| resumed.unwrap_or_else(|| "vector".into())).clone();
    engine.open(origin);
    let user = User { client: engine.client(), clock: engine.clock(), thread, cancel: cancel.clone() };
    if !log.is_empty() {
        user.send("history", ThreadAsk::Seed { messages: log.iter().cloned().collect() });
    }
    if let Some(mut continuation) = start.continuation.take() {
        continuation.thread_id.get_or_insert_with(|| user.thread.clone());
        let resumed = ThreadAsk::Start {
            entry: "message".into(),
            messages: std::mem::take(&mut start.prompt),
            resume: Some(Box::new(ResumeAsk::new(*continuation, None))),
            options: RunOptions::default(),
        };
        user.send("message", resumed);
    }
    for message in start.prompt {
        let deliver = ThreadAsk::Deliver {
            entry: "message".into(),
            message,
            mode: DeliveryMode::NextTurn,
            wakes: true,
            options: RunOptions::default(),
        };
        user.send("message", deliver);
    }
    user.abort_if_cancelled();
    let limits = RunLimits::unlimited();
    let spec = Arc::new(RunSpec { turn: spec, limits, ..RunSpec::default() });
    let mut own = ports.clone();
    own.model = Arc::new(Cancelling { model: Arc::clone(&ports.model), user: user.clone() });
    // What the vector listens to comes through the engine.
    own.hub = Hub::default();
    let (mut stream, mut told) = (user.client.events(&user.thread), Vec::new());
    let mut listen = || told.extend(std::iter::from_fn(|| stream.try_next()));
    let listener = poll_fn(|_| {
        listen();
        Poll::<()>::Pending
    });
    let (report, _) = engine.play(&Arc::new(Host { ports: own, spec }), listener);
    listen();
    if let Some(wrong) = report.violations.first().or(report.stuck.first()) {
        return Err(format!("the engine reports: {wrong}"));
    }
    publish(&told, &ports.hub);
    let log = engine.log(&user.thread);
    let state = engine.thread(&user.thread).ok_or("the engine has no thread")?;
    let mut end = state.last().cloned().ok_or("the run has no end")??;
    if is_unnamed && let Some(continuation) = &mut Arc::make_mut(&mut end).continuation {
        // That name is the driver's.
        continuation.thread_id = None;
    }
    Ok((end, fold(&log).messages().cloned().collect()))
}

/// Publishes the stream of a thread to listeners.
fn publish(told: &[ThreadEvent], hub: &Hub) {
    let mut last = 0;
    for event in told {
        if let ThreadEvent::Event(event) = event {
            last = event.seq;
            hub.publish([event]);
        } else if let ThreadEvent::Delta(part) = event {
            hub.delta(&Delta::new(OpId(0), 0, last, part.clone()));
        }
    }
    hub.flush();
}

/// The parts of the one run.
struct Host {
    ports: Ports,
    spec: Arc<RunSpec>,
}

impl AgentHost for Host {
    async fn agent(&self, _: HostAsk<'_>) -> Result<Agent, Fault> {
        let (ports, spec) = (self.ports.clone(), Arc::clone(&self.spec));
        let delivery = DeliveryRules::default();
        Ok(Agent { ports, spec, control: Box::default(), delivery, allowed_tools: None })
    }
}

/// The user of the thread.
#[derive(Clone)]
struct User {
    client: SimClient,
    clock: SimClock,
    thread: ThreadId,
    cancel: Cancel,
}

impl User {
    fn send(&self, name: &str, ask: ThreadAsk) {
        self.client.send(name, self.clock.now(), &self.thread, ask);
    }

    /// Aborts the run once the vector has cancelled it. Whether it has.
    fn abort_if_cancelled(&self) -> bool {
        let is_cancelled = self.cancel.is_cancelled();
        if is_cancelled {
            self.send("abort", ThreadAsk::Abort { reason: None });
        }
        is_cancelled
    }
}

/// A model during whose step the user may abort. The request is on its way before the answer, so it arrives first.
struct Cancelling {
    model: Arc<dyn DynModel>,
    user: User,
}

impl Model for Cancelling {
    async fn step(&self, request: ModelRequest, deltas: &dyn Deltas) -> Result<AssistantMessage, ModelFault> {
        let stop = request.cancel.clone();
        let answer = self.model.step_boxed(request, deltas).await;
        if self.user.abort_if_cancelled() {
            stop.cancelled().await;
        }
        answer
    }

    fn has_structured_output(&self, agent: &PreparedAgent) -> bool {
        self.model.has_structured_output_dyn(agent)
    }
}

/// Plays a script of a client beside an engine whose workers have the parts of a runtime. The client listens to its thread all
/// the time.
pub(crate) fn beside<T>(
    engine: &SimEngine,
    thread: &EngineThread,
    runtime: Runtime,
    script: impl Future<Output = Done<T>>,
) -> Done<T> {
    let mut script = pin!(script);
    let script = poll_fn(|cx| {
        thread.listen();
        script.as_mut().poll(cx)
    });
    let (report, played) = engine.play(&Arc::new(runtime), script);
    if let Some(wrong) = report.violations.first().or(report.stuck.first()) {
        return Err(format!("the engine reports: {wrong}"));
    }
    played.ok_or("nothing wakes what waits")?
}

/// A thread on an engine, and what its client asks of it.
#[derive(Clone)]
pub(crate) struct EngineThread {
    client: SimClient,
    thread: ThreadId,
    asked: Arc<AtomicU64>,
    stream: Arc<Mutex<SimEvents>>,
    told: Arc<Mutex<Vec<ThreadEvent>>>,
}

impl EngineThread {
    pub(crate) fn new(engine: &SimEngine, thread: impl Into<ThreadId>) -> Self {
        let (client, thread) = (engine.client(), thread.into());
        let stream = Arc::new(Mutex::new(client.events(&thread)));
        Self { client, thread, asked: Arc::default(), stream, told: Arc::default() }
    }

    /// A new name for a message.
    pub(crate) fn name(&self) -> EntryId {
        format!("message {}", self.asked.fetch_add(1, Ordering::Relaxed)).into()
    }

    /// Sends a request, and waits until it is accepted.
    pub(crate) async fn ask(&self, ask: ThreadAsk) -> Done<Option<RunId>> {
        let number = self.asked.fetch_add(1, Ordering::Relaxed);
        match self.client.ask(format!("request {number}"), &self.thread, ask).await {
            ThreadReply::Accepted(run) => Ok(run),
            ThreadReply::Refused(why) => Err(why),
            ThreadReply::Run(_) => Err("this reply is for a run".to_owned()),
        }
    }

    /// Delivers a message.
    pub(crate) async fn deliver(
        &self,
        id: &str,
        message: Message,
        mode: DeliveryMode,
        wakes: bool,
    ) -> Done<()> {
        let (entry, message, options) = (id.into(), Arc::new(message), RunOptions::default());
        self.ask(ThreadAsk::Deliver { entry, message, mode, wakes, options }).await.map(drop)
    }

    /// The state of the thread, which has had a request.
    pub(crate) async fn state(&self) -> ThreadState {
        self.client.until(&self.thread, |_| true).await
    }

    /// Waits until no run is at work.
    pub(crate) async fn idle(&self) -> ThreadState {
        self.client.until(&self.thread, |state| !matches!(state.status(), ThreadStatus::Running(_))).await
    }

    /// The transcript up to an entry of the log.
    pub(crate) fn transcript(&self, upto: u64) -> Transcript {
        let log = self.client.entries(&self.thread, 0);
        fold(log.iter().filter(|entry| entry.seq < upto)).messages().cloned().collect()
    }

    /// The report of the last run of an idle thread, or why there is none.
    pub(crate) async fn response(&self) -> Done<Report> {
        let state = self.idle().await;
        let run = state.last_run().ok_or("no run has ended")?;
        let end = state.last().ok_or("no run has ended")?.as_ref().map_err(Clone::clone)?;
        let transcript = self.transcript(state.log()).prefix();
        let from = transcript.len();
        Ok(report(run, Arc::clone(end), transcript, from))
    }

    /// Takes note of what happened.
    fn listen(&self) {
        let mut stream = self.stream.lock();
        self.told.lock().extend(std::iter::from_fn(|| stream.try_next()));
    }

    /// Events since the last call.
    pub(crate) fn events(&self) -> Vec<ThreadEvent> {
        self.listen();
        std::mem::take(&mut *self.told.lock())
    }
}
