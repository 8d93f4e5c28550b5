//! The steps between a call and its execution: preparation, arguments, gates, approval.
//!
//! After a hold the remaining gates still decide, and the first denial ends it, so a person is never asked about a call
//! that a policy denies.

use std::ops::ControlFlow::Continue;
use std::sync::Arc;

use super::batch::{Batch, CallState, Finished, Progress};
use super::results::not_performed;
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

/// Levels of lists and objects in the arguments of a call. JSON parsers have the same bound.
pub const MAX_ARGUMENT_DEPTH: usize = 128;

/// Bytes of the arguments of a call. Within this bound they are compared, hashed and validated inline.
pub const MAX_ARGUMENT_BYTES: usize = 1024 * 1024;

impl Batch {
    /// Takes a call to its gates.
    pub(super) fn prepare(&mut self, turn: &mut TurnCx<'_>, at: u32) -> Step<()> {
        let Some(slot) = self.slot_mut(at) else { return Continue(()) };
        if let Some(refusal) = refusal(slot, turn.data.tools()) {
            let finished = not_performed(slot, refusal);
            return self.finish(turn, at, finished);
        }
        // It passed them when it started.
        if slot.work.is_some() {
            slot.progress = Progress::Ready;
            return Continue(());
        }
        // What a person wrote needs no preparation.
        if !slot.edited
            && let Some(gate) = turn.cx.ports.next_gate(Point::Prepare, 0)
        {
            slot.progress = Progress::Asking;
            self.ask(turn, at, gate, Point::Prepare);
            return Continue(());
        }
        self.validate(turn, at)
    }

    /// Takes a call with prepared arguments to their validation. Without gates and approval it is ready at once.
    fn validate(&mut self, turn: &mut TurnCx<'_>, at: u32) -> Step<()> {
        let Some(slot) = self.slot_mut(at) else { return Continue(()) };
        let Some(def) = slot.def_in(turn.data.tools()) else { return Continue(()) };
        // A gate or a person may have replaced them.
        if let Some(refusal) = out_of_bounds(&slot.call.arguments) {
            return self.answer(turn, at, refusal);
        }
        let declared = def.input_schema.as_ref();
        if let Some(made) = declared.and_then(|schema| coerced(schema, &slot.call.arguments)) {
            slot.rewrite(made);
        }
        let is_approved = slot.granted || slot.edited;
        if turn.cx.ports.gates.is_empty() && !def.requires_approval && !is_approved {
            slot.progress = Progress::Ready;
            return Continue(());
        }
        slot.progress = Progress::Asking;
        check_arguments(&mut turn.cx, at, slot);
        Continue(())
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
                let gate = std::mem::take(&mut slot.next_gate);
                self.ask_gate(turn, at, gate)
            }
            Err(fault) => self.answer(turn, at, ToolOutcome::error("invalid_arguments", fault.to_string())),
        }
    }

    /// Decides on a call with one gate.
    fn ask(&self, turn: &mut TurnCx<'_>, at: u32, gate: u32, point: Point) {
        if let Some(proposed) = self.slot(at).and_then(|slot| proposed(turn, slot)) {
            let proposed = Box::new(proposed);
            turn.cx.perform(Pending::Gate(at, gate, point), Op::Gate { gate, proposed });
        }
    }

    /// Continues behind a gate that lets the call pass.
    fn pass_gate(&mut self, turn: &mut TurnCx<'_>, at: u32, (gate, point): (u32, Point)) -> Step<()> {
        if point != Point::Prepare {
            return self.ask_gate(turn, at, gate + 1);
        }
        match turn.cx.ports.next_gate(Point::Prepare, gate + 1) {
            Some(next) => {
                self.ask(turn, at, next, Point::Prepare);
                Continue(())
            }
            None => self.validate(turn, at),
        }
    }

    /// Decides with the next gate at or after `gate`; behind the last one the call is held or ready.
    fn ask_gate(&mut self, turn: &mut TurnCx<'_>, at: u32, gate: u32) -> Step<()> {
        let Some(slot) = self.slots.get_mut(at as usize) else { return Continue(()) };
        let def = slot.def_in(turn.data.tools());
        let is_handoff = def.is_some_and(|def| matches!(def.kind, ToolKind::Handoff(_)));
        let point = if is_handoff { Point::Handoff } else { Point::Call };
        if let Some(gate) = turn.cx.ports.next_gate(point, gate) {
            self.ask(turn, at, gate, point);
            return Continue(());
        }
        if slot.granted {
            return self.redeem(turn, at);
        }
        let demanded = def.is_some_and(|def| def.requires_approval);
        match (slot.held.is_some(), slot.edited) {
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
        let approved = slot.parked_as.as_deref();
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

    /// Takes the decision of a gate, or its failure.
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
                slot.next_gate = gate + 1;
                check_arguments(&mut turn.cx, at, slot);
                Continue(())
            }
            GateVerdict::Hold { reason } => {
                slot.held.get_or_insert(reason);
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
                slot.attempt = 0;
                return self.finish(turn, at, Finished::denied(&reason));
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
    Some(ProposedCall {
        call: Arc::clone(&slot.call),
        def,
        agent: turn.data.agent_id(),
        iteration: turn.cx.sh.iteration,
        origin: Arc::clone(&turn.cx.sh.origin),
        reason: String::new(),
    })
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

/// The outcome of a call that cannot run: its tool is unknown, or its arguments are malformed or out of bounds.
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
    let (name, reason) = match decision {
        Decision::Granted => ("granted", None),
        Decision::Edited(_) => ("edited", None),
        Decision::Denied { reason } => ("denied", Some(reason.clone())),
        Decision::Later => ("later", None),
    };
    cx.event(|| EventKind::ApprovalDecided { call, decision: name.to_owned(), reason });
}

/// Rejects arguments that are out of bounds, before anything else reads them.
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
