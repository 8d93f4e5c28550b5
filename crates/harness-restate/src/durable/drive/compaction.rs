//! Compaction on request: a step of the compactor, and its plan applied to the transcript.

use std::sync::Arc;

use harness::core::machine::{Input, Op, Reply};
use harness::core::port::CompactionNote;
use harness::core::{Fault, OpId};

use super::{Driver, Running};
use crate::durable::context::{ControlAsk, ControlReply, Driven, DurableContext, StepReply, Stopped, Woken};
use crate::durable::host::ThreadStore;

/// The number of the only step.
const STEP: OpId = OpId(0);

impl<C: DurableContext, S: ThreadStore + 'static> Driver<'_, C, S> {
    /// Compacts the transcript of a thread that has no run, and gives the result to the thread.
    pub(super) async fn compact(
        mut self,
        mut running: Running,
        instructions: Option<String>,
    ) -> Result<Driven, Stopped> {
        let result = match running.machine.compaction(instructions) {
            Ok(op) => self.compacted(&mut running, op).await?,
            Err(fault) => Err(fault),
        };
        loop {
            self.append(&mut running).await?;
            let Some(op) = running.store.take() else { break };
            running.give(running.now, Input::Reply(op, Reply::Stored(Ok(()))));
        }
        let (run, log) = (self.input.run(), self.log);
        let driven = Driven::Ended(running.now, Err(format!("`{run}` is a compaction, which has no end")));
        self.control(ControlAsk::Compacted { run, result, log }).await?;
        Ok(driven)
    }

    async fn compacted(
        &mut self,
        running: &mut Running,
        op: Op,
    ) -> Result<Result<Option<Arc<CompactionNote>>, Fault>, Stopped> {
        let since = running.now;
        running.slow.push((STEP, op));
        self.start(running).await?;
        let StepReply { at, reply, spent, .. } = self.step_reply(running).await?;
        let done = reply.into_compaction(spent.as_ref());
        Ok(done.and_then(|done| running.shorten(at, done, since)))
    }

    /// Waits for the compactor. When the thread stops it, it has the grace period to reply.
    async fn step_reply(&mut self, running: &mut Running) -> Result<StepReply, Stopped> {
        loop {
            self.entries += 1;
            match self.ctx.next().await? {
                (_, Woken::Step(step)) => return Ok(*step),
                (_, Woken::Rang) => {
                    self.entries += 1;
                    self.bell = self.ctx.doorbell()?;
                    let taken = self.ask_queue(None, Vec::new()).await?;
                    if let ControlReply::Taken { at, stop: Some(_), .. } = taken
                        && self.grace.is_none()
                    {
                        running.now = running.now.max(at);
                        self.abort(running, STEP)?;
                    }
                }
                (_, Woken::Timer | Woken::Child(_)) => {
                    for (step, _) in std::mem::take(&mut self.steps) {
                        self.ctx.cancel(step);
                    }
                    let (at, reply) = (running.now, Reply::Interrupted { partial: None });
                    return Ok(StepReply { at, reply, bytes: 0, spent: None, states: None });
                }
            }
        }
    }
}
