//! The machine of a run, and what its effects ask of the driver.

use std::collections::VecDeque;
use std::sync::Arc;

use harness::core::driver::Ports;
use harness::core::event::EventKind;
use harness::core::machine::{Effect, Input, Op, Start};
use harness::core::port::{Compaction, CompactionNote, DrainPoint};
use harness::core::run::Run;
use harness::core::{End, EntryId, Fault, Json, OpId, Time};

use super::context::DriveInput;
use super::log::LogItem;
use super::states::has_tool;

/// A machine, and its effects in order of their kind.
#[derive(derive_more::Debug)]
pub(super) struct Running {
    pub(super) machine: Run,
    /// The time of the last input.
    pub(super) now: Time,
    /// Whether a segment has fed its inputs already.
    pub(super) is_ahead: bool,
    /// Records and events that the log does not have.
    pub(super) items: Vec<LogItem>,
    /// Operations that are performed in a segment.
    pub(super) quick: VecDeque<(OpId, Op)>,
    /// Steps and held calls that are to start.
    pub(super) slow: Vec<(OpId, Op)>,
    pub(super) store: Option<OpId>,
    pub(super) drain: Option<(OpId, DrainPoint)>,
    /// Operations up to this one are cancelled.
    pub(super) abort: Option<OpId>,
    /// Messages of the queue that are in the transcript, and of which the thread does not know.
    pub(super) injected: Vec<EntryId>,
    pub(super) end: Option<Arc<End>>,
    /// Journaled states of layers and tools.
    pub(super) states: Option<Json>,
    ports: Ports,
    /// The operation that was started last.
    last: OpId,
}

impl Running {
    pub(super) fn new(machine: Run, now: Time, ports: Ports) -> Self {
        Self {
            machine,
            now,
            is_ahead: false,
            items: Vec::new(),
            quick: VecDeque::new(),
            slow: Vec::new(),
            store: None,
            drain: None,
            abort: None,
            injected: Vec::new(),
            end: None,
            states: None,
            ports,
            last: OpId(0),
        }
    }

    /// Whether something has to be done before the next input is waited for.
    pub(super) fn has_work(&self) -> bool {
        !self.quick.is_empty()
            || !self.slow.is_empty()
            || self.store.is_some()
            || self.drain.is_some()
            || self.abort.is_some()
            || self.end.is_some()
    }

    /// Starts the machine. An abort from before comes before everything that the start asks for.
    pub(super) fn begin(&mut self, start: Start, input: &DriveInput) {
        self.give(input.at, Input::Start(Box::new(start)));
        if let Some(by) = input.stop.clone() {
            self.give(input.at, Input::Cancel { by });
        }
    }

    /// Gives the machine an input. Time does not go back.
    pub(super) fn give(&mut self, at: Time, input: Input) {
        self.now = self.now.max(at);
        if let Input::Reply(id, _) = &input {
            self.quick.retain(|(waiting, _)| waiting != id);
        }
        let mut effects = Vec::new();
        self.machine.advance(input, self.now, &mut effects);
        for effect in effects {
            self.take(effect);
        }
    }

    /// Applies a compaction to the transcript, before a start.
    pub(super) fn shorten(
        &mut self,
        at: Time,
        done: Compaction,
        since: Time,
    ) -> Result<Option<Arc<CompactionNote>>, Fault> {
        self.now = self.now.max(at);
        let mut effects = Vec::new();
        let note = self.machine.shorten(done, since, self.now, &mut effects);
        for effect in effects {
            self.take(effect);
        }
        note
    }

    fn take(&mut self, effect: Effect) {
        match effect {
            Effect::Event(event) => {
                if let EventKind::SteeringInjected { entries } = &event.kind {
                    self.injected.extend(entries.iter().cloned());
                }
                self.items.push(LogItem::Event(Box::new(event)));
            }
            Effect::Perform(id, op) => {
                self.last = id;
                self.start(id, op);
            }
            Effect::AbortAll => self.abort = Some(self.last),
            Effect::Done(end) => self.end = Some(end),
        }
    }

    fn start(&mut self, id: OpId, op: Op) {
        match op {
            Op::Store { records } => {
                self.items.extend(records.into_iter().map(|record| LogItem::Record(Box::new(record))));
                self.store = Some(id);
            }
            Op::Drain { point } => self.drain = Some((id, point)),
            // Calls that use a state take turns, each with the state that the one before it left.
            Op::Tool { ref call, .. } if has_tool(&self.ports, &call.name) => {
                self.quick.push_back((id, op));
            }
            // These ask models, run commands, or wait for people.
            op @ (Op::Model { .. }
            | Op::Tool { .. }
            | Op::Compact { .. }
            | Op::Approve { .. }
            | Op::Check { .. }
            | Op::Facts { .. }
            | Op::LayerStore { .. }
            | Op::Complete { .. }) => self.slow.push((id, op)),
            // A run saves nothing here: what its journal holds is enough.
            op @ (Op::Prepare { .. }
            | Op::Begin { .. }
            | Op::Append { .. }
            | Op::Recall { .. }
            | Op::AfterModel { .. }
            | Op::Arguments { .. }
            | Op::Gate { .. }
            | Op::NoteApproval { .. }
            | Op::Save { .. }) => self.quick.push_back((id, op)),
        }
    }
}
