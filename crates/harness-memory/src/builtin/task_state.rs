//! Task state: what the work has come to, kept over restarts.

use std::collections::BTreeMap;

use harness_core::Json;
use harness_core::tool::{ArgumentFault, RetryClass};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::arguments;
use super::text::{fenced, fitted};
use super::tree::{Tree, put};
use crate::MemoryError;
use crate::layer::{
    Called, Ending, Execution, Hook, Layer, LayerCx, LayerDef, RecallAsk, Recalled, ReturnAsk, Scope,
    Spawned, StoreAsk, Update,
};

/// Checkpoints that are kept, the newest.
const MOST_CHECKPOINTS: usize = 50;
/// Files that are kept; a further one is refused.
const MOST_FILES: usize = 1_000;
/// Bytes of the data as JSON; an entry that makes it longer is refused.
const MOST_DATA: usize = 256 * 1_024;
/// Key of the outcome of the work.
const OUTCOME: &str = "__outcome";

/// How the data of a child execution is merged into that of its parent.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum DataMerge {
    /// Key by key; the child's value wins. The default.
    #[default]
    Shallow,
    /// As one value under the id of the child's execution.
    Namespace,
}

/// Durable task state: checkpoints, files that were made, data by key.
#[derive(Clone, Debug)]
pub struct TaskState {
    /// Definition: id, slot, scope, budget, placement, hooks.
    pub def: LayerDef,
    /// Merging of the data of sub-agents. Default [`DataMerge::Shallow`].
    pub merge: DataMerge,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
struct Checkpoint {
    timestamp: i64,
    depth: u32,
}

#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
struct State {
    checkpoints: Vec<Checkpoint>,
    files: Vec<String>,
    data: Json,
}

impl State {
    fn data(&self) -> Vec<(String, Tree)> {
        match Tree::of(&self.data) {
            Tree::Object(entries) => entries,
            Tree::Leaf(_) | Tree::Text(_) | Tree::List(_) => Vec::new(),
        }
    }

    fn mark(&mut self, cx: &LayerCx) {
        self.checkpoints.push(Checkpoint { timestamp: cx.now.0, depth: cx.execution.depth });
        self.forget_oldest();
    }

    fn forget_oldest(&mut self) {
        let surplus = self.checkpoints.len().saturating_sub(MOST_CHECKPOINTS);
        self.checkpoints.drain(..surplus);
    }

    fn is_empty(&self) -> bool {
        self.checkpoints.is_empty() && self.files.is_empty() && self.data().is_empty()
    }

    fn rendered(&self) -> String {
        let text = Json::of(self).map(|json| Tree::of(&json).pretty()).unwrap_or_default();
        fenced("task_state", &text)
    }

    /// Adds the checkpoints of a child that are not here yet. A child begins with a copy of its parent's.
    fn take_checkpoints(&mut self, child: Vec<Checkpoint>) {
        let mut known: BTreeMap<Checkpoint, usize> = BTreeMap::new();
        for checkpoint in &self.checkpoints {
            *known.entry(*checkpoint).or_default() += 1;
        }
        for checkpoint in child {
            match known.get_mut(&checkpoint) {
                Some(left) if *left > 0 => *left -= 1,
                Some(_) | None => self.checkpoints.push(checkpoint),
            }
        }
        self.forget_oldest();
    }
}

#[derive(Deserialize, JsonSchema)]
struct Artifact {
    /// The path of the file.
    path: String,
}

#[derive(Deserialize, JsonSchema)]
struct Datum {
    /// The name of the entry.
    key: String,
    /// Its value; it replaces an earlier one.
    #[schemars(with = "serde_json::Value")]
    value: Json,
}

impl TaskState {
    /// The task state of a thread.
    pub fn new() -> Self {
        let hooks = [Hook::Init, Hook::Recall, Hook::Store, Hook::Spawn, Hook::Return, Hook::Complete];
        let artifact = arguments::function::<Artifact>(
            "recordArtifact",
            "Records a file that the task has made or changed, so that it is known after a restart.",
        );
        let datum = arguments::function::<Datum>(
            "setTaskData",
            "Records a value under a key of the task's state, so that it is known after a restart.",
        );
        let def = LayerDef::new("task-state", 110, hooks)
            .with_scope(Scope::Thread)
            .with_range(100, 800)
            .with_function(artifact.with_class(RetryClass::Idempotent))
            .with_function(datum.with_class(RetryClass::Idempotent));
        Self { def, merge: DataMerge::Shallow }
    }
}

fn record_artifact(state: &mut State, path: String) -> String {
    if state.files.contains(&path) {
        return format!("Already recorded: {path}");
    }
    if state.files.len() >= MOST_FILES {
        return format!("Cannot record {path}: {MOST_FILES} files are recorded, which is the most.");
    }
    let said = format!("Recorded artifact: {path}");
    state.files.push(path);
    said
}

fn set_task_data(state: &mut State, Datum { key, value }: Datum) -> String {
    if key == OUTCOME {
        return format!("Cannot set reserved key \"{OUTCOME}\".");
    }
    let mut data = state.data();
    put(&mut data, key.clone(), Tree::of(&value));
    let data = Tree::Object(data).json();
    if data.text().len() > MOST_DATA {
        return format!("Cannot record {key}: the data would be longer than {MOST_DATA} bytes.");
    }
    state.data = data;
    format!("Recorded {key}.")
}

impl Layer for TaskState {
    fn def(&self) -> &LayerDef {
        &self.def
    }

    async fn recall(&self, ask: RecallAsk, cx: &LayerCx) -> Result<Recalled, MemoryError> {
        let mut state: State = cx.state_as()?;
        if state.is_empty() {
            return Ok(Recalled::nothing());
        }
        let mut text = state.rendered();
        while ask.budget > 0 && cx.tokenize(&text) > ask.budget && !state.checkpoints.is_empty() {
            let older = state.checkpoints.len().div_ceil(2);
            state.checkpoints.drain(..older);
            text = state.rendered();
        }
        Ok(Recalled::text(fitted(text, "\n</task_state>", ask.budget, cx)))
    }

    async fn store(&self, _ask: StoreAsk, cx: &LayerCx) -> Result<Update, MemoryError> {
        let mut state: State = cx.state_as()?;
        state.mark(cx);
        Update::set(&state)
    }

    async fn spawn(&self, _child: &Execution, cx: &LayerCx) -> Result<Option<Spawned>, MemoryError> {
        Ok(cx.state.clone().map(Spawned::state))
    }

    async fn on_return(&self, ask: ReturnAsk, cx: &LayerCx) -> Result<Update, MemoryError> {
        let mut state: State = cx.state_as()?;
        let child: State = ask
            .child_state
            .to()
            .map_err(|fault| MemoryError::failed(format!("the child's state is not readable: {fault}")))?;
        let mut data = state.data();
        match self.merge {
            DataMerge::Shallow => {
                let own = child.data().into_iter().filter(|(key, _)| key != OUTCOME);
                own.for_each(|(key, value)| put(&mut data, key, value));
            }
            DataMerge::Namespace => put(&mut data, ask.child.id.to_string(), Tree::of(&child.data)),
        }
        state.data = Tree::Object(data).json();
        for file in child.files {
            if !state.files.contains(&file) && state.files.len() < MOST_FILES {
                state.files.push(file);
            }
        }
        state.take_checkpoints(child.checkpoints);
        Update::set(&state)
    }

    async fn complete(&self, ending: Ending, cx: &LayerCx) -> Result<Update, MemoryError> {
        let mut state: State = cx.state_as()?;
        state.mark(cx);
        if ending != Ending::Paused {
            let mut data = state.data();
            put(&mut data, OUTCOME.to_owned(), Tree::Text(ending.to_string()));
            state.data = Tree::Object(data).json();
        }
        Update::set(&state)
    }

    fn check_call(&self, function: &str, arguments: &Json) -> Result<(), ArgumentFault> {
        if function == "recordArtifact" {
            return arguments::check::<Artifact>(arguments);
        }
        arguments::check::<Datum>(arguments)
    }

    async fn call(&self, function: &str, arguments: Json, cx: &LayerCx) -> Result<Called, MemoryError> {
        let mut state: State = cx.state_as()?;
        let before = state.clone();
        let said = if function == "recordArtifact" {
            record_artifact(&mut state, arguments::parsed::<Artifact>(&arguments)?.path)
        } else {
            set_task_data(&mut state, arguments::parsed(&arguments)?)
        };
        let update = if state == before { Update::Keep } else { Update::set(&state)? };
        Ok(Called::text(&said).with_state(update))
    }
}
