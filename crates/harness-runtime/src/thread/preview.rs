//! The request that a thread would make.

use std::sync::{Arc, Mutex, PoisonError};

use harness_core::driver::drive;
use harness_core::event::Hub;
use harness_core::machine::Start;
use harness_core::message::{AssistantMessage, Message};
use harness_core::port::{Deltas, Model, ModelFault, ModelFaultCode, ModelRequest};
use harness_core::run::Run;
use harness_core::{Cancel, Fault, FaultSource, RunId};

use super::handle::Thread;
use super::memory::Memory;
use super::owner::said;
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
        let request = self.model.dress(request).await?;
        *self.seen.lock().unwrap_or_else(PoisonError::into_inner) = Some(request);
        Err(ModelFault::new(ModelFaultCode::Cancelled, "the request was only looked at"))
    }
}

impl Thread {
    /// The request that the model would be asked with if the idle thread were prompted with these messages now, by
    /// the one loop that makes requests. Nothing is stored, told or delivered. Guardrails, layers and the compactor
    /// are asked as before a real request, and remember what they remember.
    ///
    /// # Errors
    /// [`RuntimeError::Busy`] while the thread is at work; [`RuntimeError::Part`] when no request would be made,
    /// and why; [`RuntimeError::Session`].
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
        let log = self.0.transcript().await?;
        let memory = Memory::seeded(log.iter().cloned().collect());
        let mut start = Start::resume();
        start.prompt = messages.into_iter().map(|message| Arc::new(message.into())).chain(steering).collect();
        let setup = RunSetup::new(&self.0.id, &RunId::from("preview"), memory.agent());
        let setup = settled.set_up(setup, || said(&start.prompt, &memory)).map_err(RuntimeError::Part)?;
        let mut ports = settled.ports(&self.0.parts.clock);
        let looker =
            Arc::new(Looker { model: ThreadModel::new(Arc::clone(&settled), None), seen: Mutex::default() });
        ports.model = looker.clone();
        ports.agents = Arc::new(ThreadAgents::new(Arc::clone(&settled), setup.agents, log.clone()));
        ports.hub = Hub::default();
        let mut spec = ports.fit_run(settled.config.run.clone());
        spec.mode = setup.mode;
        spec.turn.seams.steering = false;
        let mut origin = settled.config.origin.clone();
        origin.thread = Some(self.0.id.clone());
        origin.allowed_tools.clone_from(&settled.config.active_tools);
        let start = start.with_agent(setup.agent);
        let mut machine = Run::new(Arc::new(spec), origin, memory.log);
        let end = drive(&mut machine, &ports, &Cancel::never(), start).await;
        let request = looker.seen.lock().unwrap_or_else(PoisonError::into_inner).take();
        request.ok_or_else(|| {
            let why = format!("no request would be made: the run would end {}", end.reason());
            RuntimeError::Part(Fault::new(FaultSource::Machine, "no_request", why))
        })
    }
}
