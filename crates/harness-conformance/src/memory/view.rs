//! Vectors of kind `view-assembly`.

use harness_memory::layer::{Bands, Link, Part, ViewBudget, assemble};
use serde::Deserialize;
use serde::de::IgnoredAny;
use serde_json::{Value, json};

use super::each;
use crate::vector::Vector;
use crate::verdict::Verdict;

/// Runs the vector.
pub(crate) fn run(vector: &Vector) -> Verdict {
    each(vector, |input| Ok(check(&input)))
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
        #[serde(rename = "role")]
        _role: String,
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

/// What an item says costs what the entry says: the text itself is not looked at.
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

fn check(input: &Input) -> Value {
    let budget = input.policy.as_ref().map(|policy| {
        let default = ViewBudget::default();
        let tokens = policy.token_budget.unwrap_or(default.tokens);
        let budget = ViewBudget::new(tokens, policy.response_reserve.unwrap_or(default.response_reserve));
        policy.window_size.map_or(budget, |window| budget.with_window(window))
    });
    let parts = |entries: &[Entry]| entries.iter().map(part).collect::<Vec<_>>();
    let mut bands = Bands::default();
    bands.system = parts(&input.system);
    bands.anchor = parts(&input.anchor);
    bands.history = parts(&input.history);
    bands.live = parts(&input.live);
    bands.supersedes = parts(&input.supersedes);
    bands.tail = parts(&input.tail);
    let chosen = assemble(budget.as_ref(), &bands);

    let all = |band: &[Entry]| band.iter().map(|entry| entry.id.clone()).collect::<Vec<_>>();
    let some = |band: &[Entry], at: &[usize]| {
        at.iter().filter_map(|at| band.get(*at)).map(|entry| entry.id.clone()).collect::<Vec<_>>()
    };
    let shown = [
        all(&input.system),
        some(&input.anchor, &chosen.anchor),
        some(&input.history, &chosen.history),
        some(&input.live, &chosen.live),
        all(&input.supersedes),
        all(&input.tail),
    ];
    json!({"ids": shown.concat()})
}

fn part(entry: &Entry) -> Part {
    let link = match &entry.item {
        Item::FunctionCall { call_id, .. } => Link::Calls(vec![call_id.clone()]),
        Item::FunctionCallOutput { call_id, .. } => Link::Answers(call_id.clone()),
        Item::Reasoning { .. } => Link::Reasoning,
        Item::Message { .. } => Link::None,
    };
    Part::new(entry.tokens, link)
}
