//! The end of a machine, while the memory layers take note of it.

use super::{AgentProgress, Cx, Effect, Op, Pending, Reply};
use crate::outcome::{End, Fault, FaultSource, StopReason};
use crate::time::{Millis, Time};

/// Time for the layers after a cancellation, at most.
const AFTER_CANCEL: Millis = Millis(2_000);

/// An end that is decided. Only its usage and `persist_failed` still change.
#[derive(Debug)]
pub(super) struct Completion {
    pub(super) end: End,
    /// When the layers are cut off.
    until: Time,
    aborted: bool,
}

impl Completion {
    /// Notifies the layers, which have the time `within`.
    pub(super) fn start(cx: &mut Cx<'_>, end: End, standing: AgentProgress, within: Millis) -> Self {
        let cancelled = end.reason() == StopReason::Cancelled;
        let until = cx.now.after(if cancelled { within.min(AFTER_CANCEL) } else { within });
        let (outcome, standing) = (end.outcome(), Box::new(standing));
        cx.perform(Pending::Complete, Op::Complete { outcome, standing });
        Self { end, until, aborted: false }
    }

    /// When the layers are cut off; `None` once they are.
    pub(super) fn wake_at(&self) -> Option<Time> {
        (!self.aborted).then_some(self.until)
    }

    /// Cuts the layers off, once.
    pub(super) fn abort(&mut self, cx: &mut Cx<'_>) {
        if !std::mem::replace(&mut self.aborted, true) {
            cx.emit(Effect::AbortAll);
        }
    }

    /// Takes the reply of the layers.
    #[expect(clippy::wildcard_enum_match_arm, reason = "no other reply fits")]
    pub(super) fn end(self, cx: &mut Cx<'_>, reply: Reply) -> End {
        let fault = |text| Err(Fault::new(FaultSource::Layer, "not_completed", text));
        cx.tolerate(match reply {
            Reply::Noted(result) => result,
            Reply::Interrupted { .. } => fault("they did not take note of the end in time"),
            _ => fault("a reply of the wrong kind answered the end"),
        });
        End { persist_failed: cx.sh.persist_failed.clone(), ..self.end }
    }
}
