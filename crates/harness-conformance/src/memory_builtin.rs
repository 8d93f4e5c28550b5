//! Vectors of kind `builtin-layers`: the layers that come with harness-memory.

use std::collections::BTreeMap;
use std::sync::Arc;

use harness_core::message::{AssistantMessage, Message, ToolCall};
use harness_core::port::{AppendSource, BoxFuture};
use harness_core::tool::ToolOutcome;
use harness_core::{Json, Time};
use harness_host::{Workspace, WorkspaceEntry, WorkspaceFault, WorkspaceFile, WorkspaceHit};
use harness_memory::MemoryError;
use harness_memory::builtin::{
    DataMerge, FactFinder, FileReferences, LayerProbe, Observations, Observer, Scratchpad, StaticContent,
    TaskState, TemporalFacts,
};
use harness_memory::compact::tokens::TokenCounter as _;
use harness_memory::layer::{Layer, LayerCx};
use parking_lot::Mutex;
use serde::Deserialize;
use serde_json::{Value, json};

use super::turn::convert::at;
use crate::Done;
use crate::case::{block_on, each};
use crate::counters::Utf16Quarters;
use crate::vector::Vector;
use crate::verdict::Verdict;

/// Tokens that a layer gets where the vector says nothing.
const BUDGET: u64 = 100_000;

/// An input; each layer has its own words. The order of keys is part of what layers show.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Input {
    layer: Builtin,
    state: Option<Json>,
    #[serde(default)]
    updates: Vec<Json>,
    budget: Option<u64>,
    threshold: Option<u64>,
    max: Option<usize>,
    observer: Option<Vec<String>>,
    #[serde(default)]
    feeds: Vec<Feed>,
    parent: Option<Json>,
    #[serde(default)]
    children: Vec<(String, Json)>,
    merge: Option<Merge>,
    #[serde(default)]
    calls: Vec<(String, Json)>,
    #[serde(default)]
    raw: String,
    tag: Option<String>,
    #[serde(default)]
    batches: Vec<Facts>,
    local_time: Option<String>,
    #[serde(default)]
    files: BTreeMap<String, String>,
    #[serde(default)]
    base_dir: String,
    #[serde(default)]
    message: String,
}

#[derive(Deserialize)]
#[serde(rename_all = "snake_case")]
enum Builtin {
    WorkingMemory,
    Observations,
    TaskState,
    StaticContent,
    Temporal,
    FileReferences,
}

#[derive(Deserialize)]
#[serde(rename_all = "lowercase")]
enum Feed {
    User(String),
    Assistant(String),
    Tool(String),
}

#[derive(Deserialize)]
#[serde(rename_all = "lowercase")]
enum Merge {
    Shallow,
    Namespace,
}

/// Runs a vector.
pub(crate) fn run(vector: &Vector) -> Verdict {
    each(vector, |input| block_on(shown(input))?)
}

async fn shown(input: Input) -> Done<Value> {
    match input.layer {
        Builtin::WorkingMemory => working_memory(input).await,
        Builtin::Observations => observations(input).await,
        Builtin::TaskState => task_state(input).await,
        Builtin::StaticContent => static_content(input).await,
        Builtin::Temporal => temporal(input).await,
        Builtin::FileReferences => file_references(input).await,
    }
}

async fn working_memory(input: Input) -> Done<Value> {
    let mut probe = begun(Scratchpad::new()).await?;
    probe.cx.state = input.state;
    for update in input.updates {
        probe.call("update", update).await.map_err(told)?;
    }
    finished(probe, input.budget).await
}

async fn observations(input: Input) -> Done<Value> {
    let mut layer = Observations::new();
    if let Some(threshold) = input.threshold {
        layer.threshold = threshold;
    }
    if let Some(most) = input.max {
        layer.kept = most;
    }
    if let Some(lines) = input.observer {
        layer.observer = Some(Arc::new(Always(lines)));
    }
    let mut probe = begun(layer).await?;
    for feed in input.feeds {
        match feed {
            Feed::Assistant(said) => drop(probe.store(AssistantMessage::text(said)).await.map_err(told)?),
            Feed::User(said) => {
                drop(probe.append(AppendSource::Prompt, [Message::user(said)]).await.map_err(told)?);
            }
            Feed::Tool(id) => {
                let call = ToolCall::new(&*id, "work", Json::empty_object());
                let result = ToolOutcome::text(format!("done {id}")).to_message(&call, None, Time(0));
                let result = Message::ToolResult(result);
                drop(probe.append(AppendSource::ToolResults, [result]).await.map_err(told)?);
            }
        }
    }
    finished(probe, input.budget).await
}

async fn task_state(input: Input) -> Done<Value> {
    let merge = match input.merge {
        Some(Merge::Namespace) => DataMerge::Namespace,
        Some(Merge::Shallow) | None => DataMerge::Shallow,
    };
    let mut layer = TaskState::new();
    layer.merge = merge;
    let mut probe = begun(layer).await?;
    if let Some(state) = input.parent.or(input.state) {
        probe.cx.state = Some(state);
    }
    for (id, state) in input.children {
        probe.take_back(&id, state).await.map_err(told)?;
    }
    let mut results = Vec::new();
    for (function, arguments) in input.calls {
        results.push(value_of(&probe.call(&function, arguments).await.map_err(told)?)?);
    }
    let mut got = finished(probe, input.budget).await?;
    let Some(all) = got.as_object_mut() else { return Ok(got) };
    all.insert("parent_state".to_owned(), at(&Value::Object(all.clone()), "state").clone());
    all.insert("results".to_owned(), Value::Array(results));
    Ok(got)
}

async fn static_content(input: Input) -> Done<Value> {
    let mut layer = StaticContent::new(Arc::new(input.raw));
    if let Some(tag) = input.tag {
        layer.tag = tag.into();
    }
    finished(begun(layer).await?, input.budget).await
}

async fn temporal(input: Input) -> Done<Value> {
    if let Some(local) = input.local_time {
        let mut probe = begun(TemporalFacts::new()).await?;
        probe.cx.now = Time::parse_iso(&format!("{local}:00Z")).ok_or("invalid local_time")?;
        let shown = probe.recall("", BUDGET).await.map_err(told)?;
        return Ok(json!({ "line": shown.lines().find(|line| line.starts_with("Now:")) }));
    }
    let count = input.batches.len();
    let finder = Arc::new(Batches(Mutex::new(input.batches.into_iter().rev().collect())));
    let mut layer = TemporalFacts::new().with_finder(finder).ungrounded().with_ledger();
    layer.threshold = 0;
    if let Some(most) = input.max {
        layer.kept = most;
    }
    let mut probe = begun(layer).await?;
    for _ in 0..count {
        probe.store(AssistantMessage::text("said")).await.map_err(told)?;
    }
    let mut got = finished(probe, input.budget).await?;
    let facts = at(at(&got, "state"), "facts").clone();
    if let Some(all) = got.as_object_mut() {
        all.insert("facts".to_owned(), facts);
    }
    Ok(got)
}

async fn file_references(input: Input) -> Done<Value> {
    let layer = FileReferences::new(Arc::new(Files(input.files)), &input.base_dir);
    let (id, slot, timing) = {
        let def = layer.def();
        (def.id.clone(), def.slot, def.rerender_timing)
    };
    let mut probe = begun(layer).await?;
    let said = Message::user(input.message);
    let appended = probe.append(AppendSource::Prompt, [said]).await.map_err(told)?;
    let items: Vec<String> = appended.items.iter().map(|item| format!("u:{}", item.joined_text())).collect();
    let requests: Vec<Value> = appended
        .rerender
        .iter()
        .map(|wish| {
            json!({
                "layerId": id,
                "slot": slot,
                "timing": wish.timing.unwrap_or(timing),
                "scope": wish.scope,
            })
        })
        .collect();
    let mut got = finished(probe, input.budget).await?;
    let tracked = at(at(&got, "state"), "files").clone();
    if let Some(all) = got.as_object_mut() {
        all.insert("items".to_owned(), json!(items));
        all.insert("rerender_requests".to_owned(), Value::Array(requests));
        all.insert("tracked".to_owned(), tracked);
    }
    Ok(got)
}

async fn begun<L: Layer>(layer: L) -> Done<LayerProbe<L>> {
    let mut probe = LayerProbe::new(layer);
    probe.init().await.map_err(told)?;
    Ok(probe)
}

/// The state and what is shown of it.
async fn finished<L: Layer>(mut probe: LayerProbe<L>, budget: Option<u64>) -> Done<Value> {
    let shown = probe.recall("", budget.unwrap_or(BUDGET)).await.map_err(told)?;
    let tokens = Utf16Quarters.count(&shown);
    let state = probe.cx.state.as_ref().map(value_of).transpose()?;
    Ok(json!({
        "state": state,
        "recall": { "text": shown, "tokens": tokens },
        "text": shown,
        "tokens": tokens,
    }))
}

fn told(fault: MemoryError) -> String {
    fault.to_string()
}

fn value_of(json: &Json) -> Done<Value> {
    json.to().map_err(|e| e.to_string())
}

/// Observes the same lines each time.
struct Always(Vec<String>);

impl Observer for Always {
    fn observe<'a>(
        &'a self,
        _: &'a [String],
        _: &'a LayerCx,
    ) -> BoxFuture<'a, Result<Vec<String>, MemoryError>> {
        Box::pin(async { Ok(self.0.clone()) })
    }
}

type Facts = Vec<(String, String)>;

/// Finds one batch of facts after another, the last one first.
struct Batches(Mutex<Vec<Facts>>);

impl FactFinder for Batches {
    fn extract<'a>(
        &'a self,
        _: &'a [String],
        _: Time,
        _: &'a LayerCx,
    ) -> BoxFuture<'a, Result<Facts, MemoryError>> {
        let next = self.0.lock().pop();
        Box::pin(async { Ok(next.unwrap_or_default()) })
    }
}

/// The files of a vector.
struct Files(BTreeMap<String, String>);

impl Workspace for Files {
    async fn list(&self, _: &str, _: u32, _: u32) -> Result<Vec<WorkspaceEntry>, WorkspaceFault> {
        Ok(Vec::new())
    }

    async fn read(&self, path: &str) -> Result<Option<WorkspaceFile>, WorkspaceFault> {
        Ok(self.0.get(path).map(|text| WorkspaceFile::text(path, text)))
    }

    async fn search(&self, _: &str, _: Option<&str>, _: u32) -> Result<Vec<WorkspaceHit>, WorkspaceFault> {
        Ok(Vec::new())
    }
}
