//! Appending: lines are encoded, collected in batches, written, and synced to stable storage.
//!
//! While one batch is being synced, appends of other threads are collected in the next one, and
//! share its write and its sync. A thread that finds no batch in progress writes the collected one
//! for all its members. Nothing is written during a sync, so a failed batch is truncated
//! completely, and no later line has been acknowledged.

use std::fs::File;
use std::io;
use std::sync::{Arc, OnceLock};

use harness_core::message::Message;
use harness_core::port::{Durability, Entry, EntryHead, SessionError};
use harness_core::{EntryId, SessionId};
use parking_lot::MutexGuard;
use serde::Serialize;
use tokio::sync::OwnedMutexGuard;

use super::compaction::WrittenCompaction;
use super::home::io_error;
use super::line::{Header, Written, WrittenHeader, WrittenNote, encode, placed, reason};
use super::options::SyncPolicy;
use super::read::Tail;
use super::session::{Shared, State};
use crate::chain::{Chain, numbered};
use crate::error::{Action, Error};
use crate::note::Note;
use crate::seal::{Seal, seal_from};
use crate::spine::{Spine, Step};

/// The largest buffer that is kept from one append to the next.
const KEPT_BUFFER: usize = 1 << 20;

/// How much is collected with [`SyncPolicy::Buffered`] before it is written.
const MOST_BUFFERED: usize = 64 * 1024;

/// The place of an append among those that wait for a thread. Given back once its entries are collected.
pub(super) type Turn = OwnedMutexGuard<()>;

/// Encoded lines that follow each other, not written yet.
#[derive(Debug, Default)]
pub(super) struct Batch {
    lines: Vec<u8>,
    /// Effects of its entries on the transcript.
    steps: Vec<Step>,
    /// The end that the file will have.
    tail: Tail,
    /// The first line, when the batch begins the file.
    header: Option<Header>,
    /// Whether an append requires stable storage.
    sync: bool,
    /// A first part of it that was acknowledged, unwritten as it is ([`SyncPolicy::Buffered`]).
    buffered: Mark,
    /// Outcome for waiting threads; created by the first one.
    outcome: Option<Arc<OnceLock<Outcome>>>,
}

/// A place in a batch.
#[derive(Clone, Debug, Default)]
struct Mark {
    bytes: usize,
    steps: usize,
    tail: Tail,
    header: Option<Header>,
    sync: bool,
}

/// Outcome of a batch.
#[derive(Debug)]
enum Outcome {
    Stored,
    Failed(SessionError),
    /// Its predecessor is missing: its appends are encoded again.
    Void,
}

impl Batch {
    fn mark(&self) -> Mark {
        Mark {
            bytes: self.lines.len(),
            steps: self.steps.len(),
            tail: self.tail.clone(),
            header: self.header.clone(),
            sync: self.sync,
        }
    }

    fn back_to(&mut self, mark: Mark) {
        self.lines.truncate(mark.bytes);
        self.steps.truncate(mark.steps);
        self.tail = mark.tail;
        self.header = mark.header;
        self.sync = mark.sync;
    }

    fn report(&self, outcome: impl FnOnce() -> Outcome) {
        if let Some(waiting) = &self.outcome {
            waiting.get_or_init(outcome);
        }
    }
}

impl Shared {
    /// Appends entries, perhaps with those of other threads.
    pub(super) fn append(
        &self,
        head: &EntryHead,
        entries: &[Entry<'_>],
        asked: Durability,
        turn: Option<Turn>,
    ) -> Result<(), SessionError> {
        // A compaction counts messages of what is stored: nothing may be collected or on its way before it.
        let state = if is_alone(entries) { self.at_rest()? } else { self.state() };
        self.append_to(state, head, entries, asked, turn)
    }

    /// Appends entries when that needs no wait: for stable storage, for others, or for more of the disk than
    /// one write to an open file.
    pub(super) fn append_at_once(
        &self,
        head: &EntryHead,
        entries: &[Entry<'_>],
        asked: Durability,
    ) -> Option<Result<(), SessionError>> {
        if self.options.sync.wants(asked) || self.home.rows.is_some() {
            return None;
        }
        // Whoever waits for a thread comes first.
        let _turn = self.queue.try_lock().ok()?;
        let mut state = self.state.try_lock()?;
        let rests = state.on_its_way.is_none() && (state.next.is_none() || !is_alone(entries));
        if !rests || !self.is_as_left(&state) {
            return None;
        }
        state.checked = true;
        Some(self.append_to(state, head, entries, asked, None))
    }

    fn append_to(
        &self,
        mut state: MutexGuard<'_, State>,
        head: &EntryHead,
        entries: &[Entry<'_>],
        asked: Durability,
        mut turn: Option<Turn>,
    ) -> Result<(), SessionError> {
        let policy = self.options.sync;
        let write = policy != SyncPolicy::Buffered
            || asked == Durability::Sync
            || entries.iter().any(|entry| matches!(entry, Entry::RunEnd { .. }));
        let (sync, alone) = (policy.wants(asked), is_alone(entries));
        if entries.is_empty() && state.tail.is_none() {
            // Nothing was appended before that could be brought to stable storage.
            return Ok(());
        }
        loop {
            if state.tail.is_none() {
                self.scan(&mut state)?;
            }
            let mut batch = state.next.take().unwrap_or_else(|| state.new_batch());
            let before = batch.mark();
            batch.sync |= sync;
            if let Err(error) = self.encode(&state, &mut batch, head, entries) {
                batch.back_to(before);
                state.restore(batch);
                return Err(error.into());
            }
            if !write && !alone && batch.lines.len() < MOST_BUFFERED {
                batch.buffered = batch.mark();
                state.next = Some(batch);
                return Ok(());
            }
            if state.on_its_way.is_none() {
                drop(turn);
                return Ok(self.store(state, batch)?);
            }
            let outcome = Arc::clone(batch.outcome.get_or_insert_default());
            state.next = Some(batch);
            drop(turn.take());
            self.options.disk.waits();
            loop {
                self.free.wait(&mut state);
                match outcome.get() {
                    Some(Outcome::Stored) => return Ok(()),
                    Some(Outcome::Failed(error)) => return Err(error.clone()),
                    Some(Outcome::Void) => break,
                    None => {}
                }
                if state.on_its_way.is_none()
                    && let Some(batch) = state.next.take()
                {
                    return Ok(self.store(state, batch)?);
                }
            }
        }
    }

    /// The state once nothing is on its way and nothing is collected.
    pub(super) fn at_rest(&self) -> Result<MutexGuard<'_, State>, Error> {
        let mut state = self.state();
        loop {
            while state.on_its_way.is_some() {
                self.free.wait(&mut state);
            }
            let Some(batch) = state.next.take() else { return Ok(state) };
            let acknowledged = batch.buffered.bytes > 0;
            let stored = self.store(state, batch);
            // Those who wait for their entries learn it themselves.
            if acknowledged {
                stored?;
            }
            state = self.state();
        }
    }

    /// Writes a batch while nothing else is in progress, and reports its outcome to its members.
    fn store<'s>(&'s self, mut state: MutexGuard<'s, State>, mut batch: Batch) -> Result<(), Error> {
        let mut stored = match &self.home.rows {
            Some(_) if batch.lines.is_empty() && !batch.sync => Ok(()),
            Some(rows) => {
                let before = state.tail.as_ref().map_or(0, |tail| tail.lines);
                let synchronous = self.options.sync.synchronous(batch.sync);
                self.keep_lock(&mut state).and_then(|()| rows.append(&batch.lines, before, synchronous))
            }
            None => self.put(&mut state, &batch.lines),
        };
        if stored.is_ok() && batch.sync && self.home.rows.is_none() {
            (state, stored) = self.sync(state, &batch.tail);
        }
        match stored {
            Ok(()) => {
                state.end_of(&mut batch);
                batch.report(|| Outcome::Stored);
                self.free.notify_all();
                Ok(())
            }
            Err(error) => {
                state.void();
                batch.report(|| Outcome::Failed(SessionError::from(&error)));
                if batch.buffered.bytes > 0 {
                    let kept = batch.buffered.clone();
                    batch.back_to(kept);
                    state.next = Some(batch);
                }
                self.free.notify_all();
                Err(error)
            }
        }
    }

    /// Writes encoded lines behind the last one that counts.
    fn put(&self, state: &mut State, lines: &[u8]) -> Result<(), Error> {
        if lines.is_empty() {
            return Ok(());
        }
        self.heal(state)?;
        state.dirty = true;
        let Some(file) = &state.file else { return Ok(()) };
        let written = self.options.disk.write(file, lines);
        written.map_err(|source| io_error(Action::Write, &self.home.path, source))
    }

    /// Brings the file to stable storage up to `end`, while others may collect the next batch.
    fn sync<'s>(
        &'s self,
        mut state: MutexGuard<'s, State>,
        end: &Tail,
    ) -> (MutexGuard<'s, State>, Result<(), Error>) {
        let Some(file) = state.file.clone() else { return (state, Ok(())) };
        let acknowledged = state.tail.as_ref().map_or(0, |tail| tail.length);
        let again = std::mem::replace(&mut state.suspect, true).then_some(state.synced.unwrap_or(0));
        let listed = state.listed;
        state.on_its_way = Some(end.clone());
        drop(state);
        let synced = self.reach_the_disk(&file, again.map(|from| (from, acknowledged)), listed);
        let mut state = self.state();
        state.on_its_way = None;
        if synced.is_ok() {
            state.suspect = false;
            state.listed = true;
            state.synced = Some(end.length);
        }
        (state, synced.map_err(|source| io_error(Action::Sync, &self.home.path, source)))
    }

    fn reach_the_disk(&self, file: &File, again: Option<(u64, u64)>, listed: bool) -> io::Result<()> {
        let disk = &self.options.disk;
        if let Some((from, to)) = again {
            disk.write_again(&self.home.real, from, to)?;
        }
        disk.sync(file)?;
        match self.home.real.parent().filter(|_| !listed) {
            Some(folder) => disk.sync_folder(folder),
            None => Ok(()),
        }
    }

    /// Adds entries to a batch; nothing in `batch` counts when that fails.
    fn encode(
        &self,
        state: &State,
        batch: &mut Batch,
        head: &EntryHead,
        entries: &[Entry<'_>],
    ) -> Result<(), Error> {
        let Batch { lines, steps, tail, header, .. } = batch;
        if entries.is_empty() {
            return Ok(());
        }
        let before = lines.len();
        self.begin(tail, header, lines, head)?;
        let shortens = entries.iter().any(|entry| matches!(entry, Entry::Compaction { .. }));
        let mut spine = if shortens { state.spine.clone() } else { Spine::default() };
        for (place, entry) in (state.chain.len()..).zip(entries) {
            if let Entry::Message(message) | Entry::CallFinished { result: message, .. } = entry {
                self.check(message)?;
            }
            tail.made = tail.made.saturating_add(1);
            let id = numbered(tail.made);
            let compaction = self.name(entry, &spine, &state.chain)?;
            let compaction = compaction.as_ref();
            let written = Written { id: &id, parent: tail.last.as_ref(), head, entry, compaction };
            self.line(&written, tail, lines)?;
            let step = Step::of(entry);
            if shortens {
                spine.advance(place, &step);
            }
            steps.push(step);
            tail.grow();
            tail.last = Some(id);
        }
        self.end(tail, lines.len().saturating_sub(before))
    }

    /// Writes what comes before the first entry.
    fn begin(
        &self,
        tail: &mut Tail,
        header: &mut Option<Header>,
        lines: &mut Vec<u8>,
        head: &EntryHead,
    ) -> Result<(), Error> {
        if tail.open {
            lines.push(b'\n');
        }
        if !tail.used {
            let first = self.first_line(head);
            if tail.seal.is_none() {
                self.begin_sealed(tail, lines)?;
            }
            self.line(&WrittenHeader::from(&first), tail, lines)?;
            tail.grow();
            tail.used = true;
            *header = Some(first);
        }
        Ok(())
    }

    /// Writes the line that comes before all others of an encrypted session.
    fn begin_sealed(&self, tail: &mut Tail, lines: &mut Vec<u8>) -> Result<(), Error> {
        let unstorable = |reason| self.unstorable(reason);
        if let Some(key) = &self.options.key {
            let seal = Seal::new(key).map_err(unstorable)?;
            lines.extend_from_slice(seal.first_line().map_err(unstorable)?.as_bytes());
            lines.push(b'\n');
            tail.grow();
            tail.seal = Some(Arc::new(seal));
        }
        Ok(())
    }

    /// The end of the file behind so many bytes more.
    fn end(&self, tail: &mut Tail, bytes: usize) -> Result<(), Error> {
        tail.length = tail.length.saturating_add(bytes as u64);
        tail.open = false;
        tail.torn = 0;
        let limit = self.options.limits.file_bytes;
        if tail.length > limit {
            return Err(Error::TooLarge { path: self.home.path.clone(), bytes: tail.length, limit });
        }
        Ok(())
    }

    /// Appends a single note and returns its id.
    pub(super) fn append_note(&self, head: &EntryHead, note: &Note) -> Result<EntryId, Error> {
        let mut state = self.at_rest()?;
        if state.tail.is_none() {
            self.scan(&mut state)?;
        }
        if let Some(target) = note.target()
            && state.chain.find(target.as_str()).is_none()
        {
            return Err(self.unknown(target));
        }
        let mut batch = state.new_batch();
        batch.sync = self.options.sync.wants(Durability::Flush);
        match self.encode_note(&mut batch, head, note) {
            Ok(id) => self.store(state, batch).map(|()| id),
            Err(error) => {
                state.keep_room(batch.lines, batch.steps);
                Err(error)
            }
        }
    }

    fn encode_note(&self, batch: &mut Batch, head: &EntryHead, note: &Note) -> Result<EntryId, Error> {
        let Batch { lines, steps, tail, header, .. } = batch;
        let before = lines.len();
        self.begin(tail, header, lines, head)?;
        tail.made = tail.made.saturating_add(1);
        let id = numbered(tail.made);
        self.line(&WrittenNote { id: &id, parent: tail.last.as_ref(), head, note }, tail, lines)?;
        steps.push(Step::of_note(note));
        tail.grow();
        tail.last = Some(id.clone());
        self.end(tail, lines.len().saturating_sub(before))?;
        Ok(id)
    }

    pub(super) fn unknown(&self, id: &EntryId) -> Error {
        Error::UnknownEntry { path: self.home.path.clone(), id: id.clone() }
    }

    /// Names the messages that a compaction keeps.
    fn name(
        &self,
        entry: &Entry<'_>,
        spine: &Spine,
        chain: &Chain,
    ) -> Result<Option<WrittenCompaction>, Error> {
        let Entry::Compaction { note, plan, permanent } = entry else { return Ok(None) };
        let named = WrittenCompaction::new(note, plan, *permanent, spine, chain);
        named.map(Some).map_err(|reason| self.unstorable(reason))
    }

    /// Checks that a message can be read back.
    pub(super) fn check(&self, message: &Message) -> Result<(), Error> {
        placed(message).map_err(|reason| self.unstorable(reason))
    }

    /// Writes one line behind `tail`, sealed as the lines before it are.
    pub(super) fn line<T: Serialize>(
        &self,
        line: &T,
        tail: &Tail,
        buffer: &mut Vec<u8>,
    ) -> Result<(), Error> {
        let start = buffer.len();
        let bytes = encode(line, buffer).map_err(|error| self.unstorable(reason(&error)))? as u64;
        let limit = self.options.limits.line_bytes;
        if bytes > limit {
            let line = tail.lines.saturating_add(1);
            return Err(Error::LineTooLong { path: self.home.path.clone(), line, bytes, limit });
        }
        let sealed = seal_from(start, tail.seal.as_deref(), tail.sealed.saturating_add(1), buffer);
        sealed.map_err(|reason| self.unstorable(reason))
    }

    pub(super) fn first_line(&self, head: &EntryHead) -> Header {
        let id = self
            .options
            .id
            .clone()
            .unwrap_or_else(|| SessionId::from(format!("{}-{:x}", self.home.stem, head.at.0)));
        let mut header = Header::new(id);
        header.created_at = head.at.iso();
        header.program = Some(self.options.program.clone());
        header.descriptor = head.descriptor.as_deref().map(str::to_owned);
        header.meta.clone_from(&self.options.meta);
        header
    }

    pub(super) fn unstorable(&self, reason: String) -> Error {
        Error::Unstorable { path: self.home.path.clone(), reason }
    }
}

fn is_alone(entries: &[Entry<'_>]) -> bool {
    entries.iter().any(|entry| matches!(entry, Entry::Compaction { .. }))
}

impl State {
    /// An empty batch behind all that was written or is on its way.
    fn new_batch(&mut self) -> Batch {
        let (lines, steps) = (std::mem::take(&mut self.buffer), std::mem::take(&mut self.steps));
        let tail = self.on_its_way.clone().or_else(|| self.tail.clone()).unwrap_or_default();
        Batch { lines, steps, tail, ..Batch::default() }
    }

    /// Continues collecting a batch, unless it is empty.
    fn restore(&mut self, batch: Batch) {
        if batch.lines.is_empty() && batch.outcome.is_none() {
            self.keep_room(batch.lines, batch.steps);
        } else {
            self.next = Some(batch);
        }
    }

    fn keep_room(&mut self, mut lines: Vec<u8>, mut steps: Vec<Step>) {
        if lines.capacity() <= KEPT_BUFFER {
            lines.clear();
            steps.clear();
            (self.buffer, self.steps) = (lines, steps);
        }
    }

    /// The batch is stored: its end is the file's.
    fn end_of(&mut self, batch: &mut Batch) {
        if !batch.lines.is_empty() {
            self.header = batch.header.take().or(self.header.take());
            self.tail = Some(std::mem::take(&mut batch.tail));
            self.dirty = false;
        }
        for step in &batch.steps {
            let parent = self.chain.at(std::mem::take(&mut self.end));
            let place = self.chain.grow(parent);
            self.spine.advance(place, step);
        }
        self.keep_room(std::mem::take(&mut batch.lines), std::mem::take(&mut batch.steps));
    }

    /// Discards collected appends whose predecessor is missing, so that they are collected again.
    pub(super) fn void(&mut self) {
        if let Some(next) = self.next.take() {
            next.report(|| Outcome::Void);
        }
    }
}
