//! Contexts of steps.

use std::collections::BTreeMap;
use std::fmt;
use std::sync::Arc;

use harness_core::limits::{Amount, Reached};
use harness_core::message::Message;
use harness_core::{Cancel, Json, RunId, ThreadId};
use harness_host::{
    DynWorkspace, ParamsFault, Process, ProcessFault, ProcessOptions, ProcessOutput, RootCwd, WorkingFolder,
    Workplace,
};
use parking_lot::Mutex;
use serde::de::DeserializeOwned;

use super::detached::Detached;
use super::execution::Shared;
use super::log::Log;
use super::shared_budget::{SharedBudget, sum};
use super::spawn::SpawnSpec;
use super::step::Step;
use crate::channel::{Channel, ChannelError, ChannelSpec};

/// Context of one line of work: of the root, a spawned child or a parallel path.
#[derive(Debug)]
pub(crate) struct Context {
    pub(crate) shared: Arc<Shared>,
    /// Thread it works in.
    pub(crate) thread: Option<ThreadId>,
    /// Owner of the resources it uses.
    pub(crate) resource: Option<Arc<str>>,
    /// Path of the step that opened it; empty for the root.
    pub(crate) key: Arc<str>,
    pub(crate) depth: u32,
    /// Whether its steps are recorded.
    pub(crate) recorded: bool,
    pub(crate) log: Mutex<Log>,
    pub(crate) data: Mutex<Data>,
    /// Working directory; root executions may share it.
    pub(crate) cwd: RootCwd,
    pub(crate) workplace: Workplace,
}

/// State of a context beside its messages.
#[derive(Clone, Debug, Default, PartialEq, Eq, serde::Serialize, serde::Deserialize)]
#[serde(rename_all = "camelCase")]
pub(crate) struct Data {
    pub(crate) state: Json,
    #[serde(default)]
    pub(crate) slots: BTreeMap<String, Json>,
    /// Working directory when it was last read for a record.
    pub(crate) cwd: Arc<str>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) previous_cwd: Option<Arc<str>>,
    /// Whether it changed since its last record.
    #[serde(skip)]
    pub(crate) changed: bool,
}

impl Data {
    pub(crate) fn folder(&self) -> WorkingFolder {
        WorkingFolder { current: Arc::clone(&self.cwd), previous: self.previous_cwd.clone() }
    }

    /// Reads the working directory.
    fn work_in(&mut self, folder: WorkingFolder) {
        if self.folder() != folder {
            (self.cwd, self.previous_cwd) = (folder.current, folder.previous);
            self.changed = true;
        }
    }
}

impl Context {
    /// Creates a child with an empty log and a copy of the data.
    pub(super) fn child(&self, key: Arc<str>, recorded: bool, spec: &SpawnSpec) -> Arc<Self> {
        let cwd = spec.cwd.clone().map_or_else(|| self.cwd.copy(), RootCwd::new);
        Arc::new(Self {
            shared: Arc::clone(&self.shared),
            thread: spec.thread.clone().or_else(|| self.thread.clone()),
            resource: spec.resource.clone().or_else(|| self.resource.clone()),
            key,
            depth: self.depth + 1,
            recorded: self.recorded && recorded,
            log: Mutex::default(),
            data: Mutex::new(self.data_in(&cwd)),
            cwd,
            workplace: spec.workplace(&self.workplace),
        })
    }

    /// Creates a parallel path, with copies of log and data.
    pub(super) fn path(&self, key: Arc<str>) -> Arc<Self> {
        let cwd = self.cwd.copy();
        Arc::new(Self {
            shared: Arc::clone(&self.shared),
            thread: self.thread.clone(),
            resource: self.resource.clone(),
            key,
            depth: self.depth,
            recorded: self.recorded,
            log: Mutex::new(self.log.lock().copy()),
            data: Mutex::new(self.data_in(&cwd)),
            cwd,
            workplace: self.workplace.clone(),
        })
    }

    /// Copies the data for a context with working directory `cwd`.
    fn data_in(&self, cwd: &RootCwd) -> Data {
        let mut data = self.data.lock().clone();
        data.work_in(cwd.folder());
        Data { changed: false, ..data }
    }

    /// Returns the data if they changed since the last call.
    pub(crate) fn take_changed(&self) -> Option<Data> {
        let mut data = self.data.lock();
        data.work_in(self.cwd.folder());
        std::mem::take(&mut data.changed).then(|| data.clone())
    }

    /// Restores recorded data.
    pub(crate) fn put(&self, data: Data) {
        self.cwd.put(data.folder());
        *self.data.lock() = data;
    }

    /// Adopts state and working directory of the path that won a race.
    pub(super) fn take_over(&self, winner: &Self) {
        let taken = winner.data.lock().clone();
        let mut own = self.data.lock();
        own.changed |= taken.state != own.state || taken.slots != own.slots;
        (own.state, own.slots) = (taken.state, taken.slots);
        drop(own);
        self.cwd.take_over(&winner.cwd);
    }
}

/// Context of a step: its messages, state, channels, budget and ports. Clones share it.
#[derive(Clone)]
pub struct StepCx(Arc<Inner>);

struct Inner {
    context: Arc<Context>,
    path: Arc<str>,
    cancel: Cancel,
    shared_budget: Arc<SharedBudget>,
    nesting: u32,
    /// Number of successful child steps, by id.
    numbers: Mutex<BTreeMap<Arc<str>, u32>>,
    /// Unrecorded usage of the step itself.
    spent: Mutex<Amount>,
}

impl fmt::Debug for StepCx {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("StepCx")
            .field("execution", self.execution())
            .field("path", &self.0.path)
            .finish_non_exhaustive()
    }
}

impl StepCx {
    pub(super) fn new(
        context: Arc<Context>,
        path: Arc<str>,
        cancel: Cancel,
        shared_budget: Arc<SharedBudget>,
    ) -> Self {
        let (numbers, spent) = (Mutex::default(), Mutex::new(Amount::NONE));
        Self(Arc::new(Inner { context, path, cancel, shared_budget, nesting: 0, numbers, spent }))
    }

    /// Creates the context of a step inside this one.
    pub(super) fn inside(
        &self,
        context: Arc<Context>,
        path: Arc<str>,
        cancel: Cancel,
        shared_budget: Arc<SharedBudget>,
    ) -> Self {
        let (numbers, spent, nesting) = (Mutex::default(), Mutex::new(Amount::NONE), self.0.nesting + 1);
        Self(Arc::new(Inner { context, path, cancel, shared_budget, nesting, numbers, spent }))
    }

    /// Number of enclosing contexts.
    pub(super) fn nesting(&self) -> u32 {
        self.0.nesting
    }

    pub(super) fn context(&self) -> &Arc<Context> {
        &self.0.context
    }

    pub(super) fn shared(&self) -> &Arc<Shared> {
        &self.0.context.shared
    }

    pub(super) fn shared_budget(&self) -> &Arc<SharedBudget> {
        &self.0.shared_budget
    }

    /// Number of the next child step with this id.
    pub(super) fn number_of(&self, id: &str) -> u32 {
        self.0.numbers.lock().get(id).copied().unwrap_or_default()
    }

    pub(super) fn succeeded(&self, id: &Arc<str>) {
        *self.0.numbers.lock().entry(Arc::clone(id)).or_default() += 1;
    }

    pub(super) fn numbers(&self) -> BTreeMap<Arc<str>, u32> {
        self.0.numbers.lock().clone()
    }

    pub(super) fn reset_numbers(&self, numbers: BTreeMap<Arc<str>, u32>) {
        *self.0.numbers.lock() = numbers;
    }

    /// Returns the step's usage since the last call.
    pub(super) fn take_spent(&self) -> Amount {
        std::mem::replace(&mut self.0.spent.lock(), Amount::NONE)
    }

    pub(super) fn note_spent(&self, used: Amount) {
        let mut spent = self.0.spent.lock();
        *spent = sum(*spent, used);
    }

    /// Id of the execution.
    pub fn execution(&self) -> &RunId {
        &self.shared().id
    }

    /// Thread of the execution, or of the child that [`SpawnSpec`] gave a different one.
    pub fn thread(&self) -> Option<&ThreadId> {
        self.0.context.thread.as_ref()
    }

    /// Owner of the resources it uses; that of the execution, or of the child that [`SpawnSpec`] gave a different one.
    pub fn resource(&self) -> Option<&Arc<str>> {
        self.0.context.resource.as_ref()
    }

    /// Path of the step in the execution: `/root#0/ask#2`.
    pub fn path(&self) -> &Arc<str> {
        &self.0.path
    }

    /// Number of enclosing spawns.
    pub fn depth(&self) -> u32 {
        self.0.context.depth
    }

    /// Cancellation signal of the step. When it fires, the step's code is dropped at its next await.
    pub fn cancel(&self) -> &Cancel {
        &self.0.cancel
    }

    /// Returns the messages so far.
    pub fn messages(&self) -> Vec<Arc<Message>> {
        self.0.context.log.lock().messages()
    }

    /// Appends a message.
    pub fn append(&self, message: impl Into<Arc<Message>>) {
        self.0.context.log.lock().push(Arc::clone(&self.0.path), message.into());
    }

    /// State of the caller; initially `{}`. A spawned child and a parallel path start with a copy.
    pub fn state(&self) -> Json {
        self.0.context.data.lock().state.clone()
    }

    /// Replaces the state.
    pub fn set_state(&self, state: Json) {
        self.change(|data| std::mem::replace(&mut data.state, state.clone()) != state);
    }

    /// Returns a named part of the state, for example of a memory layer.
    pub fn slot(&self, name: &str) -> Option<Json> {
        self.0.context.data.lock().slots.get(name).cloned()
    }

    /// Replaces a named part of the state.
    pub fn set_slot(&self, name: impl Into<String>, value: Json) {
        self.change(|data| data.slots.insert(name.into(), value.clone()) != Some(value));
    }

    /// Initializes a named part of the state, unless it has a value, for example from a restore.
    pub fn init_slot(&self, name: impl Into<String>, value: Json) {
        let name = name.into();
        if self.slot(&name).is_none() {
            self.set_slot(name, value);
        }
    }

    /// Working directory of [`exec`](Self::exec) and [`start`](Self::start). A spawned child and a parallel
    /// path start with a copy.
    pub fn cwd(&self) -> Arc<str> {
        self.0.context.cwd.get()
    }

    /// Working directory before the last change.
    pub fn previous_cwd(&self) -> Option<Arc<str>> {
        self.0.context.cwd.previous()
    }

    /// Changes the working directory. An execution that shares the [`RootCwd`] of its runner changes it for
    /// all of them.
    pub fn set_cwd(&self, cwd: impl Into<Arc<str>>) {
        self.0.context.cwd.set(cwd);
    }

    /// Files of the [`Workplace`].
    pub fn fs(&self) -> &Arc<dyn DynWorkspace> {
        self.0.context.workplace.fs()
    }

    /// Runs a command line in the shell of the [`Workplace`], in the working directory unless the options name
    /// one. An abort of the step stops it.
    ///
    /// # Errors
    /// A command that did not exit; a nonzero exit code is an output.
    pub async fn exec(&self, command: &str, options: &ProcessOptions) -> Result<ProcessOutput, ProcessFault> {
        let shell = self.0.context.workplace.shell();
        shell.exec_boxed(command, &self.placed(options), &self.0.cancel).await
    }

    /// Starts a program, in the working directory unless the options name one. It runs until its handle is
    /// dropped or the step is aborted, and may outlive the end of the step.
    ///
    /// # Errors
    /// A program that could not be started.
    pub async fn start(
        &self,
        program: &str,
        args: &[String],
        options: &ProcessOptions,
    ) -> Result<Box<dyn Process>, ProcessFault> {
        let subprocess = self.0.context.workplace.subprocess();
        subprocess.spawn_boxed(program, args, &self.placed(options), &self.0.cancel).await
    }

    fn placed(&self, options: &ProcessOptions) -> ProcessOptions {
        let cwd = options.cwd.clone().unwrap_or_else(|| self.cwd());
        options.clone().cwd(cwd)
    }

    /// Host parameters.
    pub fn params(&self) -> &Json {
        self.shared().runner.params.json()
    }

    /// Reads the host parameters as a `T`.
    ///
    /// # Errors
    /// [`ParamsFault::Form`] when they do not fit.
    pub fn params_as<T: DeserializeOwned>(&self) -> Result<T, ParamsFault> {
        self.shared().runner.params.read()
    }

    fn change(&self, change: impl FnOnce(&mut Data) -> bool) {
        let mut data = self.0.context.data.lock();
        data.changed |= change(&mut data);
    }

    /// Returns the rest of the tightest enclosing budget.
    pub fn budget_left(&self) -> Amount {
        self.0.shared_budget.left()
    }

    /// Returns the usage of the whole execution, including the time before a restore.
    pub fn used(&self) -> Amount {
        self.shared().budget.used()
    }

    /// Charges usage of your code to all enclosing budgets.
    ///
    /// # Errors
    /// The first limit that is reached. The usage is charged nevertheless.
    pub fn charge(&self, used: Amount) -> Result<(), Reached> {
        self.0.shared_budget.charge(used);
        self.note_spent(used);
        self.0.shared_budget.exhausted().map_or(Ok(()), Err)
    }

    /// Opens a channel of the execution, or one that all executions share. An abort of the step ends its waits.
    ///
    /// # Errors
    /// See [`Channels::open`](crate::channel::Channels::open).
    pub fn channel(&self, spec: &ChannelSpec) -> Result<Channel, ChannelError> {
        self.shared().channels_of(spec).open(spec, &self.0.cancel)
    }

    /// Starts a step beside the flow, in a child context, on the caller's tokio runtime. It charges the budgets
    /// of this step. It ends with the [`Execution`](super::Execution) at the latest, and is not recorded: a
    /// restore does not start it again.
    ///
    /// # Errors
    /// [`FlowError::Cancelled`](super::FlowError::Cancelled) when the execution was dropped;
    /// [`FlowError::StepFailed`](super::FlowError::StepFailed) outside of a tokio runtime.
    pub fn detach(&self, step: &Step, input: Json) -> Result<Detached, super::FlowError> {
        self.detach_with(step, input, &SpawnSpec::default())
    }

    /// Starts a step beside the flow with overrides; see [`detach`](Self::detach).
    ///
    /// # Errors
    /// Those of [`detach`](Self::detach).
    pub fn detach_with(
        &self,
        step: &Step,
        input: Json,
        spec: &SpawnSpec,
    ) -> Result<Detached, super::FlowError> {
        super::detached::start(self, step.clone(), input, spec)
    }
}
