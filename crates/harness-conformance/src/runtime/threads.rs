//! Vectors of kind `delivery-mode`: messages delivered to a working thread.

#![expect(
    clippy::wildcard_enum_match_arm,
    reason = "what the vectors have no word for is passed over, whatever is added"
)]

use std::collections::VecDeque;
use std::sync::Arc;

use harness_core::event::EventKind;
use harness_core::message::{AssistantMessage, Message};
use harness_core::port::{Deltas, Model, ModelFault, ModelFaultCode, ModelRequest};
use harness_core::tool::{ToolCx, ToolDef, ToolOutcome, ToolRegistry, ToolScope};
use harness_core::{Fault, FaultSource};
use harness_runtime::{
    DeliveryMode, LateSteering, ModelChoice, QueueMode, Runtime, StartAt, Status, StreamItem, Thread,
    ThreadConfig, ThreadEvent,
};
use parking_lot::Mutex;
use serde::Deserialize;
use serde_json::{Map, Value, json};

use super::streams::said;
use super::{Ids, codes};
use crate::Done;
use crate::case::{each, on_paused_time};
use crate::clock::PausedClock;
use crate::vector::Vector;
use crate::verdict::Verdict;

/// Runs the vector.
pub(crate) fn run(vector: &Vector) -> Verdict {
    each(vector, |input| on_paused_time(delivered(input)))
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

async fn delivered(input: Input) -> Done<Value> {
    let world = World::new(input.model, input.ops);
    let thread = world.thread()?;
    let mut events = thread.events(StartAt::Live);
    world.perform_at("start").await?;
    for idle in 1.. {
        thread.wait_idle().await;
        if !world.perform_at(&format!("idle:{idle}")).await? {
            break;
        }
    }
    // Waiters are answered behind the end.
    for _ in 0..8 {
        tokio::task::yield_now().await;
    }
    let history = thread.messages().await.map_err(|e| e.to_string())?;
    let history: Vec<String> = history.iter().flat_map(|message| codes(message)).collect();
    let turns: Vec<Value> = std::iter::from_fn(|| events.try_next()).filter_map(|told| turn(&told)).collect();
    let state = world.0.lock();
    Ok(json!({
        "model_inputs": state.inputs,
        "turns": turns,
        "observations": state.observations,
        "waiters": state.waiters,
        "history": history,
    }))
}

#[derive(Clone)]
struct World(Arc<Mutex<State>>);

#[derive(Default)]
struct State {
    thread: Option<Thread>,
    rounds: VecDeque<Round>,
    ops: Vec<Op>,
    calls: u32,
    inputs: Vec<Vec<String>>,
    observations: Vec<Value>,
    waiters: Map<String, Value>,
}

impl World {
    fn new(rounds: VecDeque<Round>, ops: Vec<Op>) -> Self {
        let state = State { rounds, ops, ..State::default() };
        let world = Self(Arc::new(Mutex::new(state)));
        let clock = Arc::new(PausedClock::new());
        let mut config = ThreadConfig::new(ModelChoice::new(world.clone()), clock);
        config.ports.tools = Arc::new(Worker(world.clone()));
        (config.steering_mode, config.follow_up_mode) = (QueueMode::All, QueueMode::All);
        config.late_steering = LateSteering::NextTurn;
        let runtime = Runtime::builder(config, Arc::new(Ids)).build();
        world.0.lock().thread = Some(runtime.thread("vector"));
        world
    }

    fn thread(&self) -> Done<Thread> {
        self.0.lock().thread.clone().ok_or_else(|| "there is no thread".to_owned())
    }

    /// Whether an operation at this point stops the current work.
    fn stops_at(&self, point: &str) -> bool {
        let stops = |what: &What| {
            matches!(what, What::Abort(_) | What::Execute { mode: DeliveryMode::Interrupt, .. })
        };
        self.0.lock().ops.iter().any(|op| op.at == point && stops(&op.what))
    }

    /// Performs what is to be done at this point. Whether there was anything.
    async fn perform_at(&self, point: &str) -> Done<bool> {
        let ops: Vec<Op> = self.0.lock().ops.iter().filter(|op| op.at == point).cloned().collect();
        let is_any = !ops.is_empty();
        for op in ops {
            self.perform(op.what).await?;
        }
        Ok(is_any)
    }

    async fn perform(&self, what: What) -> Done<()> {
        let thread = self.thread()?;
        match what {
            What::Execute { text, mode, id } => {
                thread.execute_as(&*id, Message::user(text), mode).map_err(|e| e.to_string())?;
                let status = match thread.status() {
                    Status::Idle => "idle",
                    Status::Aborting { .. } => "aborting",
                    _ => "generating",
                };
                let observed = json!({"after": id, "queue_size": thread.queue_len(), "status": status});
                self.0.lock().observations.push(observed);
            }
            What::Abort(reason) => drop(thread.abort(&*reason)),
            What::Seed(items) => {
                let items = items.iter().map(|code| seeded(code)).collect::<Done<Vec<Message>>>()?;
                thread.seed_history(items).await.map_err(|e| e.to_string())?;
            }
            What::AwaitResponse(label) => {
                let world = self.clone();
                tokio::spawn(async move {
                    let answer = match thread.response().await {
                        Ok(report) => report
                            .problem()
                            .map_or(json!({"ok": report.answer()}), |why| json!({"error": why})),
                        Err(error) => json!({"error": error.to_string()}),
                    };
                    world.0.lock().waiters.insert(label, answer);
                });
                // It asks before anything else happens.
                tokio::task::yield_now().await;
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
            let mut state = self.0.lock();
            let mut input = Vec::new();
            request.view.for_each(|message| input.extend(codes(message)));
            state.inputs.push(input);
            state.calls += 1;
            format!("call:{}", state.calls)
        };
        let round = self.0.lock().rounds.pop_front().ok_or_else(|| failed("no round is left"))?;
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

fn turn(told: &StreamItem) -> Option<Value> {
    let StreamItem::Event { event, .. } = told else { return None };
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
