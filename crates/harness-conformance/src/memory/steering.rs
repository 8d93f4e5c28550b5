//! Vectors of kind `steering-aggregation`: several layers and one decision, or one rule that a model judges.

use std::sync::Arc;

use harness_core::message::{AssistantMessage, ToolCall};
use harness_core::testing::ScriptedModel;
use harness_core::tool::ToolDef;
use harness_core::{Json, Millis};
use harness_memory::MemoryError;
use harness_memory::builtin::steering::{Steering, SteeringRule};
use harness_memory::layer::{
    Decided, Decision, FnLayer, Hook, LayerCx, LayerDef, LayerSetup, OnToolGateError, Pipeline, ToolAsk,
};
use serde::Deserialize;
use serde_json::{Value, json};

use super::scripted::{Lines, Stage, wait};
use super::{Done, error, items, on_paused_time};
use crate::case::Case;
use crate::subset::{matches, put};
use crate::vector::Vector;
use crate::verdict::Verdict;

/// Runs the vector. For a failed gate the library has a different text.
pub(crate) fn run(vector: &Vector) -> Verdict {
    on_paused_time(checked(vector)).into()
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Input {
    hook: Option<Asked>,
    #[serde(default)]
    layers: Vec<LayerSpec>,
    judge_replies: Option<Vec<String>>,
    max_retries: Option<u32>,
}

#[derive(Clone, Copy, Deserialize)]
#[serde(rename_all = "camelCase")]
enum Asked {
    BeforeToolCall,
    AfterModelCall,
}

#[derive(Clone, Deserialize)]
#[serde(deny_unknown_fields)]
struct LayerSpec {
    id: String,
    slot: i32,
    behaviour: Behaviour,
    text: Option<String>,
    on_error: Option<OnToolGateError>,
    /// The time limit of the hook in milliseconds.
    limit: Option<u64>,
}

#[derive(Clone, Copy, PartialEq, Deserialize)]
#[serde(rename_all = "snake_case")]
enum Behaviour {
    Allow,
    Deny,
    Guide,
    Throw,
    Hang,
    ConfigError,
}

async fn checked(vector: &Vector) -> Done<()> {
    let Case { input, mut expect, .. } = Case::<Input>::of(vector)?;
    let is_own = |said: &str, input: &Input| {
        let given =
            |line| input.layers.iter().filter_map(|layer| layer.text.as_deref()).any(|text| text == line);
        input.judge_replies.is_none() && !said.is_empty() && !said.lines().all(given)
    };
    let wanted = expect.get("guidance").and_then(Value::as_str).unwrap_or_default().to_owned();
    let is_free = is_own(&wanted, &input);
    let got = match &input.judge_replies {
        Some(replies) => judged(replies, input.max_retries).await?,
        None => aggregated(&input).await?,
    };
    if is_free {
        put(&mut expect, "guidance", json!("$nonempty"));
    }
    matches("expected", &expect, &got)
}

/// One rule of the steering layer, judged by a model that answers what the vector wrote down.
async fn judged(replies: &[String], retries: Option<u32>) -> Done<Value> {
    let model = ScriptedModel::new(replies.iter().map(AssistantMessage::text));
    let mut steering = Steering::new([SteeringRule::judged("rule", "no writes")]);
    if let Some(retries) = retries {
        steering.max_retries = retries;
    }
    let setup = LayerSetup::new().with(steering).with_model(Arc::new(model.clone()));
    let stage = Stage::new(setup)?;
    let mut got = answer(decide(&stage, Asked::BeforeToolCall).await?);
    put(&mut got, "judge_calls", json!(model.requests().len()));
    Ok(got)
}

/// Decision of the layers on a tool call or an answer.
async fn decide(stage: &Stage, asked: Asked) -> Done<Result<Decision, MemoryError>> {
    let cx = stage.cx(&[items::message("u:x")?]);
    let heard = items::message("a:y")?;
    let call = Arc::new(ToolCall::new("k", "work", Json::empty_object()));
    let ask = ToolAsk::new(call, ToolDef::new("work", ""));
    let run = stage.pipeline.open(Pipeline::execution_of(&cx.origin), &cx).await;
    let run = run.map_err(|e| e.to_string())?;
    Ok(match asked {
        Asked::BeforeToolCall => run.judge_tool(&ask, &cx).await,
        Asked::AfterModelCall => run.judge_answer(&heard, &cx).await,
    })
}

fn answer(decision: Result<Decision, MemoryError>) -> Value {
    match decision {
        Ok(decision) => json!({ "action": decision.action(), "guidance": decision.guidance() }),
        Err(fault) => json!({ "error": error(&fault) }),
    }
}

async fn aggregated(input: &Input) -> Done<Value> {
    let asked = Lines::default();
    let mut setup = LayerSetup::new();
    for spec in &input.layers {
        setup = setup.with(layer(spec, &asked));
    }
    let stage = Stage::new(setup)?;
    let hook = input.hook.ok_or("`hook` or `judge_replies` is missing")?;
    let mut got = answer(decide(&stage, hook).await?);
    put(&mut got, "asked", json!(asked.all()));
    put(&mut got, "diagnostics", json!(stage.diagnostics.all()));
    Ok(got)
}

fn layer(spec: &LayerSpec, asked: &Lines) -> FnLayer {
    let mut def = LayerDef::new(spec.id.as_str(), spec.slot, []);
    def.on_tool_gate_error = spec.on_error.unwrap_or_default();
    if let Some(limit) = spec.limit.map(Millis) {
        def = def.with_limit(Hook::BeforeTool, Some(limit)).with_limit(Hook::AfterModel, Some(limit));
    }
    let (spec, asked) = (spec.clone(), asked.clone());
    let decide = move |_: LayerCx| {
        asked.push(spec.id.clone());
        spec.clone().decided()
    };
    let answer = decide.clone();
    FnLayer::new(def).on_before_tool(move |_, cx| decide(cx)).on_after_model(move |_, cx| answer(cx))
}

impl LayerSpec {
    async fn decided(self) -> Result<Decided, MemoryError> {
        let said = self.text.clone().unwrap_or_default();
        let decision = match self.behaviour {
            Behaviour::Allow => Decision::Allow,
            Behaviour::Deny => Decision::Deny { guidance: self.text },
            Behaviour::Guide => Decision::Guide { guidance: self.text },
            Behaviour::Throw => return Err(MemoryError::failed(said)),
            Behaviour::ConfigError => return Err(MemoryError::config(said, "m")),
            Behaviour::Hang => {
                let ms = said.parse().map_err(|_| MemoryError::failed(format!("invalid time `{said}`")))?;
                wait(ms).await;
                Decision::Allow
            }
        };
        Ok(decision.into())
    }
}
