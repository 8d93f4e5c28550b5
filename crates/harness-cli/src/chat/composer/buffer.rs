//! Text with undo and a cursor between grapheme clusters.

use std::collections::VecDeque;
use std::ops::Range;

use unicode_segmentation::{GraphemeCursor, UnicodeSegmentation as _};

use crate::render::line::width;

/// Maximum length of the text in bytes.
pub(super) const LONGEST: usize = 1024 * 1024;

/// Maximum number of changes that can be undone.
const MOST_CHANGES: usize = 1_000;

/// Maximum size of all recorded changes in bytes.
const MOST_REMEMBERED: usize = 4 * LONGEST;

/// One replaced range.
#[derive(Debug)]
struct Change {
    at: usize,
    removed: String,
    inserted: String,
    /// Cursor position before the change.
    cursor: usize,
    /// Whether further typed text may be merged into it.
    is_typing: bool,
}

impl Change {
    fn bytes(&self) -> usize {
        self.removed.len() + self.inserted.len()
    }
}

#[derive(Debug, Default)]
pub(super) struct Buffer {
    text: String,
    cursor: usize,
    /// Target column of vertical moves.
    goal: Option<usize>,
    changes: VecDeque<Change>,
    remembered: usize,
}

impl Buffer {
    pub(super) fn text(&self) -> &str {
        &self.text
    }

    pub(super) fn cursor(&self) -> usize {
        self.cursor
    }

    pub(super) fn before(&self) -> &str {
        self.text.get(..self.cursor).unwrap_or_default()
    }

    pub(super) fn after(&self) -> &str {
        self.text.get(self.cursor..).unwrap_or_default()
    }

    /// Takes the text and clears the undo history.
    pub(super) fn take(&mut self) -> String {
        std::mem::take(self).text
    }

    /// Inserts at the cursor as much as fits and returns the number of bytes that did not.
    pub(super) fn insert(&mut self, text: &str) -> usize {
        self.replace(self.cursor..self.cursor, text)
    }

    /// Inserts a typed character; a typed word is undone as a whole.
    pub(super) fn type_char(&mut self, c: char) -> usize {
        let continues = self.changes.back().is_some_and(|last| {
            last.is_typing && last.at + last.inserted.len() == self.cursor && !c.is_whitespace()
        });
        let left_out = self.insert(c.encode_utf8(&mut [0; 4]));
        if left_out > 0 {
            return left_out;
        }
        if continues && self.changes.len() > 1 {
            self.changes.pop_back();
            if let Some(last) = self.changes.back_mut() {
                last.inserted.push(c);
            }
        } else if let Some(last) = self.changes.back_mut() {
            last.is_typing = true;
        }
        0
    }

    /// Replaces a range and moves the cursor behind it.
    pub(super) fn replace(&mut self, range: Range<usize>, text: &str) -> usize {
        let Some(removed) = self.text.get(range.clone()).map(str::to_owned) else { return text.len() };
        let room = LONGEST - (self.text.len() - removed.len());
        let inserted = text.get(..text.floor_char_boundary(room)).unwrap_or_default();
        let left_out = text.len() - inserted.len();
        if inserted == removed {
            self.set_cursor(range.start + inserted.len());
            return left_out;
        }
        let change = Change {
            at: range.start,
            removed,
            inserted: inserted.to_owned(),
            cursor: self.cursor,
            is_typing: false,
        };
        self.text.replace_range(range.clone(), inserted);
        self.set_cursor(range.start + inserted.len());
        self.remember(change);
        left_out
    }

    /// Undoes the last change; returns whether there was one.
    pub(super) fn undo(&mut self) -> bool {
        let Some(change) = self.changes.pop_back() else { return false };
        self.remembered = self.remembered.saturating_sub(change.bytes());
        let range = change.at..change.at + change.inserted.len();
        if self.text.get(range.clone()).is_some() {
            self.text.replace_range(range, &change.removed);
        }
        self.set_cursor(change.cursor);
        true
    }

    fn remember(&mut self, change: Change) {
        self.remembered += change.bytes();
        self.changes.push_back(change);
        while self.changes.len() > MOST_CHANGES || self.remembered > MOST_REMEMBERED {
            let Some(oldest) = self.changes.pop_front() else { break };
            self.remembered = self.remembered.saturating_sub(oldest.bytes());
        }
    }

    /// Moves the cursor to a position, rounded up to a grapheme boundary; returns whether it moved.
    pub(super) fn set_cursor(&mut self, at: usize) -> bool {
        let at = snapped(&self.text, at);
        self.goal = None;
        std::mem::replace(&mut self.cursor, at) != at
    }

    /// Position one character to the left.
    pub(super) fn left(&self) -> usize {
        self.cursor - self.before().graphemes(true).next_back().map_or(0, str::len)
    }

    /// Position one character to the right.
    pub(super) fn right(&self) -> usize {
        self.cursor + self.after().graphemes(true).next().map_or(0, str::len)
    }

    /// Start of the word before the cursor.
    pub(super) fn word_left(&self) -> usize {
        let mut at = self.cursor;
        let mut inside = false;
        for grapheme in self.before().graphemes(true).rev() {
            if is_word(grapheme) {
                inside = true;
            } else if inside {
                break;
            }
            at -= grapheme.len();
        }
        at
    }

    /// End of the word after the cursor.
    pub(super) fn word_right(&self) -> usize {
        let mut at = self.cursor;
        let mut inside = false;
        for grapheme in self.after().graphemes(true) {
            if is_word(grapheme) {
                inside = true;
            } else if inside {
                break;
            }
            at += grapheme.len();
        }
        at
    }

    /// Start of the text without spaces before the cursor.
    pub(super) fn space_left(&self) -> usize {
        let words = self.before().trim_end();
        words.rfind(char::is_whitespace).map_or(0, |at| at + char_at(words, at).map_or(1, char::len_utf8))
    }

    pub(super) fn line_start(&self) -> usize {
        self.before().rfind('\n').map_or(0, |at| at + 1)
    }

    pub(super) fn line_end(&self) -> usize {
        self.after().find('\n').map_or(self.text.len(), |at| self.cursor + at)
    }

    /// Moves one line up, near the target column; returns whether there is one.
    pub(super) fn up(&mut self) -> bool {
        let start = self.line_start();
        let Some(end) = start.checked_sub(1) else { return false };
        let above = self.text.get(..end).unwrap_or_default();
        let above_start = above.rfind('\n').map_or(0, |at| at + 1);
        self.go_to_line(above_start..end);
        true
    }

    /// Moves one line down; returns whether there is one.
    pub(super) fn down(&mut self) -> bool {
        let start = self.line_end() + 1;
        let Some(below) = self.text.get(start..) else { return false };
        let end = below.find('\n').map_or(self.text.len(), |at| start + at);
        self.go_to_line(start..end);
        true
    }

    fn go_to_line(&mut self, line: Range<usize>) {
        let column = width(self.text.get(self.line_start()..self.cursor).unwrap_or_default());
        let goal = self.goal.unwrap_or(column);
        let mut at = line.start;
        let mut used = 0;
        for grapheme in self.text.get(line).unwrap_or_default().graphemes(true) {
            used += width(grapheme);
            if used > goal {
                break;
            }
            at += grapheme.len();
        }
        self.set_cursor(at);
        self.goal = Some(goal);
    }
}

/// The position, rounded up to a grapheme boundary.
fn snapped(text: &str, at: usize) -> usize {
    let at = text.ceil_char_boundary(at.min(text.len()));
    let mut cursor = GraphemeCursor::new(at, text.len(), true);
    match cursor.is_boundary(text, 0) {
        Ok(false) => cursor.next_boundary(text, 0).ok().flatten().unwrap_or(text.len()),
        Ok(true) | Err(_) => at,
    }
}

fn is_word(grapheme: &str) -> bool {
    grapheme.chars().any(|c| c.is_alphanumeric() || c == '_')
}

fn char_at(text: &str, at: usize) -> Option<char> {
    text.get(at..)?.chars().next()
}
