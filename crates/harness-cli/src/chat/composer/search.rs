//! A search in what was sent before.

use super::history::History;
use super::{Code, Key};

/// The longest text to search for, in bytes.
const LONGEST: usize = 200;

#[derive(Debug, Default)]
pub(super) struct Search {
    pub(super) query: String,
    /// The entry that was found.
    pub(super) found: Option<usize>,
    /// Whether nothing (older) holds the text.
    pub(super) failed: bool,
}

/// What came of a key.
pub(super) enum Searched {
    /// The search goes on.
    On,
    /// It ends with what was found.
    Accept,
    /// It ends with what was found, and the key still counts.
    AcceptAnd(Key),
    /// It ends as if it had not been.
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
