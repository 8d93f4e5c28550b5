//! What a worker reads of threads, and remembers.

use std::collections::{BTreeMap, VecDeque};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use harness::core::machine::Journal;
use harness::core::port::PreparedAgent;
use harness::core::transcript::Prefix;
use harness::core::{Fault, ThreadId};

use super::blob::{Blob, BlobHash, json_bytes};
use super::context::Stopped;
use super::host::{ThreadStore, fault};
use super::log::{LogEntry, LogItem};
use super::sealed::HasAgent as _;

/// Bytes that a fold counts at least.
const LEAST: usize = 1 << 10;

/// Agents that are remembered, at most.
const AGENTS: usize = 256;

/// A store as one worker reads it. It remembers the folds of the logs that it read last, so that each step reads only
/// what is new in its thread. Clones share what is remembered.
///
/// A worker has one, for [`drive`](super::drive()) and [`perform`](super::perform).
#[derive(Debug)]
pub struct Reader<S> {
    store: Arc<S>,
    known: Arc<Mutex<Known>>,
}

impl<S> Clone for Reader<S> {
    fn clone(&self) -> Self {
        Self { store: Arc::clone(&self.store), known: Arc::clone(&self.known) }
    }
}

impl<S: ThreadStore> Reader<S> {
    /// Bytes of the records that it remembers by default: 64 MiB.
    pub const BYTES: usize = 64 << 20;

    /// A reader that remembers nothing yet.
    pub fn new(store: S) -> Self {
        Self::remembering(store, Self::BYTES)
    }

    /// A reader that remembers records of at most this many bytes, as JSON. A longer log is read whole each time.
    pub fn remembering(store: S, bytes: usize) -> Self {
        Self {
            store: Arc::new(store),
            known: Arc::new(Mutex::new(Known { most: bytes, ..Known::default() })),
        }
    }

    /// What `read` makes of the records among the first `upto` entries of a thread's log.
    pub(super) async fn fold<T>(
        &self,
        thread: &ThreadId,
        upto: u64,
        read: impl FnOnce(&Journal) -> T,
    ) -> Result<T, Stopped> {
        let mut fold = self.lock().take(thread, upto).unwrap_or_default();
        if fold.upto < upto {
            let entries = self.store.read(thread, fold.upto, upto).await.map_err(|fault| retry(&fault))?;
            fold.extend(&entries, upto);
        }
        let made = read(&fold.journal);
        self.lock().keep(thread, fold);
        Ok(made)
    }

    /// The first messages of a thread: those of the first `upto` entries of its log.
    pub(super) async fn transcript(&self, thread: &ThreadId, upto: u64) -> Result<Prefix, Stopped> {
        self.fold(thread, upto, |journal| journal.transcript().prefix()).await
    }

    /// The entries of a thread's log from `from` on, before `upto`, with the agents of their events.
    ///
    /// # Errors
    /// [`Stopped::Over`] when the store failed.
    pub async fn entries(&self, thread: &ThreadId, from: u64, upto: u64) -> Result<Vec<LogEntry>, Stopped> {
        let mut entries = self.store.read(thread, from, upto).await.map_err(|fault| retry(&fault))?;
        for entry in &mut entries {
            if let (Some(hash), LogItem::Event(event)) = (&entry.agent, &mut entry.item) {
                event.open(self.agent(thread, hash).await?);
                entry.agent = None;
            }
        }
        Ok(entries)
    }

    /// Keeps an agent with its thread, and gives its name.
    pub(super) async fn keep(
        &self,
        thread: &ThreadId,
        agent: &Arc<PreparedAgent>,
    ) -> Result<BlobHash, Stopped> {
        if let Some(hash) = self.lock().agents.name(thread, agent) {
            return Ok(hash);
        }
        let text = serde_json::to_string(&**agent);
        let blob = Blob::new(text.map_err(|error| retry(&fault("agent_unwritable", error)))?);
        self.put(thread, &blob).await?;
        self.lock().agents.add(thread, blob.hash(), agent);
        Ok(blob.hash().clone())
    }

    /// The agent of that name.
    pub(super) async fn agent(
        &self,
        thread: &ThreadId,
        hash: &BlobHash,
    ) -> Result<Arc<PreparedAgent>, Stopped> {
        if let Some(agent) = self.lock().agents.get(thread, hash) {
            return Ok(agent);
        }
        let agent = serde_json::from_str(&self.get(thread, hash).await?);
        let agent = Arc::new(agent.map_err(|error| retry(&fault("agent_unreadable", error)))?);
        self.lock().agents.add(thread, hash, &agent);
        Ok(agent)
    }

    /// Keeps a text with its thread.
    pub(super) async fn put(&self, thread: &ThreadId, blob: &Blob) -> Result<(), Stopped> {
        self.store.put_blob(thread, blob).await.map_err(|fault| retry(&fault))
    }

    /// A text that was kept with its thread.
    pub(super) async fn get(&self, thread: &ThreadId, hash: &BlobHash) -> Result<Arc<str>, Stopped> {
        let text = self.store.get_blob(thread, hash).await.map_err(|fault| retry(&fault))?;
        let found = BlobHash::of(&text);
        if found != *hash {
            let text = format!("thread {thread} has {found} in the place of {hash}");
            return Err(retry(&fault("blob_damaged", text)));
        }
        Ok(text)
    }

    fn lock(&self) -> MutexGuard<'_, Known> {
        self.known.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Ends the attempt: the engine makes another one.
fn retry(fault: &Fault) -> Stopped {
    tracing::warn!(%fault, "the store of threads failed; the engine tries again");
    Stopped::Over
}

/// The agents that were kept or read last, the latest at the end.
#[derive(Debug, Default)]
struct Agents(VecDeque<(ThreadId, BlobHash, Arc<PreparedAgent>)>);

impl Agents {
    /// The name of an agent that is kept.
    fn name(&self, thread: &ThreadId, agent: &Arc<PreparedAgent>) -> Option<BlobHash> {
        let is_it = |(at, _, kept): &&(_, _, Arc<PreparedAgent>)| at == thread && Arc::ptr_eq(kept, agent);
        self.0.iter().rev().find(is_it).map(|(_, hash, _)| hash.clone())
    }

    fn get(&self, thread: &ThreadId, hash: &BlobHash) -> Option<Arc<PreparedAgent>> {
        let is_it = |(at, kept, _): &&(ThreadId, BlobHash, _)| (at, kept) == (thread, hash);
        self.0.iter().rev().find(is_it).map(|(_, _, agent)| Arc::clone(agent))
    }

    fn add(&mut self, thread: &ThreadId, hash: &BlobHash, agent: &Arc<PreparedAgent>) {
        if self.0.len() == AGENTS {
            self.0.pop_front();
        }
        self.0.push_back((thread.clone(), hash.clone(), Arc::clone(agent)));
    }
}

/// The records of the first entries of a log.
#[derive(Debug, Default)]
struct Fold {
    journal: Journal,
    upto: u64,
    bytes: usize,
    /// When it was used last.
    used: u64,
}

impl Fold {
    fn extend(&mut self, entries: &[LogEntry], upto: u64) {
        for entry in entries {
            if let LogItem::Record(record) = &entry.item {
                self.journal.write(record);
                self.bytes = self.bytes.saturating_add(json_bytes(record));
            }
        }
        self.upto = upto;
    }
}

/// What a worker remembers.
#[derive(Debug, Default)]
struct Known {
    agents: Agents,
    folds: BTreeMap<ThreadId, Fold>,
    bytes: usize,
    most: usize,
    uses: u64,
}

impl Known {
    /// Takes the fold of a thread out, if it has none but these entries. Who takes it puts it back.
    fn take(&mut self, thread: &ThreadId, upto: u64) -> Option<Fold> {
        self.folds.get(thread).filter(|fold| fold.upto <= upto)?;
        let fold = self.folds.remove(thread)?;
        self.bytes -= fold.bytes;
        Some(fold)
    }

    /// Remembers a fold, unless a longer one is known. Those that were not used for the longest time make room.
    fn keep(&mut self, thread: &ThreadId, mut fold: Fold) {
        if fold.upto == 0 || self.folds.get(thread).is_some_and(|known| known.upto >= fold.upto) {
            return;
        }
        self.uses += 1;
        fold.used = self.uses;
        fold.bytes = fold.bytes.max(LEAST);
        self.bytes += fold.bytes;
        if let Some(shorter) = self.folds.insert(thread.clone(), fold) {
            self.bytes -= shorter.bytes;
        }
        while self.bytes > self.most {
            let oldest =
                self.folds.iter().min_by_key(|(_, fold)| fold.used).map(|(thread, _)| thread.clone());
            let Some(gone) = oldest.and_then(|thread| self.folds.remove(&thread)) else { return };
            self.bytes -= gone.bytes;
        }
    }
}

#[cfg(test)]
mod tests {
    use std::sync::atomic::{AtomicU64, Ordering};

    use futures_util::FutureExt as _;
    use harness::core::machine::Record;
    use harness::core::message::Message;

    use super::*;

    /// Logs of one record of one message each entry, and how many entries were read.
    #[derive(Clone, Default)]
    struct Store(Arc<AtomicU64>);

    impl ThreadStore for Store {
        async fn read(&self, _: &ThreadId, from: u64, upto: u64) -> Result<Vec<LogEntry>, Fault> {
            self.0.fetch_add(upto - from, Ordering::Relaxed);
            let record = |seq| {
                let messages = vec![Arc::new(Message::user("x".repeat(2_000)))];
                let item = LogItem::Record(Box::new(Record::Messages { from: 0, messages }));
                LogEntry { seq, item, agent: None }
            };
            Ok((from..upto).map(record).collect())
        }

        async fn put_blob(&self, _: &ThreadId, _: &Blob) -> Result<(), Fault> {
            Ok(())
        }

        async fn get_blob(&self, _: &ThreadId, _: &BlobHash) -> Result<Arc<str>, Fault> {
            Ok("another text".into())
        }
    }

    /// Reads logs with a memory of `bytes`: the entries that each request read from the store.
    fn check(bytes: usize, asked: &[(&str, u64)], expected: &[u64]) {
        let store = Store::default();
        let reader = Reader::remembering(store.clone(), bytes);
        let reads = asked.iter().map(|(thread, upto)| {
            let before = store.0.load(Ordering::Relaxed);
            let log = reader.transcript(&(*thread).into(), *upto).now_or_never();
            assert_eq!(log.map(|log| log.map(|log| log.len() as u64)), Some(Ok(*upto)));
            store.0.load(Ordering::Relaxed) - before
        });
        assert_eq!(reads.collect::<Vec<_>>(), expected);
    }

    #[test]
    fn what_was_read_is_not_read_again() {
        check(1 << 20, &[("a", 3), ("a", 3), ("a", 5), ("b", 2), ("a", 6)], &[3, 0, 2, 2, 1]);
        // An earlier state is read anew, and the later one stays.
        check(1 << 20, &[("a", 5), ("a", 2), ("a", 6)], &[5, 2, 1]);
    }

    #[test]
    fn the_memory_is_bounded() {
        check(0, &[("a", 3), ("a", 4)], &[3, 4]);
        // There is room for two logs.
        check(5_000, &[("a", 1), ("b", 1), ("a", 1), ("c", 1), ("b", 1), ("c", 2)], &[1, 1, 0, 1, 1, 1]);
    }

    #[test]
    fn a_text_that_is_not_the_kept_one_is_refused() {
        let got = Reader::new(Store::default()).get(&"a".into(), &BlobHash::of("text")).now_or_never();
        assert_eq!(got, Some(Err(Stopped::Over)));
    }
}
