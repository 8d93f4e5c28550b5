//! Readers of an event log.

use std::sync::Arc;

use harness_core::port::{DeltaPart, ProposedCall};

use super::event_log::{LogSegment, ThreadEvent};
use crate::thread::Shared;

/// Where a reader begins.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum StartAt {
    /// With what happens from now on.
    #[default]
    Live,
    /// With the beginning of the run at hand, or, while the thread is idle, of the last one.
    Turn,
    /// The oldest buffered event; earlier ones count as missed.
    Replay,
    /// The event of this number, past or future; dropped ones count as missed.
    At(u64),
}

/// Item of a [`Stream`].
#[derive(Clone, Debug)]
#[non_exhaustive]
pub enum StreamItem {
    /// Something happened.
    Event {
        /// Numbers what happens in a thread, over all of its runs, from 0.
        seq: u64,
        /// The event.
        event: ThreadEvent,
    },
    /// Something happened that has no number, because no log keeps it: deltas and progress of tools of a thread on a durable
    /// engine. Best effort; the next message has the whole text.
    Transient {
        /// The event.
        event: ThreadEvent,
    },
    /// The reader was too slow or too late: this many events were dropped.
    Lagged {
        /// How much was missed.
        missed: u64,
    },
    /// The calls that wait for a decision changed, including those of sub-agents: in the streams of a
    /// [`ThreadService`](crate::ThreadService), also at the start if there are any.
    Held {
        /// All calls that the run holds now.
        calls: Vec<ProposedCall>,
    },
}

/// Reads the events of a thread at the reader's pace: a slow reader delays nothing, and receives what it
/// missed. Ends when the thread is closed, or, as a stream of one run, behind that run's end, whatever it
/// was.
#[derive(Debug)]
pub struct Stream {
    thread: Arc<Shared>,
    at: u64,
    /// Whether it ends with a run.
    one_run: bool,
    over: bool,
}

enum Read {
    Item(StreamItem),
    Wait,
    Over,
}

impl Stream {
    pub(crate) fn new(thread: Arc<Shared>, from: StartAt) -> Self {
        let at = {
            let segment = thread.event_log.segment.lock();
            match from {
                StartAt::Live => segment.end(),
                StartAt::Turn => segment.run_from,
                StartAt::Replay => 0,
                StartAt::At(seq) => seq,
            }
        };
        Self { thread, at, one_run: false, over: false }
    }

    /// Ends the stream with the end of the next run, even when that run failed or
    /// could not begin.
    #[must_use]
    pub fn of_one_run(mut self) -> Self {
        self.one_run = true;
        self
    }

    /// Number of the next event, if none is missed.
    pub fn position(&self) -> u64 {
        self.at
    }

    /// The next thing; waits for it. `None` when nothing follows.
    ///
    /// Cancel safe: nothing is lost when the future is dropped.
    pub async fn next(&mut self) -> Option<StreamItem> {
        loop {
            let thread = Arc::clone(&self.thread);
            // It tells of what happens from its creation on, so nothing is missed between reading and waiting.
            let grown = thread.event_log.grown.notified();
            match self.read() {
                Read::Item(item) => return Some(item),
                Read::Over => return None,
                Read::Wait => grown.await,
            }
        }
    }

    /// The next item that is available without waiting.
    pub fn try_next(&mut self) -> Option<StreamItem> {
        match self.read() {
            Read::Item(item) => Some(item),
            Read::Wait | Read::Over => None,
        }
    }

    fn read(&mut self) -> Read {
        if self.over {
            return Read::Over;
        }
        let segment = self.thread.event_log.segment.lock();
        let (next, read) = self.read_from(&segment);
        drop(segment);
        self.at = next;
        if let Read::Item(StreamItem::Event { event, .. }) = &read
            && self.one_run
            && matches!(event, ThreadEvent::RunEnded(_) | ThreadEvent::RunFailed { .. })
        {
            self.over = true;
        }
        read
    }

    fn read_from(&self, segment: &LogSegment) -> (u64, Read) {
        if self.at < segment.first {
            return (segment.first, Read::Item(StreamItem::Lagged { missed: segment.first - self.at }));
        }
        match segment.get(self.at) {
            Some(event) => {
                (self.at + 1, Read::Item(StreamItem::Event { seq: self.at, event: event.clone() }))
            }
            None if segment.closed => (self.at, Read::Over),
            None => (self.at, Read::Wait),
        }
    }
}

/// Text of answers, in deltas.
#[derive(Debug)]
pub struct TextStream(Stream);

impl TextStream {
    pub(crate) fn new(stream: Stream) -> Self {
        Self(stream)
    }

    /// The next delta; `None` at the end. Missed deltas are omitted: the message holds their text.
    ///
    /// Cancel safe.
    pub async fn next(&mut self) -> Option<String> {
        loop {
            if let StreamItem::Event { event: ThreadEvent::Delta(DeltaPart::Text(text)), .. } =
                self.0.next().await?
            {
                return Some(text);
            }
        }
    }
}

/// Reasoning of a model, in deltas.
#[derive(Debug)]
pub struct ReasoningStream(Stream);

impl ReasoningStream {
    pub(crate) fn new(stream: Stream) -> Self {
        Self(stream)
    }

    /// The next delta; `None` at the end. Missed deltas are omitted: the message holds their text.
    ///
    /// Cancel safe.
    pub async fn next(&mut self) -> Option<String> {
        loop {
            if let StreamItem::Event { event: ThreadEvent::Delta(DeltaPart::Thinking(text)), .. } =
                self.0.next().await?
            {
                return Some(text);
            }
        }
    }
}
