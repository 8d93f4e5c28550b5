//! Vectors of kind `model-rounds`: one turn, from the prompt to its answer.

#![expect(
    clippy::wildcard_enum_match_arm,
    reason = "what the vectors have no word for is passed over, whatever is added"
)]

use std::collections::{BTreeMap, VecDeque};
use std::sync::Arc;

use harness::tools::Validated;
use harness_core::event::EventKind;
use harness_core::message::{AssistantMessage, Block, FinishReason, Message, ToolCall, Usage};
use harness_core::port::{Deltas, Model, ModelFault, ModelFaultCode, ModelRequest};
use harness_core::tool::{DynTool, FnTool, ToolOutcome, Toolbox};
use harness_core::{Evidence, Json, StopReason};
use harness_memory::layer::{Decision, FnLayer, Hook, LayerDef, LayerSetup, Pipeline};
use harness_runtime::{ModelChoice, Report, Runtime, StartAt, Stream, StreamItem, ThreadConfig, ThreadEvent};
use parking_lot::Mutex;
use serde::Deserialize;
use serde_json::{Map, Value, json};

use super::{Ids, codes};
use crate::Done;
use crate::case::{Case, exact, on_paused_time};
use crate::clock::PausedClock;
use crate::subset::matches;
use crate::vector::Vector;
use crate::verdict::Verdict;

/// Runs the vector. Of a refused or failed call only that its output is one of an error is compared.
pub(crate) fn run(vector: &Vector) -> Verdict {
    judged(vector).into()
}

fn judged(vector: &Vector) -> Done<()> {
    let Case { input, mut expect, .. } = Case::of(vector)?;
    let (got, errors) = on_paused_time(played(input))?;
    if let Some(outputs) = expect.get_mut("outputs").and_then(Value::as_object_mut) {
        for (id, output) in outputs.iter_mut().filter(|(id, _)| errors.contains(*id)) {
            if output.as_str().is_some_and(is_own_output) {
                return Err(format!("expected the tool's output for `{id}`, got an error"));
            }
            *output = json!("$nonempty");
        }
    }
    matches("expected", &expect, &got)
}

/// Whether a text is what the tool `work` gives.
fn is_own_output(text: &str) -> bool {
    text.strip_prefix('w').is_some_and(|n| n.parse::<f64>().is_ok())
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Input {
    model: VecDeque<Round>,
    #[serde(default)]
    steering: BTreeMap<String, (Action, String)>,
    pool: Option<Vec<ToolId>>,
    allowed: Option<Vec<String>>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Round {
    items: Vec<String>,
    status: Option<Status>,
    incomplete_reason: Option<Incomplete>,
    error: Option<String>,
}

#[derive(Clone, Copy, Deserialize)]
#[serde(rename_all = "lowercase")]
enum Status {
    Failed,
    Incomplete,
}

#[derive(Clone, Copy, Deserialize)]
#[serde(rename_all = "snake_case")]
enum Incomplete {
    MaxOutputTokens,
    ContentFilter,
}

#[derive(Clone, Copy, Deserialize)]
#[serde(rename_all = "lowercase")]
enum Action {
    Allow,
    Deny,
    Guide,
}

#[derive(Clone, Copy, Deserialize)]
#[serde(rename_all = "lowercase")]
enum ToolId {
    Work,
    Fail,
}

async fn played(input: Input) -> Done<(Value, Vec<String>)> {
    let world = World::default();
    world.0.lock().rounds = input.model;
    let clock = Arc::new(PausedClock::new());
    let mut config = ThreadConfig::new(ModelChoice::new(world.clone()), clock.clone());
    config.run.turn.continue_broken = 3;
    let pool = input.pool.unwrap_or_else(|| vec![ToolId::Work, ToolId::Fail]);
    let tools = pool.into_iter().map(|id| tool(id, &world)).collect::<Done<Vec<_>>>()?;
    config.ports.tools = Arc::new(Toolbox::new(tools));
    config.active_tools = input.allowed.map(|names| names.into_iter().map(Into::into).collect());
    if !input.steering.is_empty() {
        let layers = LayerSetup::new().with(steering(input.steering));
        let layers = Pipeline::build(layers, clock.clone()).map_err(|e| e.to_string())?;
        config.ports.gates = vec![layers.gate()];
        config.ports.layers = Some(Arc::new(layers));
    }
    let runtime = Runtime::builder(config, Arc::new(Ids)).build();
    let thread = runtime.thread("vector");
    let mut events = thread.events(StartAt::Live);
    let report = thread.prompt("go").await.map_err(|e| e.to_string())?;
    let messages: Vec<Arc<Message>> = report.transcript.iter().cloned().collect();
    let results = messages.iter().filter_map(|message| message.as_tool_result());
    let errors = results.filter(|result| result.is_error).map(|result| result.tool_call_id.to_string());
    let errors = errors.collect();
    let world = world.0.lock();
    let got = json!({
        "rounds": world.inputs.len(),
        "last_input": world.inputs.last(),
        "result": result(&report, &messages),
        "outputs": if report.is_completed() { outputs(&messages) } else { Value::Null },
        "tool_runs": world.runs,
        "events": told(&mut events, &report),
    });
    Ok((got, errors))
}

/// Builds a layer that decides on calls by tool name.
fn steering(rules: BTreeMap<String, (Action, String)>) -> FnLayer {
    FnLayer::new(LayerDef::new("rules", 10, [Hook::BeforeTool])).on_before_tool(move |ask, _| {
        let rule = rules.get(ask.def.name.as_str()).cloned();
        async move {
            Ok(match rule {
                Some((Action::Deny, said)) => Decision::deny(said),
                Some((Action::Guide, said)) => Decision::guide(said),
                Some((Action::Allow, _)) | None => Decision::Allow,
            }
            .into())
        }
    })
}

fn result(report: &Report, messages: &[Arc<Message>]) -> Value {
    if !report.is_completed() {
        return json!({"error": {"message": report.problem()}});
    }
    let usage = &report.end.usage;
    json!({
        "text": report.answer(),
        "usage": {"inputTokens": usage.input_tokens, "outputTokens": usage.output_tokens},
        "items": messages.iter().flat_map(|message| codes(message)).collect::<Vec<_>>(),
    })
}

/// The result of each call as the model receives it.
fn outputs(messages: &[Arc<Message>]) -> Value {
    let results = messages.iter().filter_map(|message| message.as_tool_result());
    let told = results.map(|result| {
        let said: String = result.content.iter().filter_map(Block::as_text).collect();
        (result.tool_call_id.to_string(), json!(said))
    });
    Value::Object(told.collect())
}

/// Events of model calls, by the source's names. The source counts a step with an incomplete response as failed.
fn told(events: &mut Stream, report: &Report) -> Vec<&'static str> {
    let mut told = Vec::new();
    while let Some(event) = std::iter::from_fn(|| events.try_next()).find_map(event_of) {
        match event {
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

fn event_of(told: StreamItem) -> Option<EventKind> {
    match told {
        StreamItem::Event { event: ThreadEvent::Event(event), .. } => Some(event.kind.clone()),
        _ => None,
    }
}

fn broke_off(told: &mut [&'static str]) {
    if let Some(last) = told.last_mut().filter(|last| **last == "model_call_completed") {
        *last = "model_call_failed";
    }
}

#[derive(Clone, Default)]
struct World(Arc<Mutex<State>>);

#[derive(Default)]
struct State {
    rounds: VecDeque<Round>,
    inputs: Vec<Vec<String>>,
    runs: Vec<Value>,
}

impl Model for World {
    async fn step(&self, request: ModelRequest, _: &dyn Deltas) -> Result<AssistantMessage, ModelFault> {
        let unusable = |why: String| ModelFault::new(ModelFaultCode::Unknown, why);
        let mut input = Vec::new();
        request.view.for_each(|message| input.extend(codes(message)));
        let mut state = self.0.lock();
        state.inputs.push(input);
        let round = state.rounds.pop_front().ok_or_else(|| unusable("no round is left".to_owned()))?;
        let answer = round.answer().map_err(unusable)?;
        match (round.status, round.error) {
            (Some(Status::Failed), error) => {
                let why = error.unwrap_or_default();
                Err(ModelFault::new(ModelFaultCode::Provider, why).with_partial(answer))
            }
            (Some(Status::Incomplete) | None, Some(_)) => {
                Err(unusable("only a failed round has an `error`".to_owned()))
            }
            (Some(Status::Incomplete) | None, None) => Ok(answer),
        }
    }
}

impl Round {
    fn answer(&self) -> Done<AssistantMessage> {
        let mut answer = AssistantMessage::default().with_usage(Usage::tokens(10, 5));
        answer.content = self.items.iter().map(|item| block(item)).collect::<Done<_>>()?;
        answer.stop_reason = match (self.status, self.incomplete_reason) {
            (Some(Status::Incomplete), Some(Incomplete::ContentFilter)) => FinishReason::ContentFilter,
            (Some(Status::Incomplete), Some(Incomplete::MaxOutputTokens) | None) => FinishReason::Length,
            (Some(Status::Failed) | None, _) if answer.tool_calls().next().is_some() => FinishReason::ToolUse,
            (Some(Status::Failed) | None, _) => FinishReason::Stop,
        };
        Ok(answer)
    }
}

/// `a:text` or `call:ID:TOOL:ARGUMENTS`.
fn block(item: &str) -> Done<Block> {
    if let Some(said) = item.strip_prefix("a:") {
        return Ok(Block::text(said));
    }
    let parts = item.strip_prefix("call:").and_then(|call| {
        let (id, rest) = call.split_once(':')?;
        let (name, written) = rest.split_once(':')?;
        Some((id, name, written))
    });
    let (id, name, written) = parts.ok_or_else(|| format!("invalid item `{item}`"))?;
    let arguments = Json::parse(written);
    let mut call = ToolCall::new(id, name, arguments.as_ref().cloned().unwrap_or_default());
    if arguments.is_err() {
        call.raw_arguments = Some(written.to_owned());
        call.arguments_mode = Some("invalid".to_owned());
    }
    Ok(Block::ToolCall(Arc::new(call)))
}

/// `work` gives what it was asked for, `fail` fails.
fn tool(id: ToolId, world: &World) -> Done<Arc<dyn DynTool>> {
    let world = world.clone();
    let run = move |name: &'static str, arguments: &Json| {
        let arguments: Map<String, Value> = arguments.to().unwrap_or_default();
        world.0.lock().runs.push(json!([name, arguments]));
        arguments
    };
    let number = json!({"type": "object", "properties": {"n": {"type": "number"}}, "required": ["n"]});
    let anything = json!({"type": "object"});
    Ok(match id {
        ToolId::Work => {
            let tool = FnTool::with_schema("work", "", exact(&number)?, move |arguments: Json, _| {
                let n = run("work", &arguments).get("n").map(Value::to_string).unwrap_or_default();
                async move { format!("w{n}") }
            });
            Arc::new(Validated::new(tool).map_err(|e| e.to_string())?)
        }
        ToolId::Fail => {
            Arc::new(FnTool::with_schema("fail", "", exact(&anything)?, move |arguments: Json, _| {
                run("fail", &arguments);
                async { ToolOutcome::error("tool_failed", "disk full") }
            }))
        }
    })
}
