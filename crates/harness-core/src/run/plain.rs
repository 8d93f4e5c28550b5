//! The default control of a run.

use serde::{Deserialize, Serialize};

use crate::json::Json;
use crate::message::{AssistantMessage, Message};
use crate::outcome::{StopMode, StopReason};
use crate::port::{Checked, CheckedAs, Control, Review, RunNext, RunStop, TurnEnd};

/// The tool by which a model signals that its work is complete, for checks of the end.
const SIGNAL: &str = "work_complete";

/// Ends a run with the first answer that every check of the end accepts. An interactive run waives a check that asked
/// for [`RunSpec::nudges`](super::RunSpec::nudges) more turns in a row.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct PlainControl {
    /// Turns that checks asked for, in a row.
    nudges: u32,
    /// Whether the current turn gave the signal.
    signalled: bool,
}

impl Default for Box<dyn Control> {
    fn default() -> Self {
        Box::new(PlainControl::default())
    }
}

impl Control for PlainControl {
    fn observe(&mut self, _event: u64, message: &Message) {
        let mut calls = message.as_assistant().into_iter().flat_map(AssistantMessage::tool_calls);
        self.signalled |= calls.any(|call| call.name == SIGNAL);
    }

    fn review(&mut self, turn: &TurnEnd<'_>, _facts: Option<&Json>) -> Review {
        let signalled = std::mem::take(&mut self.signalled);
        if turn.end.reason() != StopReason::AnswerFinalized {
            return Review::NotDone;
        }
        let waives = turn.mode == StopMode::Interactive && self.nudges >= turn.nudges;
        Review::Done { signalled, waives, own: Vec::new() }
    }

    fn decide(&mut self, turn: &TurnEnd<'_>, checks: &[Checked]) -> RunNext {
        let refused = checks.last().filter(|check| check.verdict == CheckedAs::Refused);
        match refused {
            Some(check) if turn.end.reason() == StopReason::AnswerFinalized => {
                self.nudges = self.nudges.saturating_add(1);
                RunNext::Continue(check.why.clone())
            }
            Some(_) | None => {
                let waived: Vec<_> = checks.iter().filter_map(Checked::waiver).collect();
                let stop = (!waived.is_empty()).then(|| StopReason::CompletionWaived.into());
                RunNext::Stop(RunStop { stop, waived, ..RunStop::default() })
            }
        }
    }

    fn save(&self) -> Json {
        Json::of(self).unwrap_or_default()
    }

    fn restore(&mut self, saved: &Json) -> Result<(), serde_json::Error> {
        *self = saved.to()?;
        Ok(())
    }
}
