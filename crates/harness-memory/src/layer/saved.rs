//! Executions that continue in another process.

use std::collections::BTreeMap;
use std::sync::Arc;

use futures_util::lock::Mutex as AsyncMutex;
use harness_core::outcome::TotalUsage;
use harness_core::port::Stateful;
use harness_core::{Json, Origin};
use serde::{Deserialize, Serialize};

use super::ask::Update;
use super::def::LayerId;
use super::flow::RerenderRequest;
use super::pipeline::{Opened, Pipeline};
use super::run::LayerRun;
use super::stack::tool_name;

/// Everything that an execution at work has in its process.
#[derive(Default, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
struct SavedRun {
    /// States of the layers that were initialised; `None` for one that has no state.
    states: BTreeMap<LayerId, Option<Json>>,
    /// Layers whose state the storage does not have yet.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    unstored: Vec<LayerId>,
    /// Layers whose `init` failed.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    disabled: Vec<LayerId>,
    usage: TotalUsage,
    stored: Option<usize>,
    guided: u32,
    exhausted: u32,
    step: u32,
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    requests: Vec<RerenderRequest>,
}

impl Stateful for Pipeline {
    fn name(&self) -> &'static str {
        "memory"
    }

    fn has_tool(&self, name: &str) -> bool {
        let mut defs = self.stack().layers.iter().map(|layer| layer.layer_def());
        defs.any(|def| def.functions.iter().any(|function| tool_name(&def.id, &function.name) == name))
    }

    fn save_state(&self, origin: &Origin) -> Option<Json> {
        let opened = self.opened(&Self::execution_of(origin).id)?;
        let has_begun = matches!(opened.begun.try_lock().as_deref(), Some(Some(Ok(()))));
        has_begun.then(|| Json::of(&opened.run.saved()).ok()).flatten()
    }

    fn restore_state(&self, origin: &Origin, saved: Option<&Json>) {
        // Most executions stay where they are.
        if saved.is_none() || self.save_state(origin).as_ref() != saved {
            self.put_run(origin, saved);
        }
    }
}

impl Pipeline {
    /// Puts an execution where it was saved, or before its beginning.
    fn put_run(&self, origin: &Origin, saved: Option<&Json>) {
        let execution = Self::execution_of(origin);
        let read = |saved: &Json| match saved.to::<SavedRun>() {
            Ok(saved) => Some(saved),
            Err(error) => {
                tracing::warn!("the layers of an execution cannot be restored, and begin anew: {error}");
                None
            }
        };
        let run = LayerRun::new(Arc::clone(self.stack()), Arc::new(execution));
        let saved = saved.and_then(read);
        let begun = saved.is_some().then_some(Ok(()));
        if let Some(saved) = saved {
            run.restore(saved);
        }
        self.put(Opened { run: Arc::new(run), parent: None, begun: AsyncMutex::new(begun) });
    }
}

impl LayerRun {
    fn saved(&self) -> SavedRun {
        let layers = self.stack.ids.iter().enumerate();
        let (mut states, mut unstored, mut disabled) = (BTreeMap::new(), Vec::new(), Vec::new());
        for (at, id) in layers {
            if self.states.is_disabled(at) {
                disabled.push(id.clone());
            } else if self.states.has_entry(at) {
                states.insert(id.clone(), self.states.get(at));
            }
            if self.states.is_unstored(at) {
                unstored.push(id.clone());
            }
        }
        let requests = self.requests.lock().clone();
        let progress = self.lock_progress();
        SavedRun {
            states,
            unstored,
            disabled,
            usage: progress.usage.clone(),
            stored: progress.stored,
            guided: progress.guided,
            exhausted: progress.exhausted,
            step: self.steps(),
            requests,
        }
    }

    /// Fills an execution that has nothing. Layers that no longer exist are left out.
    fn restore(&self, saved: SavedRun) {
        for (id, state) in saved.states {
            if let Some(at) = self.stack.position(&id) {
                let state = state.map_or(Update::Clear, Update::Set);
                if saved.unstored.contains(&id) {
                    self.states.apply(at, state);
                } else {
                    self.states.begin(at, state);
                }
            }
        }
        saved.disabled.iter().filter_map(|id| self.stack.position(id)).for_each(|at| self.states.disable(at));
        *self.requests.lock() = saved.requests;
        self.set_steps(saved.step);
        let mut progress = self.lock_progress();
        progress.usage = saved.usage;
        progress.stored = saved.stored;
        (progress.guided, progress.exhausted) = (saved.guided, saved.exhausted);
    }
}
