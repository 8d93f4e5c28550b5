//! Loop detection: one tool that gives the same result again and again, and the same few calls with the same results,
//! over and over.

use std::borrow::Cow;
use std::sync::Arc;

use super::calling::CallState;
use crate::message::{ToolCall, ToolResultMessage};
use crate::transcript::Transcript;

/// Equal results in a row that count as a loop.
const ROW: usize = 3;

/// The shortest period that is looked for: a single call that repeats is the other detector's.
const SHORTEST: usize = 2;

/// The longest period that can be looked for.
pub(super) const LONGEST: u32 = 16;

/// A result that counted: where it stands, and the call that it answers.
#[derive(Clone, Debug)]
struct PastResult {
    at: usize,
    /// The call's place in its batch.
    index: u32,
    /// The call, unless the transcript holds it as it ran.
    call: Option<Arc<ToolCall>>,
    sketch: Sketch,
}

impl PastResult {
    /// The call that it answers.
    fn call<'a>(&'a self, log: &'a Transcript) -> Option<&'a Arc<ToolCall>> {
        self.call.as_ref().or_else(|| asked(log, self.at, self.index))
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
pub(super) struct NewResult<'a> {
    log: &'a Transcript,
    at: usize,
    slot: &'a CallState,
    index: u32,
    payload: Cow<'a, str>,
    sketch: Sketch,
}

impl<'a> NewResult<'a> {
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
    fn repeats(&self, old: &PastResult) -> bool {
        old.sketch == self.sketch && self.repeats_in_full(old)
    }

    fn repeats_in_full(&self, old: &PastResult) -> bool {
        let same = |call: &Arc<ToolCall>| {
            call.name == self.slot.call.name && call.arguments == self.slot.call.arguments
        };
        old.call(self.log).is_some_and(same)
            && payload_at(self.log, old.at).as_deref() == Some(&*self.payload)
    }

    fn counted(&self) -> PastResult {
        let call = self.slot.particulars().rewritten.then(|| Arc::clone(&self.slot.call));
        PastResult { at: self.at, index: self.index, call, sketch: self.sketch }
    }
}

/// Whether the model was told that it goes round in circles.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
enum Hint {
    #[default]
    None,
    /// It is told after the results at hand.
    Due,
    Given,
}

/// The last results of a turn, and how far they repeat. Payloads are compared, not hashes of them, so different results
/// never look equal. A cycle of period p has gone round when p results in a row equal, in tool, arguments and payload,
/// those p before them.
#[derive(Debug, Default)]
pub(super) struct Loops {
    /// The last success.
    last: Option<PastResult>,
    /// Equal successes in a row.
    row: usize,
    recent: Vec<PastResult>,
    /// Results in a row that equal the one `SHORTEST + n` before them.
    rows: Vec<usize>,
    hint: Hint,
}

impl Loops {
    /// An error in between breaks the row.
    pub(super) fn clear(&mut self) {
        self.row = 0;
    }

    /// Counts a success. Whether it completes a row.
    pub(super) fn completes_row(&mut self, new: &NewResult<'_>) -> bool {
        let continues = self.row > 0 && self.last.as_ref().is_some_and(|old| new.repeats(old));
        self.row = if continues { self.row + 1 } else { 1 };
        self.last = Some(new.counted());
        self.row >= ROW
    }

    /// Counts a result. The tools of a cycle that continues although the model was told; the first one only
    /// makes a hint due.
    pub(super) fn continues(&mut self, longest: u32, new: &NewResult<'_>) -> Option<Vec<Arc<str>>> {
        let longest = longest.min(LONGEST) as usize;
        if longest < SHORTEST {
            return None;
        }
        let mut repeats = false;
        self.rows.resize(longest + 1 - SHORTEST, 0);
        let mut before = self.recent.iter().rev().skip(SHORTEST - 1);
        for row in &mut self.rows {
            let continues = before.next().is_some_and(|old| new.repeats(old));
            *row = if continues { *row + 1 } else { 0 };
            repeats |= continues;
        }
        // More than are needed, so that they seldom have to move.
        if self.recent.len() >= 2 * longest {
            self.recent.drain(..longest);
        }
        self.recent.push(new.counted());
        if repeats { self.gone_round(new) } else { None }
    }

    /// Whether a cycle has gone round, now that a result repeats another.
    fn gone_round(&mut self, new: &NewResult<'_>) -> Option<Vec<Arc<str>>> {
        let period = self.rows.iter().zip(SHORTEST..).find(|(row, period)| *row >= period)?.1;
        self.rows.fill(0);
        if self.hint != Hint::Given {
            self.hint = Hint::Due;
            return None;
        }
        let cycle = self.recent.iter().rev().take(period).rev();
        let name = |counted: &PastResult| Some(Arc::from(counted.call(new.log)?.name.as_str()));
        Some(cycle.filter_map(name).collect())
    }

    /// What the model is told now, once per turn.
    pub(super) fn take_hint(&mut self) -> Option<&'static str> {
        if self.hint != Hint::Due {
            return None;
        }
        self.hint = Hint::Given;
        Some(
            "You repeat the same calls and get the same results. Use what you know already: answer, try \
             something different, or say what is missing.",
        )
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
