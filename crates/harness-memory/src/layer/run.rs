//! The layers of one execution: who is asked, with what, for how long.

use std::any::Any;
use std::collections::BTreeMap;
use std::future::poll_fn;
use std::panic::AssertUnwindSafe;
use std::sync::Arc;
use std::sync::atomic::{AtomicU32, Ordering};
use std::task::Poll;

use futures_util::FutureExt as _;
use futures_util::future::{Either, select};
use futures_util::lock::Mutex as AsyncMutex;
use harness_core::message::{Message, Usage};
use harness_core::outcome::{Purpose, TotalUsage};
use harness_core::port::{BoxFuture, ViewCx};
use harness_core::{Json, Millis};
use parking_lot::Mutex;

use super::ask::Update;
use super::cx::{Execution, LayerCx, States};
use super::def::{Hook, LayerId, OnInitError, Scope};
use super::flow::RerenderRequest;
use super::hook::DynLayer;
use super::stack::Stack;
use super::state::StateTable;
use super::storage::{ScopedStorage, scope_key};
use crate::MemoryError;

/// The layers of one execution. A [`Pipeline`](super::Pipeline) opens and drives it; with
/// [`Pipeline::open`](super::Pipeline::open) you drive the hooks yourself.
#[derive(derive_more::Debug)]
pub struct LayerRun {
    #[debug(skip)]
    pub(crate) stack: Arc<Stack>,
    pub(crate) execution: Arc<Execution>,
    #[debug(skip)]
    pub(crate) states: Arc<StateTable>,
    #[debug(skip)]
    pub(crate) progress: Mutex<Progress>,
    /// Wishes for more recalls in the next view.
    #[debug(skip)]
    pub(crate) requests: Mutex<Vec<RerenderRequest>>,
    /// First messages of a child's transcript, until they are used.
    #[debug(skip)]
    pub(crate) begins_with: Mutex<Vec<Arc<Message>>>,
    /// Held while a function of the layer is called.
    #[debug(skip)]
    pub(crate) callers: Vec<AsyncMutex<()>>,
    /// Held while the layers learn from a child.
    #[debug(skip)]
    pub(crate) merging: AsyncMutex<()>,
    /// Usage of model calls by layers.
    #[debug(skip)]
    pub(crate) spent: Arc<Mutex<TotalUsage>>,
    step: AtomicU32,
}

/// How far the execution has come.
#[derive(Debug, Default)]
pub(crate) struct Progress {
    /// Usage of the answers.
    pub(crate) usage: TotalUsage,
    /// The text of the newest user message, and how much of the transcript was looked through for it.
    pub(crate) query: (usize, Arc<str>),
    /// Messages of the transcript that `store` has seen, or that were there before `init`; `None` before it.
    pub(crate) stored: Option<usize>,
    /// Guidance given in a row.
    pub(crate) guided: u32,
    /// Answers that were accepted although guidance was left.
    pub(crate) exhausted: u32,
    /// Layers whose `init` was never called and that were reported for it.
    pub(crate) skipped: Vec<usize>,
}

impl LayerRun {
    /// The layers of an execution before `init`.
    pub(crate) fn new(stack: Arc<Stack>, execution: Arc<Execution>) -> Self {
        let mirror = |layer: &Arc<dyn DynLayer>| {
            let def = layer.layer_def();
            let kept = def.scope != Scope::Execution;
            kept.then(|| ScopedStorage::new(stack.storage.clone(), &def.id, def.scope, &execution))
        };
        let mirrors = stack.layers.iter().map(mirror).collect();
        let states = StateTable::new(Arc::clone(&stack.ids), mirrors);
        Self {
            callers: stack.layers.iter().map(|_| AsyncMutex::new(())).collect(),
            states: Arc::new(states),
            progress: Mutex::default(),
            requests: Mutex::default(),
            begins_with: Mutex::default(),
            merging: AsyncMutex::new(()),
            spent: Arc::default(),
            step: AtomicU32::new(0),
            stack,
            execution,
        }
    }

    /// Execution that the layers belong to.
    pub fn execution(&self) -> &Arc<Execution> {
        &self.execution
    }

    /// The state of a layer.
    pub fn state(&self, layer: &LayerId) -> Option<Json> {
        self.states.state_of(layer)
    }

    /// The states of all layers, to be [restored](super::Pipeline::restore) elsewhere.
    pub fn snapshot(&self) -> BTreeMap<LayerId, Json> {
        let ids = self.stack.ids.iter().enumerate();
        ids.filter_map(|(at, id)| Some((id.clone(), self.states.get(at)?))).collect()
    }

    /// Usage of model calls by layers so far.
    pub fn spent(&self) -> TotalUsage {
        self.spent.lock().clone()
    }

    /// Initialises the layers that have no state yet, in the order of their declaration.
    ///
    /// # Errors
    /// The first failure of a layer that may not be left out; later layers stay uninitialised.
    pub async fn init(&self, cx: &ViewCx) -> Result<(), MemoryError> {
        let base = self.cx(cx);
        self.lock_progress().stored.get_or_insert(cx.log.len());
        for (at, layer) in self.stack.layers.iter().enumerate() {
            let def = layer.layer_def();
            if !def.has(Hook::Init) || self.states.has_entry(at) || self.states.is_disabled(at) {
                continue;
            }
            let storage = ScopedStorage::new(self.stack.storage.clone(), &def.id, def.scope, &self.execution);
            let cx = base.clone();
            match self.ask(at, Hook::Init, layer.init_boxed(&storage, &cx)).await {
                Ok(first) => self.states.begin(at, first),
                Err(fault) => {
                    self.stack.report(at, Hook::Init, fault.clone());
                    self.states.disable(at);
                    if def.on_init_error == OnInitError::Throw {
                        // Those that follow never begin, and are not asked at the end either.
                        (at..self.stack.layers.len()).for_each(|later| self.states.disable(later));
                        return Err(fault);
                    }
                }
            }
        }
        Ok(())
    }

    /// Context for hooks; each receives it with its own state.
    pub(crate) fn cx(&self, cx: &ViewCx) -> LayerCx {
        let mut own = LayerCx::new(Arc::clone(&self.execution), cx.log.clone(), cx.now)
            .with_counter(Arc::clone(&self.stack.counter))
            .with_states(Arc::clone(&self.states) as Arc<dyn States>)
            .with_ledger(cx.ledger.for_purpose(Purpose::Layer))
            .with_spent(Arc::clone(&self.spent));
        if let Some(model) = &self.stack.model {
            own = own.with_model(Arc::clone(model));
        }
        own.cancel = cx.cancel.clone();
        own.prepared.clone_from(&cx.prepared);
        own.step = self.steps();
        own.usage = self.lock_progress().usage.clone();
        own
    }

    /// Context for one layer.
    pub(crate) fn cx_of(&self, layer: usize, base: &LayerCx) -> LayerCx {
        base.clone().with_state(self.states.get(layer))
    }

    /// The layers with a hook, by slot, that are asked now.
    pub(crate) fn asked(&self, hook: Hook) -> impl Iterator<Item = (usize, &Arc<dyn DynLayer>)> {
        self.stack.with_hook(hook).filter(|(at, _)| !self.is_skipped(*at))
    }

    /// Whether a layer is left out: it was disabled, or needs an `init` that it never had. The latter is
    /// reported once.
    pub(crate) fn is_skipped(&self, layer: usize) -> bool {
        if self.states.is_disabled(layer) {
            return true;
        }
        let needs_init = self.stack.layers.get(layer).is_some_and(|layer| layer.layer_def().has(Hook::Init));
        if !needs_init || self.states.has_entry(layer) {
            return false;
        }
        let mut progress = self.lock_progress();
        if !progress.skipped.contains(&layer) {
            progress.skipped.push(layer);
            drop(progress);
            self.stack.report(layer, Hook::Init, MemoryError::NeverBegun);
        }
        true
    }

    /// Waits for a hook as long as it may take. A hook that takes longer, or panics, has failed; its
    /// future is dropped, so that nothing of it is ever applied.
    pub(crate) async fn ask<T>(
        &self,
        layer: usize,
        hook: Hook,
        answer: BoxFuture<'_, Result<T, MemoryError>>,
    ) -> Result<T, MemoryError> {
        let limit = self.stack.layers.get(layer).and_then(|layer| layer.layer_def().limit(hook));
        self.wait(limit, answer).await
    }

    /// Waits for layer code as long as it may take.
    pub(crate) async fn wait<T>(
        &self,
        limit: Option<Millis>,
        answer: BoxFuture<'_, Result<T, MemoryError>>,
    ) -> Result<T, MemoryError> {
        let mut answer = AssertUnwindSafe(answer).catch_unwind();
        // Most hooks answer at once: then no timer is set.
        let first = poll_fn(|cx| Poll::Ready(answer.poll_unpin(cx))).await;
        let answered = match (first, limit) {
            (Poll::Ready(answered), _) => answered,
            (Poll::Pending, None) => answer.await,
            (Poll::Pending, Some(limit)) => {
                let clock = &self.stack.clock;
                match select(answer, clock.sleep_until(clock.now().after(limit))).await {
                    Either::Left((answered, _)) => answered,
                    Either::Right(_) => return Err(MemoryError::TimedOut { limit }),
                }
            }
        };
        answered.unwrap_or_else(|panic| Err(MemoryError::failed(panic_text(&*panic))))
    }

    /// Takes over what a hook made of the state. What an eventual layer recalled last is out of date then.
    pub(crate) fn apply(&self, layer: usize, update: Update) {
        if self.states.apply(layer, update)
            && let Some(key) = self.eventual_key(layer)
            && let Some(kept) = self.stack.eventual.lock().get_mut(&key)
        {
            kept.is_stale = true;
        }
    }

    /// The key of an eventual layer's last result; `None` for the others.
    pub(crate) fn eventual_key(&self, layer: usize) -> Option<(Arc<str>, LayerId)> {
        let def = self.stack.layers.get(layer)?.layer_def();
        let is_eventual = def.recall_mode == super::def::RecallMode::Eventual && !self.stack.all_atomic;
        is_eventual.then(|| (Arc::from(scope_key(def.scope, &self.execution)), def.id.clone()))
    }

    /// Writes the states to the storage; what fails is reported.
    pub(crate) async fn flush(&self) {
        for (layer, fault) in self.states.flush().await {
            self.stack.report(layer, "persist", fault);
        }
    }

    /// Started iterations.
    pub(crate) fn steps(&self) -> u32 {
        self.step.load(Ordering::Relaxed)
    }

    pub(crate) fn set_steps(&self, steps: u32) {
        self.step.store(steps, Ordering::Relaxed);
    }

    /// Counts a started iteration.
    pub(crate) fn step(&self) {
        self.step.fetch_add(1, Ordering::Relaxed);
    }

    /// Counts what an answer, or a child, used.
    pub(crate) fn count(&self, usage: &Usage) {
        let mut progress = self.lock_progress();
        progress.usage.add_call(Purpose::Answer, Some(usage), true);
    }

    pub(crate) fn lock_progress(&self) -> parking_lot::MutexGuard<'_, Progress> {
        self.progress.lock()
    }
}

fn panic_text(panic: &(dyn Any + Send)) -> String {
    let text = panic.downcast_ref::<&str>().copied();
    let text = text.or_else(|| panic.downcast_ref::<String>().map(String::as_str));
    format!("it panicked: {}", text.unwrap_or("no message"))
}
