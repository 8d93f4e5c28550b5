//! Vectors of kinds `delivery-mode` and `streams`: threads and what they tell.

#![expect(
    clippy::wildcard_enum_match_arm,
    reason = "what the vectors have no word for is passed over, whatever is added"
)]

use std::collections::VecDeque;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use harness_core::event::EventKind;
use harness_core::message::{AssistantMessage, Block, FinishReason, Message, ToolCall};
use harness_core::port::{
    DeltaPart, Deltas, Model, ModelFault, ModelFaultCode, ModelRequest, ToolCx, ToolDef, ToolOutcome,
    ToolRegistry, ToolScope,
};
use harness_core::testing::VirtualClock;
use harness_core::{Fault, FaultSource, Json, Time};
use harness_runtime::{
    DeliveryMode, Item, ItemContent, LateSteering, ModelChoice, PartialBlock, QueueMode, Runtime, StartAt,
    Status, Thread, ThreadConfig, ThreadEvent, Told,
};
use serde_json::{Map, Value, json};

use super::super::memory::{each_with, matches};
use super::super::turn::convert::{Done, at, list, text};
use super::{Ids, block_code, codes, poll_once};
use crate::vector::Vector;
use crate::verdict::Verdict;

/// Runs all vectors of a file of kind `delivery-mode`.
pub(crate) fn delivery(vector: &Vector) -> Verdict {
    each_with(vector, |input| blocking(delivered(input)), |expected, got| matches("expected", expected, got))
}

/// Runs all vectors of a file of kind `streams`.
pub(crate) fn streams(vector: &Vector) -> Verdict {
    each_with(vector, |input| blocking(streamed(input)), |expected, got| matches("expected", expected, got))
}

fn blocking(work: impl Future<Output = Done<Value>>) -> Done<Value> {
    let runtime = tokio::runtime::Builder::new_current_thread().build().map_err(|e| e.to_string())?;
    runtime.block_on(work)
}

async fn delivered(input: &Value) -> Done<Value> {
    let world = World::new(input)?;
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
    let state = world.lock();
    Ok(json!({
        "model_inputs": state.inputs,
        "turns": turns,
        "observations": state.observations,
        "waiters": state.waiters,
        "history": history,
    }))
}

async fn streamed(input: &Value) -> Done<Value> {
    let world = World::new(input)?;
    let thread = world.thread()?;
    let late = at(input, "late") == true;
    let live = (thread.text(StartAt::Live), thread.items(StartAt::Live));
    for message in list(input, "messages").iter().filter_map(Value::as_str) {
        thread.prompt_items([Message::user(message)]).await.map_err(|e| e.to_string())?;
    }
    let (mut text, mut items) =
        if late { (thread.text(StartAt::Replay), thread.items(StartAt::Replay)) } else { live };
    let (mut deltas, mut ended) = (Vec::new(), false);
    loop {
        match poll_once(std::pin::pin!(text.next())) {
            Some(Some(delta)) => deltas.push(delta),
            Some(None) => ended = true,
            None => {}
        }
        if ended || deltas.len() >= world.lock().pieces {
            break;
        }
    }
    let snapshots: Vec<String> =
        std::iter::from_fn(|| items.try_next()).map(|item| snapshot(&item)).collect();
    ended |= poll_once(std::pin::pin!(text.next())).is_some();
    Ok(json!({"text_deltas": deltas, "item_snapshots": snapshots, "text_stream_ended": ended}))
}

#[derive(Clone)]
struct World(Arc<Mutex<State>>);

#[derive(Default)]
struct State {
    thread: Option<Thread>,
    rounds: VecDeque<Value>,
    ops: Vec<Value>,
    calls: u32,
    /// Pieces of text that were told.
    pieces: usize,
    inputs: Vec<Vec<String>>,
    observations: Vec<Value>,
    waiters: Map<String, Value>,
}

impl World {
    fn new(input: &Value) -> Done<Self> {
        let rounds = list(input, "model").iter().cloned().collect();
        let state = State { rounds, ops: list(input, "ops").to_vec(), ..State::default() };
        let world = Self(Arc::new(Mutex::new(state)));
        let mut config = ThreadConfig::new(ModelChoice::new(world.clone()));
        config.tools = Arc::new(Worker(world.clone()));
        (config.steering_mode, config.follow_up_mode) = (QueueMode::All, QueueMode::All);
        config.late_steering = LateSteering::NextTurn;
        let clock = Arc::new(VirtualClock::still(Time(0)));
        let runtime = Runtime::builder(config, clock, Arc::new(Ids)).build().map_err(|e| e.to_string())?;
        world.lock().thread = Some(runtime.thread("vector"));
        Ok(world)
    }

    fn lock(&self) -> MutexGuard<'_, State> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn thread(&self) -> Done<Thread> {
        self.lock().thread.clone().ok_or_else(|| "there is no thread".to_owned())
    }

    /// Whether an operation at this point stops what is going on.
    fn stops_at(&self, point: &str) -> bool {
        let stops = |op: &&Value| text(op, "mode") == "interrupt" || op.get("abort").is_some();
        self.lock().ops.iter().filter(|op| text(op, "at") == point).any(|op| stops(&op))
    }

    /// Performs what is to be done at this point. Whether there was anything.
    async fn perform_at(&self, point: &str) -> Done<bool> {
        let ops: Vec<Value> = self.lock().ops.iter().filter(|op| text(op, "at") == point).cloned().collect();
        for op in &ops {
            self.perform(op).await?;
        }
        Ok(!ops.is_empty())
    }

    async fn perform(&self, op: &Value) -> Done<()> {
        let thread = self.thread()?;
        if let Some(said) = op.get("execute").and_then(Value::as_str) {
            let mode = match text(op, "mode") {
                "between-rounds" => DeliveryMode::BetweenRounds,
                "interrupt" => DeliveryMode::Interrupt,
                _ => DeliveryMode::NextTurn,
            };
            thread.execute_as(text(op, "id"), Message::user(said), mode).map_err(|e| e.to_string())?;
            let status = match thread.status() {
                Status::Idle => "idle",
                Status::Aborting { .. } => "aborting",
                _ => "generating",
            };
            let observed =
                json!({"after": text(op, "id"), "queue_size": thread.queue_len(), "status": status});
            self.lock().observations.push(observed);
        } else if let Some(reason) = op.get("abort").and_then(Value::as_str) {
            thread.abort(reason);
        } else if op.get("seed").is_some() {
            let seed = list(op, "seed").iter().filter_map(Value::as_str).map(seeded);
            thread.seed_history(seed.collect::<Done<Vec<Message>>>()?).await.map_err(|e| e.to_string())?;
        } else if let Some(label) = op.get("await_response").and_then(Value::as_str) {
            let (world, label) = (self.clone(), label.to_owned());
            let mut waits = Box::pin(async move {
                let answer = match thread.response().await {
                    Ok(report) => {
                        report.problem().map_or(json!({"ok": report.text()}), |why| json!({"error": why}))
                    }
                    Err(error) => json!({"error": error.to_string()}),
                };
                world.lock().waiters.insert(label, answer);
            });
            // It asks before anything else happens.
            if poll_once(waits.as_mut()).is_none() {
                tokio::spawn(waits);
            }
        }
        Ok(())
    }
}

impl Model for World {
    async fn step(&self, request: ModelRequest, deltas: &dyn Deltas) -> Result<AssistantMessage, ModelFault> {
        let failed = |why: &str| ModelFault::new(ModelFaultCode::Provider, why);
        let (round, point) = {
            let mut state = self.lock();
            let mut input = Vec::new();
            request.view.for_each(|message| input.extend(codes(message)));
            state.inputs.push(input);
            state.calls += 1;
            (state.rounds.pop_front(), format!("call:{}", state.calls))
        };
        let round = round.ok_or_else(|| failed("no round is left"))?;
        self.perform_at(&point).await.map_err(|error| failed(&error))?;
        if self.stops_at(&point) {
            request.cancel.cancelled().await;
            return Err(ModelFault::new(ModelFaultCode::Cancelled, "told to stop"));
        }
        if let Some(why) = round.get("throw").and_then(Value::as_str) {
            // What a client throws is a refused request, which no model step goes on from.
            return Err(failed(why).with_status(500));
        }
        let (mut content, mut calls) = (Vec::new(), 0);
        for item in list(&round, "items").iter().filter_map(Value::as_str) {
            if let Some(said) = item.strip_prefix("a:") {
                let half = said.chars().count().div_ceil(2);
                let pieces: [String; 2] =
                    [said.chars().take(half).collect(), said.chars().skip(half).collect()];
                for piece in pieces.into_iter().filter(|piece| !piece.is_empty()) {
                    self.lock().pieces += 1;
                    deltas.part(DeltaPart::Text(piece));
                }
                content.push(Block::text(said));
            } else if let Some(id) = item.strip_prefix("call:") {
                deltas.part(DeltaPart::CallStarted {
                    index: calls,
                    id: Some(id.into()),
                    name: "work".into(),
                });
                calls += 1;
                content.push(Block::ToolCall(Arc::new(ToolCall::new(id, "work", Json::empty_object()))));
            }
        }
        let mut answer = AssistantMessage::default();
        answer.content = content;
        answer.stop_reason = if calls > 0 { FinishReason::ToolUse } else { FinishReason::Stop };
        Ok(answer)
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

fn turn(told: &Told) -> Option<Value> {
    let Told::Event { event, .. } = told else { return None };
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

fn snapshot(item: &Item) -> String {
    let mark = if item.complete { "done" } else { "part" };
    let code = match &item.content {
        ItemContent::Message(message) => codes(message).join(" "),
        ItemContent::Coming(PartialBlock::Text(text)) => format!("a:{text}"),
        ItemContent::Block(block) => block_code(block).unwrap_or_default(),
        _ => "c:".to_owned(),
    };
    format!("{mark} {code}")
}
