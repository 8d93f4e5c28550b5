//! Many threads, and what they share.

use std::collections::{HashMap, VecDeque};
use std::fmt;
use std::sync::{Arc, Weak};

use harness_core::message::{AssistantMessage, Message};
use harness_core::port::{
    Clock, DeltaPart, Deltas, Ids, Model as _, ModelFault, ModelRequest, PreparedAgent,
};
use harness_core::tool::ToolDef;
use harness_core::transcript::{Transcript, View};
use harness_core::{Cancel, ThreadId};
use harness_host::{Params, RootCwd};
use parking_lot::Mutex;

use crate::approvals::Approvals;
use crate::config::{Instructions, ResolvedConfig, ThreadConfig};
use crate::error::RuntimeError;
use crate::model::ThreadModel;
use crate::queue::QueuedBytes;
use crate::sessions::{DynSessions, Sessions};
use crate::thread::{Shared, Thread};

/// The bounds of each thread, and of all.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct Limits {
    /// Messages that may wait in one thread; more are refused. Default 1,024.
    pub queue: usize,
    /// Bytes of the messages that may wait in one thread, as JSON; more are refused. Default 16 MiB.
    pub queue_bytes: usize,
    /// Bytes of the messages that may wait in all threads of the runtime together, as JSON; more are refused.
    /// Default 256 MiB.
    pub total_queue_bytes: usize,
    /// Events that one thread buffers; readers receive older ones as missed. Default 1,024.
    pub event_log: usize,
    /// Idle threads whose transcripts stay loaded when sessions hold them; those that were idle the longest are
    /// unloaded. Default 1,024.
    pub loaded: usize,
    /// Idle threads that keep their event buffer for later readers; the longest idle ones drop it. Default 64.
    pub tapes: usize,
}

impl Default for Limits {
    fn default() -> Self {
        Self {
            queue: 1_024,
            queue_bytes: 16 << 20,
            total_queue_bytes: 256 << 20,
            event_log: 1_024,
            loaded: 1_024,
            tapes: 64,
        }
    }
}

/// Threads in the order in which they became idle.
#[derive(Default)]
struct Idle(Mutex<VecDeque<Weak<Shared>>>);

impl Idle {
    /// A thread became idle. Gives those that are too many now: the ones that were idle the longest.
    fn push(&self, thread: &Arc<Shared>, most: usize) -> Vec<Arc<Shared>> {
        let mut idle = self.0.lock();
        let this = Arc::downgrade(thread);
        if let Some(at) = idle.iter().position(|known| known.ptr_eq(&this)) {
            idle.remove(at);
        }
        idle.push_back(this);
        let over = idle.len().saturating_sub(most);
        let over: Vec<Weak<Shared>> = idle.drain(..over).collect();
        drop(idle);
        over.iter().filter_map(Weak::upgrade).collect()
    }
}

/// Parts that all threads share.
pub(crate) struct Parts {
    pub(crate) clock: Arc<dyn Clock>,
    pub(crate) ids: Arc<dyn Ids>,
    pub(crate) sessions: Option<Arc<dyn DynSessions>>,
    pub(crate) limits: Limits,
    /// Bytes of the messages that wait in all threads.
    pub(crate) queued: QueuedBytes,
    /// Working directory of the host.
    pub(crate) cwd: RootCwd,
    /// Construction parameters.
    pub(crate) params: Params,
    /// The tokio runtime that this was made in.
    tokio: Option<tokio::runtime::Handle>,
    /// The threads; weakly, because each of them knows these parts.
    threads: Weak<Threads>,
    /// Idle threads that may be loaded.
    loaded: Idle,
    /// Idle threads that may keep their event buffer.
    taped: Idle,
}

#[derive(Default)]
struct Threads(Mutex<HashMap<ThreadId, Arc<Shared>>>);

impl Parts {
    /// The tokio runtime of runs: that of the construction, or else of the caller.
    pub(crate) fn tokio(&self) -> Result<tokio::runtime::Handle, RuntimeError> {
        match &self.tokio {
            Some(tokio) => Ok(tokio.clone()),
            None => tokio::runtime::Handle::try_current().map_err(|_| RuntimeError::NoTokio),
        }
    }

    /// A thread became idle: those that were idle the longest are unloaded.
    pub(crate) fn idle(&self, thread: &Arc<Shared>) {
        for idle in self.taped.push(thread, self.limits.tapes) {
            idle.forget();
        }
        if self.sessions.is_some() {
            for idle in self.loaded.push(thread, self.limits.loaded) {
                idle.unload();
            }
        }
    }

    /// A thread was closed.
    pub(crate) fn forget(&self, thread: &Arc<Shared>) {
        let Some(threads) = self.threads.upgrade() else { return };
        let mut threads = threads.0.lock();
        if threads.get(&thread.id).is_some_and(|known| Arc::ptr_eq(known, thread)) {
            threads.remove(&thread.id);
        }
    }
}

/// Makes a [`Runtime`].
#[must_use = "a builder does nothing until `build`"]
pub struct RuntimeBuilder {
    config: ThreadConfig,
    ids: Arc<dyn Ids>,
    sessions: Option<Arc<dyn DynSessions>>,
    limits: Limits,
    cwd: RootCwd,
    params: Params,
}

impl fmt::Debug for RuntimeBuilder {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("RuntimeBuilder")
            .field("config", &self.config)
            .field("limits", &self.limits)
            .finish_non_exhaustive()
    }
}

impl RuntimeBuilder {
    /// Keeps the transcripts of threads in sessions. Without, they are in memory.
    pub fn sessions(mut self, sessions: impl Sessions + 'static) -> Self {
        self.sessions = Some(Arc::new(sessions));
        self
    }

    /// Like [`sessions`](Self::sessions), with shared sessions.
    pub fn shared_sessions(mut self, sessions: Arc<dyn DynSessions>) -> Self {
        self.sessions = Some(sessions);
        self
    }

    /// Other bounds.
    pub fn limits(mut self, change: impl FnOnce(&mut Limits)) -> Self {
        change(&mut self.limits);
        self
    }

    /// Working directory in prompts. Default `/`. A flow runner with the same one shares it.
    pub fn root_cwd(mut self, cwd: RootCwd) -> Self {
        self.cwd = cwd;
        self
    }

    /// Host parameters, for prompts and [tools](harness_core::tool::ToolCx::params). Default: those of the ports.
    pub fn params(mut self, params: Params) -> Self {
        self.config.ports.params = params.json().clone();
        self.params = params;
        self
    }

    /// Makes the runtime. Runs are driven on the tokio runtime of this call, or, outside of one, on that of the caller of
    /// a prompt.
    pub fn build(self) -> Runtime {
        let tokio = tokio::runtime::Handle::try_current().ok();
        let Self { config, ids, sessions, limits, cwd, params } = self;
        let clock = Arc::clone(&config.ports.clock);
        let all = Arc::<Threads>::default();
        let (loaded, taped) = (Idle::default(), Idle::default());
        let threads = Arc::downgrade(&all);
        let queued = QueuedBytes::default();
        let parts =
            Parts { clock, ids, sessions, limits, queued, cwd, params, tokio, threads, loaded, taped };
        Runtime {
            threads: all,
            parts: Arc::new(parts),
            settled: ResolvedConfig::new(config),
            approvals: None,
        }
    }
}

/// Threads, by name, and what they share. Clones are handles to the same threads.
///
/// Threads know nothing of each other: each has its own transcript, queue, configuration and events.
#[derive(Clone)]
pub struct Runtime {
    threads: Arc<Threads>,
    parts: Arc<Parts>,
    settled: Arc<ResolvedConfig>,
    approvals: Option<Approvals>,
}

impl fmt::Debug for Runtime {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Runtime")
            .field("threads", &self.threads.0.lock().len())
            .field("limits", &self.parts.limits)
            .finish_non_exhaustive()
    }
}

impl Runtime {
    /// Begins to make a runtime whose threads begin with this configuration, and whose clock is that of its ports.
    pub fn builder(config: ThreadConfig, ids: Arc<dyn Ids>) -> RuntimeBuilder {
        RuntimeBuilder {
            params: Params::new(config.ports.params.clone()),
            config,
            ids,
            sessions: None,
            limits: Limits::default(),
            cwd: RootCwd::default(),
        }
    }

    /// Sets the approver of the threads, so that the runtime as a [`ThreadService`](crate::ThreadService) lists pending
    /// calls and decides on them. The threads must have the same approver. Default: none, so calls are neither listed
    /// nor decided there.
    #[must_use]
    pub fn with_approvals(mut self, approvals: Approvals) -> Self {
        self.approvals = Some(approvals);
        self
    }

    /// The approver of the threads.
    pub(crate) fn decides(&self) -> Option<&Approvals> {
        self.approvals.as_ref()
    }

    /// The clock of the runtime.
    pub(crate) fn clock(&self) -> &dyn Clock {
        &*self.parts.clock
    }

    /// The thread of that name; a new one when there is none. Nothing is loaded before it is needed.
    pub fn thread(&self, id: impl Into<ThreadId>) -> Thread {
        let id = id.into();
        let mut threads = self.threads.0.lock();
        let shared = threads.entry(id).or_insert_with_key(|id| {
            Arc::new(Shared::new(id.clone(), Arc::clone(&self.parts), Arc::clone(&self.settled)))
        });
        Thread(Arc::clone(shared))
    }

    /// The thread of that name, when there is one.
    pub fn existing(&self, id: &ThreadId) -> Option<Thread> {
        self.threads.0.lock().get(id).cloned().map(Thread)
    }

    /// The names of all threads, in no order.
    pub fn ids(&self) -> Vec<ThreadId> {
        self.threads.0.lock().keys().cloned().collect()
    }

    /// Configuration that threads begin with.
    pub(crate) fn config(&self) -> &Arc<ResolvedConfig> {
        &self.settled
    }

    /// Working directory in prompts.
    pub fn root_cwd(&self) -> &RootCwd {
        &self.parts.cwd
    }

    /// Changes the working directory for later prompts and for everything that shares it. Returns whether it changed.
    pub fn set_root_cwd(&self, folder: impl Into<Arc<str>>) -> bool {
        self.root_cwd().set(folder)
    }

    /// Host parameters.
    pub fn params(&self) -> &Params {
        &self.parts.params
    }

    /// Calls the model once, outside of any thread: with the model, API key, settings and static instructions of the
    /// configuration, without layers and tools.
    ///
    /// # Errors
    /// Error of the model.
    pub async fn call_model<M: Into<Message>>(
        &self,
        messages: impl IntoIterator<Item = M>,
        cancel: &Cancel,
    ) -> Result<AssistantMessage, ModelFault> {
        let config = &self.settled.config;
        let instructions = match &config.instructions {
            Instructions::Text(text) => Arc::clone(text),
            Instructions::OfAgents | Instructions::Built(_) => Arc::from(""),
        };
        let prepared = PreparedAgent::new("main", instructions, Vec::<ToolDef>::new())
            .with_model(config.model_name.clone(), config.settings.clone());
        let log: Transcript = messages.into_iter().map(|message| Arc::new(message.into())).collect();
        let mut request = ModelRequest::new(View::whole(log.prefix()), Arc::new(prepared));
        request.cancel = cancel.clone();
        ThreadModel::new(Arc::clone(&self.settled), None).step(request, &Unheard).await
    }

    /// Ends all threads; see [`Thread::close`].
    pub async fn shutdown(&self) {
        let threads: Vec<Arc<Shared>> = self.threads.0.lock().values().cloned().collect();
        for thread in &threads {
            Thread(Arc::clone(thread)).abort("shutdown");
        }
        for thread in threads {
            Thread(thread).close().await;
        }
    }
}

/// Discards deltas.
struct Unheard;

impl Deltas for Unheard {
    fn part(&self, _: DeltaPart) {}
}
