//! The pipeline: all layers behind the ports of the core.

use std::collections::BTreeMap;
use std::fmt;
use std::sync::Arc;

use futures_util::lock::Mutex as AsyncMutex;
use harness_core::decide::{DecideCx, DynGate, Gate, GateDecision, GateVerdict, Guarded, gate};
use harness_core::message::{AssistantMessage, Message};
use harness_core::port::{
    AppendSource, Clock, ContextPipeline, DynContextPipeline, ProposedCall, Stateful, ViewCx,
};
use harness_core::transcript::Plan;
use harness_core::{Fault, FaultSource, Json, Origin, Outcome, RunId, TurnId};
use lru::LruCache;
use parking_lot::Mutex;

use super::ask::{Decision, Ending, ToolAsk, Update};
use super::cx::Execution;
use super::def::{LayerId, Scope};
use super::run::LayerRun;
use super::stack::{LayerSetup, Stack};
use super::usage::LayerUsage;
use crate::MemoryError;
use crate::shared::recent;

/// Executions that are open at once. One that was not used for longest is forgotten beyond that.
const OPEN_RUNS: usize = 4_096;
/// Executions with kept states that stopped before their end and can be resumed.
const KEPT_PAUSES: usize = 256;
/// Reports that are kept after their executions.
const KEPT_USAGES: usize = 256;
/// Guidance that is given in a row before an answer is accepted all the same.
const GUIDES_IN_A_ROW: u32 = 3;

/// Memory layers behind the [`ContextPipeline`] port. Clones share everything.
///
/// One pipeline serves all threads of a program. Each execution (a run, or a turn that stands alone) has its
/// own states; what outlives it is in the storage. Give it to the turn as its layers, its
/// [`gate`](Self::gate) as a tool gate, and its [`tools`](Self::tools) as tools; the builder of `harness` does
/// all of that at once.
///
/// Work that a call started ([`Origin::parent`]) is a child of the execution of that call, if that is open here: its
/// layers start with what the parent's layers pass on, and the parent's layers learn from it when it completes.
///
/// ```
/// # use std::sync::Arc;
/// # use harness_core::port::{BoxFuture, Clock, ContextPipeline, ViewCx};
/// # use harness_core::{Origin, Time};
/// # use harness_core::message::{AssistantMessage, Message};
/// # use harness_core::transcript::Transcript;
/// use harness_memory::layer::{FnLayer, LayerDef, LayerSetup, Pipeline, Recalled};
/// # struct Still;
/// # impl Clock for Still {
/// #     fn now(&self) -> Time { Time(0) }
/// #     fn sleep_until(&self, _: Time) -> BoxFuture<'static, ()> { Box::pin(std::future::pending()) }
/// # }
/// # #[tokio::main(flavor = "current_thread")]
/// # async fn main() -> Result<(), Box<dyn std::error::Error>> {
/// let motto = FnLayer::new(LayerDef::new("motto", 90, []))
///     .on_recall(|_, _| async { Ok(Recalled::text("Be brief.")) });
/// let layers = Pipeline::build(LayerSetup::new().with(motto), Arc::new(Still))?;
///
/// let log: Transcript = [Arc::new(Message::user("hello"))].into_iter().collect();
/// let cx = ViewCx::new(log.prefix(), Arc::new(Origin::default()), Time(0));
/// layers.begin(&cx).await?;
/// let plan = layers.recall(&cx).await?.ok_or("the layer shows something")?;
/// assert_eq!(plan.spans.len(), 2);
/// # Ok(())
/// # }
/// ```
#[derive(Clone)]
pub struct Pipeline(Arc<Inner>);

struct Inner {
    stack: Arc<Stack>,
    runs: Mutex<LruCache<Arc<str>, Arc<Opened>>>,
    /// States of scope `execution` of resumable executions.
    paused: Mutex<LruCache<Arc<str>, BTreeMap<LayerId, Json>>>,
    usages: Mutex<LruCache<Arc<str>, LayerUsage>>,
}

/// An opened execution.
pub(super) struct Opened {
    pub(super) run: Arc<LayerRun>,
    pub(super) parent: Option<Arc<LayerRun>>,
    /// Result of `init`; `None` before it.
    pub(super) begun: AsyncMutex<Option<Result<(), MemoryError>>>,
}

impl fmt::Debug for Pipeline {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Pipeline").field("layers", &self.0.stack.ids).finish_non_exhaustive()
    }
}

impl Pipeline {
    /// Builds a valid set of layers. `clock` limits the time of their hooks.
    ///
    /// # Errors
    /// [`MemoryError::Layers`] with everything that is wrong with the set.
    pub fn build(setup: LayerSetup, clock: Arc<dyn Clock>) -> Result<Self, MemoryError> {
        Ok(Self(Arc::new(Inner {
            stack: Arc::new(Stack::new(setup, clock)?),
            runs: Mutex::new(recent(OPEN_RUNS)),
            paused: Mutex::new(recent(KEPT_PAUSES)),
            usages: Mutex::new(recent(KEPT_USAGES)),
        })))
    }

    /// The execution that work belongs to: its run, or its turn where there is no run.
    pub fn execution_of(origin: &Origin) -> Execution {
        let run = origin.run.as_ref().map(RunId::as_str);
        let turn = || origin.turn.as_ref().map(TurnId::as_str);
        let mut execution = Execution::new(run.or_else(turn).unwrap_or("turn"));
        execution.thread.clone_from(&origin.thread);
        execution.resource.clone_from(&origin.user);
        execution.workspace.clone_from(&origin.workspace);
        execution.depth = origin.depth();
        execution
    }

    /// The layers of an execution, initialised. What is open stays as it is.
    ///
    /// # Errors
    /// The failing `init` of a layer that may not be left out; the same again for the same execution.
    pub async fn open(&self, execution: Execution, cx: &ViewCx) -> Result<Arc<LayerRun>, MemoryError> {
        let opened = {
            let mut runs = self.0.runs.lock();
            if let Some(opened) = runs.get_mut(&*execution.id) {
                Arc::clone(opened)
            } else {
                let kept = self.0.paused.lock().pop(&*execution.id);
                let parent = cx.origin.parent.as_ref().and_then(|parent| parent.run.as_ref());
                // What is taken up again has begun before.
                let parent = parent.filter(|_| kept.is_none()).and_then(|run| runs.get_mut(run.as_str()));
                let parent = parent.map(|parent| Arc::clone(&parent.run));
                let opened = self.fresh(execution, kept.unwrap_or_default(), parent);
                runs.put(Arc::clone(&opened.run.execution().id), Arc::clone(&opened));
                opened
            }
        };
        let mut begun = opened.begun.lock().await;
        let result = if let Some(result) = &*begun {
            result.clone()
        } else {
            let result = match &opened.parent {
                Some(parent) => parent.spawn(&opened.run, cx).await,
                None => opened.run.init(cx).await,
            };
            begun.insert(result).clone()
        };
        result.map(|()| Arc::clone(&opened.run))
    }

    /// Restores the states of an execution from elsewhere, before it is opened here: these layers are not initialised
    /// again.
    pub fn restore(&self, execution: Execution, states: impl IntoIterator<Item = (LayerId, Json)>) {
        let opened = self.fresh(execution, states, None);
        opened.run.lock_progress().stored = Some(0);
        self.put(opened);
    }

    /// Replaces an execution.
    pub(super) fn put(&self, opened: impl Into<Arc<Opened>>) {
        let opened = opened.into();
        let id = Arc::clone(&opened.run.execution().id);
        self.0.runs.lock().put(id, opened);
    }

    /// An execution before `init`, with the states that it had elsewhere or before.
    fn fresh(
        &self,
        execution: Execution,
        states: impl IntoIterator<Item = (LayerId, Json)>,
        parent: Option<Arc<LayerRun>>,
    ) -> Arc<Opened> {
        let run = LayerRun::new(Arc::clone(&self.0.stack), Arc::new(execution));
        for (layer, state) in states {
            if let Some(at) = self.0.stack.position(&layer) {
                run.states.begin(at, Update::Set(state));
            }
        }
        Arc::new(Opened { run: Arc::new(run), parent, begun: AsyncMutex::default() })
    }

    /// The layers of an execution that is open.
    ///
    /// # Errors
    /// When it is not.
    pub fn run(&self, execution: &str) -> Result<Arc<LayerRun>, MemoryError> {
        self.opened(execution)
            .map(|opened| Arc::clone(&opened.run))
            .ok_or_else(|| MemoryError::UnknownExecution { execution: Arc::from(execution) })
    }

    pub(super) fn opened(&self, execution: &str) -> Option<Arc<Opened>> {
        let mut runs = self.0.runs.lock();
        runs.get_mut(execution).map(|opened| Arc::clone(opened))
    }

    fn close(&self, execution: &str) {
        self.0.runs.lock().retain(|id, _| **id != *execution);
    }

    /// The state of a layer in an execution.
    ///
    /// # Errors
    /// When the execution is not open, or there is no such layer.
    pub fn layer_state(&self, execution: &str, layer: &LayerId) -> Result<Option<Json>, MemoryError> {
        let run = self.run(execution)?;
        self.position(layer).map(|at| run.states.get(at))
    }

    /// Sets or clears the state of a layer in an execution, in the storage, too.
    ///
    /// # Errors
    /// When the execution is not open, or there is no such layer.
    pub async fn set_layer_state(
        &self,
        execution: &str,
        layer: &LayerId,
        update: Update,
    ) -> Result<(), MemoryError> {
        let run = self.run(execution)?;
        run.apply(self.position(layer)?, update);
        run.flush().await;
        Ok(())
    }

    pub(crate) fn position(&self, layer: &LayerId) -> Result<usize, MemoryError> {
        self.0.stack.position(layer).ok_or_else(|| MemoryError::UnknownLayer { id: layer.clone() })
    }

    pub(crate) fn stack(&self) -> &Arc<Stack> {
        &self.0.stack
    }

    /// The last view of an execution in tokens; kept for a while after its end.
    pub fn usage(&self, execution: &str) -> Option<LayerUsage> {
        self.0.usages.lock().get(execution).cloned()
    }

    /// Gate with the decisions of the layers on tool calls.
    pub fn gate(&self) -> Guarded<dyn DynGate> {
        gate::new("layers", LayerGate(self.clone()))
    }

    /// The states that an execution has nowhere else: those of scope `execution`.
    fn own_states(&self, run: &LayerRun) -> BTreeMap<LayerId, Json> {
        let mut states = run.snapshot();
        states.retain(|layer, _| {
            let layer = self.0.stack.position(layer).and_then(|at| self.0.stack.layers.get(at));
            layer.is_some_and(|layer| layer.layer_def().scope == Scope::Execution)
        });
        states
    }

    /// Keeps the states that a resumable execution has nowhere else.
    fn pause(&self, run: &LayerRun) {
        let states = self.own_states(run);
        if !states.is_empty() {
            let id = Arc::clone(&run.execution().id);
            self.0.paused.lock().put(id, states);
        }
    }

    async fn running(&self, cx: &ViewCx) -> Result<Arc<LayerRun>, Fault> {
        // An execution that is open is found without making its description.
        let id = cx.origin.run.as_ref().map(RunId::as_str);
        if let Some(opened) = id.and_then(|id| self.opened(id))
            && let Some(Some(Ok(()))) = opened.begun.try_lock().as_deref()
        {
            return Ok(Arc::clone(&opened.run));
        }
        self.open(Self::execution_of(&cx.origin), cx).await.map_err(|fault| as_fault(&fault))
    }
}

/// Error of the layers for events of the machine.
fn as_fault(error: &MemoryError) -> Fault {
    let message = match error.hint() {
        Some(hint) => format!("{error}: {hint}"),
        None => error.to_string(),
    };
    Fault::new(FaultSource::Layer, error.kind(), message)
}

impl ContextPipeline for Pipeline {
    fn ahead(&self) -> Option<Arc<dyn DynContextPipeline>> {
        let paused = self.0.paused.lock().clone();
        Some(Arc::new(Self(Arc::new(Inner {
            stack: Arc::new(self.0.stack.ahead()),
            runs: Mutex::new(recent(OPEN_RUNS)),
            paused: Mutex::new(paused),
            usages: Mutex::new(recent(KEPT_USAGES)),
        }))))
    }

    async fn begin(&self, cx: &ViewCx) -> Result<(), Fault> {
        self.running(cx).await.map(drop)
    }

    async fn append(
        &self,
        source: AppendSource,
        messages: Vec<Arc<Message>>,
        cx: &ViewCx,
    ) -> Result<Vec<Arc<Message>>, Fault> {
        let run = self.running(cx).await?;
        let mut items = run.take_items();
        items.extend(run.append(source, messages, cx).await.items);
        Ok(items)
    }

    async fn recall(&self, cx: &ViewCx) -> Result<Option<Plan>, Fault> {
        let run = self.running(cx).await?;
        let (plan, usage) = run.view(cx).await.map_err(|fault| as_fault(&fault))?;
        let id = Arc::clone(&run.execution().id);
        self.0.usages.lock().put(id, usage);
        Ok(plan)
    }

    async fn after_model(&self, answer: &Arc<Message>, cx: &ViewCx) -> Result<Option<String>, Fault> {
        let run = self.running(cx).await?;
        run.heard(answer, cx);
        let decision = run.judge_answer(answer, cx).await.map_err(|fault| as_fault(&fault))?;
        let mut progress = run.lock_progress();
        let (guidance, default) = match decision {
            Decision::Allow => {
                progress.guided = 0;
                return Ok(None);
            }
            Decision::Guide { .. } if progress.guided >= GUIDES_IN_A_ROW => {
                progress.guided = 0;
                progress.exhausted = progress.exhausted.saturating_add(1);
                return Ok(None);
            }
            Decision::Guide { guidance } => {
                progress.guided += 1;
                (guidance, "Please adjust your response.")
            }
            // A denial is never accepted: the model is asked again until the turn's own limits end it.
            Decision::Deny { guidance } => (guidance, "steering rule violation"),
        };
        Ok(Some(guidance.unwrap_or_else(|| default.to_owned())))
    }

    async fn store(&self, answer: &Arc<Message>, cx: &ViewCx) -> Result<(), Fault> {
        self.running(cx).await?.store(answer, cx).await;
        Ok(())
    }

    fn save_states(&self, origin: &Origin) -> Option<Json> {
        let opened = self.opened(&Self::execution_of(origin).id)?;
        let states = self.own_states(&opened.run);
        (!states.is_empty()).then(|| Json::of(&states).ok()).flatten()
    }

    fn restore_states(&self, origin: &Origin, states: &Json) {
        match states.to::<BTreeMap<LayerId, Json>>() {
            Ok(states) => self.restore(Self::execution_of(origin), states),
            Err(error) => tracing::warn!("states of layers cannot be restored: {error}"),
        }
    }

    fn run_state(&self) -> Option<&dyn Stateful> {
        Some(self)
    }

    async fn complete(&self, outcome: Outcome, cx: &ViewCx) -> Result<(), Fault> {
        let execution = Self::execution_of(&cx.origin);
        let Some(opened) = self.opened(&execution.id) else { return Ok(()) };
        let ending = match outcome {
            Outcome::Completed => Ending::Success,
            Outcome::NeedsClarification | Outcome::AwaitingApproval | Outcome::Deferred => Ending::Paused,
            Outcome::Failed if cx.cancel.is_cancelled() => Ending::Aborted,
            Outcome::Failed => Ending::Failure,
        };
        opened.run.complete(ending, cx).await;
        opened.run.dispose(cx).await;
        match &opened.parent {
            Some(parent) => {
                let _alone = parent.merging.lock().await;
                parent.charge(&opened.run);
                if ending == Ending::Success {
                    let answer = cx.log.iter().rev().find_map(|message| message.as_assistant());
                    let answer = answer.map(AssistantMessage::joined_text);
                    parent.learn_from(&opened.run, &cx.log, answer, cx).await;
                }
            }
            None if ending == Ending::Paused => self.pause(&opened.run),
            None => {}
        }
        self.close(&execution.id);
        Ok(())
    }
}

/// The layers' opinion of tool calls, as a gate: the registered name of the tool is what they see. A denial
/// and a guide both keep the call from running; the model reads which it was.
struct LayerGate(Pipeline);

impl Gate for LayerGate {
    async fn decide(&self, ask: &ProposedCall, cx: &DecideCx) -> Result<GateDecision, Fault> {
        let cx = ViewCx::new(cx.log.clone(), Arc::clone(&cx.origin), cx.now)
            .with_ledger(cx.ledger.clone())
            .until(None, cx.cancel.clone());
        let run = self.0.running(&cx).await?;
        let ask = ToolAsk::new(Arc::clone(&ask.call), ask.def.clone());
        let verdict = match run.judge_tool(&ask, &cx).await {
            Ok(Decision::Allow) => GateVerdict::Allow,
            Ok(Decision::Deny { guidance }) => {
                let guidance = guidance.as_deref().unwrap_or("steering rule violation");
                GateVerdict::Deny { message: format!("Tool call denied: {guidance}") }
            }
            Ok(Decision::Guide { guidance }) => {
                let guidance = guidance.as_deref().unwrap_or("try another way");
                GateVerdict::Deny { message: format!("Tool call redirected: {guidance}") }
            }
            Err(fault) => GateVerdict::Halt {
                message: format!("Tool call denied: {fault}"),
                reason: as_fault(&fault).message,
            },
        };
        Ok(verdict.into())
    }
}

impl LayerRun {
    /// Counts an answer, whether it is accepted or not, and learns from it whether the anchor was cached.
    fn heard(&self, answer: &Arc<Message>, cx: &ViewCx) {
        let usage = answer.as_assistant().and_then(|answer| answer.usage.as_deref());
        if let Some(usage) = usage {
            self.count(usage);
        }
        if self.stack.cache.enabled {
            let system = self.stack.prepared.of(self, cx.prepared.as_ref()).instructions;
            let lineage = self.lineage();
            lineage.lock().judge(&self.stack.cache, usage, system);
        }
    }
}
