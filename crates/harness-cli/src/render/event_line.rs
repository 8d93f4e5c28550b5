//! Events as single lines.

use harness::core::decide::Point;
use harness::core::event::{EventKind, RepairHow};
use harness::core::port::CompactionNote;
use harness::core::{Json, ToolName};

use super::harmless::one_line;
use super::style::{BAD, BOLD, DIM, GOOD, NOTE};
use crate::terminal::Paint;

/// Style, mark and text of a line.
pub(super) type Note = (Paint, &'static str, String);

/// Checks of the control, whose result the decision reports.
const OWN_CHECKS: [&str; 5] = ["signal", "contract", "acceptability", "control_invariant", "work_items"];

/// Returns the line of an event; `None` for events that are reported elsewhere or not shown.
pub(super) fn event_line(kind: &EventKind) -> Option<Note> {
    if is_silent(kind) {
        return None;
    }
    of_call(kind).or_else(|| decided(kind)).or_else(|| Some(of_run(kind)))
}

#[expect(clippy::wildcard_enum_match_arm, reason = "the other events are silent")]
fn is_silent(kind: &EventKind) -> bool {
    match kind {
        EventKind::Decided { by, point, verdict, fault: None, .. } => {
            let own = point == Point::End.as_str() && OWN_CHECKS.contains(&by.as_str());
            own || verdict == "allow" || verdict == "accept"
        }
        // What the last line tells, and what nobody watches.
        EventKind::RunStarted { .. }
        | EventKind::AgentPrepared { .. }
        | EventKind::MessageAppended { .. }
        | EventKind::ModelStepStarted { .. }
        | EventKind::ModelStepFinished { .. }
        | EventKind::ModelStepFailed { .. }
        | EventKind::ToolRequested { .. }
        | EventKind::ClarificationRequested { .. }
        | EventKind::ViewPlanned { .. }
        | EventKind::ContextPressure { .. }
        | EventKind::CompactionStarted { .. }
        | EventKind::LimitReached { .. }
        | EventKind::TurnFinished { .. }
        | EventKind::Control { .. }
        | EventKind::RunFinished { .. } => true,
        _ => false,
    }
}

/// Lines of tool calls.
#[expect(clippy::wildcard_enum_match_arm, reason = "the others are displayed elsewhere")]
fn of_call(kind: &EventKind) -> Option<Note> {
    Some(match kind {
        EventKind::ToolStarted { call, .. } => (DIM, "→", called(&call.name, &call.arguments)),
        EventKind::ToolFinished { call, duration, .. } => {
            (GOOD, "✓", format!("{} {DIM}{duration}{DIM:#}", one_line(call.name.as_str())))
        }
        EventKind::ToolFailed { call, outcome, duration, ran, .. } => {
            let why = outcome.error.as_ref().map_or("", |error| error.message.as_str());
            let name = one_line(call.name.as_str());
            let took = if *ran { format!(" {DIM}{duration}{DIM:#}") } else { " did not run".to_owned() };
            (BAD, "✗", format!("{name}{took}: {}", one_line(why)))
        }
        EventKind::ToolRetried { call, attempt, max_attempts, backoff, .. } => {
            let name = one_line(call.name.as_str());
            (NOTE, "↻", format!("{name} again in {backoff} ({attempt} of {max_attempts})"))
        }
        EventKind::CallRepaired { call, how, .. } => {
            (NOTE, "•", format!("{} {}", one_line(call.name.as_str()), repaired(*how)))
        }
        EventKind::ApprovalRequested { request, .. } => {
            (NOTE, "?", format!("approval required: {}", one_line(&request.summary)))
        }
        EventKind::ApprovalDecided { decision, .. } => (NOTE, "•", format!("approval {decision}")),
        _ => return None,
    })
}

/// Lines of decisions of gates and checks.
pub(crate) fn decided(kind: &EventKind) -> Option<Note> {
    let EventKind::Decided { by, point, call, verdict, reason, fault, .. } = kind else { return None };
    let is_gate = call.is_some() && point != Point::Result.as_str();
    let who = if is_gate { format!("gate {by}") } else { format!("check {by} of the {point}") };
    let why = reason.as_deref().map(|reason| format!(": {}", one_line(reason))).unwrap_or_default();
    Some(match fault {
        Some(fault) => (BAD, "!", format!("{who} failed: {fault}; that counts as `{verdict}`")),
        None if verdict == "refuse" || verdict == "unfounded" => (BAD, "!", format!("{who}: {verdict}{why}")),
        None => (NOTE, "•", format!("{who}: {verdict}{why}")),
    })
}

/// Lines of the run; an unknown event is shown by name.
#[expect(clippy::wildcard_enum_match_arm, reason = "the others are displayed elsewhere")]
fn of_run(kind: &EventKind) -> Note {
    match kind {
        EventKind::ModelStepContinued { reason, attempt, most } => {
            let reason = one_line(reason);
            (NOTE, "↻", format!("{reason}: it is asked to continue ({attempt} of {most})"))
        }
        EventKind::CompactionCompleted { note, permanent, .. } => (NOTE, "•", shortened(note, *permanent)),
        EventKind::CompactionFailed { fault, .. } => {
            (BAD, "!", format!("compaction failed: {}", one_line(&fault.to_string())))
        }
        EventKind::PartFailed { fault, .. } => {
            (BAD, "!", format!("{}; the run continues", one_line(&fault.to_string())))
        }
        EventKind::PersistFailed { message, .. } => {
            (BAD, "!", format!("session not saved: {}", one_line(message)))
        }
        EventKind::RunTakenUp { turn, .. } => (NOTE, "•", format!("resumed at turn {turn}")),
        EventKind::SteeringInjected { .. } => (NOTE, "•", "new messages".to_owned()),
        other => (DIM, "•", other.name().to_owned()),
    }
}

/// Line of a stall.
pub(crate) fn stalled(turns: u32) -> String {
    format!("no progress in the last {turns} turns")
}

/// A call with its arguments.
pub(super) fn called(name: &ToolName, arguments: &Json) -> String {
    let arguments = one_line(arguments.text());
    format!("{BOLD}{}{BOLD:#} {DIM}{arguments}{DIM:#}", one_line(name.as_str()))
}

/// Actions of a compaction.
pub(crate) fn shortened(note: &CompactionNote, permanent: bool) -> String {
    let what = if permanent { "compacted the session" } else { "compacted the view" };
    let actions: Vec<_> = note.actions.iter().map(|(action, times)| format!("{action} {times}")).collect();
    let how = if actions.is_empty() { String::new() } else { format!(" ({})", actions.join(", ")) };
    format!("{what}: {} → {} tokens{how}", note.tokens_before, note.tokens_after)
}

/// Settlement of a call of an earlier process.
pub(crate) fn repaired(how: RepairHow) -> &'static str {
    match how {
        RepairHow::Recovered => "finished earlier; its stored result is used",
        RepairHow::Rerun => "started earlier; it is safe to run again",
        RepairHow::Interrupted => "started earlier and may have had effects; it is not run again",
        RepairHow::NotRun => "did not run earlier; it is not run now",
        RepairHow::Run => "did not run earlier; it is run now",
        _ => "was settled",
    }
}
