//! Tool steps: one call, behind the same gates as a model's.

use std::pin::pin;
use std::sync::Arc;

use futures_util::future::{Either, select};
use harness_core::decide::{DecideCx, GateDecision, GateVerdict, Point};
use harness_core::limits::Grant;
use harness_core::message::{Cost, ToolCall};
use harness_core::port::{ApprovalAsk, Decision, ProposedCall};
use harness_core::tool::{DynTool, RetryClass, ToolCx, ToolDef, ToolOutcome};
use harness_core::{CallId, GateName, Json, Millis, Origin};
use serde::ser::SerializeMap as _;

use super::context::StepCx;
use super::error::FlowError;
use super::hooks::{FlowEvent, StepInfo};
use super::shared_budget::{amount, sum};
use super::step::StepKind;
use crate::ended::cancelled;

/// Time for a tool to return after an abort.
const GRACE: Millis = Millis(2_000);

pub(super) async fn perform(
    id: &Arc<str>,
    tool: &Arc<dyn DynTool>,
    fixed: &Json,
    input: Json,
    cx: &StepCx,
) -> Result<Json, FlowError> {
    let def = tool.tool_def();
    let arguments = overlaid(&input, fixed).map_err(|problem| FlowError::failed(id, problem))?;
    let call_id = CallId::from(format!("{}{}", cx.execution(), cx.path()));
    let call = Arc::new(ToolCall::new(call_id, def.name.clone(), arguments));
    let call = admit(id, tool, call, cx).await?;
    let want = sum(def.share, amount(0, 1, 0, Cost(0)));
    let reserved = cx
        .shared_budget()
        .reserve(want)
        .map_err(|reached| FlowError::BudgetExceeded { step: Arc::clone(id), reached })?;
    start(id, tool, cx).await?;
    let mut tool_cx = ToolCx::for_call(call);
    tool_cx.origin = Arc::new(origin(cx));
    tool_cx.grant = Grant(def.share);
    tool_cx.cancel = cx.cancel().clone();
    let outcome = called(id, tool, tool_cx, cx).await;
    let used = outcome.as_ref().map(spent).unwrap_or_default();
    let used = sum(used, amount(0, 1, 0, Cost(0)));
    reserved.settle(used);
    cx.note_spent(used);
    output(id, outcome?)
}

fn origin(cx: &StepCx) -> Origin {
    let mut origin = Origin::default();
    origin.thread = cx.thread().cloned();
    origin.run = Some(cx.execution().clone());
    origin
}

/// A call before it is made. The order is that of a turn: preparing gates, argument validation, deciding gates,
/// approver. Replaced arguments are validated again.
struct Admission<'a> {
    id: &'a Arc<str>,
    tool: &'a Arc<dyn DynTool>,
    cx: &'a StepCx,
    origin: Arc<Origin>,
    call: Arc<ToolCall>,
    /// Reason of the first hold, by a gate or by the tool.
    hold: Option<String>,
}

impl Admission<'_> {
    fn check(&self) -> Result<(), FlowError> {
        let checked = self.tool.check_dyn(&self.call.arguments);
        checked.map_err(|fault| FlowError::failed(self.id, fault.to_string()))
    }

    async fn ask_gates(&mut self, point: Point) -> Result<(), FlowError> {
        let log = self.cx.context().log.lock().transcript().prefix();
        let gates = &self.cx.shared().runner.gates;
        for gate in gates.iter().filter(|gate| gate.guard().points.has(point)) {
            let proposed = proposed(&self.call, self.tool.tool_def(), &self.origin);
            let (clock, cancel) = (self.cx.shared().clock(), self.cx.cancel().clone());
            let cx = DecideCx::new(log.clone(), Arc::clone(&self.origin), cancel, clock.now());
            let decision = match gate.decide(&proposed, &cx, clock).await.answer {
                Ok(decision) => decision,
                Err(fault) => gate.guard().without_answer(&fault).into(),
            };
            self.take(gate.guard().name.clone(), point, decision)?;
        }
        Ok(())
    }

    fn take(&mut self, gate: GateName, point: Point, decision: GateDecision) -> Result<(), FlowError> {
        let (step, tool) = (Arc::clone(self.id), self.tool.tool_def().name.clone());
        let GateDecision { verdict, facts } = decision;
        self.announce(&gate, &verdict, facts);
        match verdict {
            GateVerdict::Allow => Ok(()),
            GateVerdict::Rewrite(arguments) => {
                self.call = with_arguments(&self.call, arguments);
                if point == Point::Prepare { Ok(()) } else { self.check() }
            }
            GateVerdict::Hold { reason } => {
                self.hold.get_or_insert(reason);
                Ok(())
            }
            GateVerdict::Deny { message } => Err(FlowError::Denied { step, tool, message }),
            GateVerdict::Halt { reason, .. } => {
                self.cx.shared().cancel.cancel_with(format!("gate `{gate}` halted the execution: {reason}"));
                Err(FlowError::Halted { step, tool, gate, reason })
            }
        }
    }

    fn announce(&self, gate: &GateName, verdict: &GateVerdict, facts: Option<Json>) {
        if *verdict == GateVerdict::Allow && facts.is_none() {
            return;
        }
        let step =
            StepInfo { path: Arc::clone(self.cx.path()), id: Arc::clone(self.id), kind: StepKind::Tool };
        let (gate, reason, verdict) = (gate.clone(), verdict.reason().map(str::to_owned), verdict.as_str());
        self.cx.shared().emit(&FlowEvent::GateDecided { step, gate, verdict, reason, facts });
    }
}

/// Runs the gates, then the approver for a held call or a tool that requires approval.
async fn admit(
    id: &Arc<str>,
    tool: &Arc<dyn DynTool>,
    call: Arc<ToolCall>,
    cx: &StepCx,
) -> Result<Arc<ToolCall>, FlowError> {
    let (def, runner, origin) = (tool.tool_def(), &cx.shared().runner, Arc::new(origin(cx)));
    let hold = def.requires_approval.then(|| "the tool demands approval".to_owned());
    let mut admission = Admission { id, tool, cx, origin: Arc::clone(&origin), call, hold };
    admission.ask_gates(Point::Prepare).await?;
    admission.check()?;
    admission.ask_gates(Point::Call).await?;
    let denied =
        |message: String| FlowError::Denied { step: Arc::clone(id), tool: def.name.clone(), message };
    let Admission { call, hold, .. } = &admission;
    let Some(reason) = hold.clone() else { return Ok(Arc::clone(call)) };
    let waits = |message: String| {
        let (step, tool, call) = (Arc::clone(id), def.name.clone(), call.id.clone());
        FlowError::AwaitingApproval { step, tool, call, message }
    };
    let Some(approver) = &runner.approver else { return Err(waits(reason)) };
    let proposed = proposed(call, def, &origin).held(reason.clone());
    let ask = ApprovalAsk { proposed, cancel: cx.cancel().clone() };
    match approver.decide_boxed(ask).await {
        Decision::Granted => Ok(Arc::clone(call)),
        Decision::Edited(arguments) => {
            admission.call = with_arguments(call, arguments);
            admission.check()?;
            Ok(admission.call)
        }
        Decision::Denied { reason } => Err(denied(reason)),
        Decision::Later => Err(waits(reason)),
    }
}

fn proposed(call: &Arc<ToolCall>, def: &ToolDef, origin: &Arc<Origin>) -> ProposedCall {
    let proposed = ProposedCall::new(Arc::clone(call), def.clone(), "flow".into(), 1);
    ProposedCall { origin: Arc::clone(origin), ..proposed }
}

fn with_arguments(call: &ToolCall, arguments: Json) -> Arc<ToolCall> {
    Arc::new(ToolCall::new(call.id.clone(), call.name.clone(), arguments))
}

/// Records the start of an `unsafe` call; rejects one with an unknown result from an earlier process.
async fn start(id: &Arc<str>, tool: &Arc<dyn DynTool>, cx: &StepCx) -> Result<(), FlowError> {
    let def = tool.tool_def();
    let context = cx.context();
    let Some(ledger) = context.shared.ledger.as_ref().filter(|_| context.recorded) else { return Ok(()) };
    if def.class != RetryClass::Unsafe {
        return Ok(());
    }
    if ledger.has_open_call(cx.path()) {
        return Err(FlowError::OutcomeUnknown { step: Arc::clone(id), tool: def.name.clone() });
    }
    let recorded = ledger.start_call(cx.path(), context).await;
    recorded.map_err(|error| {
        FlowError::failed(id, format!("call not made because its start could not be recorded: {error}"))
    })
}

/// Makes the call. After an abort its result is accepted within the grace period.
async fn called(
    id: &Arc<str>,
    tool: &Arc<dyn DynTool>,
    tool_cx: ToolCx,
    cx: &StepCx,
) -> Result<ToolOutcome, FlowError> {
    use futures_util::FutureExt as _;
    let clock = cx.shared().clock();
    let given_up = async {
        let reason = cancelled(cx.cancel()).await;
        clock.sleep_until(clock.now().after(GRACE)).await;
        reason
    };
    let call = std::panic::AssertUnwindSafe(async { tool.call_boxed(tool_cx).await }).catch_unwind();
    match select(pin!(call), pin!(given_up)).await {
        Either::Left((Ok(outcome), _)) => Ok(outcome),
        Either::Left((Err(panic), _)) => {
            Err(FlowError::failed(id, format!("it panicked: {}", super::dispatch::panic_text(&*panic))))
        }
        Either::Right((reason, _)) => Err(FlowError::Cancelled { reason }),
    }
}

fn spent(outcome: &ToolOutcome) -> harness_core::limits::Amount {
    let usage = outcome.usage.as_ref();
    let cost = usage.and_then(|usage| usage.total_cost()).unwrap_or_default();
    sum(outcome.spent, amount(0, 0, usage.map_or(0, |usage| usage.all_tokens()), cost))
}

fn output(id: &Arc<str>, outcome: ToolOutcome) -> Result<Json, FlowError> {
    let text = || outcome.content.iter().filter_map(|block| block.as_text()).collect::<String>();
    if outcome.is_error() {
        let cause = match &outcome.error {
            Some(error) => format!("{}: {}", error.code, error.message),
            None => text(),
        };
        return Err(FlowError::failed(id, cause));
    }
    Ok(outcome.structured.clone().unwrap_or_else(|| Json::string(&text())))
}

/// Overlays the entries of `input`, if it is an object, with those of `fixed`.
fn overlaid(input: &Json, fixed: &Json) -> Result<Json, String> {
    struct Entries(Vec<(String, Json)>);
    impl serde::Serialize for Entries {
        fn serialize<S: serde::Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
            let mut map = serializer.serialize_map(Some(self.0.len()))?;
            self.0.iter().try_for_each(|(key, value)| map.serialize_entry(key, value))?;
            map.end()
        }
    }
    let entries = |value: &Json| if value.is_object() { value.entries() } else { Ok(Vec::new()) };
    let problem = |error: serde_json::Error| format!("invalid arguments: {error}");
    let (mut all, over) = (entries(input).map_err(problem)?, entries(fixed).map_err(problem)?);
    all.retain(|(key, _)| !over.iter().any(|(other, _)| other == key));
    all.extend(over);
    Json::of(&Entries(all)).map_err(problem)
}
