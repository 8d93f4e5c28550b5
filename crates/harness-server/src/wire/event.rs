//! Wire format of thread events.

use harness::core::event::Event;
use harness::core::message::{Block, ToolCall};
use harness::core::port::DeltaPart;
use harness::core::{EntryId, RunId};
use harness::runtime::{QueueChange, ThreadEvent};
use serde::Serialize;

use super::input::Delivery;
use super::report::ReportView;
use super::thread::StatusView;
use crate::fault::ErrorDetail;

/// One event of a stream, before it is written.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct Frame {
    /// Number of the event in the thread.
    pub(crate) seq: Option<u64>,
    /// Name of the event.
    pub(crate) name: &'static str,
    /// Data as one line of JSON.
    pub(crate) data: String,
}

impl Frame {
    pub(crate) fn new<T: Serialize>(seq: Option<u64>, name: &'static str, data: &T) -> Self {
        // What is told here always has a JSON form: its maps have text for keys.
        let data = serde_json::to_string(data).unwrap_or_else(|_| "{}".to_owned());
        Self { seq, name, data }
    }
}

/// The body of an event of a thread.
#[derive(Serialize)]
#[serde(tag = "type", rename_all = "snake_case")]
enum SseEvent<'a> {
    Status {
        seq: u64,
        status: StatusView,
    },
    Queue {
        seq: u64,
        entry: &'a EntryId,
        change: &'static str,
        #[serde(skip_serializing_if = "Option::is_none")]
        delivery: Option<Delivery>,
    },
    RunStarted {
        seq: u64,
        run: &'a RunId,
        entries: &'a [EntryId],
    },
    Event {
        seq: u64,
        event: &'a Event,
    },
    Delta {
        seq: u64,
        part: &'a DeltaPart,
    },
    ToolUpdate {
        seq: u64,
        call: &'a ToolCall,
        content: &'a [Block],
    },
    RunEnded {
        seq: u64,
        report: ReportView,
    },
    RunFailed {
        seq: u64,
        run: &'a RunId,
        error: ErrorDetail,
    },
}

/// Converts an event; `None` for kinds unknown to this version.
pub(crate) fn frame(seq: u64, event: &ThreadEvent) -> Option<Frame> {
    let (name, told) = match event {
        ThreadEvent::Status(status) => ("status", SseEvent::Status { seq, status: status.into() }),
        ThreadEvent::Queue { entry, change } => {
            let (change, delivery) = match change {
                QueueChange::Queued(mode) => ("queued", Some(Delivery::from(*mode))),
                QueueChange::Removed => ("removed", None),
                QueueChange::Changed | _ => ("changed", None),
            };
            ("queue", SseEvent::Queue { seq, entry, change, delivery })
        }
        ThreadEvent::RunStarted { run, entries } => {
            ("run_started", SseEvent::RunStarted { seq, run, entries })
        }
        ThreadEvent::Event(event) => ("event", SseEvent::Event { seq, event }),
        ThreadEvent::Delta(part) => ("delta", SseEvent::Delta { seq, part }),
        ThreadEvent::ToolUpdate { call, content } => {
            ("tool_update", SseEvent::ToolUpdate { seq, call, content })
        }
        ThreadEvent::RunEnded(report) => {
            ("run_ended", SseEvent::RunEnded { seq, report: (&**report).into() })
        }
        ThreadEvent::RunFailed { run, error } => {
            ("run_failed", SseEvent::RunFailed { seq, run, error: (&**error).into() })
        }
        _ => return None,
    };
    Some(Frame::new(Some(seq), name, &told))
}
