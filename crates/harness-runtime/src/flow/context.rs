//! What steps work with.

use std::collections::BTreeMap;
use std::fmt;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use harness_core::limits::{Amount, Reached};
use harness_core::message::Message;
use harness_core::{Json, RunId, ThreadId};

use super::detached::Detached;
use super::execution::Shared;
use super::log::Log;
use super::purse::{self, Purse};
use super::step::Step;
use crate::abort::Abort;
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
}

/// What steps keep beside messages.
#[derive(Clone, Debug, Default, PartialEq, Eq, serde::Serialize, serde::Deserialize)]
#[serde(rename_all = "camelCase")]
pub(crate) struct Data {
    pub(crate) state: Json,
    #[serde(default)]
    pub(crate) slots: BTreeMap<String, Json>,
    pub(crate) cwd: Arc<str>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) previous_cwd: Option<Arc<str>>,
    /// Whether it changed since it was recorded.
    #[serde(skip)]
    pub(crate) changed: bool,
}

pub(crate) fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

impl Context {
    /// A child with an empty log and a copy of the data.
    pub(super) fn child(&self, key: Arc<str>, recorded: bool) -> Arc<Self> {
        Arc::new(Self {
            shared: Arc::clone(&self.shared),
            key,
            depth: self.depth + 1,
            recorded: self.recorded && recorded,
            log: Mutex::default(),
            data: Mutex::new(self.data()),
        })
    }

    /// A path of a parallel step: with a copy of the log, too.
    pub(super) fn path(&self, key: Arc<str>) -> Arc<Self> {
        Arc::new(Self {
            shared: Arc::clone(&self.shared),
            key,
            depth: self.depth,
            recorded: self.recorded,
            log: Mutex::new(lock(&self.log).copy()),
            data: Mutex::new(self.data()),
        })
    }

    fn data(&self) -> Data {
        Data { changed: false, ..lock(&self.data).clone() }
    }

    /// Takes over what a path of a race has.
    pub(super) fn take_over(&self, winner: &Self) {
        let taken = lock(&winner.data).clone();
        let mut own = lock(&self.data);
        let changed = own.changed || taken.state != own.state || taken.slots != own.slots;
        *own = Data { changed, ..taken };
    }
}

/// What a step works with: its messages, state, channels and budget. Clones are handles of the same.
#[derive(Clone)]
pub struct StepCx(Arc<Inner>);

struct Inner {
    context: Arc<Context>,
    path: Arc<str>,
    abort: Abort,
    purse: Arc<Purse>,
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
    pub(super) fn new(context: Arc<Context>, path: Arc<str>, abort: Abort, purse: Arc<Purse>) -> Self {
        Self::at(0, context, path, abort, purse)
    }

    fn at(nesting: u32, context: Arc<Context>, path: Arc<str>, abort: Abort, purse: Arc<Purse>) -> Self {
        let (numbers, spent) = (Mutex::default(), Mutex::new(Amount::NONE));
        Self(Arc::new(Inner { context, path, abort, purse, nesting, numbers, spent }))
    }

    /// What a step inside this one works with.
    pub(super) fn inside(
        &self,
        context: Arc<Context>,
        path: Arc<str>,
        abort: Abort,
        purse: Arc<Purse>,
    ) -> Self {
        Self::at(self.0.nesting + 1, context, path, abort, purse)
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

    pub(super) fn purse(&self) -> &Arc<Purse> {
        &self.0.purse
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
        *spent = purse::sum(*spent, used);
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
    pub fn abort(&self) -> &Abort {
        &self.0.abort
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

    /// The working folder, as a name: nothing here looks into it. Default `/`.
    pub fn cwd(&self) -> Arc<str> {
        Arc::clone(&lock(&self.0.context.data).cwd)
    }

    /// The working folder before the last change.
    pub fn previous_cwd(&self) -> Option<Arc<str>> {
        lock(&self.0.context.data).previous_cwd.clone()
    }

    /// Changes the working folder; to the one that it is, changes nothing.
    pub fn set_cwd(&self, cwd: impl Into<Arc<str>>) {
        let cwd = cwd.into();
        self.change(|data| {
            let changed = data.cwd != cwd;
            if changed {
                data.previous_cwd = Some(std::mem::replace(&mut data.cwd, cwd));
            }
            changed
        });
    }

    fn change(&self, change: impl FnOnce(&mut Data) -> bool) {
        let mut data = lock(&self.0.context.data);
        data.changed |= change(&mut data);
    }

    /// What is left of the tightest budget above the step.
    pub fn budget_left(&self) -> Amount {
        self.0.purse.left()
    }

    /// What the whole execution has spent, before a restore, too.
    pub fn used(&self) -> Amount {
        self.shared().purse.used()
    }

    /// Books what code of its own spent. It counts on every level at once.
    ///
    /// # Errors
    /// The ceiling that is used up with it.
    pub fn charge(&self, used: Amount) -> Result<(), Reached> {
        self.0.purse.charge(used);
        self.note_spent(used);
        self.0.purse.exhausted().map_or(Ok(()), Err)
    }

    /// A channel of the root execution, or of all executions when it is shared. Waits for it end when the step
    /// is aborted.
    ///
    /// # Errors
    /// See [`Channels::open`](crate::channel::Channels::open).
    pub fn channel(&self, spec: &ChannelSpec) -> Result<Channel, ChannelError> {
        let shared = self.shared();
        let channels = if spec.shared { &shared.parts.channels } else { &shared.channels };
        channels.open(spec, &self.0.abort)
    }

    /// Starts a step beside the flow, in a child context of its own, on the tokio runtime of the caller. It
    /// draws from the budget above this step, is aborted with this step's execution, and is not recorded: a
    /// restored execution does not start it again. It ends at the latest when the
    /// [`Execution`](super::Execution) is dropped.
    ///
    /// # Errors
    /// [`FlowError::Cancelled`](super::FlowError::Cancelled) when the execution is gone.
    pub fn detach(&self, step: &Step, input: Json) -> Result<Detached, super::FlowError> {
        super::detached::start(self, step.clone(), input)
    }
}
