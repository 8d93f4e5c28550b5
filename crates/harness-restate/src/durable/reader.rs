//! Reads of threads by a worker, and its cache.

use std::num::NonZeroUsize;
use std::ops::Range;
use std::sync::Arc;

use harness::core::machine::Journal;
use harness::core::port::PreparedAgent;
use harness::core::transcript::Prefix;
use harness::core::{Fault, Json, ThreadId};
use lru::LruCache;
use parking_lot::Mutex;

use super::blob::{Blob, BlobHash};
use super::context::Stopped;
use super::host::{ThreadStore, fault};
use super::log::{LogEntry, LogItem};
use super::sealed::HasAgent as _;

/// Bytes that a fold counts at least.
const LEAST: usize = 1 << 10;

/// Agents that are remembered, at most.
const AGENTS: NonZeroUsize = NonZeroUsize::MIN.saturating_add(255);

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
        Self { store: Arc::new(store), known: Arc::new(Mutex::new(Known::new(bytes))) }
    }

    /// Result of `read` over the records of a conversation: those among these entries of a thread's log.
    pub(super) async fn fold<T>(
        &self,
        thread: &ThreadId,
        entries: Range<u64>,
        read: impl FnOnce(&Journal) -> T,
    ) -> Result<T, Stopped> {
        let mut fold = self.known.lock().take(thread, &entries).unwrap_or_else(|| Fold::new(entries.start));
        if fold.upto < entries.end {
            let new = self.store.read(thread, fold.upto, entries.end).await;
            fold.extend(&new.map_err(|fault| retry(&fault))?, entries.end);
        }
        let made = read(&fold.journal);
        self.known.lock().keep(thread, fold);
        Ok(made)
    }

    /// The messages of a conversation: those of these entries of a thread's log.
    pub(crate) async fn transcript(&self, thread: &ThreadId, entries: Range<u64>) -> Result<Prefix, Stopped> {
        self.fold(thread, entries, |journal| journal.transcript().prefix()).await
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

    /// Keeps an agent with its thread, and gives its name. The conversation is that from log entry `first` on: an agent of
    /// an earlier one is forgotten.
    pub(super) async fn keep(
        &self,
        thread: &ThreadId,
        first: u64,
        agent: &Arc<PreparedAgent>,
    ) -> Result<BlobHash, Stopped> {
        if let Some(hash) = self.known.lock().name(thread, first, agent) {
            return Ok(hash);
        }
        let text = serde_json::to_string(&**agent);
        let blob = Blob::new(text.map_err(|error| retry(&fault("agent_unwritable", error)))?);
        self.put(thread, &blob).await?;
        let known = KnownAgent { agent: Arc::clone(agent), kept_in: Some(first) };
        self.known.lock().agents.put((thread.clone(), blob.hash().clone()), known);
        Ok(blob.hash().clone())
    }

    /// The agent of that name.
    pub(super) async fn agent(
        &self,
        thread: &ThreadId,
        hash: &BlobHash,
    ) -> Result<Arc<PreparedAgent>, Stopped> {
        let key = (thread.clone(), hash.clone());
        if let Some(known) = self.known.lock().agents.get(&key) {
            return Ok(Arc::clone(&known.agent));
        }
        let agent = serde_json::from_str(&self.get(thread, hash).await?);
        let agent = Arc::new(agent.map_err(|error| retry(&fault("agent_unreadable", error)))?);
        self.known.lock().agents.put(key, KnownAgent { agent: Arc::clone(&agent), kept_in: None });
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

    /// Removes a text of a thread.
    pub(super) async fn remove(&self, thread: &ThreadId, hash: &BlobHash) -> Result<(), Stopped> {
        self.store.remove_blob(thread, hash).await.map_err(|fault| retry(&fault))
    }

    /// Removes the first entries of a thread's log, up to `before`, and all its texts, from the store and from memory.
    ///
    /// # Errors
    /// [`Stopped::Over`] when the store failed.
    pub async fn forget(&self, thread: &ThreadId, before: u64) -> Result<(), Stopped> {
        self.store.forget(thread, before).await.map_err(|fault| retry(&fault))?;
        self.known.lock().forget(thread, before);
        Ok(())
    }
}

/// Ends the attempt: the engine starts a new one.
fn retry(fault: &Fault) -> Stopped {
    tracing::warn!(%fault, "the store of threads failed; the engine tries again");
    Stopped::Over
}

/// The records of entries of a log.
#[derive(Debug)]
struct Fold {
    journal: Journal,
    first: u64,
    upto: u64,
    bytes: usize,
}

/// An agent, and the conversation with which it is kept for certain.
#[derive(Debug)]
struct KnownAgent {
    agent: Arc<PreparedAgent>,
    kept_in: Option<u64>,
}

impl Fold {
    fn new(first: u64) -> Self {
        Self { journal: Journal::default(), first, upto: first, bytes: 0 }
    }

    fn extend(&mut self, entries: &[LogEntry], upto: u64) {
        for entry in entries {
            if let LogItem::Record(record) = &entry.item {
                self.journal.write(record);
                self.bytes = self.bytes.saturating_add(Json::size_of(record));
            }
        }
        self.upto = upto;
    }
}

/// Cache of a worker.
#[derive(Debug)]
struct Known {
    agents: LruCache<(ThreadId, BlobHash), KnownAgent>,
    folds: LruCache<ThreadId, Fold>,
    /// Bytes of the folds.
    bytes: usize,
    most: usize,
}

impl Known {
    fn new(most: usize) -> Self {
        Self { agents: LruCache::sparse(AGENTS), folds: LruCache::unbounded(), bytes: 0, most }
    }

    /// The name of an agent that is kept with a conversation.
    fn name(&self, thread: &ThreadId, first: u64, agent: &Arc<PreparedAgent>) -> Option<BlobHash> {
        let is_kept = |known: &KnownAgent| known.kept_in == Some(first) && Arc::ptr_eq(&known.agent, agent);
        let found = self.agents.iter().find(|((at, _), known)| at == thread && is_kept(known));
        found.map(|((_, hash), _)| hash.clone())
    }

    /// Removes the fold of a conversation, if it has only these entries. The caller adds it again.
    fn take(&mut self, thread: &ThreadId, entries: &Range<u64>) -> Option<Fold> {
        let fits = |fold: &&Fold| fold.first == entries.start && fold.upto <= entries.end;
        self.folds.peek(thread).filter(fits)?;
        let fold = self.folds.pop(thread)?;
        self.bytes -= fold.bytes;
        Some(fold)
    }

    /// Lets go of the conversations of a thread that started before a log entry.
    fn forget(&mut self, thread: &ThreadId, before: u64) {
        if self.folds.peek(thread).is_some_and(|fold| fold.first < before)
            && let Some(fold) = self.folds.pop(thread)
        {
            self.bytes -= fold.bytes;
        }
        let of_thread = self.agents.iter().map(|(key, _)| key).filter(|(at, _)| at == thread);
        for key in of_thread.cloned().collect::<Vec<_>>() {
            self.agents.pop(&key);
        }
    }

    /// Remembers a fold, unless that of a later conversation or a longer one is known.
    fn keep(&mut self, thread: &ThreadId, mut fold: Fold) {
        let known = self.folds.peek(thread).map(|known| (known.first, known.upto));
        if fold.upto == fold.first || known.is_some_and(|known| known >= (fold.first, fold.upto)) {
            return;
        }
        fold.bytes = fold.bytes.max(LEAST);
        self.bytes += fold.bytes;
        if let Some(shorter) = self.folds.put(thread.clone(), fold) {
            self.bytes -= shorter.bytes;
        }
        while self.bytes > self.most {
            let Some((_, oldest)) = self.folds.pop_lru() else { return };
            self.bytes -= oldest.bytes;
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

    /// Logs of one record of one message each entry, and how many entries were read, and texts written.
    #[derive(Clone, Default)]
    struct Store(Arc<AtomicU64>, Arc<AtomicU64>);

    impl ThreadStore for Store {
        async fn read(&self, _: &ThreadId, from: u64, upto: u64) -> Result<Vec<LogEntry>, Fault> {
            self.0.fetch_add(upto - from, Ordering::Relaxed);
            let record = |seq| {
                let messages = vec![Arc::new(Message::user("x".repeat(2_000)))];
                let item = LogItem::Record(Box::new(Record::Messages { from: 0, messages }));
                LogEntry::new(seq, item)
            };
            Ok((from..upto).map(record).collect())
        }

        async fn put_blob(&self, _: &ThreadId, _: &Blob) -> Result<(), Fault> {
            self.1.fetch_add(1, Ordering::Relaxed);
            Ok(())
        }

        async fn get_blob(&self, _: &ThreadId, _: &BlobHash) -> Result<Arc<str>, Fault> {
            Ok("another text".into())
        }

        async fn remove_blob(&self, _: &ThreadId, _: &BlobHash) -> Result<(), Fault> {
            Ok(())
        }

        async fn forget(&self, _: &ThreadId, _: u64) -> Result<(), Fault> {
            Ok(())
        }
    }

    /// Reads logs with a memory of `bytes`: the entries that each request read from the store.
    fn check(bytes: usize, asked: &[(&str, Range<u64>)], expected: &[u64]) {
        let store = Store::default();
        let reader = Reader::remembering(store.clone(), bytes);
        let reads = asked.iter().map(|(thread, entries)| {
            let before = store.0.load(Ordering::Relaxed);
            let log = reader.transcript(&(*thread).into(), entries.clone()).now_or_never();
            let messages = log.map(|log| log.map(|log| log.len() as u64));
            assert_eq!(messages, Some(Ok(entries.end - entries.start)));
            store.0.load(Ordering::Relaxed) - before
        });
        assert_eq!(reads.collect::<Vec<_>>(), expected);
    }

    #[test]
    fn what_was_read_is_not_read_again() {
        check(1 << 20, &[("a", 0..3), ("a", 0..3), ("a", 0..5), ("b", 0..2), ("a", 0..6)], &[3, 0, 2, 2, 1]);
        // An earlier state is read anew, and the later one stays.
        check(1 << 20, &[("a", 0..5), ("a", 0..2), ("a", 0..6)], &[5, 2, 1]);
    }

    #[test]
    fn a_later_conversation_has_nothing_of_a_forgotten_one() {
        check(1 << 20, &[("a", 0..5), ("a", 5..5), ("a", 5..7), ("a", 0..5), ("a", 5..8)], &[5, 0, 2, 5, 1]);
    }

    #[test]
    fn an_agent_is_written_once_for_each_conversation() {
        let store = Store::default();
        let (reader, thread) = (Reader::new(store.clone()), ThreadId::from("a"));
        let agent = Arc::new(PreparedAgent::new("main", "Sell tea.", []));
        let keep = |first| assert!(reader.keep(&thread, first, &agent).now_or_never().unwrap().is_ok());
        [0, 0, 5, 5].into_iter().for_each(keep);
        assert_eq!(store.1.load(Ordering::Relaxed), 2);
        assert_eq!(reader.forget(&thread, 9).now_or_never(), Some(Ok(())));
        keep(5);
        assert_eq!(store.1.load(Ordering::Relaxed), 3);
    }

    #[test]
    fn the_memory_is_bounded() {
        check(0, &[("a", 0..3), ("a", 0..4)], &[3, 4]);
        // There is room for two logs.
        let asked = [("a", 0..1), ("b", 0..1), ("a", 0..1), ("c", 0..1), ("b", 0..1), ("c", 0..2)];
        check(5_000, &asked, &[1, 1, 0, 1, 1, 1]);
    }

    #[test]
    fn a_text_that_is_not_the_kept_one_is_refused() {
        let got = Reader::new(Store::default()).get(&"a".into(), &BlobHash::of("text")).now_or_never();
        assert_eq!(got, Some(Err(Stopped::Over)));
    }
}
