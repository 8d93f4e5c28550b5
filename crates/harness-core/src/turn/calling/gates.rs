//! What stands between a call and its execution: preparation, arguments, gates, approval.
//!
//! A hold still asks the remaining gates, and the first denial ends it, so a person is never asked about
//! a call that a policy refuses anyway.

use std::ops::ControlFlow::Continue;
use std::sync::Arc;

use super::batch::{Batch, CallState, Progress};
use crate::decide::{Answered, GateDecision, GateVerdict, Point};
use crate::event::EventKind;
use crate::ids::{CallDigest, CallId};
use crate::json::Json;
use crate::machine::{Cx, Op, Pending};
use crate::message::ApprovalRequest;
use crate::outcome::{Evidence, StopReason};
use crate::port::{Decision, ProposedCall};
use crate::tool::{ArgumentFault, ToolDef, ToolKind, ToolOutcome, coerced};
use crate::turn::stage::{Step, stop};
use crate::turn::state::TurnCx;

/// Levels of lists and objects in the arguments of a call. JSON readers give up there, too.
pub const MAX_ARGUMENT_DEPTH: usize = 128;

/// Bytes of the arguments of a call: what is bounded by it can be compared, hashed and checked at once, without a task
/// that waits for it.
pub const MAX_ARGUMENT_BYTES: usize = 1024 * 1024;

impl Batch {
    /// Takes a call to its gates. Whether nothing holds it and it may run;
    /// then it is for the caller to say so.
    pub(super) fn prepare(&mut self, turn: &mut TurnCx<'_>, at: u32) -> Step<bool> {
        let Some(slot) = self.slot_mut(at) else { return Continue(false) };
        if let Some(refusal) = refusal(slot, turn.data.tools()) {
            self.answer(turn, at, refusal)?;
            return Continue(false);
        }
        // What a person wrote needs no preparation.
        if !slot.particulars().edited
            && let Some(gate) = turn.cx.ports.next_gate(Point::Prepare, 0)
        {
            slot.progress = Progress::Asking;
            self.ask(turn, at, gate, Point::Prepare);
            return Continue(false);
        }
        self.validate(turn, at)
    }

    /// Takes a call with prepared arguments to their check. Whether nothing has to look at it and it may run.
    fn validate(&mut self, turn: &mut TurnCx<'_>, at: u32) -> Step<bool> {
        let Some(slot) = self.slot_mut(at) else { return Continue(false) };
        let Some(def) = slot.def_in(turn.data.tools()) else { return Continue(false) };
        // A gate or a person may have put others in place.
        if let Some(refusal) = out_of_bounds(&slot.call.arguments) {
            self.answer(turn, at, refusal)?;
            return Continue(false);
        }
        let declared = def.input_schema.as_ref();
        if let Some(made) = declared.and_then(|schema| coerced(schema, &slot.call.arguments)) {
            slot.rewrite(made);
        }
        let particulars = slot.particulars();
        let is_approved = particulars.granted || particulars.edited;
        if turn.cx.ports.gates.is_empty() && !def.requires_approval && !is_approved {
            return Continue(true);
        }
        slot.progress = Progress::Asking;
        check_arguments(&mut turn.cx, at, slot);
        Continue(false)
    }

    pub(super) fn on_arguments(
        &mut self,
        turn: &mut TurnCx<'_>,
        at: u32,
        result: Result<(), Box<ArgumentFault>>,
    ) -> Step<()> {
        match result {
            Ok(()) => {
                let Some(slot) = self.slot_mut(at) else { return Continue(()) };
                let gate = std::mem::take(&mut slot.particulars_mut().next_gate);
                self.ask_gate(turn, at, gate)
            }
            Err(fault) => self.answer(turn, at, ToolOutcome::error("invalid_arguments", fault.to_string())),
        }
    }

    /// Asks one gate.
    fn ask(&self, turn: &mut TurnCx<'_>, at: u32, gate: u32, point: Point) {
        if let Some(proposed) = self.slot(at).and_then(|slot| proposed(turn, slot)) {
            let proposed = Box::new(proposed);
            turn.cx.perform(Pending::Gate(at, gate, point), Op::Gate { gate, proposed });
        }
    }

    /// A gate has nothing against the call: the next one is asked.
    fn pass_gate(&mut self, turn: &mut TurnCx<'_>, at: u32, (gate, point): (u32, Point)) -> Step<()> {
        if point != Point::Prepare {
            return self.ask_gate(turn, at, gate + 1);
        }
        match turn.cx.ports.next_gate(Point::Prepare, gate + 1) {
            Some(next) => self.ask(turn, at, next, Point::Prepare),
            // There is a gate, so the call is never ready at once.
            None => {
                self.validate(turn, at)?;
            }
        }
        Continue(())
    }

    /// Asks the next gate from `gate` on; behind the last one the call is held or ready.
    fn ask_gate(&mut self, turn: &mut TurnCx<'_>, at: u32, gate: u32) -> Step<()> {
        let Some(slot) = self.slots.get_mut(at as usize) else { return Continue(()) };
        let def = slot.def_in(turn.data.tools());
        let is_handoff = def.is_some_and(|def| matches!(def.kind, ToolKind::Handoff(_)));
        let point = if is_handoff { Point::Handoff } else { Point::Call };
        if let Some(gate) = turn.cx.ports.next_gate(point, gate) {
            self.ask(turn, at, gate, point);
            return Continue(());
        }
        let particulars = slot.particulars();
        if particulars.granted {
            return self.redeem(turn, at);
        }
        let demanded = def.is_some_and(|def| def.requires_approval);
        match (particulars.held.is_some(), particulars.edited) {
            (true, true) => {
                let text = "Denied: the changed arguments would need another approval.";
                return self.answer(turn, at, ToolOutcome::error("tool_blocked", text));
            }
            (false, true) => slot.progress = Progress::Ready,
            (false, false) if !demanded => slot.progress = Progress::Ready,
            (_, false) => ask_approver(turn, at, slot),
        }
        Continue(())
    }

    /// Runs a call that was approved while it was parked, if it is still what was approved: the same tool
    /// with the same contract and the same arguments.
    fn redeem(&mut self, turn: &mut TurnCx<'_>, at: u32) -> Step<()> {
        let Some(slot) = self.slot_mut(at) else { return Continue(()) };
        let approved = slot.particulars().parked_as.as_deref();
        let def = slot.def_in(turn.data.tools());
        let is_approved = def.zip(approved).is_some_and(|(def, parked)| {
            let now = CallDigest::of(parked.run.as_ref(), &slot.call.id, def, &slot.call.arguments);
            now == parked.digest
        });
        if is_approved {
            slot.progress = Progress::Ready;
            return Continue(());
        }
        let text = "Denied: the approval was given for another call. Ask for it again.";
        self.answer(turn, at, ToolOutcome::error("approval_mismatch", text))
    }

    /// A gate has decided about a call, or failed to.
    pub(super) fn on_gate(
        &mut self,
        turn: &mut TurnCx<'_>,
        (at, gate, point): (u32, u32, Point),
        asked: Answered<GateDecision>,
    ) -> Step<()> {
        let Some(slot) = self.slot_mut(at) else { return Continue(()) };
        let (name, verdict) = turn.cx.take_gate((gate, point), slot.call.id.clone(), asked);
        match verdict {
            GateVerdict::Allow => self.pass_gate(turn, at, (gate, point)),
            GateVerdict::Rewrite(arguments) if point == Point::Prepare => {
                slot.rewrite(arguments);
                self.pass_gate(turn, at, (gate, point))
            }
            GateVerdict::Rewrite(arguments) => {
                // What a gate put in place is checked like what a model wrote, before anybody else sees it.
                slot.rewrite(arguments);
                slot.particulars_mut().next_gate = gate + 1;
                check_arguments(&mut turn.cx, at, slot);
                Continue(())
            }
            GateVerdict::Hold { reason } => {
                slot.particulars_mut().held.get_or_insert(reason);
                self.pass_gate(turn, at, (gate, point))
            }
            GateVerdict::Deny { message } => {
                self.answer(turn, at, ToolOutcome::error("tool_blocked", message))
            }
            GateVerdict::Halt { message, reason } => {
                let (call, tool) = (slot.call.id.clone(), slot.call.name.clone());
                self.answer(turn, at, ToolOutcome::error("tool_blocked", message))?;
                stop(StopReason::PolicyDenied, Evidence::Gate { gate: name, call, tool, reason })
            }
        }
    }

    pub(super) fn on_decision(&mut self, turn: &mut TurnCx<'_>, at: u32, decision: Decision) -> Step<()> {
        let Some(slot) = self.slot_mut(at) else { return Continue(()) };
        emit_decision(&mut turn.cx, slot.call.id.clone(), &decision);
        match decision {
            Decision::Granted => slot.progress = Progress::Ready,
            Decision::Later => slot.progress = Progress::Parked,
            Decision::Denied { reason } => {
                let text = format!("Denied: {reason}");
                return self.answer(turn, at, ToolOutcome::error("tool_blocked", text));
            }
            Decision::Edited(arguments) => {
                slot.edit(arguments);
                check_arguments(&mut turn.cx, at, slot);
            }
        }
        Continue(())
    }
}

/// A call as gates and approvers see it; `None` when nothing of its name is offered.
fn proposed(turn: &TurnCx<'_>, slot: &CallState) -> Option<ProposedCall> {
    let def = slot.def_in(turn.data.tools())?.clone();
    let (agent, iteration) = (turn.data.agent_id(), turn.cx.sh.iteration);
    let proposed = ProposedCall::new(Arc::clone(&slot.call), def, agent, iteration);
    Some(proposed.in_work_of(Arc::clone(&turn.cx.sh.origin)))
}

fn check_arguments(cx: &mut Cx<'_>, at: u32, slot: &CallState) {
    cx.perform(Pending::Arguments(at), Op::Arguments { call: Arc::clone(&slot.call) });
}

fn ask_approver(turn: &mut TurnCx<'_>, at: u32, slot: &mut CallState) {
    let Some(proposed) = proposed(turn, slot) else { return };
    let proposed = Box::new(proposed.held(slot.hold_reason()));
    turn.cx.event(|| requested(&proposed.request(), Some(proposed.digest())));
    if turn.cx.ports.approver {
        turn.cx.perform(Pending::Approve(at), Op::Approve { proposed });
    } else {
        slot.progress = Progress::Parked;
    }
}

/// What answers a call that is asked for in a way that nothing could run: of something that is not offered, or with
/// arguments that nobody can read or no tool could take.
fn refusal(slot: &CallState, tools: &[ToolDef]) -> Option<ToolOutcome> {
    const MOST_SHOWN: usize = 200;
    let call = &slot.call;
    if slot.def_in(tools).is_none() {
        let names = tools.iter().map(|def| format!("`{}`", def.name)).collect::<Vec<_>>().join(", ");
        let text = if names.is_empty() {
            format!("There is no tool named `{}`; no tool is available.", call.name)
        } else {
            format!("There is no tool named `{}`. Available: {names}.", call.name)
        };
        return Some(ToolOutcome::error("unknown_tool", text));
    }
    if call.arguments_mode.as_deref() == Some("invalid") {
        let raw = call.raw_arguments.as_deref().unwrap_or_else(|| call.arguments.text());
        let shown: String = raw.chars().take(MOST_SHOWN).collect();
        let text = format!("The arguments are not JSON: {shown}");
        return Some(ToolOutcome::error("malformed_arguments", text));
    }
    out_of_bounds(&call.arguments)
}

/// The event of a request: of the model's own, or about a call with that digest.
pub(in crate::turn) fn requested(request: &ApprovalRequest, digest: Option<CallDigest>) -> EventKind {
    let (request, approval) = (Box::new(request.clone()), digest.as_ref().map(CallDigest::approval));
    EventKind::ApprovalRequested { request, approval, digest }
}

pub(in crate::turn) fn emit_decision(cx: &mut Cx<'_>, call: CallId, decision: &Decision) {
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
