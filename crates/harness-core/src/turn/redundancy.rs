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
    at: u64,
    pub(super) call: Arc<ToolCall>,
    /// Not stored: what an earlier process counted is compared in full.
    #[serde(skip)]
    sketch: Option<Sketch>,
}

/// What differs in its sketch differs; what does not has to be compared.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Sketch {
    /// Of the tool and the payload.
    result: u64,
    arguments: u64,
}

/// A result that is about to be counted.
pub(super) struct Fresh<'a> {
    log: &'a Transcript,
    at: usize,
    call: &'a Arc<ToolCall>,
    payload: Cow<'a, str>,
    sketch: Sketch,
}

impl<'a> Fresh<'a> {
    /// The result at position `at` of the transcript, which answers `call`; `None` when it says nothing.
    pub(super) fn of(log: &'a Transcript, at: usize, call: &'a Arc<ToolCall>) -> Option<Self> {
        let payload = payload_at(log, at)?;
        let sketch = Sketch {
            result: sketch(&payload) ^ sketch(call.name.as_str()).rotate_left(17),
            arguments: sketch(call.arguments.text()),
        };
        Some(Self { log, at, call, payload, sketch })
    }

    /// Whether it equals an earlier one in tool and payload.
    fn repeats_result(&self, old: &Counted) -> bool {
        old.sketch.is_none_or(|sketch| sketch.result == self.sketch.result)
            && old.call.name == self.call.name
            && usize::try_from(old.at).ok().and_then(|at| payload_at(self.log, at)).as_deref()
                == Some(&*self.payload)
    }

    /// Whether it equals an earlier one in tool, arguments and payload.
    pub(super) fn repeats(&self, old: &Counted) -> bool {
        old.sketch.is_none_or(|sketch| sketch == self.sketch)
            && old.call.arguments == self.call.arguments
            && self.repeats_result(old)
    }

    pub(super) fn counted(&self) -> Counted {
        Counted { at: self.at as u64, call: Arc::clone(self.call), sketch: Some(self.sketch) }
    }
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

    /// Counts a success. Whether it completes a row.
    pub(super) fn completes_row(&mut self, rule: Redundancy, new: &Fresh<'_>) -> bool {
        let same = |old: &Counted| match rule {
            Redundancy::SameResults => new.repeats_result(old),
            Redundancy::SameCalls | Redundancy::Off => new.repeats(old),
        };
        if !self.0.last().is_none_or(same) {
            self.0.clear();
        }
        self.0.push(new.counted());
        if self.0.len() > ROW {
            self.0.remove(0);
        }
        self.0.len() == ROW
    }
}

/// A number that most different texts differ in: made of the length and both ends, so its cost does not
/// grow with the text.
fn sketch(text: &str) -> u64 {
    const SPREAD: u64 = 0x9e37_79b9_7f4a_7c15;
    let bytes = text.as_bytes();
    let ends = match (bytes.first_chunk(), bytes.last_chunk()) {
        (Some(first), Some(last)) => u64::from_le_bytes(*first) ^ u64::from_le_bytes(*last).rotate_left(32),
        (_, _) => bytes.iter().fold(0, |word, byte| word << 8 | u64::from(*byte)),
    };
    ends.wrapping_add((bytes.len() as u64).wrapping_mul(SPREAD))
}

fn payload_at(log: &Transcript, at: usize) -> Option<Cow<'_, str>> {
    payload(log.get(at)?.as_tool_result()?)
}

/// What of a result is compared: its text, else its data; nothing when both are empty.
fn payload(result: &ToolResultMessage) -> Option<Cow<'_, str>> {
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
