//! Timeline of a run in reading order.

use harness_core::message::{AssistantMessage, Message, ToolCall, ToolResultMessage};
use harness_core::{CallId, Millis};

use crate::entries::{
    ApprovalEntry, GateDecision, HandoffEntry, ModelCallEntry, PolicyDecision, RequestFingerprint,
    ToolCallEntry,
};
use crate::fold::RUNNING;
use crate::prompts::SeenRequest;
use crate::run_record::{RunRecord, RunStatus};

/// Tone of an element.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Tone {
    Plain,
    Good,
    Warn,
    Bad,
}

/// Event beside the messages.
pub(super) struct Mark {
    pub(super) seq: u64,
    pub(super) tone: Tone,
    pub(super) word: &'static str,
    pub(super) text: String,
}

/// Call with its decisions and result.
pub(super) struct CallDetail<'a> {
    pub(super) call: &'a ToolCall,
    pub(super) entry: Option<&'a ToolCallEntry>,
    pub(super) result: Option<&'a ToolResultMessage>,
    pub(super) policies: Vec<&'a PolicyDecision>,
    /// Gates that did more than allow the call.
    pub(super) gates: Vec<&'a GateDecision>,
    pub(super) all_gates: Vec<&'a GateDecision>,
    pub(super) approvals: Vec<&'a ApprovalEntry>,
    pub(super) handoff: Option<&'a HandoffEntry>,
    /// Sub-agents that it started, with their positions in the record.
    pub(super) subagents: Vec<(usize, &'a RunRecord)>,
}

/// Model request with everything before the next one.
pub(super) struct Step<'a> {
    pub(super) call: &'a ModelCallEntry,
    /// Instructions of the request.
    pub(super) instructions: Option<&'a str>,
    /// Content that the model received.
    pub(super) seen: Option<SeenRequest<'a>>,
    pub(super) request: Option<&'a RequestFingerprint>,
    pub(super) answer: Option<&'a AssistantMessage>,
    pub(super) calls: Vec<CallDetail<'a>>,
    /// Tool calls without messages in the record.
    pub(super) bare_calls: Vec<&'a ToolCallEntry>,
    /// Messages before the next request.
    pub(super) messages: Vec<&'a Message>,
    pub(super) marks: Vec<Mark>,
}

/// Timeline of a run.
pub(super) struct RunTimeline<'a> {
    /// Messages of the prompt.
    pub(super) prompt: Vec<&'a Message>,
    /// Events before the first request.
    pub(super) before: Vec<Mark>,
    pub(super) steps: Vec<Step<'a>>,
}

impl<'a> RunTimeline<'a> {
    pub(super) fn of(record: &'a RunRecord) -> Self {
        let (from, to) = (index(record.earlier_item_count), index(record.input_item_count));
        let prompt = record.items.get(from..to.min(record.items.len())).unwrap_or_default();
        let steps = record.model_calls.iter().enumerate().map(|(at, call)| {
            let until = record.model_calls.get(at.saturating_add(1)).and_then(|next| next.item);
            step(record, call, until)
        });
        Self {
            prompt: prompt.iter().map(|item| &**item).collect(),
            before: marks(record, 0),
            steps: steps.collect(),
        }
    }
}

fn index(count: u64) -> usize {
    usize::try_from(count).unwrap_or(usize::MAX)
}

fn step<'a>(record: &'a RunRecord, call: &'a ModelCallEntry, until: Option<u64>) -> Step<'a> {
    let turn = call.turn;
    let from = call.item.map(index);
    let answer = from.and_then(|at| record.items.get(at)).and_then(|item| item.as_assistant());
    let to = until.map_or(record.items.len(), index);
    let after = from.and_then(|at| record.items.get(at.saturating_add(1)..to)).unwrap_or_default();
    let mut results: Vec<&ToolResultMessage> =
        after.iter().filter_map(|item| item.as_tool_result()).collect();
    let calls: Vec<CallDetail<'a>> = answer
        .into_iter()
        .flat_map(AssistantMessage::tool_calls)
        .map(|call| {
            let at = results.iter().position(|result| result.tool_call_id == call.id);
            call_detail(record, turn, call, at.map(|at| results.remove(at)))
        })
        .collect();
    let is_bare = |entry: &&ToolCallEntry| entry.turn == turn && answer.is_none();
    Step {
        call,
        instructions: record.instructions(turn),
        seen: record.seen_request(turn),
        request: record.request_fingerprints.iter().find(|request| request.turn == turn),
        answer,
        calls,
        bare_calls: record.tool_calls.iter().filter(is_bare).collect(),
        messages: after
            .iter()
            .map(|item| &**item)
            .filter(|item| !matches!(item, Message::ToolResult(_) | Message::Assistant(_)))
            .collect(),
        marks: marks(record, turn),
    }
}

fn call_detail<'a>(
    record: &'a RunRecord,
    turn: u32,
    call: &'a ToolCall,
    result: Option<&'a ToolResultMessage>,
) -> CallDetail<'a> {
    let id = &call.id;
    let is_of = |of: u32, about: &CallId| of == turn && *about == *id;
    let all_gates: Vec<_> =
        record.gate_decisions.iter().filter(|entry| is_of(entry.turn, &entry.call_id)).collect();
    let policies = record.policy_decisions.iter().filter(|entry| is_of(entry.turn, &entry.call_id));
    let approvals = record.approvals.iter().filter(|entry| is_of(entry.turn, &entry.call_id));
    CallDetail {
        call,
        entry: record.tool_calls.iter().find(|entry| is_of(entry.turn, &entry.call_id)),
        result,
        policies: policies.collect(),
        gates: all_gates.iter().copied().filter(|entry| entry.verdict != "allow").collect(),
        all_gates,
        approvals: approvals.collect(),
        handoff: record.handoffs.iter().find(|entry| is_of(entry.turn, &entry.call_id)),
        subagents: subagents(record, id).collect(),
    }
}

/// Sub-agents that a call started, with their positions in the record.
pub(super) fn subagents<'a>(
    record: &'a RunRecord,
    call: &'a CallId,
) -> impl Iterator<Item = (usize, &'a RunRecord)> {
    let all = record.sub_agents.iter().enumerate();
    all.filter(move |(_, run)| run.call_id == *call).map(|(at, run)| (at, &run.record))
}

/// Other events between a request and the next, in order.
fn marks(record: &RunRecord, turn: u32) -> Vec<Mark> {
    let mut marks = Vec::new();
    for entry in record.guardrail_decisions.iter().filter(|entry| entry.turn == turn) {
        let tone = if entry.decision == "pass" { Tone::Good } else { Tone::Bad };
        let why = entry.reason.as_deref().map(|reason| format!(": {reason}")).unwrap_or_default();
        let text = format!("{} on {}: {}{why}", entry.guardrail_name, entry.stage, entry.decision);
        marks.push(Mark { seq: entry.seq, tone, word: "guardrail", text });
    }
    for entry in record.stop_judgements.iter().filter(|entry| entry.turn == turn) {
        let tone = if entry.judgement == "accept" { Tone::Good } else { Tone::Warn };
        let why = entry.reason.as_deref().map(|reason| format!(": {reason}")).unwrap_or_default();
        let text = format!("{}: {}{why}", entry.gate, entry.judgement);
        marks.push(Mark { seq: entry.seq, tone, word: "check", text });
    }
    for entry in record.limits_reached.iter().filter(|entry| entry.turn == turn) {
        let text = match (&entry.limit, entry.value, entry.ceiling) {
            (Some(limit), Some(value), Some(ceiling)) => format!("{limit}: {value} of {ceiling}"),
            _ => entry.stop_reason.clone(),
        };
        marks.push(Mark { seq: entry.seq, tone: Tone::Warn, word: "limit", text });
    }
    for note in record.notes.iter().filter(|note| note.turn == turn) {
        let tone = if note.kind.ends_with("_failed") { Tone::Bad } else { Tone::Plain };
        marks.push(Mark { seq: note.seq, tone, word: "note", text: note.text.clone() });
    }
    marks.sort_by_key(|mark| mark.seq);
    marks
}

/// Outcome of a run in a word.
pub(super) fn outcome_of(record: &RunRecord) -> &'static str {
    if is_running(record) { RUNNING } else { record.outcome.as_str() }
}

pub(super) fn is_running(record: &RunRecord) -> bool {
    record.status == RunStatus::Running
}

/// Tone of the end of a run.
pub(super) fn tone_of(record: &RunRecord) -> Tone {
    use harness_core::Outcome;
    match record.outcome {
        _ if is_running(record) => Tone::Plain,
        Outcome::Completed => Tone::Good,
        Outcome::Failed => Tone::Bad,
        Outcome::NeedsClarification | Outcome::AwaitingApproval | Outcome::Deferred => Tone::Warn,
    }
}

/// Tokens of a model call.
pub(super) fn tokens(call: &ModelCallEntry) -> Option<String> {
    let usage = call.usage.as_ref()?;
    let shown = |count: Option<u64>| count.map_or_else(|| "?".to_owned(), |count| count.to_string());
    Some(format!("{} + {} tokens", shown(usage.input), shown(usage.output)))
}

/// Time to the first token of a model call.
pub(super) fn first_token(call: &ModelCallEntry) -> Option<String> {
    call.first_token_ms.map(|first| format!("first token {}", Millis(first)))
}

/// Reason of the end, in a sentence.
pub(super) fn why(record: &RunRecord) -> String {
    if is_running(record) {
        return "The run is in progress.".to_owned();
    }
    let mut text = format!("{} ({})", record.outcome, record.stop_reason);
    if let Some(message) = &record.error_message {
        text.push_str(": ");
        text.push_str(message);
    }
    for waiver in &record.waived {
        text.push_str("; waived by ");
        text.push_str(waiver.gate.as_str());
        text.push_str(": ");
        text.push_str(&waiver.why);
    }
    text
}
