//! Vectors of kind `view-assembly`: views of a pipeline whose messages cost what the vector says.

use std::collections::HashMap;
use std::sync::Arc;

use harness_core::message::{AssistantMessage, Block, Message, SystemMessage, ToolCall, ToolResultMessage};
use harness_core::transcript::View;
use harness_memory::compact::tokens::TokenCounter;
use harness_memory::layer::{FnLayer, LayerDef, LayerSetup, Pipeline, Placement, Recalled, ViewBudget};
use serde::Deserialize;
use serde::de::IgnoredAny;
use serde_json::{Value, json};

use super::scripted::Stage;
use super::{Done, each, on_paused_time};
use crate::vector::Vector;
use crate::verdict::Verdict;

/// Runs the vector.
pub(crate) fn run(vector: &Vector) -> Verdict {
    each(vector, |input: Input| on_paused_time(check(input)))
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Input {
    policy: Option<Policy>,
    #[serde(default)]
    system: Vec<Entry>,
    #[serde(default)]
    anchor: Vec<Entry>,
    #[serde(default)]
    history: Vec<Entry>,
    #[serde(default)]
    live: Vec<Entry>,
    #[serde(default)]
    supersedes: Vec<Entry>,
    #[serde(default)]
    tail: Vec<Entry>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields, rename_all = "camelCase")]
struct Policy {
    token_budget: Option<u64>,
    response_reserve: Option<u64>,
    window_size: Option<usize>,
    /// The newest history that fits is shown, whatever is said here.
    #[serde(rename = "overflow")]
    _overflow: Option<Overflow>,
}

#[derive(Deserialize)]
#[serde(rename_all = "snake_case")]
enum Overflow {
    Truncate,
    Summarize,
    SlidingWindow,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Entry {
    id: String,
    item: Item,
    tokens: u64,
}

#[derive(Deserialize)]
#[serde(tag = "type", rename_all = "snake_case", deny_unknown_fields)]
enum Item {
    Message {
        #[serde(rename = "id")]
        _id: String,
        role: String,
        #[serde(rename = "status")]
        _status: String,
        #[serde(rename = "content")]
        _content: Vec<Content>,
    },
    #[serde(rename_all = "camelCase")]
    FunctionCall {
        call_id: String,
        #[serde(rename = "id")]
        _id: String,
        #[serde(rename = "name")]
        _name: String,
        #[serde(rename = "arguments")]
        _arguments: String,
        #[serde(rename = "status")]
        _status: String,
    },
    #[serde(rename_all = "camelCase")]
    FunctionCallOutput {
        call_id: String,
        #[serde(rename = "id")]
        _id: String,
        #[serde(rename = "output")]
        _output: String,
        #[serde(rename = "status")]
        _status: String,
    },
    Reasoning {
        #[serde(rename = "id")]
        _id: String,
        #[serde(rename = "status")]
        _status: Option<String>,
        #[serde(rename = "summary")]
        _summary: Vec<Content>,
    },
}

/// The cost of an item is that of its entry: the text itself is ignored.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Content {
    #[serde(rename = "type")]
    _type: String,
    #[serde(rename = "text")]
    _text: String,
    #[serde(rename = "annotations")]
    _annotations: Option<Vec<IgnoredAny>>,
}

impl Entry {
    /// A message whose text is the entry's id.
    fn message(&self) -> Done<Arc<Message>> {
        let call = |call_id: &str| ToolCall::new(call_id, "work", json!({ "entry": self.id }).into());
        Ok(Arc::new(match &self.item {
            Item::Message { role, .. } if role == "user" => Message::user(&*self.id),
            Item::Message { role, .. } if role == "assistant" => AssistantMessage::text(&*self.id).into(),
            Item::Message { role, .. } if role == "system" => SystemMessage::text(&*self.id).into(),
            Item::Message { .. } => return Ok(harness_memory::layer::developer(&*self.id)),
            Item::FunctionCall { call_id, .. } => AssistantMessage::calls([call(call_id)]).into(),
            Item::FunctionCallOutput { call_id, .. } => {
                ToolResultMessage::new(&call(call_id), vec![Block::text(&*self.id)], false).into()
            }
            Item::Reasoning { .. } => {
                let thinking = json!({ "type": "thinking", "thinking": self.id });
                let mut answer = AssistantMessage::default();
                answer.content = vec![serde_json::from_value(thinking).map_err(|e| e.to_string())?];
                answer.into()
            }
        }))
    }
}

/// The entry that a message was made from.
fn id_of(message: &Message) -> String {
    if let Message::Assistant(answer) = message {
        if let Some(call) = answer.tool_calls().next() {
            let entry = call.arguments.to::<HashMap<String, String>>().ok();
            return entry.and_then(|mut entry| entry.remove("entry")).unwrap_or_default();
        }
        if let Some(Block::Thinking(thinking)) = answer.content.first() {
            return thinking.thinking.clone();
        }
    }
    message.joined_text()
}

/// Counts a message as its entry says.
struct Costs(HashMap<String, u64>);

impl TokenCounter for Costs {
    fn count(&self, text: &str) -> u64 {
        let cost = self.0.iter().find(|(id, _)| text.contains(&format!("\"{id}\"")));
        cost.map_or(0, |(_, tokens)| *tokens)
    }

    fn name(&self) -> &'static str {
        "vector"
    }
}

async fn check(input: Input) -> Done<Value> {
    let bands = [&input.system, &input.anchor, &input.history, &input.live, &input.supersedes, &input.tail];
    let costs = bands.iter().flat_map(|band| band.iter()).map(|entry| (entry.id.clone(), entry.tokens));
    let mut setup = LayerSetup::new();
    setup.counter = Arc::new(Costs(costs.collect()));
    setup.budget = input.policy.map(|policy| {
        let mut budget = ViewBudget::default();
        budget.tokens = policy.token_budget.unwrap_or(budget.tokens);
        budget.response_reserve = policy.response_reserve.unwrap_or(budget.response_reserve);
        budget.window = policy.window_size;
        budget
    });
    let anchored = input.anchor.iter().map(|entry| (entry, Placement::Anchor));
    // The product has no bands for foreign updates and guidance: they are what layers show after the history.
    let after = input.live.iter().chain(&input.supersedes).chain(&input.tail);
    for (slot, (entry, placement)) in (0..).zip(anchored.chain(after.map(|entry| (entry, Placement::Live)))) {
        let message = entry.message()?;
        let def = LayerDef::new(entry.id.as_str(), slot, []).with_placement(placement);
        setup = setup.with(FnLayer::new(def).on_recall(move |_, _| {
            let items = vec![Arc::clone(&message)];
            async move { Ok(Recalled::items(items)) }
        }));
    }
    let stage = Stage::new(setup)?;
    let log = input.system.iter().chain(&input.history).map(Entry::message).collect::<Done<Vec<_>>>()?;
    let cx = stage.cx(&log);
    let run = stage.pipeline.open(Pipeline::execution_of(&cx.origin), &cx).await;
    let (plan, _) = run.map_err(|e| e.to_string())?.view(&cx).await.map_err(|e| e.to_string())?;
    let mut ids = Vec::new();
    let view = match plan {
        Some(plan) => View::planned(cx.log.clone(), plan),
        None => View::whole(cx.log.clone()),
    };
    view.for_each(|message| ids.push(id_of(message)));
    Ok(json!({ "ids": ids }))
}
