//! Logs of threads, read from the engine.

use std::sync::Arc;

use harness::core::{Fault, ThreadId};

use super::call::{KeepAsk, ReadAsk, ReadReply};
use super::engine::{Engine, EngineError};
use super::service::LOG;
use crate::durable::{Blob, BlobHash, LogEntry, ThreadStore, fault};

/// Reads the logs of threads from the engine itself.
#[derive(Clone, Debug)]
pub struct EngineStore(Engine);

impl EngineStore {
    /// The logs of an engine.
    pub fn new(engine: Engine) -> Self {
        Self(engine)
    }
}

/// The entries of a log from one number up to another, and the extent of the log; fewer when they are large.
pub(super) async fn read(
    engine: &Engine,
    thread: &ThreadId,
    from: u64,
    upto: u64,
) -> Result<ReadReply, EngineError> {
    engine.call([LOG, thread.as_str(), "read"], &ReadAsk { from, upto }).await
}

impl ThreadStore for EngineStore {
    async fn read(&self, thread: &ThreadId, from: u64, upto: u64) -> Result<Vec<LogEntry>, Fault> {
        let mut all: Vec<LogEntry> = Vec::new();
        loop {
            let at = from + all.len() as u64;
            if at >= upto {
                return Ok(all);
            }
            let ReadReply { entries, first, len } = read(&self.0, thread, at, upto).await.map_err(failed)?;
            if at < first {
                let text = format!("thread {thread} has forgotten its log entries before {first}");
                return Err(fault("log_forgotten", text));
            }
            if entries.is_empty() {
                let text = format!("thread {thread} has {len} log entries, {upto} are needed");
                return Err(fault("log_too_short", text));
            }
            all.extend(entries);
        }
    }

    async fn put_blob(&self, thread: &ThreadId, blob: &Blob) -> Result<(), Fault> {
        let ask = KeepAsk { hash: blob.hash().clone(), text: (**blob.text()).to_owned() };
        self.0.call([LOG, thread.as_str(), "keep"], &ask).await.map_err(failed)
    }

    async fn get_blob(&self, thread: &ThreadId, hash: &BlobHash) -> Result<Arc<str>, Fault> {
        let text: Option<String> = self.0.call([LOG, thread.as_str(), "kept"], hash).await.map_err(failed)?;
        let missing = || fault("blob_missing", format!("thread {thread} does not have the text {hash}"));
        text.map(Arc::from).ok_or_else(missing)
    }

    async fn remove_blob(&self, thread: &ThreadId, hash: &BlobHash) -> Result<(), Fault> {
        self.0.call([LOG, thread.as_str(), "remove"], hash).await.map_err(failed)
    }

    async fn forget(&self, thread: &ThreadId, before: u64) -> Result<(), Fault> {
        self.0.call([LOG, thread.as_str(), "forget"], &before).await.map_err(failed)
    }
}

fn failed(error: EngineError) -> Fault {
    fault("log_unreadable", error)
}
