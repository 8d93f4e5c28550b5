//! Search in the history.

use super::history::History;
use super::{Code, Key};

/// Maximum length of the search text in bytes.
const LONGEST: usize = 200;

#[derive(Debug, Default)]
pub(super) struct Search {
    pub(super) query: String,
    /// Entry that was found.
    pub(super) found: Option<usize>,
    /// Whether no older entry contains the text.
    pub(super) failed: bool,
}

/// Result of a key.
pub(super) enum Searched {
    /// The search continues.
    On,
    /// The search ends with its result.
    Accept,
    /// The search ends with its result, and the key is handled as usual.
    AcceptAnd(Key),
    /// The search is cancelled.
    Cancel,
}

impl Search {
    pub(super) fn key(&mut self, key: Key, history: &History) -> Searched {
        match key.code {
            Code::Char('r') if key.ctrl => self.next(history),
            Code::Char('g' | 'c') if key.ctrl => return Searched::Cancel,
            Code::Esc => return Searched::Cancel,
            Code::Enter if !key.alt && !key.shift => return Searched::Accept,
            Code::Char(c) if !key.ctrl && !key.alt => {
                if self.query.len() < LONGEST {
                    self.query.push(c);
                }
                // What was found may hold the longer text, too.
                self.look(history, self.found.map_or(history.len(), |found| found + 1));
            }
            Code::Backspace => {
                self.query.pop();
                self.look(history, history.len());
            }
            Code::Char(_) | Code::Enter | Code::Tab | Code::BackTab | Code::Delete | Code::Left => {
                return Searched::AcceptAnd(key);
            }
            Code::Right | Code::Up | Code::Down | Code::Home | Code::End | Code::PageUp | Code::PageDown => {
                return Searched::AcceptAnd(key);
            }
            Code::Paste(_) => return Searched::AcceptAnd(key),
        }
        Searched::On
    }

    fn next(&mut self, history: &History) {
        let before = self.found.unwrap_or(history.len());
        self.look(history, before);
    }

    fn look(&mut self, history: &History, before: usize) {
        if self.query.is_empty() {
            self.found = None;
            self.failed = false;
            return;
        }
        let found = history.find(&self.query, before);
        self.failed = found.is_none();
        self.found = found.or(self.found);
    }
}
