//! Ports of a worker: agents, and the store of logs.

use std::fmt;
use std::sync::Arc;

use harness::core::driver::Ports;
use harness::core::port::Control;
use harness::core::run::RunSpec;
use harness::core::{Fault, Origin, ThreadId, ToolName};
use harness::runtime::{DeliveryRules, MessageOptions, RunParts, Runtime};

use super::blob::{Blob, BlobHash};
use super::log::LogEntry;
use super::request::AgentSettings;

/// Request for the parts of a run.
#[derive(Clone, Copy, Debug)]
#[non_exhaustive]
pub struct HostAsk<'a> {
    /// The ids of the work; the descriptor hash names the agents.
    pub origin: &'a Origin,
    /// Settings for the agents by the message of the run.
    pub agents: &'a AgentSettings,
}

impl<'a> HostAsk<'a> {
    /// A request for the parts of this work.
    pub fn new(origin: &'a Origin, agents: &'a AgentSettings) -> Self {
        Self { origin, agents }
    }
}

/// The parts of a run.
#[derive(Debug)]
pub struct Agent {
    /// The ports. Session, checkpoints and steering are those of the thread; values set here are ignored. The thread
    /// decides about calls, so an approver only [prepares](harness::core::port::Approver::prepare) requests of the model.
    pub ports: Ports,
    /// The settings of the run.
    pub spec: Arc<RunSpec>,
    /// Decides whether the run continues after a turn: a fresh one for each request.
    pub control: Box<dyn Control>,
    /// How the thread delivers messages: each run sends it.
    pub delivery: DeliveryRules,
    /// The only tools of the run; `None` leaves those that the request allows.
    pub allowed_tools: Option<Arc<[ToolName]>>,
}

/// Binds descriptors to parts on a worker. A [`Runtime`] is one. Equal requests must give equal parts: a run is replayed on any worker.
pub trait AgentHost: Send + Sync {
    /// The parts of a run.
    ///
    /// # Errors
    /// When the worker does not have the descriptor; the run ends with it.
    fn agent(&self, ask: HostAsk<'_>) -> impl Future<Output = Result<Agent, Fault>> + Send;
}

/// The logs of threads, and what is too large for a journal or must not be in one. What was read once never changes, so
/// neither reads nor writes are journaled. After an error the engine tries the invocation again.
pub trait ThreadStore: Send + Sync {
    /// The entries of a thread's log from `from` on, before `upto`.
    ///
    /// # Errors
    /// When the log cannot be read, is shorter, or these entries were forgotten.
    fn read(
        &self,
        thread: &ThreadId,
        from: u64,
        upto: u64,
    ) -> impl Future<Output = Result<Vec<LogEntry>, Fault>> + Send;

    /// Keeps a text with the thread, under its hash. One that is there is not written again.
    ///
    /// # Errors
    /// When it is not on stable storage.
    fn put_blob(&self, thread: &ThreadId, blob: &Blob) -> impl Future<Output = Result<(), Fault>> + Send;

    /// A text that was kept.
    ///
    /// # Errors
    /// When it cannot be read, or there is none.
    fn get_blob(
        &self,
        thread: &ThreadId,
        hash: &BlobHash,
    ) -> impl Future<Output = Result<Arc<str>, Fault>> + Send;

    /// Removes a text. A missing text is not an error.
    ///
    /// # Errors
    /// When it may still be stored.
    fn remove_blob(
        &self,
        thread: &ThreadId,
        hash: &BlobHash,
    ) -> impl Future<Output = Result<(), Fault>> + Send;

    /// Removes the first entries of a thread's log, up to `before`, and all its texts. Later entries keep their numbers.
    ///
    /// # Errors
    /// When some of them may still be stored.
    fn forget(&self, thread: &ThreadId, before: u64) -> impl Future<Output = Result<(), Fault>> + Send;
}

impl<H: AgentHost + ?Sized> AgentHost for Arc<H> {
    async fn agent(&self, ask: HostAsk<'_>) -> Result<Agent, Fault> {
        (**self).agent(ask).await
    }
}

/// The agents of a runtime. A thread that was started under another descriptor is rejected, unless the runtime accepts any.
/// State that a process keeps follows a run to another worker if a [`Stateful`](harness::core::port::Stateful) keeps it.
impl AgentHost for Runtime {
    async fn agent(&self, ask: HostAsk<'_>) -> Result<Agent, Fault> {
        let mut options = MessageOptions::default();
        (options.context, options.output) = (ask.agents.context.clone(), ask.agents.output.clone());
        options.allowed_tools.clone_from(&ask.origin.allowed_tools);
        let parts = self.run_parts(ask.origin, options).map_err(|error| fault(error.kind(), &error))?;
        let RunParts { ports, spec, control, delivery, allowed_tools, .. } = parts;
        Ok(Agent { ports, spec, control, delivery, allowed_tools })
    }
}

/// A name for errors of hosts.
pub(crate) fn fault(code: &str, text: impl fmt::Display) -> Fault {
    Fault::new(harness::core::FaultSource::Session, code, text.to_string())
}
