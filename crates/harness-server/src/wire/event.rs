//! Wire format of thread events.

use harness::core::event::Event;
use harness::core::message::{Block, ToolCall};
use harness::core::port::DeltaPart;
use harness::core::{EntryId, RunId};
use harness::runtime::{QueueChange, ThreadEvent};
use schemars::JsonSchema;
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

/// The body of an event of a thread. `seq` is the number of the event.
#[derive(Serialize, JsonSchema)]
#[serde(tag = "type", rename_all = "snake_case")]
pub(crate) enum SseEvent<'a> {
    /// The status of the thread changed.
    Status {
        seq: u64,
        /// New status.
        status: StatusView,
    },
    /// An entry of the queue changed.
    Queue {
        seq: u64,
        /// Id of the entry.
        entry: &'a EntryId,
        /// `queued`, `changed` or `removed`.
        change: &'static str,
        /// Time of delivery of a queued entry.
        #[serde(skip_serializing_if = "Option::is_none")]
        delivery: Option<Delivery>,
    },
    /// A run started.
    RunStarted {
        seq: u64,
        /// Id of the run.
        run: &'a RunId,
        /// Ids of the queue entries that started it.
        entries: &'a [EntryId],
    },
    /// An event of the run.
    Event {
        seq: u64,
        /// The event, as in `harness run --json`.
        event: &'a Event,
    },
    /// A part of a model response in progress.
    Delta {
        /// Absent where no log keeps deltas: on a durable engine.
        #[serde(skip_serializing_if = "Option::is_none")]
        seq: Option<u64>,
        /// Text, reasoning or arguments to append.
        part: &'a DeltaPart,
    },
    /// The model response in progress starts again: discard its deltas so far. On a durable engine, when a worker was lost.
    AnswerRestarted,
    /// Output of a call in progress.
    ToolUpdate {
        /// Absent where no log keeps progress: on a durable engine.
        #[serde(skip_serializing_if = "Option::is_none")]
        seq: Option<u64>,
        /// Call that is running.
        call: &'a ToolCall,
        /// Its output so far.
        content: &'a [Block],
    },
    /// A run ended.
    RunEnded {
        seq: u64,
        /// Report of the run.
        report: ReportView,
    },
    /// A run could not start, or its session could not be written.
    RunFailed {
        seq: u64,
        /// Id of the run.
        run: &'a RunId,
        /// Reason of the failure.
        error: ErrorDetail,
    },
}

/// Converts an event without a number; `None` for kinds unknown to this version.
pub(crate) fn transient_frame(event: &ThreadEvent) -> Option<Frame> {
    if let ThreadEvent::Delta(part) = event {
        return Some(Frame::new(None, "delta", &SseEvent::Delta { seq: None, part }));
    }
    if let ThreadEvent::ToolUpdate { call, content } = event {
        return Some(Frame::new(None, "tool_update", &SseEvent::ToolUpdate { seq: None, call, content }));
    }
    let is_restart = matches!(event, ThreadEvent::AnswerRestarted);
    is_restart.then(|| Frame::new(None, "answer_restarted", &SseEvent::AnswerRestarted))
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
        ThreadEvent::Delta(part) => ("delta", SseEvent::Delta { seq: Some(seq), part }),
        ThreadEvent::ToolUpdate { call, content } => {
            ("tool_update", SseEvent::ToolUpdate { seq: Some(seq), call, content })
        }
        ThreadEvent::RunEnded(report) => {
            ("run_ended", SseEvent::RunEnded { seq, report: (&**report).into() })
        }
        ThreadEvent::RunFailed { run, error } => {
            ("run_failed", SseEvent::RunFailed { seq, run, error: (&**error).into() })
        }
        ThreadEvent::AnswerRestarted | _ => return None,
    };
    Some(Frame::new(Some(seq), name, &told))
}
