//! Vectors of kind `builtin-layers`: the layers that come with harness-memory.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, PoisonError};

use harness_core::message::{AssistantMessage, Message, ToolCall};
use harness_core::port::{
    AppendSource, BoxFuture, TokenCounter as _, ToolOutcome, Workspace, WorkspaceEntry, WorkspaceFault,
    WorkspaceFile, WorkspaceHit,
};
use harness_core::{Json, Time};
use harness_memory::MemoryError;
use harness_memory::builtin::{
    DataMerge, FactFinder, FileReferences, LayerProbe, Observations, Observer, StaticContent, TaskState,
    TemporalFacts, WorkingMemory,
};
use harness_memory::layer::{Layer, LayerCx, Utf16Quarters};
use serde::Deserialize;
use serde::de::{DeserializeOwned, IgnoredAny as Any};
use serde_json::{Value, json};

use super::subset::matches;
use super::turn::convert::{at, list, text};
use crate::Done;
use crate::case::{Case, Checked, block_on};
use crate::vector::Vector;
use crate::verdict::Verdict;

/// Tokens that a layer gets where the vector says nothing.
const BUDGET: u64 = 100_000;

/// The words of an input; each layer reads its own.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
#[expect(dead_code, reason = "which words there are is what counts; they are read where they are acted on")]
struct Words {
    layer: Option<Any>,
    state: Option<Any>,
    updates: Option<Vec<Any>>,
    budget: Option<u64>,
    threshold: Option<u64>,
    max: Option<u64>,
    observer: Option<Vec<String>>,
    feeds: Option<Vec<Feed>>,
    parent: Option<Any>,
    children: Option<Vec<(String, Any)>>,
    merge: Option<Merge>,
    calls: Option<Vec<(String, Any)>>,
    raw: Option<String>,
    tag: Option<String>,
    batches: Option<Vec<Vec<(String, String)>>>,
    local_time: Option<String>,
    files: Option<BTreeMap<String, String>>,
    base_dir: Option<String>,
    message: Option<String>,
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

/// A vector as it is written: the order of keys is part of what layers show.
#[derive(Deserialize)]
struct Written {
    #[serde(default)]
    input: BTreeMap<String, Json>,
}

/// The input of a vector.
struct Input {
    value: Value,
    raw: BTreeMap<String, Json>,
}

impl Input {
    /// A part of the input as it is written; `None` when there is none.
    fn part<T: DeserializeOwned>(&self, key: &str) -> Result<Option<T>, String> {
        self.raw.get(key).map(|json| json.to().map_err(|e| format!("{key}: {e}"))).transpose()
    }
}

/// Runs a vector.
pub(crate) fn run(vector: &Vector) -> Verdict {
    checked(vector).into()
}

fn checked(vector: &Vector) -> Done<()> {
    let Case { input, expect, .. } = Case::<Checked<Words>>::of(vector)?;
    let raw = vector.parse::<Written>()?.input;
    let got = block_on(shown(&Input { value: input.0, raw }))??;
    matches("expected", &expect, &got)
}

async fn shown(input: &Input) -> Result<Value, String> {
    match text(&input.value, "layer") {
        "working_memory" => working_memory(input).await,
        "observations" => observations(&input.value).await,
        "task_state" => task_state(input).await,
        "static_content" => static_content(&input.value).await,
        "temporal" => temporal(&input.value).await,
        "file_references" => file_references(&input.value).await,
        other => Err(format!("`{other}` is no known layer")),
    }
}

async fn working_memory(input: &Input) -> Result<Value, String> {
    let mut probe = begun(WorkingMemory::new()).await?;
    probe.cx.state = input.part("state")?;
    for update in input.part::<Vec<Json>>("updates")?.unwrap_or_default() {
        probe.call("update", update).await.map_err(told)?;
    }
    finished(probe, &input.value).await
}

async fn observations(input: &Value) -> Result<Value, String> {
    let mut layer = Observations::new();
    if let Some(threshold) = number(input, "threshold") {
        layer = layer.with_threshold(threshold);
    }
    if let Some(most) = number(input, "max") {
        layer = layer.keeping(size(most));
    }
    if !at(input, "observer").is_null() {
        let lines = list(input, "observer").iter().filter_map(Value::as_str).map(str::to_owned).collect();
        layer = layer.with_observer(Arc::new(Always(lines)));
    }
    let mut probe = begun(layer).await?;
    for feed in list(input, "feeds") {
        match Feed::deserialize(feed).map_err(|e| e.to_string())? {
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
    finished(probe, input).await
}

async fn task_state(input: &Input) -> Result<Value, String> {
    let namespace = text(&input.value, "merge") == "namespace";
    let merge = if namespace { DataMerge::Namespace } else { DataMerge::Shallow };
    let mut probe = begun(TaskState::new().merging(merge)).await?;
    for key in ["state", "parent"] {
        if let Some(state) = input.part(key)? {
            probe.cx.state = Some(state);
        }
    }
    for (id, state) in input.part::<Vec<(String, Json)>>("children")?.unwrap_or_default() {
        probe.take_back(&id, state).await.map_err(told)?;
    }
    let mut results = Vec::new();
    for (function, arguments) in input.part::<Vec<(String, Json)>>("calls")?.unwrap_or_default() {
        results.push(value_of(&probe.call(&function, arguments).await.map_err(told)?)?);
    }
    let mut got = finished(probe, &input.value).await?;
    let Some(all) = got.as_object_mut() else { return Ok(got) };
    all.insert("parent_state".to_owned(), at(&Value::Object(all.clone()), "state").clone());
    all.insert("results".to_owned(), Value::Array(results));
    Ok(got)
}

async fn static_content(input: &Value) -> Result<Value, String> {
    let layer = StaticContent::new(Arc::new(text(input, "raw").to_owned()));
    let layer = match text(input, "tag") {
        "" => layer,
        tag => layer.tagged(tag),
    };
    finished(begun(layer).await?, input).await
}

async fn temporal(input: &Value) -> Result<Value, String> {
    if let Some(local) = input.get("local_time").and_then(Value::as_str) {
        let mut probe = begun(TemporalFacts::new()).await?;
        probe.cx.now = Time::parse_iso(&format!("{local}:00Z")).ok_or("local_time is no time")?;
        let shown = probe.recall("", BUDGET).await.map_err(told)?;
        return Ok(json!({ "line": shown.lines().find(|line| line.starts_with("Now:")) }));
    }
    let batches: Vec<Vec<(String, String)>> =
        serde_json::from_value(at(input, "batches").clone()).map_err(|e| e.to_string())?;
    let count = batches.len();
    let finder = Arc::new(Batches(Mutex::new(batches.into_iter().rev().collect())));
    let mut layer = TemporalFacts::new().with_finder(finder).with_threshold(0).ungrounded().with_ledger();
    if let Some(most) = number(input, "max") {
        layer = layer.keeping(size(most));
    }
    let mut probe = begun(layer).await?;
    for _ in 0..count {
        probe.store(AssistantMessage::text("said")).await.map_err(told)?;
    }
    let mut got = finished(probe, input).await?;
    let facts = at(at(&got, "state"), "facts").clone();
    if let Some(all) = got.as_object_mut() {
        all.insert("facts".to_owned(), facts);
    }
    Ok(got)
}

async fn file_references(input: &Value) -> Result<Value, String> {
    let files: BTreeMap<String, String> =
        serde_json::from_value(at(input, "files").clone()).map_err(|e| e.to_string())?;
    let layer = FileReferences::new(Arc::new(Files(files)), text(input, "base_dir"));
    let (id, slot, timing) = {
        let def = layer.def();
        (def.id.clone(), def.slot, def.rerender_timing)
    };
    let mut probe = begun(layer).await?;
    let said = Message::user(text(input, "message"));
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
                "scope": wish.scope.as_str(),
            })
        })
        .collect();
    let mut got = finished(probe, input).await?;
    let tracked = at(at(&got, "state"), "files").clone();
    if let Some(all) = got.as_object_mut() {
        all.insert("items".to_owned(), json!(items));
        all.insert("rerender_requests".to_owned(), Value::Array(requests));
        all.insert("tracked".to_owned(), tracked);
    }
    Ok(got)
}

async fn begun<L: Layer>(layer: L) -> Result<LayerProbe<L>, String> {
    let mut probe = LayerProbe::new(layer);
    probe.init().await.map_err(told)?;
    Ok(probe)
}

/// The state and what is shown of it.
async fn finished<L: Layer>(mut probe: LayerProbe<L>, input: &Value) -> Result<Value, String> {
    let shown = probe.recall("", number(input, "budget").unwrap_or(BUDGET)).await.map_err(told)?;
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

fn value_of(json: &Json) -> Result<Value, String> {
    json.to().map_err(|e| e.to_string())
}

fn number(input: &Value, key: &str) -> Option<u64> {
    input.get(key).and_then(Value::as_u64)
}

fn size(number: u64) -> usize {
    usize::try_from(number).unwrap_or(usize::MAX)
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
        let next = self.0.lock().unwrap_or_else(PoisonError::into_inner).pop();
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
