//! Decisions of gates and checks: the meaning of a failure, and the event.

use super::Cx;
use crate::decide::{Answered, CheckDecision, CheckVerdict, GateDecision, GateVerdict, Guard, Point, Points};
use crate::event::EventKind;
use crate::ids::{CallId, GateName};
use crate::json::Json;
use crate::outcome::{Fault, FaultSource, StopMode};

use crate::time::Millis;

/// A verdict as it is emitted.
struct DecidedParts {
    verdict: &'static str,
    reason: Option<String>,
    facts: Option<Json>,
    took: Millis,
    fault: Option<Fault>,
}

impl Cx<'_> {
    /// Takes the decision of a gate about a call, or its failure, and emits it.
    pub(crate) fn take_gate(
        &mut self,
        (gate, point): (u32, Point),
        call: CallId,
        asked: Answered<GateDecision>,
    ) -> (GateName, GateVerdict) {
        let guard = guard(&self.ports.gates, gate, point);
        let Answered { answer, took } = asked;
        let (GateDecision { verdict, facts }, fault) = match answer {
            Ok(decision) => (decision, None),
            Err(fault) => (guard.without_answer(&fault).into(), Some(fault)),
        };
        let reason = verdict.reason().map(str::to_owned);
        let parts = DecidedParts { verdict: verdict.as_str(), reason, facts, took, fault };
        self.emit_decided(guard.name.clone(), point, Some(call), parts);
        (guard.name, verdict)
    }

    /// Takes the decision of a check, or its failure, and emits it. A verdict that is invalid at this point is a failure;
    /// a blank question is not. `call` is the one whose result is judged, `mode` that of the run whose end is.
    pub(crate) fn take_check(
        &mut self,
        (check, point): (u32, Point),
        call: Option<CallId>,
        mode: Option<StopMode>,
        asked: Answered<CheckDecision>,
    ) -> (GateName, CheckVerdict) {
        let guard = guard(&self.ports.checks, check, point);
        let Answered { answer, took } = asked;
        let (CheckDecision { verdict, facts }, fault) =
            match answer.and_then(|decision| fitting(decision, point)) {
                Ok(decision) => (decision, None),
                Err(fault) => (guard.check_without_answer(&fault, mode).into(), Some(fault)),
            };
        let reason = verdict.reason().map(str::to_owned);
        let parts = DecidedParts { verdict: verdict.as_str(), reason, facts, took, fault };
        self.emit_decided(guard.name.clone(), point, call, parts);
        (guard.name, verdict)
    }

    /// Emits the verdict of the control's own check of the end of a run.
    pub(crate) fn emit_own_check(&mut self, check: GateName, verdict: &'static str, reason: Option<String>) {
        let parts = DecidedParts { verdict, reason, facts: None, took: Millis(0), fault: None };
        self.emit_decided(check, Point::End, None, parts);
    }

    fn emit_decided(&mut self, by: GateName, point: Point, call: Option<CallId>, parts: DecidedParts) {
        let DecidedParts { verdict, reason, facts, took: duration, fault } = parts;
        let (point, verdict) = (point.as_str().into(), verdict.into());
        let fault = fault.map(Box::new);
        self.event(|| EventKind::Decided { by, point, call, verdict, reason, facts, duration, fault });
    }
}

fn guard(guards: &[Guard], at: u32, point: Point) -> Guard {
    guards.get(at as usize).cloned().unwrap_or_else(|| Guard::new("unknown", Points::of(point)))
}

fn fitting(mut decision: CheckDecision, point: Point) -> Result<CheckDecision, Fault> {
    if let CheckVerdict::Ask(question) = &mut decision.verdict {
        question.text = question.text.trim().to_owned();
        if question.text.is_empty() {
            decision.verdict = CheckVerdict::Accept;
        }
    }
    if decision.verdict.fits(point) {
        return Ok(decision);
    }
    let text = format!("`{}` means nothing at the point `{}`", decision.verdict.as_str(), point.as_str());
    Err(Fault::new(FaultSource::Gate, "verdict_out_of_place", text))
}
