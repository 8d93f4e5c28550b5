//! Loop detection: one call that gives the same result again and again, and a cycle of calls with the same results.

use std::borrow::Cow;
use std::collections::VecDeque;
use std::hash::BuildHasher as _;
use std::sync::Arc;

use foldhash::fast::FixedState;
use serde::{Deserialize, Serialize};

use crate::message::{ToolCall, ToolResultMessage};
use crate::transcript::Transcript;

/// Equal results in a row of one call that are a loop.
const ROW: usize = 3;

/// The shortest cycle. A single call that repeats is a row.
const SHORTEST: usize = 2;

/// The longest cycle that a spec may ask for.
pub(super) const LONGEST: u32 = 16;

/// A result with content: its position in the transcript, and the call as it ran.
#[derive(Debug, Serialize, Deserialize)]
pub(super) struct CallResult {
    at: usize,
    call: Arc<ToolCall>,
    /// Hash of the payload, in which most results differ.
    #[serde(skip)]
    hash: u64,
}

impl CallResult {
    /// The result at a position; `None` when it is empty.
    pub(super) fn of(log: &Transcript, at: usize, call: &Arc<ToolCall>) -> Option<Self> {
        let hash = hash_at(log, at)?;
        Some(Self { at, call: Arc::clone(call), hash })
    }

    /// Whether tool, arguments and payload are equal, not only their hashes.
    fn equals(&self, other: &Self, log: &Transcript) -> bool {
        self.hash == other.hash
            && self.call.name == other.call.name
            && self.call.arguments == other.call.arguments
            && payload_at(log, self.at) == payload_at(log, other.at)
    }
}

/// Whether the model was warned of a cycle.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
enum Hint {
    #[default]
    None,
    /// The model is warned after the results at hand.
    Due,
    Given,
}

/// A loop that stops the turn.
#[derive(Debug)]
pub(super) enum Loop {
    /// One call gave the same result again and again.
    Row,
    /// A cycle of these tools continued although the model was warned.
    Cycle(Vec<Arc<str>>),
}

/// The last results of a turn, and how far they repeat. A cycle of period p is complete when p results in a row equal
/// those p before them.
#[derive(Debug, Default, Serialize, Deserialize)]
pub(super) struct Loops {
    /// The last result, and whether its call ran: only then it is part of a cycle.
    last: Option<(CallResult, bool)>,
    /// Equal successes in a row, up to the last result.
    row: usize,
    /// Results before the last one.
    recent: VecDeque<CallResult>,
    /// Results in a row that equal the one `SHORTEST + n` before them.
    rows: Vec<usize>,
    hint: Hint,
}

impl Loops {
    /// Breaks the row: an error came in between.
    pub(super) fn clear(&mut self) {
        self.row = 0;
    }

    /// Counts a result. The first complete cycle only makes the warning due.
    pub(super) fn add(
        &mut self,
        log: &Transcript,
        longest: u32,
        new: CallResult,
        is_error: bool,
        ran: bool,
    ) -> Option<Loop> {
        if !is_error {
            let continues =
                self.row > 0 && self.last.as_ref().is_some_and(|(last, _)| last.equals(&new, log));
            self.row = if continues { self.row + 1 } else { 1 };
        }
        if let Some((last, true)) = self.last.replace((new, ran)) {
            self.recent.push_back(last);
        }
        if !is_error && self.row >= ROW {
            return Some(Loop::Row);
        }
        if ran { self.continues(longest.min(LONGEST) as usize, log).map(Loop::Cycle) } else { None }
    }

    /// The tools of a cycle that the last result continues although the model was warned.
    fn continues(&mut self, longest: usize, log: &Transcript) -> Option<Vec<Arc<str>>> {
        let (new, _) = self.last.as_ref()?;
        self.rows.resize((longest + 1).saturating_sub(SHORTEST), 0);
        let mut cycle = None;
        for (row, period) in self.rows.iter_mut().zip(SHORTEST..) {
            let before = self.recent.len().checked_sub(period).and_then(|at| self.recent.get(at));
            let continues = before.is_some_and(|old| old.equals(new, log));
            *row = if continues { *row + 1 } else { 0 };
            if *row >= period {
                cycle = cycle.or(Some(period));
            }
        }
        while self.recent.len() > longest {
            self.recent.pop_front();
        }
        let period = cycle?;
        self.rows.fill(0);
        if self.hint != Hint::Given {
            self.hint = Hint::Due;
            return None;
        }
        let before = self.recent.iter().rev().take(period - 1).rev();
        let cycle = before.chain([new]).map(|result| Arc::from(result.call.name.as_str()));
        Some(cycle.collect())
    }

    /// Adds what is not saved: the hashes, which differ between builds.
    pub(super) fn restore(&mut self, log: &Transcript) {
        let last = self.last.as_mut().map(|(last, _)| last);
        for result in self.recent.iter_mut().chain(last) {
            result.hash = hash_at(log, result.at).unwrap_or_default();
        }
    }

    /// Takes the warning that is due, once per turn.
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

fn hash_at(log: &Transcript, at: usize) -> Option<u64> {
    Some(FixedState::default().hash_one(payload_at(log, at)?.as_bytes()))
}

fn payload_at(log: &Transcript, at: usize) -> Option<Cow<'_, str>> {
    payload(log.get(at)?.as_tool_result()?)
}

/// The compared content of a result: its text, else its data; `None` when both are empty.
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
