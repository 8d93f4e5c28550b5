//! What steps work with.

use std::collections::BTreeMap;
use std::fmt;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use harness_core::limits::{Amount, Reached};
use harness_core::message::Message;
use harness_core::{Cancel, Json, RunId, ThreadId};
use harness_host::{DynWorkspace, ParamsFault, RootCwd, WorkingFolder, Workplace};
use serde::de::DeserializeOwned;

use super::at_step::{StepShell, StepSubprocess};
use super::detached::Detached;
use super::execution::Shared;
use super::log::Log;
use super::shared_budget::{self, SharedBudget};
use super::spawn::SpawnSpec;
use super::step::Step;
use crate::channel::{Channel, ChannelError, ChannelSpec};

/// What belongs to one line of work: the root's, a spawned child's, a parallel path's.
#[derive(Debug)]
pub(crate) struct Context {
    pub(crate) shared: Arc<Shared>,
    /// The path at which it begins; empty for the root's.
    pub(crate) key: Arc<str>,
    pub(crate) depth: u32,
    /// Whether its steps are recorded.
    pub(crate) recorded: bool,
    pub(crate) log: Mutex<Log>,
    pub(crate) data: Mutex<Data>,
    /// The working folder; the root's may be shared with other executions.
    pub(crate) cwd: RootCwd,
    pub(crate) workplace: Workplace,
}

/// What steps keep beside messages.
#[derive(Clone, Debug, Default, PartialEq, Eq, serde::Serialize, serde::Deserialize)]
#[serde(rename_all = "camelCase")]
pub(crate) struct Data {
    pub(crate) state: Json,
    #[serde(default)]
    pub(crate) slots: BTreeMap<String, Json>,
    /// The working folder, as it was when this was looked at for the record.
    pub(crate) cwd: Arc<str>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) previous_cwd: Option<Arc<str>>,
    /// Whether it changed since it was recorded.
    #[serde(skip)]
    pub(crate) changed: bool,
}

impl Data {
    pub(crate) fn folder(&self) -> WorkingFolder {
        WorkingFolder { current: Arc::clone(&self.cwd), previous: self.previous_cwd.clone() }
    }

    /// Looks at the working folder as it is.
    fn work_in(&mut self, folder: WorkingFolder) {
        if self.folder() != folder {
            (self.cwd, self.previous_cwd) = (folder.current, folder.previous);
            self.changed = true;
        }
    }
}

pub(crate) fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

impl Context {
    /// A child with an empty log and a copy of the data.
    pub(super) fn child(&self, key: Arc<str>, recorded: bool, spec: &SpawnSpec) -> Arc<Self> {
        let cwd = spec.cwd.clone().map_or_else(|| self.cwd.copy(), RootCwd::new);
        Arc::new(Self {
            shared: Arc::clone(&self.shared),
            key,
            depth: self.depth + 1,
            recorded: self.recorded && recorded,
            log: Mutex::default(),
            data: Mutex::new(self.data_in(&cwd)),
            cwd,
            workplace: spec.workplace(&self.workplace),
        })
    }

    /// A path of a parallel step: with a copy of the log, too.
    pub(super) fn path(&self, key: Arc<str>) -> Arc<Self> {
        let cwd = self.cwd.copy();
        Arc::new(Self {
            shared: Arc::clone(&self.shared),
            key,
            depth: self.depth,
            recorded: self.recorded,
            log: Mutex::new(lock(&self.log).copy()),
            data: Mutex::new(self.data_in(&cwd)),
            cwd,
            workplace: self.workplace.clone(),
        })
    }

    /// A copy of the data for a context with that working folder.
    fn data_in(&self, cwd: &RootCwd) -> Data {
        let mut data = lock(&self.data).clone();
        data.work_in(cwd.folder());
        Data { changed: false, ..data }
    }

    /// The data, if they changed since this was asked last.
    pub(crate) fn take_changed(&self) -> Option<Data> {
        let mut data = lock(&self.data);
        data.work_in(self.cwd.folder());
        std::mem::take(&mut data.changed).then(|| data.clone())
    }

    /// Puts back what an earlier process recorded.
    pub(crate) fn put(&self, data: Data) {
        self.cwd.put(data.folder());
        *lock(&self.data) = data;
    }

    /// Takes over what a path of a race has.
    pub(super) fn take_over(&self, winner: &Self) {
        let taken = lock(&winner.data).clone();
        let mut own = lock(&self.data);
        own.changed |= taken.state != own.state || taken.slots != own.slots;
        (own.state, own.slots) = (taken.state, taken.slots);
        drop(own);
        self.cwd.take_over(&winner.cwd);
    }
}

/// What a step works with: its messages, state, channels and budget. Clones are handles of the same.
#[derive(Clone)]
pub struct StepCx(Arc<Inner>);

struct Inner {
    context: Arc<Context>,
    path: Arc<str>,
    cancel: Cancel,
    shared_budget: Arc<SharedBudget>,
    nesting: u32,
    /// How often steps beneath this one have succeeded, by id.
    numbers: Mutex<BTreeMap<Arc<str>, u32>>,
    /// What the step itself spent and nobody recorded.
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
        Self::at(0, context, path, cancel, shared_budget)
    }

    fn at(
        nesting: u32,
        context: Arc<Context>,
        path: Arc<str>,
        cancel: Cancel,
        shared_budget: Arc<SharedBudget>,
    ) -> Self {
        let (numbers, spent) = (Mutex::default(), Mutex::new(Amount::NONE));
        Self(Arc::new(Inner { context, path, cancel, shared_budget, nesting, numbers, spent }))
    }

    /// What a step inside this one works with.
    pub(super) fn inside(
        &self,
        context: Arc<Context>,
        path: Arc<str>,
        cancel: Cancel,
        shared_budget: Arc<SharedBudget>,
    ) -> Self {
        Self::at(self.0.nesting + 1, context, path, cancel, shared_budget)
    }

    /// How many steps lie above it, counted with some that are made for contexts.
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

    /// The number of the next step of that id beneath this one.
    pub(super) fn number_of(&self, id: &str) -> u32 {
        lock(&self.0.numbers).get(id).copied().unwrap_or_default()
    }

    pub(super) fn succeeded(&self, id: &Arc<str>) {
        *lock(&self.0.numbers).entry(Arc::clone(id)).or_default() += 1;
    }

    pub(super) fn numbers(&self) -> BTreeMap<Arc<str>, u32> {
        lock(&self.0.numbers).clone()
    }

    pub(super) fn reset_numbers(&self, numbers: BTreeMap<Arc<str>, u32>) {
        *lock(&self.0.numbers) = numbers;
    }

    /// What the step itself spent since it was asked last.
    pub(super) fn take_spent(&self) -> Amount {
        std::mem::replace(&mut lock(&self.0.spent), Amount::NONE)
    }

    pub(super) fn note_spent(&self, used: Amount) {
        let mut spent = lock(&self.0.spent);
        *spent = shared_budget::sum(*spent, used);
    }

    /// The execution.
    pub fn execution(&self) -> &RunId {
        &self.shared().id
    }

    /// The conversation that it belongs to.
    pub fn thread(&self) -> Option<&ThreadId> {
        self.shared().thread.as_ref()
    }

    /// Whose resources it works on.
    pub fn resource(&self) -> Option<&Arc<str>> {
        self.shared().resource.as_ref()
    }

    /// The step's place in the execution: `/root#0/ask#2`.
    pub fn path(&self) -> &Arc<str> {
        &self.0.path
    }

    /// How many spawns lie above it.
    pub fn depth(&self) -> u32 {
        self.0.context.depth
    }

    /// Fires when the step is not wanted any more. Its code is then dropped at its next await.
    pub fn cancel(&self) -> &Cancel {
        &self.0.cancel
    }

    /// The messages so far.
    pub fn messages(&self) -> Vec<Arc<Message>> {
        lock(&self.0.context.log).messages()
    }

    /// Adds a message.
    pub fn append(&self, message: impl Into<Arc<Message>>) {
        lock(&self.0.context.log).push(Arc::clone(&self.0.path), message.into());
    }

    /// The caller's own state; `{}` at first. A spawned child and a parallel path begin with a copy.
    pub fn state(&self) -> Json {
        lock(&self.0.context.data).state.clone()
    }

    /// Replaces the caller's own state.
    pub fn set_state(&self, state: Json) {
        self.change(|data| std::mem::replace(&mut data.state, state.clone()) != state);
    }

    /// A named part of the state: of a memory layer, or of anything that wants its own.
    pub fn slot(&self, name: &str) -> Option<Json> {
        lock(&self.0.context.data).slots.get(name).cloned()
    }

    /// Replaces a named part of the state.
    pub fn set_slot(&self, name: impl Into<String>, value: Json) {
        self.change(|data| data.slots.insert(name.into(), value.clone()) != Some(value));
    }

    /// Gives a named part its first value, unless it has one: a restored execution keeps what it had.
    pub fn init_slot(&self, name: impl Into<String>, value: Json) {
        let name = name.into();
        if self.slot(&name).is_none() {
            self.set_slot(name, value);
        }
    }

    /// The working folder, as a name: programs of [`StepCx::shell`] and [`StepCx::subprocess`] run in it. Default
    /// the [`RootCwd`] of the runner; a spawned child and a parallel path begin with a copy.
    pub fn cwd(&self) -> Arc<str> {
        self.0.context.cwd.get()
    }

    /// The working folder before the last change.
    pub fn previous_cwd(&self) -> Option<Arc<str>> {
        self.0.context.cwd.previous()
    }

    /// Changes the working folder; to the one that it is, changes nothing. At the root of an execution that
    /// shares the [`RootCwd`] of its runner, it changes for all of them.
    pub fn set_cwd(&self, cwd: impl Into<Arc<str>>) {
        self.0.context.cwd.set(cwd);
    }

    /// The files of the [`Workplace`].
    pub fn fs(&self) -> &Arc<dyn DynWorkspace> {
        self.0.context.workplace.fs()
    }

    /// The shell of the [`Workplace`], in the working folder as it is now. What it runs ends when the step is
    /// aborted.
    pub fn shell(&self) -> StepShell {
        let shell = Arc::clone(self.0.context.workplace.shell());
        StepShell::new(shell, self.cwd(), self.0.cancel.clone())
    }

    /// Where processes are started, in the working folder as it is now. They end when the step is aborted, and
    /// when nobody keeps their handle.
    pub fn subprocess(&self) -> StepSubprocess {
        let subprocess = Arc::clone(self.0.context.workplace.subprocess());
        StepSubprocess::new(subprocess, self.cwd(), self.0.cancel.clone())
    }

    /// What the runner was made with; `{}` when nothing was said.
    pub fn params(&self) -> &Json {
        self.shared().parts.params.json()
    }

    /// The same as a `T`.
    ///
    /// # Errors
    /// [`ParamsFault::Form`] when it does not read as one.
    pub fn params_as<T: DeserializeOwned>(&self) -> Result<T, ParamsFault> {
        self.shared().parts.params.read()
    }

    fn change(&self, change: impl FnOnce(&mut Data) -> bool) {
        let mut data = lock(&self.0.context.data);
        data.changed |= change(&mut data);
    }

    /// What is left of the tightest budget above the step.
    pub fn budget_left(&self) -> Amount {
        self.0.shared_budget.left()
    }

    /// What the whole execution has spent, before a restore, too.
    pub fn used(&self) -> Amount {
        self.shared().budget.used()
    }

    /// Books what code of its own spent. It counts on every level at once.
    ///
    /// # Errors
    /// The ceiling that is used up with it.
    pub fn charge(&self, used: Amount) -> Result<(), Reached> {
        self.0.shared_budget.charge(used);
        self.note_spent(used);
        self.0.shared_budget.exhausted().map_or(Ok(()), Err)
    }

    /// A channel of the root execution, or of all executions when it is shared. Waits for it end when the step
    /// is aborted.
    ///
    /// # Errors
    /// See [`Channels::open`](crate::channel::Channels::open).
    pub fn channel(&self, spec: &ChannelSpec) -> Result<Channel, ChannelError> {
        let shared = self.shared();
        let channels = if spec.shared { &shared.parts.channels } else { &shared.channels };
        channels.open(spec, &self.0.cancel)
    }

    /// Starts a step beside the flow, in a child context of its own, on the tokio runtime of the caller. It
    /// draws from the budget above this step, is aborted with this step's execution, and is not recorded: a
    /// restored execution does not start it again. It ends at the latest when the
    /// [`Execution`](super::Execution) is dropped.
    ///
    /// # Errors
    /// [`FlowError::Cancelled`](super::FlowError::Cancelled) when the execution is gone.
    pub fn detach(&self, step: &Step, input: Json) -> Result<Detached, super::FlowError> {
        self.detach_with(step, input, &SpawnSpec::new())
    }

    /// The same, in a place of its own.
    ///
    /// # Errors
    /// Those of [`StepCx::detach`].
    pub fn detach_with(
        &self,
        step: &Step,
        input: Json,
        spec: &SpawnSpec,
    ) -> Result<Detached, super::FlowError> {
        super::detached::start(self, step.clone(), input, spec)
    }
}
