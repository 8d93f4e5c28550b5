//! Loop detection: one tool giving the same result again and again.

use std::borrow::Cow;
use std::sync::Arc;

use super::call_state::CallState;
use crate::message::{ToolCall, ToolResultMessage};
use crate::transcript::Transcript;

/// Equal results in a row that count as a loop.
const ROW: usize = 3;

/// A result that counted: where it stands, and the call that it answers.
#[derive(Clone, Debug)]
pub(super) struct Counted {
    at: u64,
    /// The call's place in its batch.
    index: u32,
    /// The call, unless the transcript holds it as it ran.
    call: Option<Arc<ToolCall>>,
    /// Not stored: what an earlier process counted is compared in full.
    sketch: Option<Sketch>,
}

impl Counted {
    /// The call that it answers.
    pub(super) fn call<'a>(&'a self, log: &'a Transcript) -> Option<&'a Arc<ToolCall>> {
        self.call.as_ref().or_else(|| asked(log, usize::try_from(self.at).ok()?, self.index))
    }
}

/// The call that the result at `at` answers, as the transcript holds it.
fn asked(log: &Transcript, at: usize, index: u32) -> Option<&Arc<ToolCall>> {
    let answer = log.get(at.checked_sub(1 + index as usize)?)?.as_assistant()?;
    answer.tool_calls().nth(index as usize)
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
    slot: &'a CallState,
    index: u32,
    payload: Cow<'a, str>,
    sketch: Sketch,
}

impl<'a> Fresh<'a> {
    /// The result at position `at` of the transcript, which answers the call of `slot`, the `index`-th of its
    /// batch; `None` when it says nothing.
    pub(super) fn of(log: &'a Transcript, at: usize, index: u32, slot: &'a CallState) -> Option<Self> {
        let (payload, call) = (payload_at(log, at)?, &slot.call);
        let sketch = Sketch {
            result: sketch(&payload) ^ sketch(call.name.as_str()).rotate_left(17),
            arguments: sketch(call.arguments.text()),
        };
        Some(Self { log, at, slot, index, payload, sketch })
    }

    /// Whether it equals an earlier one in tool, arguments and payload.
    pub(super) fn repeats(&self, old: &Counted) -> bool {
        old.sketch.is_none_or(|sketch| sketch == self.sketch) && self.repeats_in_full(old)
    }

    fn repeats_in_full(&self, old: &Counted) -> bool {
        let same = |call: &Arc<ToolCall>| {
            call.name == self.slot.call.name && call.arguments == self.slot.call.arguments
        };
        let payload = || usize::try_from(old.at).ok().and_then(|at| payload_at(self.log, at));
        old.call(self.log).is_some_and(same) && payload().as_deref() == Some(&*self.payload)
    }

    /// The transcript that it stands in.
    pub(super) fn log(&self) -> &Transcript {
        self.log
    }

    pub(super) fn counted(&self) -> Counted {
        let call = self.slot.particulars().rewritten.then(|| Arc::clone(&self.slot.call));
        Counted { at: self.at as u64, index: self.index, call, sketch: Some(self.sketch) }
    }
}

/// The last result that counted, and how many before it were equal. Payloads are compared, not hashes of
/// them, so different results never look equal.
#[derive(Clone, Debug, Default)]
pub(super) struct History {
    last: Option<Counted>,
    row: usize,
}

impl History {
    /// An error in between breaks the row.
    pub(super) fn clear(&mut self) {
        self.row = 0;
    }

    /// Counts a success. Whether it completes a row.
    pub(super) fn completes_row(&mut self, new: &Fresh<'_>) -> bool {
        let continues = self.row > 0 && self.last.as_ref().is_some_and(|old| new.repeats(old));
        self.row = if continues { self.row + 1 } else { 1 };
        self.last = Some(new.counted());
        self.row >= ROW
    }
}

/// A number that most different texts differ in: made of the length and both ends, so its cost does not
/// grow with the text.
fn sketch(text: &str) -> u64 {
    const SPREAD: u64 = 0x9e37_79b9_7f4a_7c15;
    let bytes = text.as_bytes();
    let words = (bytes.first_chunk::<8>(), bytes.last_chunk::<8>());
    let halves = (bytes.first_chunk::<4>(), bytes.last_chunk::<4>());
    let ends = match (words, halves) {
        ((Some(first), Some(last)), _) => {
            u64::from_le_bytes(*first) ^ u64::from_le_bytes(*last).rotate_left(32)
        }
        (_, (Some(first), Some(last))) => {
            u64::from(u32::from_le_bytes(*first)) << 32 | u64::from(u32::from_le_bytes(*last))
        }
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
