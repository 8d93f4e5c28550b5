//! The log of a thread: records and events, numbered without gaps.

use std::collections::BTreeMap;

use harness::core::EntryId;
use harness::core::event::Event;
use harness::core::machine::{Journal, Record};
use serde::{Deserialize, Serialize};

use super::blob::BlobHash;
use super::sealed::HasAgent as _;

/// Entries of one page: a page is one value of the engine's state.
const PAGE: u64 = 16;

/// An entry of the log.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct LogEntry {
    /// Its number in the thread, from 0, without gaps.
    pub seq: u64,
    /// Record or event. An agent in it is sealed: it has its id alone.
    pub item: LogItem,
    /// The name of its agent in the store of the thread.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub agent: Option<BlobHash>,
    /// Messages of the queue that a run begins with, at the event of its start.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub began: Vec<EntryId>,
}

impl LogEntry {
    /// An entry with this content alone.
    pub fn new(seq: u64, item: LogItem) -> Self {
        Self { seq, item, agent: None, began: Vec::new() }
    }

    /// The entry with the text that its agent has in the store. [`Reader::entries`](super::Reader::entries) does this.
    ///
    /// # Errors
    /// When the text is not an agent.
    pub fn opened(mut self, text: &str) -> Result<Self, serde_json::Error> {
        if let LogItem::Event(event) = &mut self.item {
            event.open(serde_json::from_str(text)?);
            self.agent = None;
        }
        Ok(self)
    }
}

/// The content of an entry.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub enum LogItem {
    /// A record: the transcript is made of these.
    Record(Box<Record>),
    /// An event of a run.
    Event(Box<Event>),
}

/// Reason why the log refuses entries: a driver that is not the owner of the thread.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("entry {given} was given to a log of {len} entries: entries {len} to {given} are missing")]
pub struct LogRefusal {
    /// The first entry that was given.
    pub given: u64,
    /// Entries of the log.
    pub len: u64,
}

/// The log of one thread, as the log service keeps it.
#[derive(Clone, Debug, Default)]
pub struct LogPages {
    pages: BTreeMap<u64, Vec<LogEntry>>,
    len: u64,
}

impl LogPages {
    /// A log of `len` entries of which only the last page is at hand: enough to append to it.
    pub fn resume(len: u64, last: Vec<LogEntry>) -> Self {
        let pages =
            if last.is_empty() { BTreeMap::new() } else { BTreeMap::from([(Self::page_of(len), last)]) };
        Self { pages, len }
    }

    /// The page of an entry, from 0.
    pub fn page_of(seq: u64) -> u64 {
        seq / PAGE
    }

    /// The pages at hand, with their numbers.
    pub fn pages(&self) -> impl Iterator<Item = (u64, &[LogEntry])> {
        self.pages.iter().map(|(page, entries)| (*page, entries.as_slice()))
    }

    /// Entries of the log, forgotten ones included.
    pub fn len(&self) -> u64 {
        self.len
    }

    /// Whether it never had entries.
    pub fn is_empty(&self) -> bool {
        self.len == 0
    }

    /// Appends entries, and returns the entries of the log then. Entries that it has are ignored: only an attempt that is
    /// over gives them again, and they are equal.
    ///
    /// # Errors
    /// A gap.
    pub fn append(&mut self, entries: Vec<LogEntry>) -> Result<u64, LogRefusal> {
        for entry in entries {
            if entry.seq > self.len {
                return Err(LogRefusal { given: entry.seq, len: self.len });
            }
            if entry.seq == self.len {
                self.pages.entry(Self::page_of(entry.seq)).or_default().push(entry);
                self.len += 1;
            }
        }
        Ok(self.len)
    }

    /// Removes the entries before `before`. Later ones keep their numbers.
    pub fn forget(&mut self, before: u64) {
        self.pages.retain(|_, page| {
            page.retain(|entry| entry.seq >= before);
            !page.is_empty()
        });
    }

    /// The entries from `from` up to `upto`, as far as there are any.
    pub fn read(&self, from: u64, upto: u64) -> impl Iterator<Item = &LogEntry> {
        let pages = self.pages.range(Self::page_of(from)..).flat_map(|(_, page)| page);
        pages.skip_while(move |entry| entry.seq < from).take_while(move |entry| entry.seq < upto)
    }
}

/// The records of entries, and the transcript that they make.
pub fn fold<'a>(entries: impl IntoIterator<Item = &'a LogEntry>) -> Journal {
    let mut journal = Journal::default();
    for entry in entries {
        if let LogItem::Record(record) = &entry.item {
            journal.write(record);
        }
    }
    journal
}
