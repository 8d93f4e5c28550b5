//! The last word to the memory layers, before an end is told.

use crate::machine::{Cx, Effect, Input, Op, Pending, Reply, Standing};
use crate::outcome::{End, Fault, FaultSource, StopReason, TotalUsage};
use crate::time::{Millis, Time};

/// How long the layers may take after a cancellation, at most.
const AFTER_CANCEL: Millis = Millis(2_000);

/// An end that is decided, while the layers take note of it. Nothing changes it any more.
#[derive(Debug)]
pub(crate) struct Closing {
    end: End,
    standing: Standing,
    /// When it is over at the latest.
    until: Time,
    aborted: bool,
}

impl Closing {
    /// Tells the layers.
    pub(crate) fn begin(cx: &mut Cx<'_>, end: End, standing: Standing) -> Box<Self> {
        let cancelled = end.reason() == StopReason::Cancelled;
        let most = if cancelled { AFTER_CANCEL } else { Millis(u64::MAX) };
        let until = cx.now.after(cx.ports.layers.unwrap_or_default().min(most));
        let leaving = Self { end, standing, until, aborted: false };
        cx.perform(Pending::Complete, leaving.op());
        Box::new(leaving)
    }

    /// Counts what was spent meanwhile.
    pub(crate) fn spend(&mut self, spent: &TotalUsage) {
        self.end.usage.merge(spent);
    }

    /// What they are told.
    pub(crate) fn op(&self) -> Op {
        Op::Complete { outcome: self.end.outcome(), standing: Box::new(self.standing.clone()) }
    }

    /// When they are cut off; `None` once they are.
    pub(crate) fn wake_at(&self) -> Option<Time> {
        (!self.aborted).then_some(self.until)
    }

    /// Takes an input. Whether it is over.
    pub(crate) fn step(&mut self, cx: &mut Cx<'_>, pending: Option<Pending>, input: Input) -> bool {
        match input {
            Input::Reply(_, reply) => {
                let over = pending == Some(Pending::Complete);
                if over {
                    cx.tolerate(answer(reply));
                }
                return over;
            }
            Input::Wake | Input::Cancel { .. } => {
                if !std::mem::replace(&mut self.aborted, true) {
                    cx.emit(Effect::AbortAll);
                }
            }
            Input::Start(_) | Input::PartFailed(_) | Input::Spent(_) => {}
        }
        false
    }

    /// The end.
    pub(crate) fn into_end(self, cx: &Cx<'_>) -> End {
        let mut end = self.end;
        end.persist_failed.clone_from(&cx.sh.persist_failed);
        end
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
