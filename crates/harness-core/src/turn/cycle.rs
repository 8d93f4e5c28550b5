//! Loop detection: the same few calls with the same results, over and over.

use std::sync::Arc;

use super::redundancy::{Counted, Fresh};

/// The shortest period that is looked for: a single call that repeats is the other detector's.
const SHORTEST: usize = 2;

/// The longest period that can be looked for.
pub(super) const LONGEST: u32 = 16;

/// Whether the model was told that it goes round in circles.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
enum Hint {
    #[default]
    None,
    /// It is told after the results at hand.
    Due,
    Given,
}

/// The last results of a turn, and how far they repeat. A cycle of period p has gone round when p results
/// in a row equal, in tool, arguments and payload, those p before them.
#[derive(Clone, Debug, Default)]
pub(super) struct Cycles {
    recent: Vec<Counted>,
    /// Results in a row that equal the one `SHORTEST + n` before them.
    rows: Vec<usize>,
    hint: Hint,
}

impl Cycles {
    /// Counts a result. The tools of a cycle that goes on although the model was told; the first one only
    /// makes a hint due.
    pub(super) fn continues(&mut self, longest: u32, new: &Fresh<'_>) -> Option<Vec<Arc<str>>> {
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
    fn gone_round(&mut self, new: &Fresh<'_>) -> Option<Vec<Arc<str>>> {
        let period = self.rows.iter().zip(SHORTEST..).find(|(row, period)| *row >= period)?.1;
        self.rows.fill(0);
        if self.hint != Hint::Given {
            self.hint = Hint::Due;
            return None;
        }
        let cycle = self.recent.iter().rev().take(period).rev();
        let name = |counted: &Counted| Some(Arc::from(counted.call(new.log())?.name.as_str()));
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
