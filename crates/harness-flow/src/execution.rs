//! Running flows.

use std::fmt;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, Mutex, Weak};

use harness_core::decide::{DynGate, Guarded};
use harness_core::limits::Amount;
use harness_core::message::{Cost, Message};
use harness_core::port::{Clock, DynApprover};
use harness_core::{Cancel, Json, RunId, ThreadId};
use harness_host::DynStorage;

use super::context::{Context, Data, StepCx, lock};
use super::detached::Tasks;
use super::error::FlowError;
use super::flow_tree::Flow;
use super::hooks::{DynStepHooks, FlowEvent, FlowObserver};
use super::log::Log;
use super::shared_budget::{SharedBudget, amount};
use crate::channel::{ChannelError, ChannelSpec, Channels, ExternalChannel};
use crate::checkpoint::{Beginning, CheckpointError, Ledger, Restored, Retention, clear, load};
use harness_host::{Params, RootCwd, WorkingFolder, Workplace};

/// What all executions of a runner share.
#[derive(Clone)]
pub(crate) struct Parts {
    clock: Arc<dyn Clock>,
    pub(super) hooks: Option<Arc<dyn DynStepHooks>>,
    pub(super) gates: Vec<Guarded<dyn DynGate>>,
    pub(super) approver: Option<Arc<dyn DynApprover>>,
    observers: Vec<Arc<dyn FlowObserver>>,
    pub(super) channels: Channels,
    storage: Option<Arc<dyn DynStorage>>,
    retention: Retention,
    pub(super) params: Params,
    root_cwd: RootCwd,
    workplace: Workplace,
}

/// One execution, as all its contexts see it.
pub(crate) struct Shared {
    pub(crate) id: RunId,
    pub(super) thread: Option<ThreadId>,
    pub(super) resource: Option<Arc<str>>,
    pub(super) parts: Arc<Parts>,
    pub(super) channels: Channels,
    pub(super) ledger: Option<Ledger>,
    pub(super) budget: Arc<SharedBudget>,
    pub(super) cancel: Cancel,
    pub(super) tasks: Weak<Tasks>,
    steps: AtomicU64,
    detached: AtomicU64,
}

impl fmt::Debug for Shared {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Shared").field("id", &self.id).finish_non_exhaustive()
    }
}

impl Shared {
    pub(crate) fn clock(&self) -> &dyn Clock {
        &*self.parts.clock
    }

    pub(super) fn count_step(&self) {
        self.steps.fetch_add(1, Ordering::Relaxed);
    }

    pub(super) fn next_detached(&self) -> u64 {
        self.detached.fetch_add(1, Ordering::Relaxed)
    }

    pub(super) fn emit(&self, event: &FlowEvent) {
        self.parts.observers.iter().for_each(|observer| observer.event(event));
    }
}

/// Runs flows: begins executions, restores them, and gives them what they need of the outside.
#[derive(Clone)]
#[must_use]
pub struct FlowRunner(Arc<Parts>);

impl fmt::Debug for FlowRunner {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("FlowRunner").field("durable", &self.0.storage.is_some()).finish_non_exhaustive()
    }
}

/// What an execution begins with.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub struct ExecutionSpec {
    /// Its name; unique in the storage.
    pub id: RunId,
    /// The conversation that it belongs to.
    pub thread: Option<ThreadId>,
    /// Whose resources it works on.
    pub resource: Option<Arc<str>>,
    /// The caller's own state. Default `{}`.
    pub state: Json,
    /// A working folder of its own, as a name. Default none: it shares the [`RootCwd`] of the runner.
    pub cwd: Option<Arc<str>>,
    /// Where its steps work. Default none: they work where the runner's do. It is not recorded: restore such an
    /// execution with a runner of this workplace.
    pub workplace: Option<Workplace>,
    /// What was said before.
    pub messages: Vec<Arc<Message>>,
    /// What all its steps may spend. Default 1,000 iterations, 4,000 tool calls, 20 million tokens, 100 units of
    /// money.
    pub budget: Amount,
}

impl ExecutionSpec {
    /// An execution without messages and state.
    pub fn new(id: impl Into<RunId>) -> Self {
        Self {
            id: id.into(),
            thread: None,
            resource: None,
            state: Json::empty_object(),
            cwd: None,
            workplace: None,
            messages: Vec::new(),
            budget: amount(1_000, 4_000, 20_000_000, Cost(100_000_000_000)),
        }
    }
}

impl FlowRunner {
    /// A runner without gates and storage.
    pub fn new(clock: Arc<dyn Clock>) -> Self {
        let channels = Channels::new(Arc::clone(&clock));
        Self(Arc::new(Parts {
            clock,
            hooks: None,
            gates: Vec::new(),
            approver: None,
            observers: Vec::new(),
            channels,
            storage: None,
            retention: Retention::default(),
            params: Params::default(),
            root_cwd: RootCwd::default(),
            workplace: Workplace::default(),
        }))
    }

    fn change(self, change: impl FnOnce(&mut Parts)) -> Self {
        let mut parts = Arc::unwrap_or_clone(self.0);
        change(&mut parts);
        Self(Arc::new(parts))
    }

    /// Keeps a ledger of finished steps there, so that executions can be restored.
    pub fn storage(self, storage: Arc<dyn DynStorage>) -> Self {
        self.change(|parts| parts.storage = Some(storage))
    }

    /// What the ledger keeps. Default outputs up to 128 KiB, the last 1000.
    pub fn retention(self, retention: Retention) -> Self {
        self.change(|parts| parts.retention = retention)
    }

    /// Code around every step.
    pub fn hooks(self, hooks: Arc<dyn DynStepHooks>) -> Self {
        self.change(|parts| parts.hooks = Some(hooks))
    }

    /// One more gate before the calls of tool steps. (A model step has the gates of its agent.)
    pub fn gate(self, gate: Guarded<dyn DynGate>) -> Self {
        self.change(|parts| parts.gates.push(gate))
    }

    /// Who decides about held calls of tool steps. Without, such a call ends the flow, which can be run again
    /// when there is somebody.
    pub fn approver(self, approver: Arc<dyn DynApprover>) -> Self {
        self.change(|parts| parts.approver = Some(approver))
    }

    /// Where steps work. Default [`Workplace::in_memory`], with files that all executions share.
    pub fn workplace(self, workplace: Workplace) -> Self {
        self.change(|parts| parts.workplace = workplace)
    }

    /// The working folder that root executions share. Default `/`.
    pub fn root_cwd(self, cwd: RootCwd) -> Self {
        self.change(|parts| parts.root_cwd = cwd)
    }

    /// What steps can read of how their host was made. Default `{}`.
    pub fn params(self, params: Params) -> Self {
        self.change(|parts| parts.params = params)
    }

    /// Changes the working folder of all root executions that share it, those at work, too; to the one that it is,
    /// changes nothing. Whether it changed. The folder before is kept ([`RootCwd::previous`]).
    pub fn set_root_cwd(&self, folder: impl Into<Arc<str>>) -> bool {
        self.0.root_cwd.set(folder)
    }

    /// The working folder that root executions share.
    #[must_use]
    pub fn shared_cwd(&self) -> &RootCwd {
        &self.0.root_cwd
    }

    /// One more who hears of steps.
    pub fn observe(self, observer: impl FlowObserver + 'static) -> Self {
        self.change(|parts| parts.observers.push(Arc::new(observer)))
    }

    /// A new execution.
    #[must_use]
    pub fn begin(&self, spec: ExecutionSpec) -> Execution {
        let cwd = spec.cwd.map_or_else(|| self.0.root_cwd.clone(), RootCwd::new);
        let WorkingFolder { current, previous: previous_cwd } = cwd.folder();
        let beginning = Beginning {
            thread: spec.thread,
            resource: spec.resource,
            data: Data { state: spec.state, cwd: current, previous_cwd, ..Data::default() },
            messages: spec.messages,
            budget: spec.budget,
            at: self.0.clock.now(),
        };
        let storage = self.0.storage.as_ref();
        let ledger = storage.map(|storage| Ledger::new(Arc::clone(storage), &spec.id, self.0.retention));
        let place = (cwd, spec.workplace.unwrap_or_else(|| self.0.workplace.clone()));
        self.execution(spec.id, beginning, place, ledger, Amount::NONE)
    }

    /// The execution of that name as its records have it, to run the same flow on it again; `None` when there
    /// are no records. It works in a folder of its own, the one that was recorded last.
    ///
    /// # Errors
    /// When its records cannot be read, or are of another version.
    pub async fn restore(&self, id: impl Into<RunId>) -> Result<Option<Execution>, CheckpointError> {
        let id = id.into();
        let Some(storage) = &self.0.storage else { return Ok(None) };
        let Some(restored) = load(Arc::clone(storage), &id, self.0.retention).await? else { return Ok(None) };
        let Restored { mut beginning, ledger, data, spent, log } = restored;
        if let Some(data) = data {
            beginning.data = data;
        }
        let place = (RootCwd::of(beginning.data.folder()), self.0.workplace.clone());
        let execution = self.execution(id, beginning, place, Some(ledger), spent);
        execution.begun.store(true, Ordering::Release);
        lock(&execution.root.context().log).restore(log);
        Ok(Some(execution))
    }

    /// Forgets the records of an execution: after a flow was changed, or when it is done.
    ///
    /// # Errors
    /// When they cannot be removed.
    pub async fn clear(&self, id: &RunId) -> Result<(), CheckpointError> {
        match &self.0.storage {
            Some(storage) => clear(&**storage, id).await,
            None => Ok(()),
        }
    }

    fn execution(
        &self,
        id: RunId,
        beginning: Beginning,
        (cwd, workplace): (RootCwd, Workplace),
        ledger: Option<Ledger>,
        spent: Amount,
    ) -> Execution {
        let tasks = Arc::new(Tasks::default());
        let shared_budget = SharedBudget::new(beginning.budget, None);
        shared_budget.remember(spent);
        let cancel = Cancel::new();
        let shared = Arc::new(Shared {
            id,
            thread: beginning.thread.clone(),
            resource: beginning.resource.clone(),
            parts: Arc::clone(&self.0),
            channels: Channels::new(Arc::clone(&self.0.clock)),
            ledger,
            budget: Arc::clone(&shared_budget),
            cancel: cancel.clone(),
            tasks: Arc::downgrade(&tasks),
            steps: AtomicU64::new(0),
            detached: AtomicU64::new(0),
        });
        let mut log = Log::default();
        beginning.messages.iter().for_each(|message| log.push("".into(), Arc::clone(message)));
        let context = Arc::new(Context {
            shared,
            key: "".into(),
            depth: 0,
            recorded: true,
            log: Mutex::new(log),
            data: Mutex::new(beginning.data.clone()),
            cwd,
            workplace,
        });
        let root = StepCx::new(context, "".into(), cancel, shared_budget);
        Execution {
            root,
            beginning,
            begun: AtomicBool::new(false),
            running: AtomicBool::new(false),
            _tasks: tasks,
        }
    }
}

/// One execution of a flow: its messages, state, budget and channels.
///
/// Dropping it ends the work that was detached from it.
pub struct Execution {
    root: StepCx,
    beginning: Beginning,
    /// Whether the beginning is recorded.
    begun: AtomicBool,
    running: AtomicBool,
    _tasks: Arc<Tasks>,
}

impl fmt::Debug for Execution {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Execution").field("id", self.root.execution()).finish_non_exhaustive()
    }
}

/// Closes the channels and frees the execution, however a run ends.
struct Running<'a>(&'a Execution);

impl Drop for Running<'_> {
    fn drop(&mut self) {
        self.0.root.shared().channels.close();
        self.0.running.store(false, Ordering::Release);
    }
}

impl Execution {
    /// Runs a flow, one at a time. On a restored execution, run the flow that ran before with the same input:
    /// steps that are in the ledger give what they gave.
    ///
    /// Dropping the future is a crash: what is in the ledger stays.
    ///
    /// # Errors
    /// How the root step ended without an output; [`FlowError::Busy`].
    pub async fn run(&self, flow: &Flow, input: Json) -> Result<Json, FlowError> {
        if self.running.swap(true, Ordering::AcqRel) {
            return Err(FlowError::Busy);
        }
        let _running = Running(self);
        let shared = self.root.shared();
        shared.channels.reopen();
        if let Some(ledger) = shared.ledger.as_ref().filter(|_| !self.begun.load(Ordering::Acquire)) {
            match ledger.begin(&self.beginning).await {
                Ok(()) => self.begun.store(true, Ordering::Release),
                Err(error) => {
                    tracing::warn!(execution = %shared.id, "the beginning is not recorded: {error}");
                }
            }
        }
        flow.root().perform(input, &self.root).await
    }

    /// What steps directly beneath the root work with; for looking at the execution, and for making it ready.
    pub fn cx(&self) -> &StepCx {
        &self.root
    }

    /// Steps that were begun or taken from the ledger.
    pub fn step_count(&self) -> u64 {
        self.root.shared().steps.load(Ordering::Relaxed)
    }

    /// Tells it to stop: everything beneath ends, channels included. It cannot be run again; restore it.
    pub fn abort(&self, reason: impl Into<Arc<str>>) {
        self.root.cancel().cancel_with(reason);
    }

    /// A channel for the outside.
    ///
    /// # Errors
    /// See [`Channels::external`].
    pub fn external(&self, spec: &ChannelSpec) -> Result<ExternalChannel, ChannelError> {
        let shared = self.root.shared();
        let channels = if spec.shared { &shared.parts.channels } else { &shared.channels };
        channels.external(spec)
    }
}
