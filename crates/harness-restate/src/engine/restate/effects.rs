//! The effects of steps at work in this process.
//!
//! An engine that loses its connection to a worker drops the handler in the middle of its work. An effect is a separate
//! task, so that it ends nevertheless, and a retry in this process joins it.

use std::collections::HashMap;
use std::panic::AssertUnwindSafe;
use std::pin::pin;
use std::sync::Arc;
use std::time::Duration;

use futures_util::FutureExt as _;
use harness::core::Cancel;
use parking_lot::Mutex;
use tokio::sync::{Semaphore, watch};

use crate::durable::StepReply;

/// How long the reply of an effect is kept for a retry.
const KEEP: Duration = Duration::from_mins(1);

/// The reply of an effect, or why it has none; `None` until it ends.
type Slot = Option<Result<Arc<StepReply>, String>>;

/// An effect at work.
#[derive(Clone, Debug)]
pub(super) struct Effect {
    cancel: Cancel,
    reply: watch::Receiver<Slot>,
}

impl Effect {
    /// Waits for the reply. `stop` asks the effect to reply with what it has.
    pub(super) async fn reply(mut self, stop: impl Future<Output = ()>) -> Result<Arc<StepReply>, String> {
        let cancel = self.cancel.clone();
        let mut done = pin!(self.ended());
        tokio::select! {
            ended = &mut done => return ended,
            () = stop => cancel.cancel(),
        }
        done.await
    }

    async fn ended(&mut self) -> Result<Arc<StepReply>, String> {
        let slot = self.reply.wait_for(Option::is_some).await.ok().and_then(|slot| slot.clone());
        slot.unwrap_or_else(|| Err("the worker stopped".to_owned()))
    }
}

/// All effects of this process, by the invocation of their step.
#[derive(Clone, Debug)]
pub(super) struct Effects {
    running: Arc<Mutex<HashMap<String, Effect>>>,
    permits: Arc<Semaphore>,
}

impl Effects {
    /// At most `limit` effects are at work; others wait.
    pub(super) fn new(limit: usize) -> Self {
        Self { running: Arc::default(), permits: Arc::new(Semaphore::new(limit)) }
    }

    /// Starts the effect of a step, or joins that of an earlier attempt and drops `work`.
    pub(super) fn start(
        &self,
        step: &str,
        cancel: Cancel,
        work: impl Future<Output = StepReply> + Send + 'static,
    ) -> Effect {
        let mut running = self.running.lock();
        if let Some(effect) = running.get(step) {
            return effect.clone();
        }
        let (sender, reply) = watch::channel(None);
        let effect = Effect { cancel, reply };
        running.insert(step.to_owned(), effect.clone());
        let (effects, step) = (self.clone(), step.to_owned());
        tokio::spawn(async move {
            let permit = effects.permits.acquire().await;
            let reply = AssertUnwindSafe(work).catch_unwind().await;
            drop(permit);
            let reply = reply.map(Arc::new).map_err(|_| "the operation panicked".to_owned());
            sender.send_replace(Some(reply));
            tokio::select! {
                () = sender.closed() => {}
                () = tokio::time::sleep(KEEP) => {}
            }
            effects.forget(&step);
        });
        effect
    }

    /// Drops the reply of a step: the engine has it.
    pub(super) fn forget(&self, step: &str) {
        self.running.lock().remove(step);
    }
}
