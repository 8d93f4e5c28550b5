//! Vectors of kind `model-rounds`: one turn, from the prompt to its answer.

#![expect(
    clippy::wildcard_enum_match_arm,
    reason = "what the vectors have no word for is passed over, whatever is added"
)]

use std::collections::VecDeque;
use std::sync::{Arc, Mutex};

use harness_core::event::EventKind;
use harness_core::message::{
    AssistantMessage, Block, FinishReason, Message, ToolCall, ToolResultMessage, Usage,
};
use harness_core::outcome::{Evidence, StopReason};
use harness_core::port::{
    Deltas, Model, ModelFault, ModelFaultCode, ModelRequest, ToolCx, ToolDef, ToolOutcome, ToolRegistry,
    ToolScope,
};
use harness_core::testing::VirtualClock;
use harness_core::{Fault, Json, Time};
use harness_memory::layer::{Decision, FnLayer, Hook, LayerDef, LayerSetup, Pipeline};
use harness_runtime::{ModelChoice, Report, Runtime, StartAt, Stream, ThreadConfig, ThreadEvent, Told};
use serde_json::{Map, Value, json};

use super::super::memory::{each_with, matches};
use super::super::turn::convert::{Done, at, list, text};
use super::{Ids, codes, locked};
use crate::vector::Vector;
use crate::verdict::Verdict;

/// Runs all vectors of the file.
pub(crate) fn run(vector: &Vector) -> Verdict {
    each_with(vector, check, |expected, got| matches("expected", expected, got))
}

fn check(input: &Value) -> Done<Value> {
    let runtime = tokio::runtime::Builder::new_current_thread().build().map_err(|e| e.to_string())?;
    runtime.block_on(played(input))
}

async fn played(input: &Value) -> Done<Value> {
    let world = World::default();
    locked(&world.0).rounds = list(input, "model").iter().cloned().collect();
    let clock = Arc::new(VirtualClock::still(Time(0)));
    let mut config = ThreadConfig::new(ModelChoice::new(world.clone()));
    config.run.turn.continue_broken = 3;
    let pool = input.get("pool").and_then(Value::as_array);
    let names: Vec<&str> = match pool {
        Some(pool) => pool.iter().filter_map(Value::as_str).collect(),
        None => vec!["work", "fail"],
    };
    config.tools = Arc::new(Tools {
        world: world.clone(),
        defs: names.iter().map(|name| ToolDef::new(*name, "")).collect(),
    });
    if let Some(allowed) = input.get("allowed").and_then(Value::as_array) {
        config.active_tools = Some(allowed.iter().filter_map(Value::as_str).map(Into::into).collect());
    }
    if let Some(rules) = input.get("steering") {
        let layers = LayerSetup::new().with(steering(rules));
        let layers = Pipeline::build(layers, clock.clone()).map_err(|e| e.to_string())?;
        config.gates = vec![Arc::new(layers.gate())];
        config.layers = Some(Arc::new(layers));
    }
    let runtime = Runtime::builder(config, clock, Arc::new(Ids)).build().map_err(|e| e.to_string())?;
    let thread = runtime.thread("vector");
    let mut events = thread.events(StartAt::Live);
    let report = thread.prompt("go").await.map_err(|e| e.to_string())?;
    let messages: Vec<Arc<Message>> = report.transcript.iter().cloned().collect();
    let world = locked(&world.0);
    Ok(json!({
        "rounds": world.inputs.len(),
        "last_input": world.inputs.last(),
        "result": result(&report, &messages),
        "outputs": if report.is_completed() { outputs(&messages) } else { Value::Null },
        "tool_runs": world.runs,
        "events": told(&mut events, &report),
    }))
}

/// What the layers think of calls, by the name of the tool.
fn steering(rules: &Value) -> FnLayer {
    let rules = rules.clone();
    FnLayer::new(LayerDef::new("rules", 10, [Hook::BeforeTool])).on_before_tool(move |ask, _| {
        let rule = at(&rules, ask.def.name.as_str()).clone();
        async move {
            let part = |n: usize| rule.get(n).and_then(Value::as_str);
            let guidance = part(1).map(str::to_owned);
            Ok(match part(0) {
                Some("deny") => Decision::Deny { guidance },
                Some("guide") => Decision::Guide { guidance },
                _ => Decision::Allow,
            }
            .into())
        }
    })
}

fn result(report: &Report, messages: &[Arc<Message>]) -> Value {
    if !report.is_completed() {
        return json!({"error": {"message": error(report)}});
    }
    let usage = &report.end.usage;
    json!({
        "text": report.text(),
        "usage": {"inputTokens": usage.input_tokens, "outputTokens": usage.output_tokens},
        "items": messages.iter().flat_map(|message| codes(message)).collect::<Vec<_>>(),
    })
}

/// Why there is no answer, in the source's words.
fn error(report: &Report) -> String {
    let stop = &report.end.stop;
    match &stop.evidence {
        Evidence::Fault(fault) => match &*fault.code {
            "incomplete_answer" => {
                let filtered = fault.message.ends_with(FinishReason::ContentFilter.as_str());
                let reason = if filtered { "content_filter" } else { "max_output_tokens" };
                format!("LLM response incomplete: {reason}")
            }
            "empty_answer" => "LLM response completed with no output items".to_owned(),
            code if code == ModelFaultCode::Provider.as_str() => {
                format!("LLM response failed: {}", fault.message)
            }
            _ => fault.message.clone(),
        },
        _ if stop.reason == StopReason::MaxIterationsReached => {
            "LLM exceeded maximum tool rounds (32)".to_owned()
        }
        _ => report.problem().unwrap_or_default(),
    }
}

fn outputs(messages: &[Arc<Message>]) -> Value {
    let calls: Vec<&Arc<ToolCall>> = messages
        .iter()
        .filter_map(|message| message.as_assistant())
        .flat_map(AssistantMessage::tool_calls)
        .collect();
    let results = messages.iter().filter_map(|message| message.as_tool_result());
    let told = results.map(|result| {
        let call = calls.iter().find(|call| call.id == result.tool_call_id);
        (result.tool_call_id.to_string(), json!(output(result, call.copied())))
    });
    Value::Object(told.collect())
}

/// A tool result, in the source's words.
fn output(result: &ToolResultMessage, call: Option<&Arc<ToolCall>>) -> String {
    let said: String = result.content.iter().filter_map(Block::as_text).collect();
    let outcome: Value = result.outcome.as_ref().and_then(|outcome| outcome.to().ok()).unwrap_or_default();
    match text(&outcome, "errorCode") {
        _ if !result.is_error => said,
        "tool_blocked" => said,
        "unknown_tool" => format!("Error: unknown tool '{}'", result.tool_name),
        "malformed_arguments" => {
            let raw = call.and_then(|call| call.rare.raw_arguments.clone()).unwrap_or_default();
            format!("Error: malformed JSON in tool arguments: {raw}")
        }
        _ => format!("Error: {said}"),
    }
}

/// What was told of model calls, in the source's words.
fn told(events: &mut Stream, report: &Report) -> Vec<&'static str> {
    let mut told = Vec::new();
    while let Some(Told::Event { event: ThreadEvent::Event(event), .. }) = next_event(events) {
        match &event.kind {
            EventKind::ModelStepStarted { .. } => told.push("model_call_started"),
            EventKind::ModelStepFinished { .. } => told.push("model_call_completed"),
            EventKind::ModelStepFailed { .. } => told.push("model_call_failed"),
            EventKind::ModelStepContinued { .. } => {
                broke_off(&mut told);
                told.push("model_call_recovery_continue");
            }
            EventKind::LimitReached { reason: StopReason::MaxIterationsReached, .. } => {
                told.push("tool_round_limit_exceeded");
            }
            _ => {}
        }
    }
    if matches!(&report.end.stop.evidence, Evidence::Fault(_)) {
        broke_off(&mut told);
    }
    told
}

fn next_event(events: &mut Stream) -> Option<Told> {
    std::iter::from_fn(|| events.try_next())
        .find(|told| matches!(told, Told::Event { event: ThreadEvent::Event(_), .. }))
}

/// To the source, a step whose answer is no whole one has failed.
fn broke_off(told: &mut [&'static str]) {
    if let Some(last) = told.last_mut() {
        *last = "model_call_failed";
    }
}

#[derive(Clone, Default)]
struct World(Arc<Mutex<State>>);

#[derive(Default)]
struct State {
    rounds: VecDeque<Value>,
    inputs: Vec<Vec<String>>,
    runs: Vec<Value>,
}

impl Model for World {
    async fn step(&self, request: ModelRequest, _: &dyn Deltas) -> Result<AssistantMessage, ModelFault> {
        let mut input = Vec::new();
        request.view.for_each(|message| input.extend(codes(message)));
        let mut state = locked(&self.0);
        state.inputs.push(input);
        let round = state.rounds.pop_front();
        let round = round.ok_or_else(|| ModelFault::new(ModelFaultCode::Unknown, "no round is left"))?;
        if let Some(why) = round.get("throw").and_then(Value::as_str) {
            return Err(ModelFault::new(ModelFaultCode::Unknown, why));
        }
        let answer = answer(&round);
        match text(&round, "status") {
            "failed" => {
                Err(ModelFault::new(ModelFaultCode::Provider, text(&round, "error")).with_partial(answer))
            }
            _ => Ok(answer),
        }
    }
}

fn answer(round: &Value) -> AssistantMessage {
    let items = list(round, "items").iter().filter_map(Value::as_str);
    let mut answer = AssistantMessage::default().with_usage(Usage::tokens(10, 5));
    answer.content = items.filter_map(block).collect();
    answer.stop_reason = match (text(round, "status"), text(round, "incomplete_reason")) {
        ("incomplete", "content_filter") => FinishReason::ContentFilter,
        ("incomplete", _) => FinishReason::Length,
        _ if answer.tool_calls().next().is_some() => FinishReason::ToolUse,
        _ => FinishReason::Stop,
    };
    answer
}

/// `a:text` or `call:ID:TOOL:ARGUMENTS`.
fn block(item: &str) -> Option<Block> {
    if let Some(said) = item.strip_prefix("a:") {
        return Some(Block::text(said));
    }
    let mut parts = item.strip_prefix("call:")?.splitn(3, ':');
    let (id, name, written) = (parts.next()?, parts.next()?, parts.next().unwrap_or_default());
    let arguments = if written.is_empty() { Ok(Json::empty_object()) } else { Json::parse(written) };
    let mut call = ToolCall::new(id, name, arguments.as_ref().cloned().unwrap_or_default());
    if arguments.is_err() {
        call.rare.raw_arguments = Some(written.to_owned());
        call.rare.arguments_mode = Some("invalid".to_owned());
    }
    Some(Block::ToolCall(Arc::new(call)))
}

/// `work` gives what it was asked for, `fail` fails.
struct Tools {
    world: World,
    defs: Arc<[ToolDef]>,
}

impl ToolRegistry for Tools {
    async fn list(&self, _: &ToolScope) -> Result<Arc<[ToolDef]>, Fault> {
        Ok(Arc::clone(&self.defs))
    }

    async fn call(&self, cx: ToolCx) -> Result<ToolOutcome, Fault> {
        let arguments: Map<String, Value> = cx.call.arguments.to().unwrap_or_default();
        let n = arguments.get("n").map(Value::to_string).unwrap_or_default();
        locked(&self.world.0).runs.push(json!([cx.call.name, arguments]));
        Ok(match cx.call.name.as_str() {
            "fail" => ToolOutcome::error("tool_failed", "disk full"),
            _ => ToolOutcome::text(format!("w{n}")),
        })
    }
}
