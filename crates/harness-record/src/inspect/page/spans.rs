//! Spans of a run for the waterfall: model calls, tool calls and waits for approval.

use harness_core::message::Cost;
use harness_core::{CallId, Time};

use super::RunPage;
use crate::entries::{ApprovalEntry, ToolCallEntry};
use crate::fold::RUNNING;
use crate::inspect::timeline::{Tone, subagents, tokens};
use crate::run_record::RunRecord;

/// Kind of a span.
#[derive(Clone, Copy, Debug, PartialEq, Eq, strum::Display)]
#[strum(serialize_all = "lowercase")]
pub(super) enum SpanKind {
    Model,
    Tool,
    /// Wait for an approval.
    Wait,
}

/// Span of a run. Times are milliseconds since its start.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Span {
    pub(super) kind: SpanKind,
    /// Id of the element with its details.
    pub(super) anchor: String,
    pub(super) label: String,
    pub(super) tone: Tone,
    pub(super) start: u64,
    pub(super) duration: u64,
    /// Time to the first token.
    pub(super) first_token: Option<u64>,
    pub(super) tokens: Option<String>,
    pub(super) cost: Option<Cost>,
    /// Spans of the sub-agents that the call started, with their names.
    pub(super) inside: Vec<(String, Vec<Span>)>,
}

impl Span {
    /// Moves a span and those inside it to a later time.
    fn later(mut self, by: u64) -> Self {
        self.start = self.start.saturating_add(by);
        for (_, spans) in &mut self.inside {
            *spans = std::mem::take(spans).into_iter().map(|span| span.later(by)).collect();
        }
        self
    }
}

impl RunPage<'_> {
    /// Spans in order: each model call, followed by its waits and tool calls in the order of their starts.
    pub(super) fn spans(&self) -> Vec<Span> {
        let record = self.record;
        let mut spans = Vec::new();
        for call in &record.model_calls {
            let model = call.model.as_ref().map(|model| format!(" · {model}")).unwrap_or_default();
            spans.push(Span {
                kind: SpanKind::Model,
                anchor: self.anchor(call.seq),
                label: format!("{}{model}", call.agent_name),
                tone: if call.fault.is_some() { Tone::Bad } else { Tone::Plain },
                start: since(record, &call.timestamp),
                duration: call.duration_ms,
                first_token: call.first_token_ms,
                tokens: tokens(call),
                cost: call.usage.as_ref().and_then(harness_core::message::Usage::total_cost),
                inside: Vec::new(),
            });
            let of_turn = record.tool_calls.iter().filter(|entry| entry.turn == call.turn);
            let approvals = record.approvals.iter().filter(|entry| entry.turn == call.turn);
            let mut rest: Vec<Span> = of_turn.map(|entry| self.tool_span(entry)).collect();
            rest.extend(approvals.filter_map(|approval| self.wait_span(approval)));
            rest.sort_by_key(|span| span.start);
            spans.extend(rest);
        }
        spans
    }

    fn tool_span(&self, entry: &ToolCallEntry) -> Span {
        let tone = match (entry.ran, entry.status.as_str()) {
            (_, "success") => Tone::Good,
            (_, RUNNING) => Tone::Plain,
            (true, _) => Tone::Bad,
            (false, _) => Tone::Warn,
        };
        let inside = subagents(self.record, &entry.call_id).map(|(at, child)| {
            let by = since(self.record, &child.started_at);
            let spans = self.subagent(at, child).spans().into_iter().map(|span| span.later(by));
            (child.agent_name.to_string(), spans.collect())
        });
        Span {
            inside: inside.collect(),
            kind: SpanKind::Tool,
            anchor: self.anchor(entry.seq),
            label: entry.name.to_string(),
            tone,
            start: since(self.record, &entry.timestamp).saturating_sub(entry.duration_ms),
            duration: entry.duration_ms,
            first_token: None,
            tokens: None,
            cost: None,
        }
    }

    /// The wait between the hold of a call and the decision about it.
    fn wait_span(&self, approval: &ApprovalEntry) -> Option<Span> {
        let (record, call) = (self.record, &approval.call_id);
        let is_hold = |id: &CallId, seq: u64| id == call && seq < approval.seq;
        let gates = record.gate_decisions.iter().filter(|entry| entry.verdict == "hold");
        let policies = record.policy_decisions.iter().filter(|entry| entry.decision == "require_approval");
        let held = gates
            .map(|entry| (&entry.call_id, entry.seq, &entry.timestamp))
            .chain(policies.map(|entry| (&entry.call_id, entry.seq, &entry.timestamp)))
            .filter(|(id, seq, _)| is_hold(id, *seq))
            .max_by_key(|(_, seq, _)| *seq);
        let asked =
            record.notes.iter().rfind(|note| note.kind == "approval_requested" && note.seq < approval.seq);
        let from = held.map(|(_, _, at)| at).or(asked.map(|note| &note.timestamp))?;
        let turn = approval.turn;
        let entry = record.tool_calls.iter().find(|entry| entry.call_id == *call && entry.turn == turn);
        let asking = || record.model_calls.iter().find(|entry| entry.turn == turn);
        let seq = entry.map(|entry| entry.seq).or_else(|| asking().map(|entry| entry.seq))?;
        let (start, end) = (since(record, from), since(record, &approval.timestamp));
        Some(Span {
            kind: SpanKind::Wait,
            anchor: self.anchor(seq),
            label: format!("approval: {}", approval.decision),
            tone: if matches!(&*approval.decision, "granted" | "edited") { Tone::Good } else { Tone::Warn },
            start,
            duration: end.saturating_sub(start),
            first_token: None,
            tokens: None,
            cost: None,
            inside: Vec::new(),
        })
    }
}

/// Milliseconds between the start of the run and a time.
pub(super) fn since(record: &RunRecord, at: &str) -> u64 {
    let times = Time::parse_iso(&record.started_at).zip(Time::parse_iso(at));
    times.map(|(from, at)| at.since(from).0).unwrap_or_default()
}
