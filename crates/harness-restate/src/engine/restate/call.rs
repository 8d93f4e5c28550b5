//! Requests between the services, and those to the log.

use restate_sdk::context::{Request, RequestTarget};
use restate_sdk::endpoint::ContextInternal;
use restate_sdk::serde::Json;
use serde::{Deserialize, Serialize};

use crate::durable::{BlobHash, ControlAsk, LogEntry};

/// A request of a run to its thread.
#[derive(Debug, Serialize, Deserialize)]
pub(super) struct RunAsk {
    /// The invocation that asks: the thread rings there.
    pub(super) invocation: String,
    pub(super) ask: ControlAsk,
}

/// Input of `read`: entries from one number up to another.
#[derive(Clone, Copy, Debug, Serialize, Deserialize)]
pub(super) struct ReadAsk {
    pub(super) from: u64,
    pub(super) upto: u64,
}

/// Reply of `read`: the first of these entries that are not forgotten, and the entries of the log.
#[derive(Debug, Serialize, Deserialize)]
pub(super) struct ReadReply {
    pub(super) entries: Vec<LogEntry>,
    /// The first entry of the log that is not forgotten.
    #[serde(default)]
    pub(super) first: u64,
    pub(super) len: u64,
}

/// Input of `keep`: a text for beside the log.
#[derive(Debug, Serialize, Deserialize)]
pub(super) struct KeepAsk {
    pub(super) hash: BlobHash,
    pub(super) text: String,
}

/// A request to a handler of an object.
pub(super) fn to_object<'c, I, O>(
    ctx: &'c ContextInternal,
    service: &str,
    key: &str,
    handler: &str,
    input: I,
) -> Request<'c, Json<I>, Json<O>> {
    ctx.request(RequestTarget::object(service, key, handler), Json(input))
}
