//! Notices beside answers and calls.

use harness::control::ControlEvent;
use harness::core::event::EventKind;

use crate::render::{BAD, NOTE, decided, repaired, shortened, stalled};
use crate::terminal::Paint;

/// Style, mark and text; `None` for events that the conversation already shows.
pub(super) fn note(kind: &EventKind) -> Option<(Paint, &'static str, String)> {
    let (style, mark, text) =
        if let EventKind::ToolRetried { call, attempt, max_attempts, backoff, .. } = kind {
            (NOTE, "↻", format!("{} again in {backoff} ({attempt} of {max_attempts})", call.name))
        } else if let EventKind::CallRepaired { call, how, .. } = kind {
            (NOTE, "•", format!("{} {}", call.name, repaired(*how)))
        } else if let EventKind::Decided { verdict, fault, .. } = kind {
            // What is held is asked about.
            if fault.is_none() && matches!(&**verdict, "allow" | "hold" | "accept") {
                return None;
            }
            return decided(kind);
        } else if let EventKind::CompactionCompleted { note, permanent, .. } = kind {
            (NOTE, "•", shortened(note, *permanent))
        } else if let EventKind::CompactionFailed { fault, .. } = kind {
            (BAD, "!", format!("compaction failed: {fault}"))
        } else if let EventKind::PartFailed { fault, .. } = kind {
            (BAD, "!", format!("{fault}; the run continues"))
        } else if let EventKind::PersistFailed { message, .. } = kind {
            (BAD, "!", format!("session not saved: {message}"))
        } else if let Some(ControlEvent::StopDecided { decision }) = ControlEvent::of(kind) {
            (NOTE, "!", stalled(decision.stall_turns?))
        } else {
            return None;
        };
    Some((style, mark, text))
}
