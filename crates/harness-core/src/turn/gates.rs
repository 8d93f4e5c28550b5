//! What stands between a call and its execution: preparation, arguments, gates, approval.
//!
//! A hold still asks the remaining gates, and the first denial ends it, so a person is never asked about
//! a call that a policy refuses anyway.

use std::sync::Arc;

use super::call_state::{CallState, Particulars, Progress};
use super::spec::TurnSpec;
use super::state::TurnState;
use crate::decide::{Answered, GateDecision, GateVerdict, Point};
use crate::event::EventKind;
use crate::ids::{CallDigest, CallId};
use crate::json::Json;
use crate::machine::{Cx, Pending};
use crate::message::{ApprovalRequest, ToolCall};
use crate::outcome::{End, Evidence, Stop, StopReason};
use crate::port::Decision;
use crate::tool::{ArgumentFault, ToolKind, ToolOutcome, coerced};

/// Levels of lists and objects in the arguments of a call. JSON readers give up there, too.
pub const MAX_ARGUMENT_DEPTH: usize = 128;

/// Bytes of the arguments of a call: what is bounded by it can be compared, hashed and checked at once, without a task
/// that waits for it.
pub const MAX_ARGUMENT_BYTES: usize = 1024 * 1024;

impl TurnState {
    /// Takes a call to its gates. Whether nothing holds it and it may run;
    /// then it is for the caller to say so.
    pub(super) fn prepare_call(&mut self, spec: &TurnSpec, cx: &mut Cx<'_>, at: u32) -> bool {
        let tools = self.prepared.as_ref().map_or(&[][..], |prepared| &prepared.tools);
        let Some(slot) = self.batch.as_mut().and_then(|batch| batch.slot_mut(at)) else { return false };
        if slot.def_in(tools).is_none() {
            self.refuse_unknown(spec, cx, at);
            return false;
        }
        if slot.call.arguments_mode.as_deref() == Some("invalid") {
            self.refuse_unreadable(spec, cx, at);
            return false;
        }
        if let Some(refusal) = out_of_bounds(&slot.call.arguments) {
            self.answer_call(spec, cx, at, refusal);
            return false;
        }
        // What a person wrote needs no preparation.
        if !slot.particulars().edited
            && let Some(gate) = cx.ports.next_gate(Point::Prepare, 0)
        {
            slot.progress = Progress::Asking;
            self.issue(cx, Pending::Gate(at, gate, Point::Prepare));
            return false;
        }
        self.validate_call(spec, cx, at)
    }

    /// Takes a call with prepared arguments to their check. Whether nothing has to look at it and it may run.
    fn validate_call(&mut self, spec: &TurnSpec, cx: &mut Cx<'_>, at: u32) -> bool {
        let tools = self.prepared.as_ref().map_or(&[][..], |prepared| &prepared.tools);
        let Some(slot) = self.batch.as_mut().and_then(|batch| batch.slot_mut(at)) else { return false };
        let Some(def) = slot.def_in(tools) else { return false };
        // A gate or a person may have put others in place.
        if let Some(refusal) = out_of_bounds(&slot.call.arguments) {
            self.answer_call(spec, cx, at, refusal);
            return false;
        }
        let declared = def.input_schema.as_ref();
        if let Some(made) = declared.and_then(|schema| coerced(schema, &slot.call.arguments)) {
            rewrite(slot, made);
        }
        let Particulars { granted, edited, .. } = slot.particulars();
        if cx.ports.gates.is_empty() && !def.requires_approval && !granted && !edited {
            return true;
        }
        slot.progress = Progress::Asking;
        self.issue(cx, Pending::Arguments(at));
        false
    }

    /// Answers a call of something that is not offered.
    fn refuse_unknown(&mut self, spec: &TurnSpec, cx: &mut Cx<'_>, at: u32) {
        let tools = self.prepared.iter().flat_map(|prepared| prepared.tools.iter());
        let names = tools.map(|def| format!("`{}`", def.name)).collect::<Vec<_>>().join(", ");
        let Some(slot) = self.batch.as_ref().and_then(|batch| batch.slot(at)) else { return };
        let name = &slot.call.name;
        let text = if names.is_empty() {
            format!("There is no tool named `{name}`; no tool is available.")
        } else {
            format!("There is no tool named `{name}`. Available: {names}.")
        };
        self.answer_call(spec, cx, at, ToolOutcome::error("unknown_tool", text));
    }

    /// Answers a call whose arguments nobody could read.
    fn refuse_unreadable(&mut self, spec: &TurnSpec, cx: &mut Cx<'_>, at: u32) {
        const MOST_SHOWN: usize = 200;
        let Some(slot) = self.batch.as_ref().and_then(|batch| batch.slot(at)) else { return };
        let raw = slot.call.raw_arguments.as_deref().unwrap_or_else(|| slot.call.arguments.text());
        let shown: String = raw.chars().take(MOST_SHOWN).collect();
        let text = format!("The arguments are not JSON: {shown}");
        self.answer_call(spec, cx, at, ToolOutcome::error("malformed_arguments", text));
    }

    pub(super) fn on_arguments(
        &mut self,
        spec: &TurnSpec,
        cx: &mut Cx<'_>,
        at: u32,
        result: Result<(), ArgumentFault>,
    ) -> Option<End> {
        match result {
            Ok(()) => {
                let slot = self.batch.as_mut().and_then(|batch| batch.slot_mut(at));
                let gate = slot
                    .map(|slot| std::mem::take(&mut slot.particulars_mut().next_gate))
                    .unwrap_or_default();
                self.ask_gate(spec, cx, at, gate);
            }
            Err(fault) => {
                self.answer_call(spec, cx, at, ToolOutcome::error("invalid_arguments", fault.to_string()));
            }
        }
        self.run_batch(spec, cx)
    }

    /// A gate has nothing against the call: the next one is asked.
    fn pass_gate(&mut self, spec: &TurnSpec, cx: &mut Cx<'_>, at: u32, (gate, point): (u32, Point)) {
        if point != Point::Prepare {
            return self.ask_gate(spec, cx, at, gate + 1);
        }
        match cx.ports.next_gate(Point::Prepare, gate + 1) {
            Some(next) => self.issue(cx, Pending::Gate(at, next, Point::Prepare)),
            // There is a gate, so the call is never ready at once.
            None => {
                self.validate_call(spec, cx, at);
            }
        }
    }

    /// Asks the next gate from `gate` on; behind the last one the call is held or ready.
    fn ask_gate(&mut self, spec: &TurnSpec, cx: &mut Cx<'_>, at: u32, gate: u32) {
        let point = self.point_of(at);
        if let Some(gate) = cx.ports.next_gate(point, gate) {
            return self.issue(cx, Pending::Gate(at, gate, point));
        }
        let Some(slot) = self.batch.as_ref().and_then(|batch| batch.slot(at)) else { return };
        if slot.particulars().granted {
            return self.redeem(spec, cx, at);
        }
        let demanded = self.def_of(slot).is_some_and(|def| def.requires_approval);
        match (slot.particulars().held.is_some(), slot.particulars().edited, demanded) {
            (true, true, _) => {
                let text = "Denied: the changed arguments would need another approval.";
                self.answer_call(spec, cx, at, ToolOutcome::error("tool_blocked", text));
            }
            (false, true, _) | (false, false, false) => self.set(at, Progress::Ready),
            (true, false, _) | (false, false, true) => self.ask_approver(cx, at),
        }
    }

    /// Runs a call that was approved while it was parked, if it is still what was approved: the same tool
    /// with the same contract and the same arguments.
    fn redeem(&mut self, spec: &TurnSpec, cx: &mut Cx<'_>, at: u32) {
        let Some(slot) = self.batch.as_ref().and_then(|batch| batch.slot(at)) else { return };
        let is_approved =
            self.def_of(slot).zip(slot.particulars().parked_as.as_deref()).is_some_and(|(def, parked)| {
                let now = CallDigest::of(parked.run.as_ref(), &slot.call.id, def, &slot.call.arguments);
                now == parked.digest
            });
        if is_approved {
            return self.set(at, Progress::Ready);
        }
        let text = "Denied: the approval was given for another call. Ask for it again.";
        self.answer_call(spec, cx, at, ToolOutcome::error("approval_mismatch", text));
    }

    fn ask_approver(&mut self, cx: &mut Cx<'_>, at: u32) {
        let Some(slot) = self.batch.as_ref().and_then(|batch| batch.slot(at)) else { return };
        let Some(proposed) = self.proposed(cx, slot).map(|proposed| proposed.held(slot.hold_reason())) else {
            return;
        };
        cx.event(|| requested(&proposed.request(), Some(proposed.digest())));
        if cx.ports.approver {
            self.issue(cx, Pending::Approve(at));
        } else {
            self.set(at, Progress::Parked);
        }
    }

    /// What gates are asked about a call.
    fn point_of(&self, at: u32) -> Point {
        let def = self.batch.as_ref().and_then(|batch| self.def_of(batch.slot(at)?));
        match def.map(|def| &def.kind) {
            Some(ToolKind::Handoff(_)) => Point::Handoff,
            Some(ToolKind::Function) | None => Point::Call,
        }
    }

    /// A gate has decided about a call, or failed to.
    pub(super) fn on_gate(
        &mut self,
        spec: &TurnSpec,
        cx: &mut Cx<'_>,
        (at, gate, point): (u32, u32, Point),
        asked: Answered<GateDecision>,
    ) -> Option<End> {
        let slot = self.batch.as_mut().and_then(|batch| batch.slot_mut(at))?;
        let (name, verdict) = cx.take_gate((gate, point), slot.call.id.clone(), asked);
        match verdict {
            GateVerdict::Allow => self.pass_gate(spec, cx, at, (gate, point)),
            GateVerdict::Rewrite(arguments) if point == Point::Prepare => {
                rewrite(slot, arguments);
                self.pass_gate(spec, cx, at, (gate, point));
            }
            GateVerdict::Rewrite(arguments) => {
                // What a gate put in place is checked like what a model wrote, before anybody else sees it.
                rewrite(slot, arguments);
                slot.particulars_mut().next_gate = gate + 1;
                self.issue(cx, Pending::Arguments(at));
            }
            GateVerdict::Hold { reason } => {
                slot.particulars_mut().held.get_or_insert(reason);
                self.pass_gate(spec, cx, at, (gate, point));
            }
            GateVerdict::Deny { message } => {
                self.answer_call(spec, cx, at, ToolOutcome::error("tool_blocked", message));
            }
            GateVerdict::Halt { message, reason } => {
                let (call, tool) = (slot.call.id.clone(), slot.call.name.clone());
                let evidence = Evidence::Gate { gate: name, call, tool, reason };
                self.answer_call(spec, cx, at, ToolOutcome::error("tool_blocked", message));
                self.stop(Stop::new(StopReason::PolicyDenied, evidence));
            }
        }
        self.run_batch(spec, cx)
    }

    pub(super) fn on_decision(
        &mut self,
        spec: &TurnSpec,
        cx: &mut Cx<'_>,
        at: u32,
        decision: Decision,
    ) -> Option<End> {
        let slot = self.batch.as_mut().and_then(|batch| batch.slot_mut(at))?;
        emit_decision(cx, slot.call.id.clone(), &decision);
        match decision {
            Decision::Granted => self.set(at, Progress::Ready),
            Decision::Later => self.set(at, Progress::Parked),
            Decision::Denied { reason } => {
                let text = format!("Denied: {reason}");
                self.answer_call(spec, cx, at, ToolOutcome::error("tool_blocked", text));
            }
            Decision::Edited(arguments) => {
                rewrite(slot, arguments);
                slot.particulars_mut().edited = true;
                slot.particulars_mut().held = None;
                self.issue(cx, Pending::Arguments(at));
            }
        }
        self.run_batch(spec, cx)
    }
}

/// The event of a request: of the model's own, or about a call with that digest.
pub(super) fn requested(request: &ApprovalRequest, digest: Option<CallDigest>) -> EventKind {
    let (request, approval) = (Box::new(request.clone()), digest.as_ref().map(CallDigest::approval));
    EventKind::ApprovalRequested { request, approval, digest }
}

pub(super) fn emit_decision(cx: &mut Cx<'_>, call: CallId, decision: &Decision) {
    let (told, reason) = match decision {
        Decision::Granted => ("granted", None),
        Decision::Edited(_) => ("edited", None),
        Decision::Denied { reason } => ("denied", Some(reason.clone())),
        Decision::Later => ("later", None),
    };
    cx.event(|| EventKind::ApprovalDecided { call, decision: told.to_owned(), reason });
}

/// Refuses arguments that no tool could take. Before anything else looks at them: each look costs their length.
fn out_of_bounds(arguments: &Json) -> Option<ToolOutcome> {
    let size = arguments.text().len();
    let text = if arguments.is_deeper_than(MAX_ARGUMENT_DEPTH) {
        format!(
            "The arguments are nested more than {MAX_ARGUMENT_DEPTH} levels deep. The call did not run. Pass flatter \
             arguments."
        )
    } else if size > MAX_ARGUMENT_BYTES {
        format!(
            "The arguments have {size} bytes; the limit is {MAX_ARGUMENT_BYTES}. The call did not run. Pass less data, \
             for example in several calls."
        )
    } else {
        return None;
    };
    Some(ToolOutcome::error("arguments_out_of_bounds", text))
}

pub(super) fn rewrite(slot: &mut CallState, arguments: Json) {
    let mut call = ToolCall::clone(&slot.call);
    call.arguments = arguments;
    if call.raw_arguments.is_some() {
        call.raw_arguments = None;
    }
    slot.call = Arc::new(call);
    slot.particulars_mut().rewritten = true;
}
