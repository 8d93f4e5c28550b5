//! Readers of an event log.

use std::sync::Arc;

use harness_core::port::DeltaPart;

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
    /// With the oldest that is kept. What is not kept any more is told as missed.
    Replay,
    /// With this number, told before or still to come. What of it is not kept any more is told as missed.
    At(u64),
}

/// What a reader is told.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub enum StreamItem {
    /// Something happened.
    Event {
        /// Numbers what happens in a thread, over all of its runs, from 0.
        seq: u64,
        /// What.
        event: ThreadEvent,
    },
    /// The reader was too slow, or came too late: this much is not kept any more.
    Lagged {
        /// How much was missed.
        missed: u64,
    },
}

/// Reads what happens in a thread, at the reader's own pace: a slow reader slows nobody, and is told what it
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
            let segment = thread.event_log.lock();
            match from {
                StartAt::Live => segment.end(),
                StartAt::Turn => segment.run_from,
                StartAt::Replay => 0,
                StartAt::At(seq) => seq,
            }
        };
        Self { thread, at, one_run: false, over: false }
    }

    /// The same stream, ending with the end of the next run that it tells of: also when the run failed or
    /// could not begin.
    #[must_use]
    pub fn of_one_run(mut self) -> Self {
        self.one_run = true;
        self
    }

    /// The number of what is told next, when nothing of it is missed.
    pub fn position(&self) -> u64 {
        self.at
    }

    /// The next thing; waits for it. `None` when nothing follows.
    ///
    /// Cancel safe: nothing is lost when the future is dropped.
    pub async fn next(&mut self) -> Option<StreamItem> {
        loop {
            let thread = Arc::clone(&self.thread);
            let mut grown = std::pin::pin!(thread.event_log.grown.notified());
            grown.as_mut().enable();
            match self.read() {
                Read::Item(item) => return Some(item),
                Read::Over => return None,
                Read::Wait => grown.await,
            }
        }
    }

    /// The next thing that is there without waiting.
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
        let segment = self.thread.event_log.lock();
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

/// The text of answers, piece by piece.
#[derive(Debug)]
pub struct TextStream(Stream);

impl TextStream {
    pub(crate) fn new(stream: Stream) -> Self {
        Self(stream)
    }

    /// The next piece; `None` when nothing follows. What was missed is left out: the message holds it.
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

/// What a model thinks, piece by piece.
#[derive(Debug)]
pub struct ReasoningStream(Stream);

impl ReasoningStream {
    pub(crate) fn new(stream: Stream) -> Self {
        Self(stream)
    }

    /// The next piece; `None` when nothing follows. What was missed is left out: the message holds it.
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
