//! The end of an execution, while the memory layers take note of it.

use super::{Cx, Effect, Input, Op, Pending, Reply, Standing};
use crate::outcome::{End, Fault, FaultSource, StopReason, TotalUsage};
use crate::time::{Millis, Time};

/// How long the layers may take after a cancellation, at most.
const AFTER_CANCEL: Millis = Millis(2_000);

/// An end that is decided. Nothing changes it any more.
#[derive(Debug)]
pub(crate) struct Completion {
    end: End,
    /// When the layers are cut off.
    until: Time,
    aborted: bool,
}

impl Completion {
    /// Tells the layers.
    pub(crate) fn start(cx: &mut Cx<'_>, end: End, standing: Standing) -> Self {
        let cancelled = end.reason() == StopReason::Cancelled;
        let most = if cancelled { AFTER_CANCEL } else { Millis(u64::MAX) };
        let until = cx.now.after(cx.ports.layers.unwrap_or_default().min(most));
        let (outcome, standing) = (end.outcome(), Box::new(standing));
        cx.perform(Pending::Complete, Op::Complete { outcome, standing });
        Self { end, until, aborted: false }
    }

    /// Counts what was spent meanwhile.
    pub(crate) fn spend(&mut self, spent: &TotalUsage) {
        self.end.usage.merge(spent);
    }

    /// When the layers are cut off; `None` once they are.
    pub(crate) fn wake_at(&self) -> Option<Time> {
        (!self.aborted).then_some(self.until)
    }

    /// Takes an input; gives the end once the layers have answered.
    pub(crate) fn step(&mut self, cx: &mut Cx<'_>, pending: Option<Pending>, input: Input) -> Option<End> {
        match input {
            Input::Reply(_, reply) if pending == Some(Pending::Complete) => {
                cx.tolerate(answer(reply));
                let mut end = self.end.clone();
                end.persist_failed.clone_from(&cx.sh.persist_failed);
                return Some(end);
            }
            Input::Wake | Input::Cancel { .. } => {
                if !std::mem::replace(&mut self.aborted, true) {
                    cx.emit(Effect::AbortAll);
                }
            }
            Input::Reply(..) | Input::Start(_) | Input::PartFailed(_) | Input::Spent(_) => {}
        }
        None
    }
}

#[expect(clippy::wildcard_enum_match_arm, reason = "no other reply fits")]
fn answer(reply: Reply) -> Result<(), Fault> {
    let text = match reply {
        Reply::Noted(result) => return result,
        Reply::Interrupted { .. } => "they did not take note of the end in time",
        _ => "a reply of the wrong kind answered the end",
    };
    Err(Fault::new(FaultSource::Layer, "not_completed", text))
}
