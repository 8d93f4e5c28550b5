//! Events of a thread, made from its log.
//!
//! An entry of the log has several numbers in the stream: its event, and what the thread itself reports at the start and
//! the end of a run. So a client may reconnect behind each of them.

use std::collections::VecDeque;
use std::time::Duration;

use futures_util::stream::{self, BoxStream};
use harness::core::event::{Event, EventKind};
use harness::core::port::ProposedCall;
use harness::core::{ApprovalId, Fault, FaultSource, RunId, ThreadId};
use harness::runtime::{RuntimeError, StartAt, Status, StreamItem, ThreadEvent};

use super::client::DurableThreads;
use crate::durable::{LogEntry, LogItem, ThreadState, ThreadStatus};

/// Numbers of one entry.
const STRIDE: u64 = 8;
/// The numbers of an entry: a run that failed before it, the start of a run, its event, and the end of a run.
const FAILED: u64 = 0;
const AT_WORK: u64 = 1;
const STARTED: u64 = 2;
const EVENT: u64 = 3;
const ENDED: u64 = 4;
const IDLE: u64 = 5;

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

/// Why a run could not begin.
pub(super) fn failed(why: &str) -> RuntimeError {
    RuntimeError::Part(Fault::new(FaultSource::Agent, "engine.run_failed", why))
}

/// The calls that a run holds.
pub(super) fn held(state: &ThreadState) -> Vec<ProposedCall> {
    let is_running = matches!(state.status(), ThreadStatus::Running(_));
    let held = state.approvals().filter(|_| is_running);
    held.map(|held| held.proposed.clone()).collect()
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
}

/// Events from a position on. The log is read when this process changed the thread, and otherwise in pauses that grow up
/// to 2 s. An engine that does not respond is asked again.
pub(super) async fn follow(
    threads: DurableThreads,
    thread: &ThreadId,
    from: StartAt,
) -> Result<BoxStream<'static, StreamItem>, RuntimeError> {
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
            let mut changed = std::pin::pin!(threads.changed());
            changed.as_mut().enable();
            if let Err(error) = self.read().await {
                tracing::debug!(thread = %self.thread, %error, "the log of a thread could not be read");
            }
            if !self.ready.is_empty() || self.is_over {
                self.pause = PAUSES.0;
                continue;
            }
            tokio::select! {
                () = threads.stopped() => return None,
                () = changed => self.pause = PAUSES.0,
                () = tokio::time::sleep(self.pause) => self.pause = (self.pause * 2).min(PAUSES.1),
            }
        }
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
    async fn see(&mut self, LogEntry { seq, item, .. }: &LogEntry) -> Result<(), RuntimeError> {
        let first = first_of(*seq);
        if let LogItem::Event(event) = item {
            let run = event.origin.run.clone();
            let end = match (&event.kind, &run) {
                (EventKind::RunFinished { end }, Some(run)) => {
                    Some(self.threads.report(&self.thread, run, end, *seq).await?)
                }
                _ => None,
            };
            if let (EventKind::RunStarted { .. }, Some(run)) = (&event.kind, run) {
                self.started(first, event, run);
            }
            self.push(first + EVENT, ThreadEvent::Event(Event::clone(event)));
            if let Some(report) = end {
                self.push(first + ENDED, ThreadEvent::RunEnded(report.into()));
                self.push(first + IDLE, ThreadEvent::Status(Status::Idle));
            }
        }
        self.at = self.at.max(first + STRIDE);
        Ok(())
    }

    fn started(&mut self, first: u64, event: &Event, run: RunId) {
        let status = Status::Generating { run: run.clone(), since: event.at };
        self.push(first + AT_WORK, ThreadEvent::Status(status));
        self.push(first + STARTED, ThreadEvent::RunStarted { run, entries: Vec::new() });
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
