//! The request that a thread would make.

use std::sync::Arc;

use harness_core::driver::{Ports, drive};
use harness_core::event::Hub;
use harness_core::machine::Start;
use harness_core::message::{AssistantMessage, Message};
use harness_core::port::{Deltas, Model, ModelFault, ModelFaultCode, ModelRequest};
use harness_core::tool::{DynToolRegistry, ToolCx, ToolDef, ToolOutcome, ToolRegistry, ToolScope};
use harness_core::{Cancel, Fault, FaultSource, RunId};
use parking_lot::Mutex;

use super::begin::said;
use super::handle::Thread;
use super::memory::Memory;
use super::state::Status;
use crate::agent::ThreadAgents;
use crate::config::RunSetup;
use crate::error::RuntimeError;
use crate::model::ThreadModel;

/// Keeps the request that it is asked with, and never answers it.
struct Looker {
    model: ThreadModel,
    seen: Mutex<Option<ModelRequest>>,
}

impl Model for Looker {
    async fn step(&self, request: ModelRequest, _: &dyn Deltas) -> Result<AssistantMessage, ModelFault> {
        let mut request = self.model.dress(request).await?;
        let _ = self.model.answer_tool(&mut request);
        *self.seen.lock() = Some(request);
        Err(ModelFault::new(ModelFaultCode::Cancelled, "the request was only looked at"))
    }
}

/// Lists the tools and runs none of them.
struct Untouched(Arc<dyn DynToolRegistry>);

impl ToolRegistry for Untouched {
    async fn list(&self, scope: &ToolScope) -> Result<Arc<[ToolDef]>, Fault> {
        self.0.list_boxed(scope).await
    }

    async fn call(&self, _: ToolCx) -> Result<ToolOutcome, Fault> {
        Err(Fault::new(FaultSource::Tool, "preview", "the request was only looked at"))
    }
}

/// Ports that reach what a request is made from, and leave everything as it is.
fn apart(mut ports: Ports) -> Ports {
    ports.tools = Arc::new(Untouched(ports.tools));
    ports.layers = ports.layers.map(|layers| layers.ahead_dyn().unwrap_or(layers));
    ports.compactor = ports.compactor.map(|compactor| compactor.ahead_dyn().unwrap_or(compactor));
    ports.checks.clear();
    (ports.session, ports.checkpoints, ports.hub) = (None, None, Hub::default());
    ports
}

impl Thread {
    /// The request that the model would be asked with if the idle thread were prompted with these messages now, by
    /// the one loop that makes requests: layers, steering and the compaction in force included. Nothing is stored,
    /// emitted, delivered or remembered: layers and the compactor are called through twins
    /// ([`ContextPipeline::ahead`](harness_core::port::ContextPipeline::ahead)), checks not at all. A compactor whose
    /// trigger is reached makes its summary for the preview, with its own model call.
    ///
    /// # Errors
    /// [`RuntimeError::Busy`] while the thread is at work; [`RuntimeError::Part`] when no request would be made, and
    /// why, or calls wait for their results: the next run settles those first. [`RuntimeError::Session`].
    pub async fn preview_request<M: Into<Message>>(
        &self,
        messages: impl IntoIterator<Item = M>,
    ) -> Result<ModelRequest, RuntimeError> {
        let (settled, steering) = {
            let state = self.0.lock();
            if state.status != Status::Idle {
                return Err(self.0.busy());
            }
            (Arc::clone(&state.settled), state.queue.preview(state.settled.config.steering_mode))
        };
        let memory = self.0.look().await?;
        let mut start = Start::resume();
        start.prompt = messages.into_iter().map(|message| Arc::new(message.into())).chain(steering).collect();
        let setup = RunSetup::new(&self.0.id, &RunId::from("preview"), memory.agent(), &settled);
        let setup = settled.set_up(setup, || said(&start.prompt, &memory)).map_err(RuntimeError::Part)?;
        let mut ports = apart(settled.config.ports.clone());
        let looker =
            Arc::new(Looker { model: ThreadModel::new(Arc::clone(&settled), None), seen: Mutex::default() });
        ports.model = looker.clone();
        let Memory { log, view, waiting, .. } = memory;
        let host = (self.0.parts.cwd.clone(), self.0.parts.params.clone());
        ports.agents = Arc::new(ThreadAgents::new(Arc::clone(&settled), host, setup.agents, log.prefix()));
        ports.steering = None;
        let origin = self.0.origin(&settled.config, None);
        (start.agent, start.waiting) = (setup.agent, waiting);
        let mut machine = settled.run(setup.mode, origin, log).with_view(view);
        if machine.log().has_open_calls() {
            let why = "calls wait for their results; the next run settles them before it asks";
            return Err(RuntimeError::Part(Fault::new(FaultSource::Machine, "open_calls", why)));
        }
        let end = drive(&mut machine, &ports, &Cancel::never(), start).await;
        let request = looker.seen.lock().take();
        request.ok_or_else(|| {
            let why = format!("no request would be made: the run would end {}", end.reason());
            RuntimeError::Part(Fault::new(FaultSource::Machine, "no_request", why))
        })
    }
}
