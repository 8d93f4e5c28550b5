//! One request, as far as a bridge needs to know it.

use harness_core::{Json, JsonObject};

use crate::event::RelayInbound;
use crate::message::Key;

/// A request whose sender waits for the reply.
#[derive(Clone, Debug)]
pub(super) struct Job {
    pub(super) turn_id: Option<String>,
    pub(super) thread_id: Option<String>,
    /// To whom the reply goes.
    pub(super) reply_to: String,
    /// The execution request as it came; an empty object when it is missing.
    pub(super) request: Json,
    /// The message that brought it.
    pub(super) event_id: String,
}

impl Job {
    /// Reads a request. `Err` with its turn when it has no address for the reply.
    pub(super) fn read(body: &JsonObject, inbound: &RelayInbound) -> Result<Self, Option<String>> {
        let id = |key| body.filled_text(key);
        let reply_to = body.object("replyTo").and_then(|reply_to| reply_to.filled_text("agentId"));
        let Some(reply_to) = reply_to else { return Err(id("turnId")) };
        Ok(Self {
            turn_id: id("turnId"),
            thread_id: id("threadId"),
            reply_to,
            request: body.present("request").cloned().unwrap_or_default(),
            event_id: inbound.event_id.clone(),
        })
    }

    /// Its key. `None` when an id is missing; only its message identifies it then.
    pub(super) fn key(&self) -> Option<Key> {
        Some(Key { turn: self.turn_id.clone()?, thread: self.thread_id.clone()? })
    }
}
