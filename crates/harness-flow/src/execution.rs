//! Running flows.

use std::fmt;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, Weak};

use harness_core::decide::{DynGate, Guarded};
use harness_core::limits::Amount;
use harness_core::message::{Cost, Message};
use harness_core::port::{Clock, DynApprover};
use harness_core::{Cancel, Json, RunId, ThreadId};
use harness_host::{DynStorage, Params, RootCwd, WorkingFolder, Workplace};
use parking_lot::Mutex;

use super::context::{Context, Data, StepCx};
use super::detached::Tasks;
use super::error::FlowError;
use super::flow_tree::Flow;
use super::hooks::{DynStepHooks, FlowEvent, FlowObserver};
use super::log::Log;
use super::shared_budget::{SharedBudget, amount};
use crate::channel::{ChannelError, ChannelSpec, Channels, ExternalChannel};
use crate::checkpoint::{Beginning, CheckpointError, Ledger, Restored, Retention, clear, load};

/// Starts and restores executions, and holds the ports of their steps. Clones share the ports.
///
/// ```
/// use std::sync::Arc;
///
/// use harness_core::Time;
/// use harness_core::testing::VirtualClock;
/// use harness_flow::FlowRunner;
/// use harness_host::RootCwd;
///
/// let mut runner = FlowRunner::new(Arc::new(VirtualClock::still(Time(0))));
/// runner.root_cwd = RootCwd::new("/work");
/// ```
#[derive(Clone)]
#[non_exhaustive]
pub struct FlowRunner {
    /// Time.
    pub clock: Arc<dyn Clock>,
    /// Code around every step.
    pub hooks: Option<Arc<dyn DynStepHooks>>,
    /// Gates of tool steps. A model step has the gates of its agent.
    pub gates: Vec<Guarded<dyn DynGate>>,
    /// Approver of held calls of tool steps. Without one, such a call ends the flow with
    /// [`FlowError::AwaitingApproval`].
    pub approver: Option<Arc<dyn DynApprover>>,
    /// Observers of steps, called inline.
    pub observers: Vec<Arc<dyn FlowObserver>>,
    /// Storage of the ledger. Without one, executions cannot be restored.
    pub storage: Option<Arc<dyn DynStorage>>,
    /// Bounds of the ledger. Default 1,000 outputs of up to 128 KiB.
    pub retention: Retention,
    /// Host parameters. Default `{}`.
    pub params: Params,
    /// Working directory that root executions share, including running ones. Default `/`.
    pub root_cwd: RootCwd,
    /// Files, shell and processes. Default [`Workplace::in_memory`]; all executions share the files.
    pub workplace: Workplace,
    /// Channels that all executions share.
    pub(super) channels: Channels,
}

impl fmt::Debug for FlowRunner {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("FlowRunner").field("durable", &self.storage.is_some()).finish_non_exhaustive()
    }
}

/// One execution, shared by all its contexts.
pub(crate) struct Shared {
    pub(crate) id: RunId,
    pub(super) runner: FlowRunner,
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
        &*self.runner.clock
    }

    pub(super) fn count_step(&self) {
        self.steps.fetch_add(1, Ordering::Relaxed);
    }

    pub(super) fn next_detached(&self) -> u64 {
        self.detached.fetch_add(1, Ordering::Relaxed)
    }

    pub(super) fn emit(&self, event: &FlowEvent) {
        self.runner.observers.iter().for_each(|observer| observer.event(event));
    }

    /// Returns the channels in which `spec` is looked up.
    pub(super) fn channels_of(&self, spec: &ChannelSpec) -> &Channels {
        if spec.shared { &self.runner.channels } else { &self.channels }
    }
}

/// Initial values of an execution.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub struct ExecutionSpec {
    /// Id, unique in the storage.
    pub id: RunId,
    /// Thread it belongs to.
    pub thread: Option<ThreadId>,
    /// Owner of the resources it uses.
    pub resource: Option<Arc<str>>,
    /// State of the caller. Default `{}`.
    pub state: Json,
    /// Separate working directory. Default none: it shares [`FlowRunner::root_cwd`].
    pub cwd: Option<Arc<str>>,
    /// Workplace of its steps. Default that of the runner. It is not recorded: restore the execution with a
    /// runner that has it.
    pub workplace: Option<Workplace>,
    /// Earlier messages.
    pub messages: Vec<Arc<Message>>,
    /// Budget of all steps. Default 1,000 iterations, 4,000 tool calls, 20 million tokens, 100 units of money.
    pub budget: Amount,
}

impl ExecutionSpec {
    /// Creates a spec with the defaults.
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
    /// Creates a runner without gates and storage.
    pub fn new(clock: Arc<dyn Clock>) -> Self {
        Self {
            channels: Channels::new(Arc::clone(&clock)),
            clock,
            hooks: None,
            gates: Vec::new(),
            approver: None,
            observers: Vec::new(),
            storage: None,
            retention: Retention::default(),
            params: Params::default(),
            root_cwd: RootCwd::default(),
            workplace: Workplace::default(),
        }
    }

    /// Adds an observer.
    #[must_use]
    pub fn observe(mut self, observer: impl FlowObserver + 'static) -> Self {
        self.observers.push(Arc::new(observer));
        self
    }

    /// Creates an execution.
    #[must_use]
    pub fn start(&self, spec: ExecutionSpec) -> Execution {
        let cwd = spec.cwd.map_or_else(|| self.root_cwd.clone(), RootCwd::new);
        let WorkingFolder { current, previous: previous_cwd } = cwd.folder();
        let beginning = Beginning {
            thread: spec.thread,
            resource: spec.resource,
            data: Data { state: spec.state, cwd: current, previous_cwd, ..Data::default() },
            messages: spec.messages,
            budget: spec.budget,
            at: self.clock.now(),
        };
        let storage = self.storage.as_ref();
        let ledger = storage.map(|storage| Ledger::new(Arc::clone(storage), &spec.id, self.retention));
        let place = (cwd, spec.workplace.unwrap_or_else(|| self.workplace.clone()));
        self.execution(spec.id, beginning, place, ledger, Amount::NONE)
    }

    /// Restores an execution from its records; run the same flow on it again. Returns `None` without records.
    /// Its working directory is separate, starting as last recorded.
    ///
    /// # Errors
    /// Unreadable records, or records of a different version.
    pub async fn restore(&self, id: impl Into<RunId>) -> Result<Option<Execution>, CheckpointError> {
        let id = id.into();
        let Some(storage) = &self.storage else { return Ok(None) };
        let Some(restored) = load(Arc::clone(storage), &id, self.retention).await? else { return Ok(None) };
        let Restored { mut beginning, ledger, data, spent, log } = restored;
        if let Some(data) = data {
            beginning.data = data;
        }
        let place = (RootCwd::of(beginning.data.folder()), self.workplace.clone());
        let execution = self.execution(id, beginning, place, Some(ledger), spent);
        execution.recorded.store(true, Ordering::Release);
        execution.root.context().log.lock().restore(log);
        Ok(Some(execution))
    }

    /// Removes the records of an execution: when it is done, or when its flow was changed.
    ///
    /// # Errors
    /// A storage error.
    pub async fn clear(&self, id: &RunId) -> Result<(), CheckpointError> {
        match &self.storage {
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
        let budget = SharedBudget::new(beginning.budget, None);
        budget.remember(spent);
        let cancel = Cancel::new();
        let shared = Arc::new(Shared {
            id,
            runner: self.clone(),
            channels: Channels::new(Arc::clone(&self.clock)),
            ledger,
            budget: Arc::clone(&budget),
            cancel: cancel.clone(),
            tasks: Arc::downgrade(&tasks),
            steps: AtomicU64::new(0),
            detached: AtomicU64::new(0),
        });
        let mut log = Log::default();
        beginning.messages.iter().for_each(|message| log.push("".into(), Arc::clone(message)));
        let context = Arc::new(Context {
            shared,
            thread: beginning.thread.clone(),
            resource: beginning.resource.clone(),
            key: "".into(),
            depth: 0,
            recorded: true,
            log: Mutex::new(log),
            data: Mutex::new(beginning.data.clone()),
            cwd,
            workplace,
        });
        let root = StepCx::new(context, "".into(), cancel, budget);
        let (recorded, running) = (AtomicBool::new(false), AtomicBool::new(false));
        Execution { root, beginning, recorded, running, _tasks: tasks }
    }
}

/// One execution of a flow: its messages, state, budget and channels. Dropping it aborts its detached work.
pub struct Execution {
    root: StepCx,
    beginning: Beginning,
    /// Whether the beginning is recorded.
    recorded: AtomicBool,
    running: AtomicBool,
    _tasks: Arc<Tasks>,
}

impl fmt::Debug for Execution {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Execution").field("id", self.root.execution()).finish_non_exhaustive()
    }
}

/// Closes the channels and frees the execution when a run ends or is dropped.
struct Running<'a>(&'a Execution);

impl Drop for Running<'_> {
    fn drop(&mut self) {
        self.0.root.shared().channels.close();
        self.0.running.store(false, Ordering::Release);
    }
}

impl Execution {
    /// Runs a flow. A restored execution needs the original flow and input; the output of recorded steps is
    /// taken from the ledger.
    ///
    /// # Errors
    /// The error of the root step, or [`FlowError::Busy`].
    ///
    /// # Cancel safety
    /// Dropping the future acts like a crash: the ledger stays valid.
    pub async fn run(&self, flow: &Flow, input: Json) -> Result<Json, FlowError> {
        if self.running.swap(true, Ordering::AcqRel) {
            return Err(FlowError::Busy);
        }
        let _running = Running(self);
        let shared = self.root.shared();
        shared.channels.reopen();
        if let Some(ledger) = shared.ledger.as_ref().filter(|_| !self.recorded.load(Ordering::Acquire)) {
            match ledger.start(&self.beginning).await {
                Ok(()) => self.recorded.store(true, Ordering::Release),
                Err(error) => {
                    tracing::warn!(execution = %shared.id, "the beginning is not recorded: {error}");
                }
            }
        }
        flow.root().perform(input, &self.root).await
    }

    /// Returns the root context, to inspect or prepare the execution.
    pub fn cx(&self) -> &StepCx {
        &self.root
    }

    /// Returns the number of steps that were started or taken from the ledger.
    pub fn step_count(&self) -> u64 {
        self.root.shared().steps.load(Ordering::Relaxed)
    }

    /// Aborts all steps and closes the channels. The execution cannot run again; restore it instead.
    pub fn abort(&self, reason: impl Into<Arc<str>>) {
        self.root.cancel().cancel_with(reason);
    }

    /// Opens a channel from outside the execution.
    ///
    /// # Errors
    /// See [`Channels::external`].
    pub fn external(&self, spec: &ChannelSpec) -> Result<ExternalChannel, ChannelError> {
        self.root.shared().channels_of(spec).external(spec)
    }
}
