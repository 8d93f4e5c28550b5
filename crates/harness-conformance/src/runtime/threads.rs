//! Vectors of kind `delivery-mode`: messages delivered to a working thread.

#![expect(
    clippy::wildcard_enum_match_arm,
    reason = "what the vectors have no word for is passed over, whatever is added"
)]

use std::collections::VecDeque;
use std::future::poll_fn;
use std::pin::pin;
use std::sync::Arc;
use std::task::Poll;

use harness_core::event::EventKind;
use harness_core::message::{AssistantMessage, Message};
use harness_core::port::{BoxFuture, Clock, Deltas, Model, ModelFault, ModelFaultCode, ModelRequest};
use harness_core::tool::{ToolCx, ToolDef, ToolOutcome, ToolRegistry, ToolScope};
use harness_core::{Fault, FaultSource};
use harness_restate::durable::sim::SimFaults;
use harness_restate::durable::{SimEngine, ThreadAsk};
use harness_runtime::{
    DeliveryMode, LateSteering, ModelChoice, QueueMode, Report, Runtime, StartAt, Status, Stream, StreamItem,
    Thread, ThreadConfig, ThreadEvent,
};
use parking_lot::{Mutex, MutexGuard};
use serde::Deserialize;
use serde_json::{Map, Value, json};

use super::streams::said;
use super::{Ids, codes};
use crate::Done;
use crate::case::{each, on_paused_time};
use crate::clock::PausedClock;
use crate::driver::durable::{EngineThread, beside};
use crate::driver::{Driver, Threads};
use crate::vector::Vector;
use crate::verdict::Verdict;

/// Runs the vector.
pub(crate) fn run(vector: &Vector, driver: &dyn Driver) -> Verdict {
    each(vector, |Input { model, ops }| {
        let world = World::new(model, ops);
        if driver.threads() == Some(Threads::OnEngine) {
            let engine = SimEngine::new(SimFaults::default());
            let runtime = world.runtime(Arc::new(engine.clock()));
            let thread = EngineThread::new(&engine, "vector");
            world.lock().place = Some(Place::Engine(thread.clone()));
            return beside(&engine, &thread, runtime, world.played());
        }
        on_paused_time(async {
            let thread = world.runtime(Arc::new(PausedClock::new())).thread("vector");
            let events = Arc::new(Mutex::new(thread.events(StartAt::Live)));
            world.lock().place = Some(Place::Process { thread, events });
            world.played().await
        })
    })
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Input {
    model: VecDeque<Round>,
    ops: Vec<Op>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Round {
    #[serde(default)]
    items: Vec<String>,
    throw: Option<String>,
}

/// An operation as it is written; exactly one of the fields without a default says what is done.
#[derive(Clone, Deserialize)]
#[serde(deny_unknown_fields)]
struct Written {
    at: String,
    execute: Option<String>,
    mode: Option<Mode>,
    id: Option<String>,
    abort: Option<String>,
    seed: Option<Vec<String>>,
    await_response: Option<String>,
}

#[derive(Clone, Deserialize)]
#[serde(try_from = "Written")]
struct Op {
    at: String,
    what: What,
}

#[derive(Clone)]
enum What {
    Execute { text: String, mode: DeliveryMode, id: String },
    Abort(String),
    Seed(Vec<String>),
    AwaitResponse(String),
}

#[derive(Clone, Copy, Deserialize)]
#[serde(rename_all = "kebab-case")]
enum Mode {
    BetweenRounds,
    Interrupt,
    NextTurn,
}

impl TryFrom<Written> for Op {
    type Error = String;

    fn try_from(written: Written) -> Done<Self> {
        let Written { at, execute, mode, id, abort, seed, await_response } = written;
        let mode = mode.map(|mode| match mode {
            Mode::BetweenRounds => DeliveryMode::BetweenRounds,
            Mode::Interrupt => DeliveryMode::Interrupt,
            Mode::NextTurn => DeliveryMode::NextTurn,
        });
        let what = match (execute, id, mode, abort, seed, await_response) {
            (Some(text), Some(id), mode, None, None, None) => {
                What::Execute { text, mode: mode.unwrap_or(DeliveryMode::NextTurn), id }
            }
            (None, None, None, Some(reason), None, None) => What::Abort(reason),
            (None, None, None, None, Some(items), None) => What::Seed(items),
            (None, None, None, None, None, Some(label)) => What::AwaitResponse(label),
            _ => return Err(format!("the operation at `{at}` is none")),
        };
        Ok(Self { at, what })
    }
}

/// The thread of a vector.
#[derive(Clone)]
enum Place {
    Process { thread: Thread, events: Arc<Mutex<Stream>> },
    Engine(EngineThread),
}

/// Waiter for a response.
type Waiter = BoxFuture<'static, ()>;

#[derive(Clone, Default)]
struct World(Arc<Mutex<State>>);

#[derive(Default)]
struct State {
    place: Option<Place>,
    rounds: VecDeque<Round>,
    ops: Vec<Op>,
    calls: u32,
    inputs: Vec<Vec<String>>,
    observations: Vec<Value>,
    waiting: Vec<Waiter>,
    waiters: Map<String, Value>,
}

impl Place {
    async fn deliver(&self, id: &str, text: String, mode: DeliveryMode) -> Done<()> {
        match self {
            Self::Process { thread, .. } => {
                thread.execute_as(id, Message::user(text), mode).map(drop).map_err(|e| e.to_string())
            }
            Self::Engine(thread) => thread.deliver(id, Message::user(text), mode, true).await,
        }
    }

    /// The messages that wait, and the status.
    async fn observed(&self) -> (usize, Status) {
        match self {
            Self::Process { thread, .. } => (thread.queue_len(), thread.status()),
            Self::Engine(thread) => {
                let state = thread.state().await;
                (state.waiting(), state.shown_status())
            }
        }
    }

    async fn abort(&self, reason: String) -> Done<()> {
        match self {
            Self::Process { thread, .. } => drop(thread.abort(&*reason)),
            Self::Engine(thread) => {
                drop(thread.ask(ThreadAsk::Abort { reason: Some(reason.into()) }).await?);
            }
        }
        Ok(())
    }

    async fn seed(&self, items: Vec<Message>) -> Done<()> {
        match self {
            Self::Process { thread, .. } => {
                thread.seed_history(items).await.map(drop).map_err(|e| e.to_string())
            }
            Self::Engine(thread) => {
                let messages = items.into_iter().map(Arc::new).collect();
                thread.ask(ThreadAsk::Seed { messages }).await.map(drop)
            }
        }
    }

    async fn response(&self) -> Done<Report> {
        match self {
            Self::Process { thread, .. } => thread.response().await.map_err(|error| error.to_string()),
            Self::Engine(thread) => thread.response().await,
        }
    }

    async fn idle(&self) {
        match self {
            Self::Process { thread, .. } => thread.wait_idle().await,
            Self::Engine(thread) => drop(thread.idle().await),
        }
    }

    async fn history(&self) -> Done<Vec<String>> {
        match self {
            Self::Process { thread, .. } => {
                let messages = thread.messages().await.map_err(|e| e.to_string())?;
                Ok(messages.iter().flat_map(|message| codes(message)).collect())
            }
            Self::Engine(thread) => {
                let transcript = thread.transcript(u64::MAX);
                Ok(transcript.iter().flat_map(|message| codes(message)).collect())
            }
        }
    }

    /// The events so far.
    fn events(&self) -> Vec<ThreadEvent> {
        match self {
            Self::Process { events, .. } => {
                let mut events = events.lock();
                let told = std::iter::from_fn(|| events.try_next());
                told.filter_map(
                    |told| if let StreamItem::Event { event, .. } = told { Some(event) } else { None },
                )
                .collect()
            }
            Self::Engine(thread) => thread.events(),
        }
    }
}

impl World {
    fn new(rounds: VecDeque<Round>, ops: Vec<Op>) -> Self {
        Self(Arc::new(Mutex::new(State { rounds, ops, ..State::default() })))
    }

    /// The parts of its runs.
    fn runtime(&self, clock: Arc<dyn Clock>) -> Runtime {
        let mut config = ThreadConfig::new(ModelChoice::new(self.clone()), clock);
        config.ports.tools = Arc::new(Worker(self.clone()));
        (config.steering_mode, config.follow_up_mode) = (QueueMode::All, QueueMode::All);
        config.late_steering = LateSteering::NextTurn;
        Runtime::builder(config, Arc::new(Ids)).build()
    }

    fn lock(&self) -> MutexGuard<'_, State> {
        self.0.lock()
    }

    fn place(&self) -> Done<Place> {
        self.lock().place.clone().ok_or_else(|| "there is no thread".to_owned())
    }

    /// Plays the vector, beside those that wait for responses.
    async fn played(&self) -> Done<Value> {
        let mut script = pin!(self.script());
        poll_fn(|cx| {
            let mut waiting = std::mem::take(&mut self.lock().waiting);
            waiting.retain_mut(|waiter| waiter.as_mut().poll(cx).is_pending());
            self.lock().waiting.extend(waiting);
            script.as_mut().poll(cx)
        })
        .await
    }

    async fn script(&self) -> Done<Value> {
        let place = self.place()?;
        self.perform_at("start").await?;
        for idle in 1.. {
            place.idle().await;
            if !self.perform_at(&format!("idle:{idle}")).await? {
                break;
            }
        }
        // Waiters are answered behind the end.
        for _ in 0..8 {
            tokio::task::yield_now().await;
        }
        let history = place.history().await?;
        let turns: Vec<Value> = place.events().iter().filter_map(turn).collect();
        let state = self.lock();
        Ok(json!({
            "model_inputs": state.inputs,
            "turns": turns,
            "observations": state.observations,
            "waiters": state.waiters,
            "history": history,
        }))
    }

    /// Whether an operation at this point stops the current work.
    fn stops_at(&self, point: &str) -> bool {
        let stops = |what: &What| {
            matches!(what, What::Abort(_) | What::Execute { mode: DeliveryMode::Interrupt, .. })
        };
        self.lock().ops.iter().any(|op| op.at == point && stops(&op.what))
    }

    /// Performs what is to be done at this point. Whether there was anything.
    async fn perform_at(&self, point: &str) -> Done<bool> {
        let ops: Vec<Op> = self.lock().ops.iter().filter(|op| op.at == point).cloned().collect();
        let is_any = !ops.is_empty();
        for op in ops {
            self.perform(op.what).await?;
        }
        Ok(is_any)
    }

    async fn perform(&self, what: What) -> Done<()> {
        let place = self.place()?;
        match what {
            What::Execute { text, mode, id } => {
                place.deliver(&id, text, mode).await?;
                let (waiting, status) = place.observed().await;
                let status = match status {
                    Status::Idle => "idle",
                    Status::Aborting { .. } => "aborting",
                    _ => "generating",
                };
                let observed = json!({"after": id, "queue_size": waiting, "status": status});
                self.lock().observations.push(observed);
            }
            What::Abort(reason) => place.abort(reason).await?,
            What::Seed(items) => {
                let items = items.iter().map(|code| seeded(code)).collect::<Done<Vec<Message>>>()?;
                place.seed(items).await?;
            }
            What::AwaitResponse(label) => {
                let world = self.clone();
                let mut waiter: Waiter = Box::pin(async move {
                    let answer = match place.response().await {
                        Ok(report) => report
                            .problem()
                            .map_or(json!({"ok": report.answer()}), |why| json!({"error": why})),
                        Err(error) => json!({"error": error}),
                    };
                    world.lock().waiters.insert(label, answer);
                });
                // It asks before anything else happens.
                if poll_fn(|cx| Poll::Ready(waiter.as_mut().poll(cx))).await.is_pending() {
                    self.lock().waiting.push(waiter);
                }
            }
        }
        Ok(())
    }

    async fn answer(
        &self,
        request: &ModelRequest,
        deltas: &dyn Deltas,
    ) -> Result<AssistantMessage, ModelFault> {
        let point = {
            let mut state = self.lock();
            let mut input = Vec::new();
            request.view.for_each(|message| input.extend(codes(message)));
            state.inputs.push(input);
            state.calls += 1;
            format!("call:{}", state.calls)
        };
        let round = self.lock().rounds.pop_front().ok_or_else(|| failed("no round is left"))?;
        self.perform_at(&point).await.map_err(|fault| failed(&fault))?;
        if self.stops_at(&point) {
            request.cancel.cancelled().await;
            return Err(ModelFault::new(ModelFaultCode::Cancelled, "asked to stop"));
        }
        match round.throw {
            // What a client throws is a refused request, which no model step goes on from.
            Some(why) => Err(ModelFault { http_status: Some(500), ..failed(&why) }),
            None => said(&round.items, deltas).map_err(|fault| failed(&fault)),
        }
    }
}

fn failed(why: &str) -> ModelFault {
    ModelFault::new(ModelFaultCode::Provider, why)
}

impl Model for World {
    async fn step(&self, request: ModelRequest, deltas: &dyn Deltas) -> Result<AssistantMessage, ModelFault> {
        self.answer(&request, deltas).await
    }
}

/// The tool of all calls.
struct Worker(World);

impl ToolRegistry for Worker {
    async fn list(&self, _: &ToolScope) -> Result<Arc<[ToolDef]>, Fault> {
        Ok(Arc::from([ToolDef::new("work", "")]))
    }

    async fn call(&self, cx: ToolCx) -> Result<ToolOutcome, Fault> {
        let done = self.0.perform_at(&format!("tool:{}", cx.call.id)).await;
        done.map_err(|error| Fault::new(FaultSource::Tool, "vector", error))?;
        Ok(ToolOutcome::text(format!("done {}", cx.call.id)))
    }
}

fn seeded(code: &str) -> Done<Message> {
    match code.split_once(':') {
        Some(("u", text)) => Ok(Message::user(text)),
        Some(("a", text)) => Ok(AssistantMessage::text(text).into()),
        _ => Err(format!("`{code}` cannot be seeded")),
    }
}

fn turn(event: &ThreadEvent) -> Option<Value> {
    match event {
        ThreadEvent::RunStarted { entries, .. } => {
            Some(json!({"event": "turn_started", "message_ids": entries}))
        }
        ThreadEvent::RunEnded(report) => Some(match report.problem() {
            None => json!({"event": "turn_completed"}),
            Some(reason) => {
                let kind = report.aborted.as_ref().map(|_| "cancelled");
                json!({"event": "turn_aborted", "reason": reason, "kind": kind})
            }
        }),
        ThreadEvent::Event(event) => {
            let EventKind::SteeringInjected { entries } = &event.kind else { return None };
            Some(json!({"event": "inbox_injected", "round": event.iteration, "message_ids": entries}))
        }
        _ => None,
    }
}
