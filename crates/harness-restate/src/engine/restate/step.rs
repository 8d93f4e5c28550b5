//! The service `HarnessStep`: one slow operation, on any worker.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use harness::core::Cancel;
use restate_sdk::context::RunFuture as _;
use restate_sdk::endpoint::{ContextInternal, Error};
use restate_sdk::errors::{HandlerError, TerminalError};
use restate_sdk::serde::Json;

use super::effects::Effects;
use super::relay::Outbox;
use super::service::{HandlerSpec, Handlers, STEP, ServiceSpec, input, journaled, output, unfinished};
use crate::durable::{
    AgentHost, DeltaSink, Nonce, Reader, StepAsk, StepContext, StepReply, Stopped, ThreadStore, perform,
};

/// The signal that asks a step to reply with what it has.
pub(super) const STOP: &str = "stop";

pub(super) fn spec(longest: Duration) -> ServiceSpec {
    ServiceSpec {
        name: STEP,
        is_object: false,
        is_lazy: true,
        handlers: vec![HandlerSpec { name: "perform", is_private: true, ..HandlerSpec::default() }],
        keeps_journal: Duration::ZERO,
        inactivity: longest + Duration::from_mins(1),
        attempts: (30, true),
    }
}

/// The handler of steps.
pub(super) struct Step<H, S> {
    pub(super) host: Arc<H>,
    pub(super) reader: Reader<S>,
    pub(super) effects: Effects,
    /// The name of this process, and its attempts so far.
    pub(super) process: Arc<str>,
    pub(super) attempts: AtomicU64,
    pub(super) outbox: Option<Arc<Outbox>>,
}

impl<H: AgentHost + 'static, S: ThreadStore + 'static> Handlers for Step<H, S> {
    async fn handle(&self, ctx: &ContextInternal, handler: &str) -> Result<(), Error> {
        if handler != "perform" {
            return Err(Error::unknown_handler(STEP, handler));
        }
        let (ask, metadata) = input::<StepAsk>(ctx).await;
        let (step, cancel) = (metadata.invocation_id, Cancel::new());
        let number = self.attempts.fetch_add(1, Ordering::Relaxed);
        let attempt = Attempt {
            ctx,
            effects: self.effects.clone(),
            step: step.clone(),
            cancel: cancel.clone(),
            nonce: Nonce(format!("{}-{number}", self.process)),
        };
        let deltas = self.outbox.clone().map(|outbox| DeltaSink::new(outbox));
        let reply = perform(attempt, Arc::clone(&self.host), &self.reader, ask, deltas, cancel).await;
        if reply.is_ok() {
            self.effects.forget(&step);
        }
        output(ctx, reply.map_err(unfinished));
        Ok(())
    }
}

/// One attempt at a step.
struct Attempt<'c> {
    ctx: &'c ContextInternal,
    effects: Effects,
    /// The invocation of the step.
    step: String,
    cancel: Cancel,
    nonce: Nonce,
}

impl StepContext for Attempt<'_> {
    fn nonce(&self) -> Nonce {
        self.nonce.clone()
    }

    async fn intent(&mut self) -> Result<Nonce, Stopped> {
        let own = self.nonce.clone();
        journaled(self.ctx, || own).await.map_err(ended)
    }

    async fn effect(
        &mut self,
        work: impl Future<Output = StepReply> + Send + 'static,
    ) -> Result<StepReply, Stopped> {
        let (ctx, effects, step, cancel) =
            (self.ctx, self.effects.clone(), self.step.clone(), self.cancel.clone());
        let run = ctx.run(move || async move {
            let effect = effects.start(&step, cancel, work);
            let asked = async move { drop(ctx.signal::<()>(STOP).await) };
            let reply = effect.reply(asked).await;
            reply.map(Json).map_err(|why| HandlerError::from(TerminalError::new(why)))
        });
        let Json(reply) = run.name("effect").await.map_err(ended)?;
        Ok(Arc::unwrap_or_clone(reply))
    }
}

/// The engine ends an invocation.
pub(super) fn ended(error: TerminalError) -> Stopped {
    Stopped::Refused(format!("the engine ended it: {}", error.message()))
}
