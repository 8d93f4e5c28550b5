//! Events of a thread of an engine, as a front end with a relay reads them.

use std::collections::VecDeque;
use std::sync::Arc;

use harness::core::ThreadId;
use harness::core::transcript::Transcript;
use harness::runtime::{Report, ThreadEvent};

use super::engine::SimClient;
use super::feed::ThreadFeed;
use crate::durable::deltas::{Next, StreamDeltas};
use crate::durable::log::{LogEntry, LogItem, fold};
use crate::durable::shown::{EVENT, ended, report, shown};

/// The events of a thread from its first one on, with the deltas of answers that come while it is read. Made by
/// [`SimClient::events`].
#[derive(Debug)]
pub struct SimEvents {
    client: SimClient,
    thread: ThreadId,
    /// Entries of the log that were read.
    read: u64,
    deltas: StreamDeltas<ThreadFeed>,
    ready: VecDeque<ThreadEvent>,
}

impl SimEvents {
    pub(super) fn new(client: SimClient, thread: &ThreadId, feed: ThreadFeed) -> Self {
        let (thread, deltas) = (thread.clone(), StreamDeltas::new(feed));
        Self { client, thread, read: 0, deltas, ready: VecDeque::new() }
    }

    /// The next event that is available without waiting.
    pub fn try_next(&mut self) -> Option<ThreadEvent> {
        if self.ready.is_empty() {
            for entry in self.client.entries(&self.thread, self.read) {
                self.see(&entry);
                self.take_deltas();
            }
            self.take_deltas();
        }
        self.ready.pop_front()
    }

    fn see(&mut self, entry: &LogEntry) {
        self.read = entry.seq + 1;
        let mut rest = Vec::new();
        if let LogItem::Event(event) = &entry.item {
            rest = self.deltas.see(entry.seq, &event.kind);
        }
        for (number, event) in shown(entry, self.report(entry)) {
            if number == EVENT {
                self.ready.extend(rest.drain(..));
            }
            self.ready.push_back(event);
        }
    }

    /// The report of the run that ends with an entry.
    fn report(&self, entry: &LogEntry) -> Option<Report> {
        let (run, end) = ended(entry)?;
        let log = self.client.entries(&self.thread, 0);
        let journal = fold(log.iter().filter(|before| before.seq < entry.seq));
        let transcript = journal.messages().cloned().collect::<Transcript>().prefix();
        let from = transcript.len();
        Some(report(run.clone(), Arc::clone(end), transcript, from))
    }

    fn take_deltas(&mut self) {
        loop {
            match self.deltas.next(self.read) {
                Next::Wait | Next::ReadLog => return,
                Next::LookBack(from) => {
                    let entries = self.client.entries(&self.thread, from);
                    let before = entries.iter().filter(|entry| entry.seq < self.read);
                    self.deltas.look_back(before.filter_map(|entry| match &entry.item {
                        LogItem::Event(event) => Some((entry.seq, &event.kind)),
                        LogItem::Record(_) => None,
                    }));
                }
                Next::Show(events) => self.ready.extend(events),
            }
        }
    }
}
