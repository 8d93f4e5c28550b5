//! Flat trace events and a turn result as JSON, made from the events of a turn.
//!
//! The format is that of `@agent-assistant/harness`: consumers of its trace sink and its turn result read
//! these unchanged. `elapsedMs` is always filled.

use std::collections::VecDeque;
use std::sync::Arc;

use serde::ser::SerializeMap;
use serde::{Serialize, Serializer};

use super::fields::Fields;
use super::{Event, EventKind, Fold, ResultNote};
use crate::continuation::{Continuation, ContinuationKind};
use crate::ids::SessionId;
use crate::json::Json;
use crate::machine::Origin;
use crate::message::{Block, Cost, ToolCall, Usage};
use crate::outcome::{End, Evidence, Outcome, Purpose, Stop, StopReason, TotalUsage};
use crate::port::{ToolError, ToolOutcome};
use crate::time::{Millis, Time};
use crate::turn::evidence::{SPARSE_EVIDENCE, ThinEvidence};

/// Trace events that a [`TraceFold`] keeps when nothing else is said.
const KEPT: usize = 10_000;

/// One flat trace event.
///
/// As JSON: `type`, `timestamp`, `assistantId`, `turnId`, `workspaceId?`, `sessionId?`, `iteration`,
/// `toolCallCount`, `elapsedMs`, `metadata?`, and the fields of its type.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct TraceEvent {
    /// The trace name of the event.
    pub kind: &'static str,
    /// When.
    pub at: Time,
    /// Whose turn.
    pub origin: Arc<Origin>,
    /// The turn of the run, from 1; names the turn when its origin does not.
    pub turn: u32,
    /// The iteration; 0 before the first.
    pub iteration: u32,
    /// Calls of the turn that have started.
    pub tool_call_count: u32,
    /// Time since the turn began.
    pub elapsed: Millis,
    /// The fields of the type, by their trace names.
    pub fields: Vec<(&'static str, Json)>,
}

impl Serialize for TraceEvent {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let origin = &*self.origin;
        let mut map = serializer.serialize_map(None)?;
        map.serialize_entry("type", self.kind)?;
        map.serialize_entry("timestamp", &self.at.iso())?;
        map.serialize_entry("assistantId", origin.assistant.as_deref().unwrap_or_default())?;
        map.serialize_entry("turnId", &turn_id(origin, self.turn))?;
        if let Some(workspace) = &origin.workspace {
            map.serialize_entry("workspaceId", workspace)?;
        }
        if let Some(session) = &origin.session {
            map.serialize_entry("sessionId", session)?;
        }
        map.serialize_entry("iteration", &self.iteration)?;
        map.serialize_entry("toolCallCount", &self.tool_call_count)?;
        map.serialize_entry("elapsedMs", &self.elapsed)?;
        let own = self.fields.iter().any(|(key, _)| *key == "metadata");
        if let Some(metadata) = origin.metadata.as_ref().filter(|_| !own) {
            map.serialize_entry("metadata", metadata)?;
        }
        for (key, value) in &self.fields {
            map.serialize_entry(key, value)?;
        }
        map.end()
    }
}

/// The id of a turn; a turn of a run that has none of its own is named `RUN.N`.
fn turn_id(origin: &Origin, turn: u32) -> String {
    match (&origin.turn, &origin.run) {
        (Some(id), _) => id.to_string(),
        (None, Some(run)) => format!("{run}.{turn}"),
        (None, None) => turn.to_string(),
    }
}

/// Folds events into trace events, keeping the last 10,000 of them.
///
/// Events that the trace format does not have (journaled messages, gates, repairs, calls that never ran, …)
/// yield nothing.
///
/// ```
/// use std::sync::{Arc, Mutex};
/// use harness_core::event::{Hub, TraceFold};
///
/// let trace = Arc::new(Mutex::new(TraceFold::default()));
/// let mut hub = Hub::default();
/// hub.fold(Arc::clone(&trace)); // read `trace` when the turn is over
/// ```
#[derive(Debug)]
pub struct TraceFold {
    started: Time,
    tool_calls: u32,
    kept: VecDeque<TraceEvent>,
    capacity: usize,
    dropped: u64,
    later: bool,
}

impl Default for TraceFold {
    fn default() -> Self {
        Self::keeping(KEPT)
    }
}

impl TraceFold {
    /// A fold that keeps the last `capacity` trace events.
    pub fn keeping(capacity: usize) -> Self {
        Self { started: Time(0), tool_calls: 0, kept: VecDeque::new(), capacity, dropped: 0, later: false }
    }

    /// Adds the events that the trace format has since version 0.4.35: `tool_batch_started`.
    #[must_use]
    pub fn of_later_line(mut self) -> Self {
        self.later = true;
        self
    }

    /// The trace events that are kept, oldest first.
    pub fn events(&self) -> impl ExactSizeIterator<Item = &TraceEvent> {
        self.kept.iter()
    }

    /// How many older ones were dropped.
    pub fn dropped(&self) -> u64 {
        self.dropped
    }

    /// The trace event of one event, without keeping it. Give it every event, in order: it counts.
    pub fn trace(&mut self, event: &Event) -> Option<TraceEvent> {
        if let EventKind::TurnStarted { .. } = event.kind {
            self.started = event.at;
            self.tool_calls = 0;
        } else if let EventKind::ToolStarted { .. } = event.kind {
            self.tool_calls = self.tool_calls.saturating_add(1);
        }
        let fields = fields(&event.kind)?;
        Some(self.event(event.kind.name(), event, fields))
    }

    fn event(&self, kind: &'static str, event: &Event, fields: Vec<(&'static str, Json)>) -> TraceEvent {
        TraceEvent {
            kind,
            at: event.at,
            origin: Arc::clone(&event.origin),
            turn: event.turn,
            iteration: event.iteration,
            tool_call_count: self.tool_calls,
            elapsed: event.at.since(self.started),
            fields,
        }
    }

    fn keep(&mut self, traced: TraceEvent) {
        self.kept.push_back(traced);
        if self.kept.len() > self.capacity {
            self.kept.pop_front();
            self.dropped += 1;
        }
    }
}

impl Fold for TraceFold {
    fn apply(&mut self, event: &Event) {
        if let Some(traced) = self.trace(event) {
            self.keep(traced);
        }
        if let (true, EventKind::ToolRequested { calls, parallel: Some(parallel) }) =
            (self.later, &event.kind)
        {
            let mut fields = Fields::default();
            fields.put("mode", &if *parallel { "parallel" } else { "sequential" });
            fields.put("callCount", &calls.len());
            let batch = self.event("tool_batch_started", event, fields.0);
            self.keep(batch);
        }
    }
}

/// The fields of a trace event beyond the base; `None` when the trace format has no such event.
fn fields(kind: &EventKind) -> Option<Vec<(&'static str, Json)>> {
    let mut fields = Fields::default();
    match kind {
        EventKind::TurnStarted { .. } | EventKind::ModelStepStarted { .. } => {}
        EventKind::ModelStepFinished { output_type, usage, .. } => {
            fields.put("outputType", output_type);
            fields.maybe("usage", usage.as_deref().map(SourceUsage::of));
        }
        EventKind::ToolRequested { calls, .. } => {
            let calls: Vec<_> = calls.iter().map(|call| SourceCall::of(call)).collect();
            fields.put("calls", &calls);
        }
        EventKind::ToolStarted { call } => fields.put("call", &SourceCall::of(call)),
        EventKind::ToolRetried { call, attempt, max_attempts, backoff, previous_error } => {
            fields.put("call", &SourceCall::of(call));
            fields.put("attempt", attempt);
            fields.put("maxAttempts", max_attempts);
            fields.put("backoffMs", backoff);
            fields.maybe("previousError", previous_error.as_ref());
        }
        EventKind::ToolFinished { note: Some(ResultNote::Late), .. } => return None,
        EventKind::ToolFinished { call, outcome, .. } => {
            fields.put("result", &SourceResult::of(call, outcome));
        }
        EventKind::ToolFailed { call, outcome, ran: true, fault: None, note: None, .. } => {
            fields.put("result", &SourceResult::of(call, outcome));
        }
        EventKind::ClarificationRequested { question } => fields.put("question", question),
        EventKind::ApprovalRequested { request, .. } => fields.put("request", request),
        EventKind::LimitReached { reason, .. } => fields.put("stopReason", reason),
        EventKind::TurnFinished { end } => {
            fields.put("outcome", &end.outcome());
            fields.put("stopReason", &end.reason());
        }
        EventKind::ToolFailed { .. }
        | EventKind::RunStarted { .. }
        | EventKind::RunTakenUp { .. }
        | EventKind::AgentPrepared { .. }
        | EventKind::CallRepaired { .. }
        | EventKind::MessageAppended { .. }
        | EventKind::ModelStepFailed { .. }
        | EventKind::ModelStepContinued { .. }
        | EventKind::GateDecided { .. }
        | EventKind::Hook { .. }
        | EventKind::GuardrailDecided { .. }
        | EventKind::ApprovalDecided { .. }
        | EventKind::HandedOff { .. }
        | EventKind::SteeringInjected { .. }
        | EventKind::Interrupted { .. }
        | EventKind::ViewPlanned { .. }
        | EventKind::ContextPressure { .. }
        | EventKind::CompactionStarted { .. }
        | EventKind::CompactionCompleted { .. }
        | EventKind::CompactionFailed { .. }
        | EventKind::PartFailed { .. }
        | EventKind::ModelUsageCharged { .. }
        | EventKind::PersistFailed { .. }
        | EventKind::StopJudged { .. }
        | EventKind::StopDecided { .. }
        | EventKind::FeedbackGiven { .. }
        | EventKind::GuidanceInjected { .. }
        | EventKind::WorkItemsChanged { .. }
        | EventKind::DeliverablesUpdated { .. }
        | EventKind::StallDetected { .. }
        | EventKind::RunFinished { .. } => return None,
    }
    Some(fields.0)
}

/// An event of the flat stream: `type`, `iteration` and the fields of its trace event.
pub(super) fn stream_fields(kind: &'static str, event: &Event) -> Option<Json> {
    let mut all = Fields::default();
    all.put("type", &kind);
    all.put("iteration", &event.iteration);
    all.0.extend(fields(&event.kind)?);
    Some(all.object())
}

#[derive(Serialize)]
struct SourceCall<'a> {
    id: &'a str,
    name: &'a str,
    input: &'a Json,
}

impl<'a> SourceCall<'a> {
    fn of(call: &'a ToolCall) -> Self {
        Self { id: call.id.as_str(), name: call.name.as_str(), input: &call.arguments }
    }
}

#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct SourceUsage {
    #[serde(skip_serializing_if = "Option::is_none")]
    input_tokens: Option<u64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    output_tokens: Option<u64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    cost_units: Option<Cost>,
    #[serde(skip_serializing_if = "Option::is_none")]
    latency_ms: Option<u64>,
}

impl SourceUsage {
    fn of(usage: &Usage) -> Self {
        Self {
            input_tokens: usage.input,
            output_tokens: usage.output,
            cost_units: usage.total_cost(),
            latency_ms: usage.latency_ms,
        }
    }
}

#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct SourceResult<'a> {
    call_id: &'a str,
    tool_name: &'a str,
    status: &'static str,
    #[serde(skip_serializing_if = "Option::is_none")]
    output: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    structured_output: Option<&'a Json>,
    #[serde(skip_serializing_if = "Option::is_none")]
    error: Option<&'a ToolError>,
    #[serde(skip_serializing_if = "Option::is_none")]
    usage: Option<SourceUsage>,
    #[serde(skip_serializing_if = "Option::is_none")]
    metadata: Option<&'a Json>,
    #[serde(skip_serializing_if = "Option::is_none")]
    terminate: Option<bool>,
}

impl<'a> SourceResult<'a> {
    fn of(call: &'a ToolCall, outcome: &'a ToolOutcome) -> Self {
        let said = !outcome.content.is_empty();
        Self {
            call_id: call.id.as_str(),
            tool_name: call.name.as_str(),
            status: if outcome.is_error() { "error" } else { "success" },
            output: said.then(|| outcome.content.iter().filter_map(Block::as_text).collect()),
            structured_output: outcome.structured.as_ref(),
            error: outcome.error.as_deref(),
            usage: outcome.usage.as_deref().map(SourceUsage::of),
            metadata: outcome.metadata.as_ref(),
            terminate: outcome.terminate.then_some(true),
        }
    }
}

/// The end of a turn as a flat turn result: `outcome`, `stopReason`, `turnId`, `sessionId?`,
/// `assistantMessage?`, `continuation?`, `traceSummary`, `usage`, `metadata?`.
///
/// The continuation is a flat JSON object, or what the approver gave in its place.
pub fn turn_result(end: &End, origin: &Origin) -> Json {
    Json::of(&SourceTurn::of(end, origin)).unwrap_or_default()
}

#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct SourceTurn<'a> {
    outcome: Outcome,
    stop_reason: StopReason,
    turn_id: String,
    #[serde(skip_serializing_if = "Option::is_none")]
    session_id: Option<&'a str>,
    #[serde(skip_serializing_if = "Option::is_none")]
    assistant_message: Option<SourceText<'a>>,
    #[serde(skip_serializing_if = "Option::is_none")]
    continuation: Option<Json>,
    trace_summary: TraceSummary,
    usage: SourceTotals,
    #[serde(skip_serializing_if = "Option::is_none")]
    metadata: Option<Json>,
}

impl<'a> SourceTurn<'a> {
    fn of(end: &'a End, origin: &'a Origin) -> Self {
        Self {
            outcome: end.outcome(),
            stop_reason: end.reason(),
            turn_id: turn_id(origin, end.turns),
            session_id: origin.session.as_ref().map(SessionId::as_str),
            assistant_message: shown_text(end).map(|text| SourceText { text }),
            continuation: end.continuation.as_deref().map(|made| source_continuation(made, &end.stop)),
            trace_summary: TraceSummary {
                // The format counts the iteration that a limit refused, too.
                iteration_count: end.refused_iteration.unwrap_or(end.iterations),
                tool_call_count: end.usage.tool_calls,
                had_continuation: end.resumed || end.continuation.is_some(),
                final_event_type: "turn_finished",
            },
            usage: SourceTotals::of(&end.usage),
            metadata: metadata(&end.stop),
        }
    }
}

/// The text for the user. The format has none with an approval, and of failures only with a refusal, thin
/// evidence and a cancellation.
fn shown_text(end: &End) -> Option<&str> {
    let shown = match end.outcome() {
        Outcome::Completed | Outcome::NeedsClarification | Outcome::Deferred => true,
        Outcome::AwaitingApproval => false,
        Outcome::Failed => matches!(
            end.reason(),
            StopReason::ModelRefused | StopReason::EvidenceDensityViolation | StopReason::Cancelled
        ),
    };
    end.answer.as_deref().filter(|_| shown)
}

#[derive(Serialize)]
struct SourceText<'a> {
    text: &'a str,
}

#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct TraceSummary {
    iteration_count: u32,
    tool_call_count: u32,
    had_continuation: bool,
    final_event_type: &'static str,
}

#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct SourceTotals {
    model_calls: u32,
    tool_calls: u32,
    #[serde(skip_serializing_if = "Option::is_none")]
    total_input_tokens: Option<u64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    total_output_tokens: Option<u64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    total_cost_units: Option<Cost>,
    #[serde(skip_serializing_if = "Option::is_none")]
    total_latency_ms: Option<u64>,
}

impl SourceTotals {
    fn of(usage: &TotalUsage) -> Self {
        let answers = usage.of(Purpose::Answer);
        Self {
            // The format counts answers.
            model_calls: answers.model_calls - answers.failed_calls,
            tool_calls: usage.tool_calls,
            total_input_tokens: usage.input_tokens,
            total_output_tokens: usage.output_tokens,
            total_cost_units: usage.cost,
            total_latency_ms: usage.latency_ms,
        }
    }
}

/// The result's `metadata`, which holds the evidence; none for limits, loops and cancellations.
fn metadata(stop: &Stop) -> Option<Json> {
    if stop.reason == StopReason::RedundantToolLoop {
        return None;
    }
    let mut fields = Fields::default();
    match &stop.evidence {
        Evidence::None | Evidence::Limit(_) | Evidence::Loop { .. } | Evidence::Cancelled { .. } => {
            return None;
        }
        Evidence::Invalid(invalid) => {
            fields.put("reason", &invalid.reason);
            fields.maybe("kind", invalid.kind.as_ref());
            fields.maybe("httpStatus", invalid.http_status);
            fields.maybe("retriedAt", invalid.retried_at.as_ref().filter(|at| !at.is_empty()));
        }
        Evidence::Tool { name, code } => {
            fields.put("toolName", name);
            fields.maybe("code", code.as_ref());
        }
        Evidence::Fault(fault) => fields.put("errorMessage", &fault.message),
        Evidence::ToolResult(evidence) => fields.put("clarification", evidence),
        Evidence::Density(thin) => fields.put("evidenceDensity", &SourceDensity::of(thin)),
        Evidence::Approval(request) => fields.put("approvalRequest", request),
        Evidence::Held(requests) => fields.put("approvalRequests", requests),
        Evidence::Gate { gate, tool, reason, .. } => {
            fields.put("gateName", gate);
            fields.put("toolName", tool);
            fields.put("reason", reason);
        }
        Evidence::Guardrail { guardrail, stage, reason } => {
            fields.put("guardrailName", guardrail);
            fields.put("stage", stage);
            fields.maybe("reason", reason.as_ref());
        }
    }
    Some(fields.object())
}

/// An answer with too little evidence, in the trace format.
#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct SourceDensity<'a> {
    claims_count: usize,
    evidence_units: usize,
    ratio: f64,
    violating_claims: Vec<SourceClaim<'a>>,
}

#[derive(Serialize)]
struct SourceClaim<'a> {
    text: &'a str,
    offset: usize,
    category: &'static str,
}

impl<'a> SourceDensity<'a> {
    /// The offset is that of the marker's name in the text, where it hardly ever stands: 0.
    #[expect(clippy::cast_precision_loss, reason = "the ratio is a double in the trace format")]
    fn of(thin: &'a ThinEvidence) -> Self {
        let claim = |text: &'a String| SourceClaim { text, offset: 0, category: SPARSE_EVIDENCE };
        Self {
            claims_count: thin.claim_markers.len(),
            evidence_units: thin.output_chars,
            ratio: thin.claim_markers.len() as f64 / thin.output_chars.max(1) as f64,
            violating_claims: thin.claim_markers.iter().map(claim).collect(),
        }
    }
}

/// A continuation in the form of the flat turn result.
fn source_continuation(continuation: &Continuation, stop: &Stop) -> Json {
    if let Some(given) = &continuation.replaced_by {
        return given.clone();
    }
    let created_at = continuation.created_at.iso();
    let token = format!("{}:{}:{created_at}", continuation.turn_id, continuation.kind.as_str());
    let mut metadata = Fields::default();
    metadata.put("assistantId", &continuation.assistant_id.as_deref().unwrap_or_default());
    metadata.maybe("threadId", continuation.thread_id.as_ref());
    let mut fields = Fields::default();
    fields.put("id", &continuation.id);
    fields.put("type", &continuation.kind);
    fields.put("createdAt", &created_at);
    fields.put("turnId", &continuation.turn_id);
    fields.maybe("sessionId", continuation.session_id.as_ref());
    fields.put("resumeToken", &token);
    fields.put("state", &state(continuation, stop));
    fields.put("metadata", &metadata.object());
    fields.object()
}

fn state(continuation: &Continuation, stop: &Stop) -> Json {
    let mut state = Fields::default();
    state.put("stopReason", &continuation.stop_reason);
    match continuation.kind {
        ContinuationKind::Clarification => {
            state.maybe("question", continuation.question.as_ref());
            if let Evidence::ToolResult(evidence) = &stop.evidence {
                state.put("toolEvidence", evidence);
            }
        }
        ContinuationKind::Approval => {
            state.maybe("request", continuation.request.as_ref());
            if !continuation.pending.is_empty() {
                state.put("pending", &continuation.pending);
            }
        }
        ContinuationKind::Deferred => {
            state.put("iteration", &continuation.iteration);
            state.put("toolCallCount", &continuation.tool_call_count);
        }
    }
    state.object()
}
