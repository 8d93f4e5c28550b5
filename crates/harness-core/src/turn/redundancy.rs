//! Loop detection: one tool giving the same result again and again.

use std::borrow::Cow;
use std::sync::Arc;

use serde::{Deserialize, Serialize};

use super::spec::Redundancy;
use crate::message::{ToolCall, ToolResultMessage};
use crate::transcript::Transcript;

/// Equal results in a row that count as a loop.
const ROW: usize = 3;

/// A result that counted: where it stands, and the call that it answers.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub(super) struct Counted {
    pub(super) at: u64,
    pub(super) call: Arc<ToolCall>,
}

/// The last results that counted. Payloads are compared, not hashes of them, so different results never
/// look equal.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
#[serde(transparent)]
pub(super) struct History(Vec<Counted>);

impl History {
    /// An error in between breaks the row.
    pub(super) fn clear(&mut self) {
        self.0.clear();
    }

    /// Counts the success at position `at` of the transcript. Whether it completes a row.
    pub(super) fn completes_row(
        &mut self,
        rule: Redundancy,
        log: &Transcript,
        at: usize,
        call: &Arc<ToolCall>,
    ) -> bool {
        let payload_at = |at: usize| log.get(at).and_then(|m| m.as_tool_result()).and_then(payload);
        let Some(new) = payload_at(at).filter(|_| rule != Redundancy::Off) else { return false };
        let same = |old: &Counted| {
            old.call.name == call.name
                && (rule == Redundancy::SameResults || old.call.arguments == call.arguments)
                && usize::try_from(old.at).ok().and_then(payload_at).is_some_and(|text| text == new)
        };
        if !self.0.last().is_none_or(same) {
            self.0.clear();
        }
        self.0.push(Counted { at: at as u64, call: Arc::clone(call) });
        if self.0.len() > ROW {
            self.0.remove(0);
        }
        self.0.len() == ROW
    }
}

/// What of a result is compared: its text, else its data; nothing when both are empty.
pub(super) fn payload(result: &ToolResultMessage) -> Option<Cow<'_, str>> {
    let mut texts = result.content.iter().filter_map(|block| block.as_text());
    let first = texts.next().unwrap_or_default();
    let text = match texts.next() {
        None => Cow::Borrowed(first),
        Some(second) => Cow::Owned([first, second].into_iter().chain(texts).collect()),
    };
    if !text.is_empty() {
        return Some(text);
    }
    let data = result.structured.as_ref()?.text();
    (data != "{}").then_some(Cow::Borrowed(data))
}
