//! The events, the record and the costs of a compaction.

use std::borrow::Cow;
use std::sync::Arc;

use super::{Cx, Record};
use crate::event::EventKind;
use crate::limits::Grant;
use crate::outcome::{Fault, FaultSource, Purpose, TotalUsage};
use crate::port::{CompactReason, Compaction, CompactionNote, Pressure};
use crate::time::Time;
use crate::transcript::Plan;

/// The result of a compaction; a failed one changed nothing.
pub(crate) fn or_failed(result: Result<Box<Compaction>, Fault>) -> Box<Compaction> {
    result.unwrap_or_else(|fault| Box::new(Compaction { failed: vec![fault], ..Compaction::default() }))
}

/// Applies a compaction to the transcript itself. `None` when it has no valid plan with a note, and while calls wait for
/// their results: those stay where they are.
pub(crate) fn take_permanent(cx: &mut Cx<'_>, done: Compaction, since: Time) -> Option<Arc<CompactionNote>> {
    let Compaction { plan, note, usage, failed, pressure, overflow: _ } = done;
    emit_troubles(cx, failed, pressure);
    let (plan, note) = (plan?, Arc::new(note?));
    let checked = if cx.log.has_open_calls() {
        let text = "calls wait for their results; the transcript was left as it is";
        Err(Fault::new(FaultSource::Compactor, "open_calls", text))
    } else {
        check(cx, &plan, FaultSource::Compactor)
    };
    if let Err(fault) = checked {
        cx.event(|| EventKind::CompactionFailed { fault });
        return None;
    }
    cx.shorten(&plan);
    store(cx, &note, &plan, true);
    let (duration, usage, emitted) = (cx.now.since(since), Box::new(usage), Arc::clone(&note));
    cx.event(|| EventKind::CompactionCompleted { note: emitted, permanent: true, plan, usage, duration });
    Some(note)
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
