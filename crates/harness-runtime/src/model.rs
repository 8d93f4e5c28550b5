//! The model of a thread: the configuration's, asked with the thread's key, level and conversion.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use harness_core::Fault;
use harness_core::message::AssistantMessage;
use harness_core::port::{DeltaPart, Deltas, Model, ModelFault, ModelFaultCode, ModelRequest, PreparedAgent};
use harness_core::transcript::{Transcript, View};

use crate::answer_tool::{AnswerDeltas, AnswerTool};
use crate::config::ResolvedConfig;
use crate::stream::EventLog;
use crate::thread::Shared;

/// The model of one run; of requests outside of threads when there is no thread.
pub(crate) struct ThreadModel {
    settled: Arc<ResolvedConfig>,
    thread: Option<Arc<Shared>>,
}

impl ThreadModel {
    pub(crate) fn new(settled: Arc<ResolvedConfig>, thread: Option<Arc<Shared>>) -> Self {
        Self { settled, thread }
    }

    /// The request as it is sent.
    pub(crate) async fn dress(&self, mut request: ModelRequest) -> Result<ModelRequest, ModelFault> {
        let config = &self.settled.config;
        request.thinking = config.thinking.or(request.thinking);
        if let Some(convert) = &config.convert {
            let messages: Transcript = convert(&request.view).into_iter().collect();
            request.view = View::whole(messages.prefix());
        }
        if let Some(secrets) = &config.secrets {
            let key = secrets.key_boxed(&config.provider).await.map_err(no_key)?;
            request.key = key.filter(|key| !key.is_empty()).or(request.key);
        }
        Ok(request)
    }
}

impl ThreadModel {
    /// Offers a tool for the answer where the agent has an output schema that the model's provider is not sent.
    pub(crate) fn answer_tool(&self, request: &mut ModelRequest) -> Option<AnswerTool> {
        let is_native = self.settled.config.ports.model.has_structured_output_dyn(&request.prepared);
        if is_native { None } else { AnswerTool::offer(request) }
    }

    async fn ask(
        &self,
        request: ModelRequest,
        tool: Option<AnswerTool>,
        deltas: &dyn Deltas,
    ) -> Result<AssistantMessage, ModelFault> {
        let model = &self.settled.config.ports.model;
        match tool {
            Some(tool) => {
                let deltas = AnswerDeltas::new(&tool, deltas);
                let answered = model.step_boxed(request, &deltas).await;
                answered.map(|message| tool.read(message))
            }
            None => model.step_boxed(request, deltas).await,
        }
    }
}

fn no_key(fault: Fault) -> ModelFault {
    ModelFault::new(ModelFaultCode::AuthFailed, fault.message)
}

impl Model for ThreadModel {
    async fn step(&self, request: ModelRequest, deltas: &dyn Deltas) -> Result<AssistantMessage, ModelFault> {
        let mut request = self.dress(request).await?;
        let tool = self.answer_tool(&mut request);
        match &self.thread {
            Some(thread) => {
                let tee = Tee { deltas, event_log: &thread.event_log, told: AtomicBool::new(false) };
                let answered = self.ask(request, tool, &tee).await;
                if tee.told.into_inner() {
                    // Readers have the last piece before the turn goes on, which may take longer.
                    tokio::task::yield_now().await;
                }
                answered
            }
            None => self.ask(request, tool, deltas).await,
        }
    }

    fn has_structured_output(&self, _: &PreparedAgent) -> bool {
        true
    }
}

/// Passes deltas to the run and to the thread's event log.
struct Tee<'d> {
    deltas: &'d dyn Deltas,
    event_log: &'d EventLog,
    /// Whether there were any.
    told: AtomicBool,
}

impl Deltas for Tee<'_> {
    fn part(&self, part: DeltaPart) {
        self.deltas.part(part.clone());
        self.event_log.delta(part);
        self.told.store(true, Ordering::Relaxed);
    }
}
