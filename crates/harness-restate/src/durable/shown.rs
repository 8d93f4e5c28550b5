//! The public view of a thread: its status, reports of its runs, and the events of its stream.

use std::sync::Arc;

use harness::core::event::EventKind;
use harness::core::transcript::Prefix;
use harness::core::{End, Evidence, RunId};
use harness::runtime::{DeliveryState, Report, Status, ThreadEvent};

use super::log::{LogEntry, LogItem};
use super::request::ThreadStatus;
use super::thread::ThreadState;

/// How many numbers of the stream belong to one entry of the log.
pub const STRIDE: u64 = 8;
/// Numbers within an entry: a run that failed before it, the start of a run, its event, and the end of a run.
#[cfg(feature = "restate")]
pub(crate) const FAILED: u64 = 0;
const AT_WORK: u64 = 1;
const STARTED: u64 = 2;
/// Number of the event itself. Deltas come before it.
pub const EVENT: u64 = 3;
const ENDED: u64 = 4;
const IDLE: u64 = 5;

impl ThreadState {
    /// The status in the words of the threads of a process.
    pub fn shown_status(&self) -> Status {
        let ThreadStatus::Running(run) = self.status() else { return Status::Idle };
        if self.is_compacting() {
            return Status::Compacting;
        }
        let (run, since) = (run.clone(), self.since());
        if self.is_stopping() {
            Status::Aborting { run }
        } else if self.approvals().next().is_none() {
            Status::Generating { run, since }
        } else {
            Status::AwaitingApproval { run, since }
        }
    }

    /// Number of messages that wait.
    pub fn waiting(&self) -> usize {
        self.queue().filter(|queued| queued.state == DeliveryState::Waiting).count()
    }
}

/// Report of a run that ended with this transcript, whose first message is at position `from`.
pub fn report(run: RunId, end: Arc<End>, transcript: Prefix, from: usize) -> Report {
    let mut report = Report::new(run, end, transcript, from);
    if let Evidence::Cancelled { by } = &report.end.stop.evidence {
        report.aborted = Some(Arc::clone(by));
    }
    report
}

/// The run that ends with an entry, and its end.
pub fn ended(entry: &LogEntry) -> Option<(&RunId, &Arc<End>)> {
    let LogItem::Event(event) = &entry.item else { return None };
    let EventKind::RunFinished { end } = &event.kind else { return None };
    Some((event.origin.run.as_ref()?, end))
}

/// Events that a log entry adds to the stream of its thread, each with its number within the entry. `report` is that of the run
/// that [`ended`] with it.
pub fn shown(entry: &LogEntry, report: Option<Report>) -> Vec<(u64, ThreadEvent)> {
    let LogItem::Event(event) = &entry.item else { return Vec::new() };
    let mut events = Vec::new();
    if let (EventKind::RunStarted { .. }, Some(run)) = (&event.kind, &event.origin.run) {
        let status = Status::Generating { run: run.clone(), since: event.at };
        events.push((AT_WORK, ThreadEvent::Status(status)));
        let (run, entries) = (run.clone(), entry.began.clone());
        events.push((STARTED, ThreadEvent::RunStarted { run, entries }));
    }
    events.push((EVENT, ThreadEvent::Event((**event).clone())));
    if let Some(report) = report {
        events.push((ENDED, ThreadEvent::RunEnded(report.into())));
        events.push((IDLE, ThreadEvent::Status(Status::Idle)));
    }
    events
}
