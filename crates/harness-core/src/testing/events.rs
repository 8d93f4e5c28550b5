//! Listeners that remember, and events as short lines.

use std::sync::Arc;

use parking_lot::Mutex;

use crate::event::{Event, EventKind, Fold};
use crate::ids::{CallId, EntryId};
use crate::limits::Reached;
use crate::message::{Message, ToolCall};
use crate::outcome::{Fault, PurposeUsage, StopReason};
use crate::port::CompactionNote;
use crate::tool::{ToolError, ToolOutcome};

/// A [`Fold`] that keeps every event. Clones share the list: give one to the hub, read the other.
///
/// It grows without bound; it is for tests.
#[derive(Clone, Debug, Default)]
pub struct EventLog(Arc<Mutex<Vec<Event>>>);

impl EventLog {
    /// All events so far.
    pub fn events(&self) -> Vec<Event> {
        self.0.lock().clone()
    }

    /// All events so far as short lines; see [`event_line`].
    pub fn lines(&self) -> Vec<String> {
        self.0.lock().iter().map(|event| event_line(&event.kind)).collect()
    }
}

impl Fold for EventLog {
    fn apply(&mut self, event: &Event) {
        self.0.lock().push(event.clone());
    }
}

/// An event as one short line for expected texts: its wire name and what matters of it.
///
/// The wording is for tests and may change; compare JSON where the form counts.
pub fn event_line(kind: &EventKind) -> String {
    let detail = match kind {
        EventKind::RunStarted { .. } | EventKind::ModelStepStarted { .. } => String::new(),
        EventKind::RunTakenUp { turn, messages } => format!("turn {turn} and {messages} messages"),
        EventKind::AgentPrepared { prepared } => {
            format!("{} with {} tools", prepared.agent, prepared.tools.len())
        }
        EventKind::TurnStarted { agent, resumed } => with_flag(agent.to_string(), *resumed, "resumed"),
        EventKind::CallRepaired { call, how } => format!("#{} {how:?}", call.id),
        EventKind::MessageAppended { message, .. } => message_line(message),
        EventKind::ModelStepFinished { output_type, .. } => output_type.to_string(),
        EventKind::ContextPressure { estimate, soft, window, .. } => {
            format!("{estimate} of {window}, soft {soft}")
        }
        EventKind::CompactionStarted { trigger } => trigger.to_string(),
        EventKind::CompactionCompleted { note, permanent, .. } => compacted(note, *permanent),
        EventKind::ModelUsageCharged { purpose, usage } => charged(purpose.as_str(), usage),
        EventKind::ModelStepFailed { fault, .. }
        | EventKind::PartFailed { fault }
        | EventKind::CompactionFailed { fault } => broken(fault),
        EventKind::ModelStepContinued { reason, attempt, most } => format!("{reason} {attempt} of {most}"),
        EventKind::ToolRequested { calls, .. } => joined(calls, |call| tag(call)),
        EventKind::Decided { by, point, call, verdict, reason, .. } => {
            with_reason(on_call(call.as_ref(), format!("{point} {by} {verdict}")), reason.as_deref())
        }
        EventKind::ApprovalRequested { request, .. } => format!("{} {:?}", request.id, request.summary),
        EventKind::ApprovalDecided { call, decision, reason } => {
            with_reason(format!("#{call} {decision}"), reason.as_deref())
        }
        EventKind::ToolStarted { call } => tag(call),
        EventKind::ToolRetried { call, attempt, max_attempts, backoff, previous_error } => {
            format!(
                "#{} {attempt}/{max_attempts} after {}{}",
                call.id,
                backoff.0,
                code(previous_error.as_deref())
            )
        }
        EventKind::ToolFinished { call, .. } => format!("#{}", call.id),
        EventKind::ToolFailed { call, outcome, ran, .. } => failed(call, outcome, *ran),
        EventKind::HandedOff { call, from, to } => format!("#{call} {from} -> {to}"),
        EventKind::ClarificationRequested { question } => format!("{question:?}"),
        EventKind::SteeringInjected { entries } => joined(entries, EntryId::to_string),
        EventKind::ViewPlanned { by, messages, spans, .. } => format!("{by} {messages} in {spans}"),
        EventKind::PersistFailed { message } => format!("{message:?}"),
        EventKind::LimitReached { reason, reached } => limit(*reason, reached.as_ref()),
        EventKind::TurnFinished { end } | EventKind::RunFinished { end } => end.reason().to_string(),
        EventKind::Control { event } => event.text().to_owned(),
    };
    format!("{} {detail}", kind.name()).trim_end().to_owned()
}

/// A message as one short line: its role, its text, its calls.
pub(super) fn message_line(message: &Message) -> String {
    let text = message.joined_text();
    let text = if text.is_empty() { String::new() } else { format!(" {text:?}") };
    match message {
        Message::Assistant(m) => {
            let calls = m.tool_calls().fold(String::new(), |line, call| line + " " + &tag(call));
            let cut = match m.stop_reason.as_str() {
                "stop" | "toolUse" => String::new(),
                other => format!(" [{other}]"),
            };
            format!("assistant{text}{calls}{cut}")
        }
        Message::ToolResult(m) => {
            format!("result #{}{}{text}", m.tool_call_id, if m.is_error { " error" } else { "" })
        }
        Message::System(_) | Message::User(_) | Message::Custom(_) => format!("{}{text}", message.role()),
    }
}

/// Each item by `line`, with spaces between.
fn joined<T>(items: &[T], line: impl Fn(&T) -> String) -> String {
    items.iter().map(line).collect::<Vec<_>>().join(" ")
}

fn with_flag(line: String, is_set: bool, flag: &str) -> String {
    if is_set { format!("{line} {flag}") } else { line }
}

fn broken(fault: &Fault) -> String {
    format!("{} {} {:?}", fault.source_part, fault.code, fault.message)
}

fn compacted(note: &CompactionNote, permanent: bool) -> String {
    with_flag(format!("{} -> {}", note.tokens_before, note.tokens_after), permanent, "permanent")
}

fn charged(purpose: &str, usage: &PurposeUsage) -> String {
    format!("{purpose} {} calls {} tokens", usage.model_calls, usage.amount().tokens)
}

fn limit(reason: StopReason, reached: Option<&Reached>) -> String {
    match reached {
        Some(reached) => format!("{reason} {}/{}", reached.value, reached.ceiling),
        None => reason.to_string(),
    }
}

/// A line about a call, when it is about one.
fn on_call(call: Option<&CallId>, line: String) -> String {
    match call {
        Some(call) => format!("#{call} {line}"),
        None => line,
    }
}

fn tag(call: &ToolCall) -> String {
    format!("#{} {}", call.id, call.name)
}

fn code(error: Option<&ToolError>) -> String {
    error.map(|error| format!(" {}", error.code)).unwrap_or_default()
}

fn failed(call: &ToolCall, outcome: &ToolOutcome, ran: bool) -> String {
    let ran = if ran { "" } else { " (never ran)" };
    format!("#{} {}{}{ran}", call.id, outcome.status.as_str(), code(outcome.error.as_deref()))
}

fn with_reason(line: String, reason: Option<&str>) -> String {
    match reason {
        Some(reason) => format!("{line} {reason:?}"),
        None => line,
    }
}
