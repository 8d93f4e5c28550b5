//! A completion with several candidates.

use std::ops::Range;

use super::buffer::Buffer;
use super::{Complete, Word};

/// Maximum number of candidates that are shown.
const MOST: usize = 1_000;

/// Result of Tab.
#[derive(Debug)]
pub(super) struct Completion {
    /// Context of the completion.
    pub(super) word: Range<usize>,
    /// Candidates; never empty.
    pub(super) candidates: Vec<String>,
    /// Candidate that is in the text.
    pub(super) chosen: Option<usize>,
}

impl Completion {
    /// Returns the candidates for the text before the cursor.
    pub(super) fn of(buffer: &Buffer, complete: &dyn Complete) -> Option<Self> {
        let (start, word, command) = parts(buffer)?;
        let mut candidates = match command {
            Some(_) if start == 0 => known(word, complete.candidates(Word::Command(word))),
            Some(command) => known(word, complete.candidates(Word::Argument { command, word })),
            None => Vec::new(),
        };
        if candidates.is_empty() && !word.is_empty() && (command.is_none() || start == 0) {
            candidates = known(word, complete.candidates(Word::Path(word)));
        }
        (!candidates.is_empty()).then(|| Self { word: start..buffer.cursor(), candidates, chosen: None })
    }

    /// Common prefix of all candidates.
    pub(super) fn common(&self) -> &str {
        let Some((first, others)) = self.candidates.split_first() else { return "" };
        let mut common = first.as_str();
        for other in others {
            let same = common.chars().zip(other.chars()).take_while(|(one, two)| one == two);
            let length = same.map(|(one, _)| one.len_utf8()).sum();
            common = common.get(..length).unwrap_or_default();
        }
        common
    }

    /// Selects the next or the previous candidate.
    pub(super) fn turn(&mut self, forward: bool) -> &str {
        let count = self.candidates.len().max(1);
        let at = match (self.chosen, forward) {
            (None, true) => 0,
            (None, false) => count - 1,
            (Some(at), true) => (at + 1) % count,
            (Some(at), false) => (at + count - 1) % count,
        };
        self.chosen = Some(at);
        self.candidates.get(at).map_or("", String::as_str)
    }
}

/// Start of the word before the cursor, the word, and the command that the text starts with.
fn parts(buffer: &Buffer) -> Option<(usize, &str, Option<&str>)> {
    let before = buffer.before();
    let start =
        before.char_indices().rev().find(|(_, c)| c.is_whitespace()).map_or(0, |(at, c)| at + c.len_utf8());
    let word = before.get(start..)?;
    let command = buffer.text().split_whitespace().next().filter(|first| first.starts_with('/'));
    Some((start, word, command.filter(|_| buffer.text().starts_with('/'))))
}

/// Start of the word before the cursor, and the word.
pub(super) fn word(buffer: &Buffer) -> Option<(usize, Word<'_>)> {
    let (start, word, command) = parts(buffer)?;
    let word = match command {
        Some(_) if start == 0 => Word::Command(word),
        Some(command) if !word.starts_with('@') => Word::Argument { command, word },
        Some(_) | None => Word::Path(word),
    };
    Some((start, word))
}

/// Candidates that start with the word, without duplicates.
fn known(word: &str, all: Vec<String>) -> Vec<String> {
    let mut known: Vec<String> = Vec::new();
    for one in all {
        if known.len() < MOST && one.starts_with(word) && known.last() != Some(&one) {
            known.push(one);
        }
    }
    known
}
