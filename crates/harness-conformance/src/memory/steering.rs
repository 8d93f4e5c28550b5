//! Vectors of kind `steering-aggregation`: several layers and one decision, or one rule that a model judges.

use std::sync::Arc;

use harness_core::Json;
use harness_core::Millis;
use harness_core::message::{AssistantMessage, ToolCall};
use harness_core::port::ToolDef;
use harness_core::testing::{ScriptedModel, VirtualClock};
use harness_memory::MemoryError;
use harness_memory::builtin::steering::{Steering, SteeringRule};
use harness_memory::layer::{
    Decided, Decision, FnLayer, LayerCx, LayerDef, LayerSetup, OnToolGateError, Pipeline, ToolAsk,
};
use serde_json::{Map, Value, json};

use super::scripted::{Lines, Stage, clock, wait};
use super::stack::{limited, slot};
use super::{Done, each_with, error, items, list, matches, text};
use crate::subset::put;
use crate::vector::Vector;
use crate::verdict::Verdict;

/// Runs the vectors of the file. What the library says where a gate failed is a text of its own.
pub(crate) fn run(vector: &Vector) -> Verdict {
    each_with(vector, check, |expected, got| {
        let Some(given) = got.get("given").and_then(Value::as_array) else {
            return matches("expected", expected, got);
        };
        let is_given = |line| given.iter().any(|text| text == line);
        let mut expected = expected.clone();
        let said = text(got, "guidance");
        if !said.lines().all(is_given) && !text(&expected, "guidance").is_empty() {
            put(&mut expected, "guidance", json!(said));
        }
        matches("expected", &expected, got)
    })
}

fn check(input: &Value) -> Done<Value> {
    if input.get("judge_replies").is_some() { judged(input) } else { aggregated(input) }
}

/// One rule of the steering layer, judged by a model that answers what the vector wrote down.
fn judged(input: &Value) -> Done<Value> {
    let replies = list(input, "judge_replies").iter().filter_map(Value::as_str);
    let model = ScriptedModel::new(replies.map(AssistantMessage::text));
    let retries = input.get("max_retries").and_then(Value::as_u64).unwrap_or(1);
    let retries = u32::try_from(retries).map_err(|e| e.to_string())?;
    let steering = Steering::new([SteeringRule::judged("rule", "no writes")]).with_retries(retries);
    let setup = LayerSetup::new().with(steering).with_model(Arc::new(model.clone()));
    let stage = Stage::new(setup, clock())?;
    let decision = stage.run(decide(&stage, true))??;
    let mut got = answer(decision);
    got.insert("judge_calls".to_owned(), json!(model.requests().len()));
    Ok(got.into())
}

/// What the layers think of a tool call, or of an answer.
async fn decide(stage: &Stage, is_tool: bool) -> Done<Result<Decision, MemoryError>> {
    let cx = stage.cx(&[items::message("u:x")?]);
    let heard = items::message("a:y")?;
    let call = Arc::new(ToolCall::new("k", "work", Json::empty_object()));
    let ask = ToolAsk::new(call, ToolDef::new("work", ""));
    let run = stage.pipeline.open(Pipeline::execution_of(&cx.origin), &cx).await;
    let run = run.map_err(|e| e.to_string())?;
    Ok(if is_tool { run.judge_tool(&ask, &cx).await } else { run.judge_answer(&heard, &cx).await })
}

fn answer(decision: Result<Decision, MemoryError>) -> Map<String, Value> {
    let fields = match decision {
        Ok(decision) => {
            vec![("action", json!(decision.action())), ("guidance", json!(decision.guidance()))]
        }
        Err(fault) => vec![("error", error(&fault))],
    };
    fields.into_iter().map(|(key, value)| (key.to_owned(), value)).collect()
}

fn aggregated(input: &Value) -> Done<Value> {
    let (asked, clock) = (Lines::default(), clock());
    let mut setup = LayerSetup::new();
    for spec in list(input, "layers") {
        setup = setup.with(layer(spec, &asked, &clock));
    }
    let stage = Stage::new(setup, clock)?;
    let is_tool = text(input, "hook") != "afterModelCall";
    let mut got = answer(stage.run(decide(&stage, is_tool))??);
    got.insert("asked".to_owned(), json!(asked.all()));
    got.insert("diagnostics".to_owned(), json!(stage.diagnostics.all()));
    let given = list(input, "layers").iter().flat_map(|layer| text(layer, "text").lines());
    got.insert("given".to_owned(), given.collect());
    Ok(got.into())
}

fn layer(spec: &Value, asked: &Lines, clock: &VirtualClock) -> FnLayer {
    let id = text(spec, "id").to_owned();
    let mut def = limited(LayerDef::new(id.as_str(), slot(spec), []), spec);
    if text(spec, "on_error") == "deny" {
        def = def.with_on_tool_gate_error(OnToolGateError::Deny);
    }
    let (spec, asked, clock) = (spec.clone(), asked.clone(), clock.clone());
    let decide = move |_: LayerCx| {
        asked.push(id.clone());
        let (spec, clock) = (spec.clone(), clock.clone());
        async move { decided(&spec, &clock).await }
    };
    let answer = decide.clone();
    FnLayer::new(def).on_before_tool(move |_, cx| decide(cx)).on_after_model(move |_, cx| answer(cx))
}

async fn decided(spec: &Value, clock: &VirtualClock) -> Result<Decided, MemoryError> {
    let said = spec.get("text").and_then(Value::as_str).map(str::to_owned);
    let decision = match text(spec, "behaviour") {
        "deny" => Decision::Deny { guidance: said },
        "guide" => Decision::Guide { guidance: said },
        "throw" => return Err(MemoryError::failed(said.unwrap_or_default())),
        "config_error" => return Err(MemoryError::config(said.unwrap_or_default(), "m")),
        "hang" => {
            let span =
                spec.get("text").and_then(|text| text.as_u64().or_else(|| text.as_str()?.parse().ok()));
            wait(clock, Millis(span.unwrap_or(0))).await;
            Decision::Allow
        }
        _ => Decision::Allow,
    };
    Ok(decision.into())
}
