//! Events of a thread, made from its log, and deltas of relays between them.
//!
//! An entry of the log has several numbers in the stream: its event, and what the thread itself reports at the start and
//! the end of a run. So a client may reconnect behind each of them.

use std::collections::VecDeque;
use std::pin::pin;
use std::time::Duration;

use futures_util::stream::{self, BoxStream};
use harness::core::port::ProposedCall;
use harness::core::{ApprovalId, Fault, FaultSource, RunId, ThreadId};
use harness::runtime::{RuntimeError, StartAt, StreamItem, ThreadEvent};

use tokio::time::Instant;

use super::client::DurableThreads;
use super::relay::{Feed, FeedReader};
use crate::durable::deltas::{Next, StreamDeltas};
use crate::durable::{EVENT, FAILED, LogEntry, LogItem, STRIDE, ThreadState, ThreadStatus, ended, shown};

/// First and longest pause between two readings of a silent log.
pub(super) const PAUSES: (Duration, Duration) = (Duration::from_millis(100), Duration::from_secs(2));

/// Number of the first event of an entry.
pub(super) fn first_of(entry: u64) -> u64 {
    entry.saturating_mul(STRIDE)
}

/// Number of the next event of a thread whose log has `len` entries.
pub(super) fn next_of(state: &ThreadState, len: u64) -> u64 {
    first_of(len) + u64::from(matches!(state.last(), Some(Err(_))))
}

/// Error of a run that could not start.
pub(super) fn failed(why: &str) -> RuntimeError {
    RuntimeError::Part(Fault::new(FaultSource::Agent, "engine.run_failed", why))
}

/// The calls that a run holds.
pub(super) fn held(state: &ThreadState) -> Vec<ProposedCall> {
    let is_running = matches!(state.status(), ThreadStatus::Running(_));
    let held = state.approvals().filter(|_| is_running);
    held.map(|held| held.proposed.clone()).collect()
}

fn transient(event: ThreadEvent) -> StreamItem {
    StreamItem::Transient { event }
}

/// Follows a log.
struct Follower {
    threads: DurableThreads,
    thread: ThreadId,
    /// Number of the next event.
    at: u64,
    ready: VecDeque<StreamItem>,
    held: Vec<ApprovalId>,
    /// The last run that could not begin.
    failed: Option<RunId>,
    /// Whether the thread is forgotten.
    is_over: bool,
    pause: Duration,
    /// Whether the log may have more.
    is_due: bool,
    /// When the log is read at the latest.
    reads_at: Instant,
    /// Notices of relays so far.
    changes: u64,
    deltas: Option<StreamDeltas<FeedReader>>,
}

/// Events from a position on. The log is read when this process changed the thread, when a worker says that it did, and
/// otherwise in pauses that grow up to 2 s. An engine that does not respond is asked again.
pub(super) async fn follow(
    threads: DurableThreads,
    thread: &ThreadId,
    from: StartAt,
) -> Result<BoxStream<'static, StreamItem>, RuntimeError> {
    // From here on relays send deltas.
    let deltas = threads.feed(thread).map(StreamDeltas::new);
    let at = match from {
        StartAt::At(at) => at,
        StartAt::Replay => 0,
        StartAt::Turn => first_of(threads.state(thread).await?.turn()),
        StartAt::Live | _ => {
            let state = threads.state(thread).await?;
            next_of(&state, threads.extent(thread).await?.len)
        }
    };
    let follower = Follower {
        threads,
        thread: thread.clone(),
        at,
        ready: VecDeque::new(),
        held: Vec::new(),
        failed: None,
        is_over: false,
        pause: PAUSES.0,
        is_due: true,
        reads_at: Instant::now(),
        changes: 0,
        deltas,
    };
    Ok(Box::pin(stream::unfold(follower, |mut follower| async move {
        let item = follower.next().await?;
        Some((item, follower))
    })))
}

impl Follower {
    /// The next item; `None` when the thread is forgotten, or the service stops.
    async fn next(&mut self) -> Option<StreamItem> {
        let threads = self.threads.clone();
        loop {
            if let Some(item) = self.ready.pop_front() {
                return Some(item);
            }
            if self.is_over {
                return None;
            }
            let mut changed = pin!(threads.changed());
            changed.as_mut().enable();
            if self.is_due {
                self.read_log().await;
                continue;
            }
            let feed = self.deltas.as_ref().map(|deltas| deltas.feed.feed());
            let mut grown = pin!(feed.as_deref().map(Feed::grown));
            if let Some(grown) = grown.as_mut().as_pin_mut() {
                grown.enable();
            }
            if self.take_deltas().await {
                continue;
            }
            let grown = async {
                match grown.as_pin_mut() {
                    Some(grown) => grown.await,
                    None => std::future::pending().await,
                }
            };
            tokio::select! {
                () = threads.stopped() => return None,
                () = changed => self.wake(),
                () = grown => {}
                () = tokio::time::sleep_until(self.reads_at) => self.is_due = true,
            }
        }
    }

    /// The log has more, or will have it soon.
    fn wake(&mut self) {
        (self.pause, self.is_due) = (PAUSES.0, true);
    }

    /// Reads the log; what it has is ready then.
    async fn read_log(&mut self) {
        let before = self.at;
        if let Err(error) = self.read().await {
            tracing::debug!(thread = %self.thread, %error, "the log of a thread could not be read");
        }
        self.is_due = self.at != before;
        if self.is_due || !self.ready.is_empty() {
            self.pause = PAUSES.0;
        }
        self.reads_at = Instant::now() + self.pause;
        self.pause = (self.pause * 2).min(PAUSES.1);
    }

    /// Takes what relays sent. Whether there is something to do.
    async fn take_deltas(&mut self) -> bool {
        let Some(deltas) = &mut self.deltas else { return false };
        let changes = deltas.feed.changes();
        if std::mem::replace(&mut self.changes, changes) != changes {
            self.wake();
            return true;
        }
        match deltas.next(self.at / STRIDE) {
            Next::Wait => return false,
            Next::ReadLog => {
                // The start of an answer is appended at this moment, and a worker says when it is there.
                self.reads_at = self.reads_at.min(Instant::now() + PAUSES.0);
                return false;
            }
            Next::LookBack(from) => {
                let entries = self.threads.entries(&self.thread, from, self.at / STRIDE).await;
                let entries = entries.unwrap_or_default();
                deltas.look_back(entries.iter().filter_map(|LogEntry { seq, item, .. }| match item {
                    LogItem::Event(event) => Some((*seq, &event.kind)),
                    LogItem::Record(_) => None,
                }));
            }
            Next::Show(events) => self.ready.extend(events.into_iter().map(transient)),
        }
        true
    }

    async fn read(&mut self) -> Result<(), RuntimeError> {
        let (entries, len) = self.threads.read(&self.thread, self.at / STRIDE).await?;
        for entry in &entries {
            self.see(entry).await?;
        }
        if entries.is_empty() {
            let state = self.threads.state(&self.thread).await?;
            self.look(&state, len);
        }
        Ok(())
    }

    /// Reports what an entry says.
    async fn see(&mut self, entry: &LogEntry) -> Result<(), RuntimeError> {
        let first = first_of(entry.seq);
        let report = match ended(entry) {
            Some((run, end)) => Some(self.threads.report(&self.thread, run, end, entry.seq).await?),
            None => None,
        };
        let mut rest = Vec::new();
        if let (LogItem::Event(event), Some(deltas)) = (&entry.item, &mut self.deltas) {
            rest = deltas.see(entry.seq, &event.kind);
        }
        for (number, event) in shown(entry, report) {
            if number == EVENT {
                self.ready.extend(rest.drain(..).map(transient));
            }
            self.push(first + number, event);
        }
        self.at = self.at.max(first + STRIDE);
        Ok(())
    }

    /// Reports what the log does not say: held calls, and runs that could not begin.
    fn look(&mut self, state: &ThreadState, len: u64) {
        self.is_over = state.created().is_none();
        if let (Some(Err(why)), Some(run)) = (state.last(), state.last_run())
            && self.failed.as_ref() != Some(&run)
        {
            let seq = first_of(len) + FAILED;
            if self.failed.is_some() || self.at <= seq {
                let event = ThreadEvent::RunFailed { run: run.clone(), error: failed(why).into() };
                self.ready.push_back(StreamItem::Event { seq, event });
                self.at = self.at.max(seq + 1);
            }
            self.failed = Some(run);
        }
        let calls = held(state);
        let now: Vec<_> = calls.iter().map(ProposedCall::id).collect();
        if now != self.held {
            self.held = now;
            self.ready.push_back(StreamItem::Held { calls });
        }
    }

    /// Adds an event, unless the reader has it.
    fn push(&mut self, seq: u64, event: ThreadEvent) {
        if seq >= self.at {
            self.ready.push_back(StreamItem::Event { seq, event });
        }
    }
}
