//! What is worth a line beside answers and calls.

use harness::core::control::ControlEvent;
use harness::core::event::EventKind;

use crate::render::{BAD, NOTE, repaired, shortened, stalled};
use crate::terminal::Paint;

/// The style, the mark and the text; `None` for what the conversation shows by itself.
pub(super) fn note(kind: &EventKind) -> Option<(Paint, &'static str, String)> {
    let because = |reason: Option<&str>| reason.map(|reason| format!(": {reason}")).unwrap_or_default();
    let (style, mark, text) =
        if let EventKind::ToolRetried { call, attempt, max_attempts, backoff, .. } = kind {
            (NOTE, "↻", format!("{} again in {backoff} ({attempt} of {max_attempts})", call.name))
        } else if let EventKind::CallRepaired { call, how, .. } = kind {
            (NOTE, "•", format!("{} {}", call.name, repaired(*how)))
        } else if let EventKind::Decided { by, fault: Some(fault), .. } = kind {
            (BAD, "!", format!("gate {by} failed: {fault}"))
        } else if let EventKind::Decided { by, verdict, reason, .. } = kind {
            if verdict == "allow" || verdict == "hold" {
                return None;
            }
            (NOTE, "•", format!("gate {by}: {verdict}{}", because(reason.as_deref())))
        } else if let EventKind::GuardrailDecided { guardrail, stage, decision, reason, .. } = kind {
            if decision == "pass" {
                return None;
            }
            (BAD, "!", format!("{stage} guardrail {guardrail} triggered{}", because(reason.as_deref())))
        } else if let EventKind::CompactionCompleted { note, permanent, .. } = kind {
            (NOTE, "•", shortened(note, *permanent))
        } else if let EventKind::CompactionFailed { fault, .. } = kind {
            (BAD, "!", format!("compaction failed: {fault}"))
        } else if let EventKind::PartFailed { fault, .. } = kind {
            (BAD, "!", format!("{fault}; the run continues"))
        } else if let EventKind::PersistFailed { message, .. } = kind {
            (BAD, "!", format!("the session was not written: {message}"))
        } else if let Some(ControlEvent::StopDecided { decision }) = ControlEvent::of(kind) {
            (NOTE, "!", stalled(decision.stall_turns?))
        } else {
            return None;
        };
    Some((style, mark, text))
}
