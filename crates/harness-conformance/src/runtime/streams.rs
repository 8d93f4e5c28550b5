//! Vectors of kind `streams`: the stream of a working thread.

#![expect(
    clippy::wildcard_enum_match_arm,
    reason = "what the vectors have no word for is passed over, whatever is added"
)]

use std::collections::VecDeque;
use std::sync::Arc;
use std::time::Duration;

use harness_core::Json;
use harness_core::message::{AssistantMessage, Block, FinishReason, Message, ToolCall};
use harness_core::port::{Clock, DeltaPart, Deltas, Model, ModelFault, ModelFaultCode, ModelRequest};
use harness_core::tool::{FnTool, ToolCx, Toolbox};
use harness_restate::durable::SimEngine;
use harness_restate::durable::sim::SimFaults;
use harness_runtime::{
    DeliveryMode, Item, ItemContent, Items, ModelChoice, PartialBlock, Runtime, StartAt, ThreadConfig,
    ThreadEvent,
};
use parking_lot::Mutex;
use serde::Deserialize;
use serde_json::{Value, json};

use super::{Ids, block_code, codes};
use crate::Done;
use crate::case::{each, on_paused_time};
use crate::clock::PausedClock;
use crate::driver::durable::{EngineThread, beside};
use crate::driver::{Driver, Threads};
use crate::vector::Vector;
use crate::verdict::Verdict;

/// Runs the vector.
pub(crate) fn run(vector: &Vector, driver: &dyn Driver) -> Verdict {
    each(vector, |input| match driver.threads() {
        Some(Threads::OnEngine) => streamed_by_engine(input),
        _ => on_paused_time(streamed(input)),
    })
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Input {
    messages: Vec<String>,
    model: VecDeque<Round>,
    #[serde(default)]
    late: bool,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Round {
    items: Vec<String>,
}

/// Items of the streams of the thread, and whether they ended.
async fn streamed(Input { messages, model, late }: Input) -> Done<Value> {
    let thread = runtime(model, Arc::new(PausedClock::new())).thread("vector");
    let live = (thread.text(StartAt::Live), thread.items(StartAt::Live));
    for message in messages {
        thread.prompt(Message::user(message)).await.map_err(|e| e.to_string())?;
    }
    let (mut text, mut items) =
        if late { (thread.text(StartAt::Replay), thread.items(StartAt::Replay)) } else { live };
    let (mut deltas, mut ended) = (Vec::new(), false);
    // Paused time passes only when nothing more comes.
    while let Ok(delta) = tokio::time::timeout(Duration::from_millis(1), text.next()).await {
        ended = delta.is_none();
        let Some(delta) = delta else { break };
        deltas.push(delta);
    }
    Ok(told(&deltas, std::iter::from_fn(|| items.try_next()), ended))
}

/// Items of a thread on an engine, whose stream has no end.
fn streamed_by_engine(Input { messages, model, .. }: Input) -> Done<Value> {
    let engine = SimEngine::new(SimFaults::default());
    let runtime = runtime(model, Arc::new(engine.clock()));
    let thread = EngineThread::new(&engine, "vector");
    let events = beside(&engine, &thread, runtime, async {
        for (at, message) in messages.into_iter().enumerate() {
            thread.deliver(&format!("m{at}"), Message::user(message), DeliveryMode::NextTurn, true).await?;
            thread.idle().await;
        }
        Ok(thread.events())
    })?;
    let text = |event: &ThreadEvent| match event {
        ThreadEvent::Delta(DeltaPart::Text(text)) => Some(text.clone()),
        _ => None,
    };
    let deltas: Vec<String> = events.iter().filter_map(text).collect();
    let mut items = Items::default();
    Ok(told(&deltas, events.iter().flat_map(|event| items.take(event)), false))
}

fn told(deltas: &[String], items: impl Iterator<Item = Item>, ended: bool) -> Value {
    let snapshots: Vec<String> = items.map(|item| snapshot(&item)).collect();
    json!({"text_deltas": deltas, "item_snapshots": snapshots, "text_stream_ended": ended})
}

fn runtime(model: VecDeque<Round>, clock: Arc<dyn Clock>) -> Runtime {
    let model = ModelChoice::new(Rounds(Arc::new(Mutex::new(model))));
    let mut config = ThreadConfig::new(model, clock);
    let work = FnTool::with_schema("work", "", Json::empty_object(), |_: Json, cx: ToolCx| async move {
        format!("done {}", cx.call.id)
    });
    config.ports.tools = Arc::new(Toolbox::new([Arc::new(work) as _]));
    Runtime::builder(config, Arc::new(Ids)).build()
}

/// Says one round after another.
struct Rounds(Arc<Mutex<VecDeque<Round>>>);

impl Model for Rounds {
    async fn step(&self, _: ModelRequest, deltas: &dyn Deltas) -> Result<AssistantMessage, ModelFault> {
        let failed = |why: String| ModelFault::new(ModelFaultCode::Provider, why);
        let round = self.0.lock().pop_front().ok_or_else(|| failed("no round is left".to_owned()))?;
        said(&round.items, deltas).map_err(failed)
    }
}

/// The answer with these items, streamed: a text in two halves of UTF-16 units, a call as its start and its arguments.
pub(super) fn said(items: &[String], deltas: &dyn Deltas) -> Done<AssistantMessage> {
    let (mut content, mut calls) = (Vec::new(), 0);
    for item in items {
        if let Some(said) = item.strip_prefix("a:") {
            for piece in halves(said).into_iter().filter(|piece| !piece.is_empty()) {
                deltas.part(DeltaPart::Text(piece));
            }
            content.push(Block::text(said));
        } else if let Some(call) = item.strip_prefix("call:") {
            let call = called(call)?;
            let (id, name) = (Some(call.id.clone()), call.name.clone());
            deltas.part(DeltaPart::CallStarted { index: calls, id, name });
            deltas.part(DeltaPart::CallArguments { index: calls, text: call.arguments.text().to_owned() });
            calls += 1;
            content.push(Block::ToolCall(Arc::new(call)));
        } else {
            return Err(format!("invalid item `{item}`"));
        }
    }
    let mut answer = AssistantMessage::default();
    answer.content = content;
    answer.stop_reason = if calls > 0 { FinishReason::ToolUse } else { FinishReason::Stop };
    Ok(answer)
}

/// `ID`, or `ID:TOOL:ARGUMENTS`.
fn called(call: &str) -> Done<ToolCall> {
    let Some((id, rest)) = call.split_once(':') else {
        return Ok(ToolCall::new(call, "work", Json::empty_object()));
    };
    let (name, arguments) = rest.split_once(':').ok_or_else(|| format!("invalid call `{call}`"))?;
    Ok(ToolCall::new(id, name, Json::parse(arguments).map_err(|e| e.to_string())?))
}

fn halves(text: &str) -> [String; 2] {
    let half = text.encode_utf16().count().div_ceil(2);
    let mut units = 0;
    let (first, second): (Vec<char>, Vec<char>) = text.chars().partition(|character| {
        units += character.len_utf16();
        units <= half
    });
    [first.into_iter().collect(), second.into_iter().collect()]
}

fn snapshot(item: &Item) -> String {
    let mark = if item.complete { "done" } else { "part" };
    let code = match &item.content {
        ItemContent::Message(message) => codes(message).join(" "),
        ItemContent::Coming(PartialBlock::Text(text)) => format!("a:{text}"),
        ItemContent::Coming(PartialBlock::Call { id, arguments, .. }) => {
            format!("c:{} {arguments}", id.as_ref().map_or("", |id| id.as_str()))
        }
        ItemContent::Block(Block::ToolCall(call)) => format!("c:{} {}", call.id, call.arguments.text()),
        ItemContent::Block(block) => block_code(block).unwrap_or_default(),
        _ => "?".to_owned(),
    };
    format!("{mark} {code}")
}
