//! Compaction on request, and the events, the record and the costs of every compaction.

use std::borrow::Cow;
use std::sync::Arc;

use super::{AgentProgress, Cx, Effect, Machine, Op, Phase, Record, Reply, ViewState};
use crate::event::EventKind;
use crate::limits::Grant;
use crate::outcome::{Fault, FaultSource, Purpose, TotalUsage};
use crate::port::{CompactReason, Compaction, CompactionNote, Pressure, Progress};
use crate::time::Time;
use crate::transcript::{Plan, Transcript};

/// The result of a compaction; a failed one changed nothing.
pub(crate) fn or_failed(result: Result<Box<Compaction>, Fault>) -> Box<Compaction> {
    result.unwrap_or_else(|fault| Box::new(Compaction { failed: vec![fault], ..Compaction::default() }))
}

/// Compaction on request, of a machine before its start or after its end.
impl<P: Phase> Machine<P> {
    /// The operation of a compaction, whatever the compactor's trigger. A driver performs it, and applies what its reply is
    /// ([`Reply::into_compaction`]) with [`shorten`](Self::shorten). `instructions` name what a summary must keep.
    ///
    /// # Errors
    /// `no_compactor` without a compactor; `open_calls` while calls have no result.
    pub fn compaction(&self, instructions: Option<String>) -> Result<Op, Fault> {
        if !self.ports.compactor {
            return Err(Fault::new(FaultSource::Compactor, "no_compactor", "no compactor configured"));
        }
        is_settled(&self.log)?;
        let ViewState { plan, measured, .. } = self.shared.view.clone();
        let standing = Box::new(AgentProgress { prepared: None, progress: Progress::start() });
        Ok(Op::Compact { reason: CompactReason::Requested { instructions }, plan, measured, standing })
    }

    /// Applies a compaction that started at `since` to the transcript itself. `None` if there was nothing to do, and while the
    /// machine runs.
    ///
    /// # Errors
    /// The last error of the compactor if it has no plan; `plan_refused` if its plan separates calls and results. The
    /// transcript is unchanged.
    pub fn shorten(
        &mut self,
        done: Compaction,
        since: Time,
        now: Time,
        effects: &mut Vec<Effect>,
    ) -> Result<Option<Arc<CompactionNote>>, Fault> {
        if self.shared.started && self.end.is_none() {
            return Ok(None);
        }
        let (_, _, mut cx) = self.parts(now, effects);
        if done.usage != TotalUsage::default() {
            let usage = Box::new(done.usage.as_one());
            cx.event(|| EventKind::ModelUsageCharged { purpose: Purpose::Compaction, usage });
        }
        let note = take_permanent(&mut cx, done, since);
        self.release(now, effects);
        note
    }
}

impl Reply {
    /// The compaction that this reply to [`Op::Compact`] has, with the usage that the driver charged for it.
    ///
    /// # Errors
    /// The compactor's error; `cancelled` if it did not reply.
    pub fn into_compaction(self, spent: Option<&TotalUsage>) -> Result<Compaction, Fault> {
        let Self::Compacted(done) = self else {
            let text = "compaction was cancelled; the transcript is unchanged";
            return Err(Fault::new(FaultSource::Compactor, "cancelled", text));
        };
        let mut done = *done?;
        if let Some(spent) = spent {
            done.usage.merge(spent);
        }
        Ok(done)
    }
}

/// Whether every call has its result.
fn is_settled(log: &Transcript) -> Result<(), Fault> {
    let text = "calls have no result yet; settle them first, for example by resuming";
    let fault = || Err(Fault::new(FaultSource::Compactor, "open_calls", text));
    if log.has_open_calls() { fault() } else { Ok(()) }
}

/// Applies a compaction to the transcript itself. `None` when it has no plan with a note, and no error. It is refused while
/// calls wait for their results: those stay where they are.
pub(crate) fn take_permanent(
    cx: &mut Cx<'_>,
    done: Compaction,
    since: Time,
) -> Result<Option<Arc<CompactionNote>>, Fault> {
    let Compaction { plan, note, usage, failed, pressure, overflow: _ } = done;
    let last = failed.last().cloned();
    emit_troubles(cx, failed, pressure);
    let (Some(plan), Some(note)) = (plan, note.map(Arc::new)) else { return last.map_or(Ok(None), Err) };
    if let Err(fault) = is_settled(cx.log).and_then(|()| check(cx, &plan, FaultSource::Compactor)) {
        cx.event(|| EventKind::CompactionFailed { fault: fault.clone() });
        return Err(fault);
    }
    cx.shorten(&plan);
    store(cx, &note, &plan, true);
    let (duration, usage, emitted) = (cx.now.since(since), Box::new(usage), Arc::clone(&note));
    cx.event(|| EventKind::CompactionCompleted { note: emitted, permanent: true, plan, usage, duration });
    Ok(Some(note))
}

pub(crate) fn store(cx: &mut Cx<'_>, note: &Arc<CompactionNote>, plan: &Plan, permanent: bool) {
    cx.sh.compactions = cx.sh.compactions.saturating_add(1);
    let (note, plan, messages) = (Arc::clone(note), plan.clone(), cx.log.len());
    cx.persist(Record::Compaction { note, plan, permanent, messages });
}

/// Charges the usage that a compaction reports. Returns its whole usage, calls through the ledger included.
pub(crate) fn charge(total: &mut TotalUsage, cx: &mut Cx<'_>, own: TotalUsage) -> TotalUsage {
    let mut used = std::mem::take(&mut cx.sh.compacting);
    if own != TotalUsage::default() {
        let own = own.as_one();
        total.add(Purpose::Compaction, &own);
        cx.sh.budgets.settle(Grant::default(), own.amount());
        used.add(Purpose::Compaction, &own);
        let purpose = Purpose::Compaction;
        cx.event(|| EventKind::ModelUsageCharged { purpose, usage: Box::new(own) });
    }
    used
}

/// Whether a plan keeps calls and results together (law 6).
pub(crate) fn check(cx: &Cx<'_>, plan: &Plan, part: FaultSource) -> Result<(), Fault> {
    plan.check(&cx.log.prefix()).map_err(|fault| Fault::new(part, "plan_refused", fault.to_string()))
}

pub(crate) fn emit_start(cx: &mut Cx<'_>, reason: &CompactReason) {
    cx.event(|| EventKind::CompactionStarted { trigger: Cow::Borrowed(reason.as_str()) });
}

/// Emits the errors of a compaction, and how full the window is.
pub(crate) fn emit_troubles(cx: &mut Cx<'_>, failed: Vec<Fault>, pressure: Option<Pressure>) {
    for fault in failed {
        cx.event(|| EventKind::CompactionFailed { fault });
    }
    if let Some(Pressure { estimate, soft, blocking, window }) = pressure {
        cx.event(|| EventKind::ContextPressure { estimate, soft, blocking, window });
    }
}
