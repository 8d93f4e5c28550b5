//! Decisions during a run, and the record at its end.

use std::sync::Arc;

use harness_core::decide::Point;
use harness_core::event::{Event, EventKind};
use harness_core::message::Message;
use harness_core::outcome::{TotalUsage, Waiver};
use harness_core::{AgentId, CallId, End, Evidence, GuardStage, Json, Outcome, StopReason, Time};
use serde::{Deserialize, Serialize};

use super::candidate::Candidate;
use super::entries::{
    ApprovalEntry, ControlEntry, GateDecision, GuardrailDecision, HandoffEntry, LimitEntry, Note,
    PolicyDecision, Resource, StopJudgement,
};
use super::fold::{RecordOptions, State};
use super::prompts::Prompts;
use super::redact::Redacting;
use super::run_record::{RECORD_KIND, RECORD_VERSION, RunRecord, RunStatus};

/// Facts of a policy gate's decision.
#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct PolicyFacts {
    decision: String,
    reason: String,
    public_reason: Option<String>,
    result_mode: Option<String>,
    policy_version: Option<String>,
    resource: Resource,
    expires_at: Option<String>,
    proposal_hash: Option<String>,
    metadata: Option<Json>,
    suspended_proposal: Option<Json>,
}

impl State {
    /// Records a decision or a note.
    pub(super) fn decided(&mut self, event: &Event) {
        let (seq, timestamp, turn) = self.stamp(event);
        #[expect(clippy::wildcard_enum_match_arm, reason = "other events may be notes")]
        match &event.kind {
            EventKind::Decided { call: Some(call), by, point, verdict, reason, facts, .. }
                if point != Point::Result.as_str() =>
            {
                let policy = facts.as_ref().and_then(|facts| facts.to::<PolicyFacts>().ok());
                match policy {
                    Some(facts) => self.policy(event, call, facts),
                    None => self.gate(event, call),
                }
            }
            EventKind::Decided { by, point, verdict, reason, .. } if point == Point::End.as_str() => {
                let (gate, judgement, reason) = (by.clone(), verdict.to_string(), reason.clone());
                self.stops.push(StopJudgement { seq, timestamp, turn, gate, judgement, reason });
            }
            EventKind::Decided { by, point, verdict, reason, facts, .. } => {
                let stage = match &**point {
                    "prompt" => GuardStage::Input,
                    "result" => GuardStage::Result,
                    _ => GuardStage::Output,
                };
                let decision = if verdict == "accept" { "pass" } else { "triggered" };
                self.guardrails.push(GuardrailDecision {
                    seq,
                    timestamp,
                    turn,
                    guardrail_name: by.clone(),
                    stage: stage.as_str().to_owned(),
                    decision: decision.to_owned(),
                    reason: reason.clone(),
                    metadata: facts.clone(),
                });
            }
            EventKind::ApprovalDecided { call, decision, reason } => {
                let (call_id, decision, reason) = (call.clone(), decision.clone(), reason.clone());
                self.approvals.push(ApprovalEntry { seq, timestamp, turn, call_id, decision, reason });
            }
            EventKind::HandedOff { call, from, to } => {
                let (call_id, from, to) = (call.clone(), from.clone(), to.clone());
                self.handoffs.push(HandoffEntry { seq, timestamp, turn, call_id, from, to });
            }
            EventKind::LimitReached { reason, reached } => self.limits.push(LimitEntry {
                seq,
                timestamp,
                turn,
                stop_reason: reason.to_string(),
                limit: reached.map(|reached| reached.limit.to_string()),
                value: reached.map(|reached| reached.value),
                ceiling: reached.map(|reached| reached.ceiling),
            }),
            EventKind::Control { event: report } => self.controlled(event, report),
            kind => {
                if let Some(text) = note(kind) {
                    self.notes.push(Note { seq, timestamp, turn, kind: kind.name().to_owned(), text });
                }
            }
        }
    }

    fn policy(&mut self, event: &Event, call: &CallId, facts: PolicyFacts) {
        let (seq, timestamp, turn) = self.stamp(event);
        self.proposals.extend(facts.suspended_proposal);
        self.policy.push(PolicyDecision {
            seq,
            timestamp,
            turn,
            call_id: call.clone(),
            decision: facts.decision,
            reason: facts.reason,
            public_reason: facts.public_reason,
            result_mode: facts.result_mode,
            policy_version: facts.policy_version,
            resource: facts.resource,
            expires_at: facts.expires_at,
            proposal_hash: facts.proposal_hash,
            metadata: facts.metadata,
        });
    }

    fn gate(&mut self, event: &Event, call: &CallId) {
        let (seq, timestamp, turn) = self.stamp(event);
        let EventKind::Decided { by, verdict, reason, facts, duration, .. } = &event.kind else { return };
        self.gates.push(GateDecision {
            seq,
            timestamp,
            turn,
            call_id: call.clone(),
            gate: by.clone(),
            verdict: verdict.to_string(),
            reason: reason.clone(),
            facts: facts.clone(),
            duration_ms: duration.0,
        });
    }

    /// Records a report of the control. Guidance becomes part of the request that carries it.
    fn controlled(&mut self, event: &Event, report: &Json) {
        let (seq, timestamp, turn) = self.stamp(event);
        let mut report = report.clone();
        if let Ok(Guidance { kind, text, sections, tokens }) = report.to::<Guidance>()
            && kind == GUIDANCE
        {
            self.guided(event, &text);
            report = Json::of(&GuidanceNote { kind, sections, tokens }).unwrap_or_default();
        }
        self.controls.push(ControlEntry { seq, timestamp, turn, event: report });
    }
}

/// Kind of a report of guidance.
const GUIDANCE: &str = "guidance_injected";

/// Report of guidance behind a request.
#[derive(Deserialize)]
struct Guidance {
    kind: String,
    text: String,
    sections: Json,
    tokens: Json,
}

#[derive(Serialize)]
struct GuidanceNote {
    kind: String,
    sections: Json,
    tokens: Json,
}

/// Text of a note.
fn note(kind: &EventKind) -> Option<String> {
    #[expect(clippy::wildcard_enum_match_arm, reason = "other events are recorded elsewhere, or not at all")]
    Some(match kind {
        EventKind::CallRepaired { call, how } => {
            format!("repaired the open call {} of {}: {how:?}", call.id, call.name)
        }
        EventKind::SteeringInjected { .. } => "steering messages were added".to_owned(),
        EventKind::ViewPlanned { by, messages, spans, .. } => {
            format!("the {by} planned a view of {spans} parts over {messages} messages")
        }
        EventKind::CompactionCompleted { note, permanent, .. } => {
            let what = if *permanent { "transcript" } else { "view" };
            format!("compacted the {what}: {} → {} tokens", note.tokens_before, note.tokens_after)
        }
        EventKind::PartFailed { fault } | EventKind::CompactionFailed { fault } => fault.to_string(),
        EventKind::PersistFailed { message } => message.clone(),
        EventKind::ApprovalRequested { request, .. } => format!("approval requested: {}", request.summary),
        _ => return None,
    })
}

/// End of a run, or its state so far.
pub(super) struct Ending<'a> {
    reason: StopReason,
    evidence: &'a Evidence,
    answer: Option<&'a str>,
    agent: Option<&'a AgentId>,
    waived: &'a [Waiver],
    usage: &'a TotalUsage,
}

impl<'a> Ending<'a> {
    pub(super) fn of(end: &'a End) -> Self {
        Self {
            reason: end.reason(),
            evidence: &end.stop.evidence,
            answer: end.answer.as_deref(),
            agent: end.agent.as_ref(),
            waived: &end.waived,
            usage: &end.usage,
        }
    }

    /// No end: the reason means nothing.
    pub(super) fn none(usage: &'a TotalUsage) -> Self {
        let (reason, evidence) = (StopReason::Cancelled, &Evidence::None);
        Self { reason, evidence, answer: None, agent: None, waived: &[], usage }
    }
}

/// Record of a run with its end.
pub(super) fn record(options: &RecordOptions, state: &State, ended_at: Time, end: &Ending<'_>) -> RunRecord {
    let mut redacting = state.redacting.clone();
    let (items, prompts) = content(&mut redacting, state);
    let (context_snapshot, context_redacted) = redacting.context();
    let provider = options.candidate.provider.clone().or_else(|| provider_of(state));
    let (error_name, error_message) = error(end);
    let outcome = end.reason.outcome();
    let completed = outcome == Outcome::Completed;
    let mut record = RunRecord {
        kind: RECORD_KIND.to_owned(),
        version: RECORD_VERSION,
        run_id: state.run_id.clone(),
        thread_id: state.thread.clone(),
        started_at: state.started.iso(),
        completed_at: ended_at.iso(),
        elapsed_ms: ended_at.since(state.started).0,
        status: if completed { RunStatus::Completed } else { RunStatus::Failed },
        outcome,
        stop_reason: end.reason,
        evidence: Json::of(end.evidence).unwrap_or_else(|_| Json::null()),
        error_name,
        error_message,
        candidate: candidate(options, state, provider.clone()),
        agent_name: last_agent(state, end),
        provider_name: provider,
        model: state.prepared.as_ref().and_then(|prepared| prepared.model.clone()),
        question: question(&items, state),
        response: response(&items, state, end),
        context_snapshot,
        context_redacted,
        redaction: redacting.note(),
        items,
        input_item_count: state.input.unwrap_or(state.items.len()) as u64,
        earlier_item_count: state.earlier as u64,
        unknown_item_count: state.unknown,
        prompt_snapshots: state.prompts.clone(),
        request_fingerprints: state.fingerprints.clone(),
        prompts,
        model_calls: state.model_calls.clone(),
        tool_calls: state.tool_calls.clone(),
        sub_agents: Vec::new(),
        omitted_sub_agents: 0,
        handoffs: state.handoffs.clone(),
        policy_decisions: state.policy.clone(),
        suspended_proposals: state.proposals.clone(),
        guardrail_decisions: state.guardrails.clone(),
        gate_decisions: state.gates.clone(),
        approvals: state.approvals.clone(),
        stop_judgements: state.stops.clone(),
        waived: end.waived.to_vec(),
        limits_reached: state.limits.clone(),
        limits: options.limits.clone(),
        control_events: state.controls.clone(),
        notes: state.notes.clone(),
        usage: end.usage.clone(),
        metadata: options.metadata.clone(),
    };
    clean(&mut record, &redacting);
    record
}

/// Active agent at the end.
fn last_agent(state: &State, end: &Ending<'_>) -> AgentId {
    let prepared = || state.prepared.as_ref().map(|prepared| prepared.agent.clone());
    end.agent.cloned().or_else(prepared).unwrap_or_else(|| AgentId::from("main"))
}

/// Messages and prompts, redacted; none of them after a failed redaction.
fn content(redacting: &mut Redacting, state: &State) -> (Vec<Arc<Message>>, Option<Prompts>) {
    let items = redacting.items(&state.items, state.known.as_deref());
    let prompts = prompts(redacting, state);
    if redacting.has_failed() { (Vec::new(), None) } else { (items, prompts) }
}

/// Content that the models received, redacted; none after a failed redaction.
fn prompts(redacting: &mut Redacting, state: &State) -> Option<Prompts> {
    let mut prompts = state.collector.as_ref()?.prompts()?;
    prompts.messages = redacting.items(&prompts.messages, None);
    if redacting.has_failed() {
        return None;
    }
    if redacting.is_active() {
        prompts.instructions.iter_mut().for_each(|text| *text = redacting.text(text));
        for tool in &mut prompts.tools {
            tool.description = redacting.text(&tool.description);
            tool.parameters = redacting.json(&tool.parameters);
        }
        for offer in &mut prompts.offers {
            let parts = [&mut offer.settings, &mut offer.output].into_iter().flatten();
            parts.for_each(|part| *part = redacting.json(part));
        }
    }
    Some(prompts)
}

fn candidate(options: &RecordOptions, state: &State, provider: Option<String>) -> Candidate {
    let mut candidate = options.candidate.clone();
    candidate.descriptor_hash = candidate.descriptor_hash.or_else(|| state.descriptor_hash.clone());
    candidate.model = candidate.model.or_else(|| state.first_model.clone());
    candidate.provider = candidate.provider.or(provider);
    let decided = state.policy.iter().find_map(|decision| decision.policy_version.clone());
    candidate.policy_version = candidate.policy_version.or(decided);
    candidate.sealed()
}

/// Provider of the run's first answer.
fn provider_of(state: &State) -> Option<String> {
    let own = state.items.get(state.earlier..).unwrap_or_default();
    own.iter().find_map(|item| item.as_assistant()?.provider.clone())
}

/// Question of the run, from its recorded items.
fn question(items: &[Arc<Message>], state: &State) -> String {
    let said = |items: &[Arc<Message>]| -> Vec<String> {
        let users = items.iter().filter(|item| matches!(***item, Message::User(_)));
        users.map(|item| item.joined_text().trim().to_owned()).filter(|text| !text.is_empty()).collect()
    };
    let to = state.input.unwrap_or(state.items.len());
    let asked = said(items.get(state.earlier..to).unwrap_or_default());
    if asked.is_empty() {
        // A run without a new message continues with the last one.
        return said(items.get(..state.earlier).unwrap_or_default()).pop().unwrap_or_default();
    }
    asked.join("\n\n")
}

/// Answer for the user, from its recorded item.
fn response(items: &[Arc<Message>], state: &State, end: &Ending<'_>) -> Option<String> {
    let answer = end.answer?;
    let says = |item: &Arc<Message>| item.as_assistant().is_some_and(|said| said.joined_text() == answer);
    let recorded = state.items.iter().rposition(says).and_then(|at| items.get(at));
    Some(recorded.map_or_else(|| answer.to_owned(), |item| item.joined_text()))
}

/// Code and text of an error.
fn error(end: &Ending<'_>) -> (Option<String>, Option<String>) {
    let outcome = end.reason.outcome();
    if matches!(outcome, Outcome::Completed | Outcome::NeedsClarification | Outcome::AwaitingApproval) {
        return (None, None);
    }
    let reason = end.reason.to_string();
    let (name, message) = match end.evidence {
        Evidence::Fault(fault) => (fault.code.to_string(), fault.to_string()),
        Evidence::Invalid(invalid) => (reason, invalid.reason.clone()),
        Evidence::Limit(reached) => {
            (reason, format!("{}: {} of {}", reached.limit, reached.value, reached.ceiling))
        }
        Evidence::Tool { name, code } => {
            let code = code.as_deref().map(|code| format!(" ({code})")).unwrap_or_default();
            (reason, format!("tool {name}{code}"))
        }
        Evidence::Gate { gate, tool, reason: why, .. } => (reason, format!("{gate} refused {tool}: {why}")),
        Evidence::Guardrail { guardrail, stage, reason: why } => {
            let why = why.as_deref().map(|why| format!(": {why}")).unwrap_or_default();
            (reason, format!("guardrail {guardrail} refused the {}{why}", stage.as_str()))
        }
        Evidence::Cancelled { by } => (reason, format!("cancelled by {by}")),
        Evidence::None
        | Evidence::Approval(_)
        | Evidence::Held(_)
        | Evidence::Density(_)
        | Evidence::ToolResult(_)
        | _ => {
            let text = end.answer.map_or_else(|| reason.clone(), str::to_owned);
            (reason, text)
        }
    };
    (Some(name), Some(message))
}

/// Redacts the record outside its items.
fn clean(record: &mut RunRecord, redacting: &Redacting) {
    if !redacting.is_active() {
        return;
    }
    let text = |text: &mut String| *text = redacting.text(text);
    let json = |json: &mut Json| *json = redacting.json(json);
    text(&mut record.question);
    record.response.iter_mut().for_each(text);
    record.error_message.iter_mut().for_each(text);
    json(&mut record.evidence);
    for call in &mut record.model_calls {
        if let Some(fault) = &mut call.fault {
            text(&mut fault.message);
        }
    }
    for entry in &mut record.policy_decisions {
        text(&mut entry.reason);
        entry.public_reason.iter_mut().for_each(text);
        entry.metadata.iter_mut().for_each(json);
    }
    record.suspended_proposals.iter_mut().for_each(|proposal| *proposal = redacting.proposal(proposal));
    for entry in &mut record.guardrail_decisions {
        entry.reason.iter_mut().for_each(text);
        entry.metadata.iter_mut().for_each(json);
    }
    for entry in &mut record.gate_decisions {
        entry.reason.iter_mut().for_each(text);
        entry.facts.iter_mut().for_each(json);
    }
    record.control_events.iter_mut().for_each(|entry| json(&mut entry.event));
    record.approvals.iter_mut().filter_map(|entry| entry.reason.as_mut()).for_each(text);
    record.stop_judgements.iter_mut().filter_map(|entry| entry.reason.as_mut()).for_each(text);
    record.waived.iter_mut().for_each(|waiver| text(&mut waiver.why));
    record.notes.iter_mut().for_each(|note| text(&mut note.text));
}
