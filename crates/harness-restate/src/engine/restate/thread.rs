//! The object `HarnessThread`: queue, decisions and status of one conversation.

use std::sync::Arc;
use std::time::Duration;

use harness::core::port::Clock;
use harness::core::{Millis, Origin, Redactor, ThreadId};
use harness::runtime::DeliveryMode;
use restate_sdk::endpoint::{ContextInternal, Error};
use restate_sdk::errors::TerminalError;
use restate_sdk::serde::Json;

use super::call::{RunAsk, to_object};
use super::log::value;
use super::service::{HandlerSpec, Handlers, RUN, ServiceSpec, THREAD, input, journaled, output};
use crate::durable::{ControlAsk, Held, Queued, ThreadAsk, ThreadReply, ThreadSend, ThreadState};

/// The handlers of clients.
const CLIENTS: [&str; 16] = [
    "start",
    "prompt",
    "steer",
    "follow_up",
    "interrupt",
    "abort",
    "decide",
    "edit",
    "reorder",
    "cancel",
    "configure",
    "seed",
    "continue",
    "compact",
    "forget",
    "settle",
];

pub(super) fn spec() -> ServiceSpec {
    let public = |name| HandlerSpec { name, ..HandlerSpec::default() };
    let private = |name| HandlerSpec { is_private: true, ..public(name) };
    let shared = |name| HandlerSpec { is_shared: true, ..public(name) };
    let mut handlers: Vec<_> = CLIENTS.map(public).into();
    handlers.extend(
        [
            "take",
            "hold",
            "ended",
            "compacted",
            "delegate",
            "begin",
            "expire",
            "forgotten",
            "stop_run",
            "child",
        ]
        .map(private),
    );
    handlers.extend(["snapshot", "queue", "approvals"].map(shared));
    ServiceSpec {
        name: THREAD,
        is_object: true,
        is_lazy: false,
        handlers,
        keeps_journal: Duration::ZERO,
        inactivity: Duration::from_mins(1),
        attempts: (u64::from(u32::MAX), false),
    }
}

/// The handlers of threads.
pub(super) struct Thread {
    pub(super) clock: Arc<dyn Clock>,
    /// Descriptor, user and workspace of new threads.
    pub(super) origin: Origin,
    pub(super) redactor: Option<Redactor>,
}

impl Handlers for Thread {
    async fn handle(&self, ctx: &ContextInternal, handler: &str) -> Result<(), Error> {
        match handler {
            "snapshot" => {
                let state = self.read(ctx).await;
                output(ctx, state);
            }
            "queue" => {
                let state = self.read(ctx).await;
                output(ctx, state.map(|state| state.queue().cloned().collect::<Vec<Queued>>()));
            }
            "approvals" => {
                let state = self.read(ctx).await;
                output(ctx, state.map(|state| state.approvals().cloned().collect::<Vec<Held>>()));
            }
            "take" | "hold" | "ended" | "compacted" | "delegate" | "begin" => {
                let (RunAsk { invocation, ask }, metadata) = input(ctx).await;
                // A run that is over must not get the rings of the next.
                let rings = !matches!(ask, ControlAsk::Ended { .. } | ControlAsk::Compacted { .. });
                let invocation = rings.then_some(invocation);
                let reply = self.change(ctx, &metadata.key, ThreadAsk::Run(ask), invocation).await;
                output(ctx, reply);
            }
            _ => {
                let (ask, metadata) = input(ctx).await;
                let reply = if handler_of(&ask) == handler {
                    self.change(ctx, &metadata.key, ask, None).await
                } else {
                    // Another attempt would not help.
                    let text = format!("`{handler}` does not take a request for `{}`", handler_of(&ask));
                    Err(TerminalError::new_with_code(400, text))
                };
                output(ctx, reply);
            }
        }
        Ok(())
    }
}

/// The handler that takes a request of a client, or of the thread itself.
pub(super) fn handler_of(ask: &ThreadAsk) -> &'static str {
    match ask {
        ThreadAsk::Deliver { mode: DeliveryMode::NextTurn, wakes: true, .. } => "prompt",
        ThreadAsk::Deliver { mode: DeliveryMode::NextTurn, wakes: false, .. } => "follow_up",
        ThreadAsk::Deliver { mode: DeliveryMode::BetweenRounds, .. } => "steer",
        ThreadAsk::Deliver { .. } => "interrupt",
        ThreadAsk::Abort { .. } => "abort",
        ThreadAsk::Start { .. } => "start",
        ThreadAsk::Decide(_) => "decide",
        ThreadAsk::Edit { .. } => "edit",
        ThreadAsk::Reorder { .. } => "reorder",
        ThreadAsk::Cancel { .. } => "cancel",
        ThreadAsk::Configure(_) => "configure",
        ThreadAsk::Seed { .. } => "seed",
        ThreadAsk::Continue { .. } => "continue",
        ThreadAsk::Compact { .. } => "compact",
        ThreadAsk::Settle { .. } => "settle",
        ThreadAsk::Expire { .. } => "expire",
        ThreadAsk::Forget => "forget",
        ThreadAsk::Forgotten { .. } => "forgotten",
        ThreadAsk::StopRun(_) => "stop_run",
        ThreadAsk::Child(_) => "child",
        ThreadAsk::Run(_) => "take",
    }
}

impl Thread {
    /// The state of a thread, for a handler that only reads.
    async fn read(&self, ctx: &ContextInternal) -> Result<ThreadState, TerminalError> {
        let ((), metadata) = input(ctx).await;
        self.state(ctx, &metadata.key).await
    }

    async fn state(&self, ctx: &ContextInternal, key: &str) -> Result<ThreadState, TerminalError> {
        let state = value(ctx, "state").await?;
        Ok(state.unwrap_or_else(|| {
            let mut origin = self.origin.clone();
            // Keys of tools must be equal in all runs that a decision continues.
            (origin.thread, origin.session) = (Some(ThreadId::from(key)), Some(key.into()));
            ThreadState::of(origin)
        }))
    }

    /// Takes one request: the state, the reply and what is sent are stored together.
    async fn change(
        &self,
        ctx: &ContextInternal,
        key: &str,
        ask: ThreadAsk,
        invocation: Option<String>,
    ) -> Result<ThreadReply, TerminalError> {
        let mut state = self.state(ctx, key).await?;
        let known: Option<String> = value(ctx, "invocation").await?;
        let rings = invocation.clone().or(known.clone());
        let now = journaled(ctx, || self.clock.now()).await?;
        let (reply, sends) = state.handle(ask, now, self.redactor.as_ref());
        let mut next = rings.clone();
        for send in sends {
            match send {
                ThreadSend::Drive(input) => {
                    let drive = to_object::<_, ()>(ctx, RUN, key, "drive", input).send().await?;
                    next = Some(drive.invocation_id().to_owned());
                }
                ThreadSend::Ring(_) => {
                    if let Some(invocation) = &rings {
                        ctx.invocation_handle(invocation.clone()).signal("ring").resolve(());
                    }
                }
                ThreadSend::Forget { before } => {
                    drop(to_object::<_, ()>(ctx, RUN, key, "forget", before).send());
                }
                ThreadSend::Tell(other, ask) => {
                    let handler = handler_of(&ask);
                    drop(to_object::<_, ()>(ctx, THREAD, other.as_str(), handler, ask).send());
                }
                ThreadSend::Later(at, ask) => {
                    let delay = at.since(now).max(Millis(0)).duration();
                    drop(to_object::<_, ()>(ctx, THREAD, key, "expire", ask).send_after(delay));
                }
            }
        }
        ctx.set("state", Json(state));
        if let Some(next) = next.filter(|next| known.as_ref() != Some(next)) {
            ctx.set("invocation", Json(next));
        }
        Ok(reply)
    }
}
