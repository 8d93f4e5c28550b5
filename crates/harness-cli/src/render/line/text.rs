//! Styled text of any length, and its line breaking.

use std::ops::Range;

use unicode_segmentation::UnicodeSegmentation as _;
use unicode_width::{UnicodeWidthChar as _, UnicodeWidthStr as _};

use super::{Line, Look, clean, width};

/// Styled text with hard line breaks, before wrapping.
#[derive(Clone, Debug, Default)]
pub(crate) struct Text {
    text: String,
    /// End of a style, and the style.
    looks: Vec<(usize, Look)>,
}

impl Text {
    /// A text with one look.
    pub(crate) fn of(text: &str, look: &Look) -> Self {
        let mut of = Self::default();
        of.push(text, look);
        of
    }

    /// Adds text; control characters are replaced, and line ends become spaces.
    pub(crate) fn push(&mut self, text: &str, look: &Look) {
        self.add(&clean(text), look);
    }

    /// Adds a line break.
    pub(crate) fn break_line(&mut self) {
        self.add("\n", &Look::default());
    }

    /// Adds another text.
    pub(crate) fn join(&mut self, other: Self) {
        let mut start = 0;
        for (end, look) in other.looks {
            self.add(other.text.get(start..end).unwrap_or_default(), &look);
            start = end;
        }
    }

    /// Length in bytes.
    pub(crate) fn len(&self) -> usize {
        self.text.len()
    }

    /// The part that was added after it had this length.
    pub(crate) fn since(&self, length: usize) -> &str {
        self.text.get(length..).unwrap_or_default()
    }

    /// Whether it is empty.
    pub(crate) fn is_empty(&self) -> bool {
        self.text.is_empty()
    }

    /// Width of its widest line without wrapping.
    pub(crate) fn widest(&self) -> usize {
        self.text.split('\n').map(width).max().unwrap_or(0)
    }

    /// Its lines, wrapped between words if possible, none wider than `columns` (at least 4).
    pub(crate) fn wrap(&self, columns: usize) -> Vec<Line> {
        Wrap::new(self, columns).words()
    }

    /// Its lines, wrapped at the exact width, so that all spaces are kept.
    pub(crate) fn chop(&self, columns: usize) -> Vec<Line> {
        Wrap::new(self, columns).anywhere()
    }

    fn add(&mut self, text: &str, look: &Look) {
        if text.is_empty() {
            return;
        }
        self.text.push_str(text);
        let end = self.text.len();
        match self.looks.last_mut() {
            Some((last_end, last)) if last == look => *last_end = end,
            _ => self.looks.push((end, look.clone())),
        }
    }

    fn line(&self, range: Range<usize>) -> Line {
        let mut line = Line::new();
        let first = self.looks.partition_point(|(end, _)| *end <= range.start);
        let mut start = range.start;
        for (end, look) in self.looks.iter().skip(first) {
            let end = (*end).min(range.end);
            line.push(self.text.get(start..end).unwrap_or_default(), look);
            start = end;
            if start >= range.end {
                break;
            }
        }
        line
    }
}

/// State of wrapping. A line is a range of the text; only spaces at its ends are dropped.
struct Wrap<'a> {
    text: &'a Text,
    columns: usize,
    lines: Vec<Line>,
    /// The current line, and its width.
    line: Range<usize>,
    used: usize,
    /// Width of the spaces after it.
    spaces: usize,
    /// The current word after the spaces, and its width.
    word: Range<usize>,
    word_used: usize,
    /// Whether the last character was a wide one, after which a line may end.
    after_wide: bool,
}

impl<'a> Wrap<'a> {
    fn new(text: &'a Text, columns: usize) -> Self {
        Self {
            text,
            columns: columns.max(4),
            lines: Vec::new(),
            line: 0..0,
            used: 0,
            spaces: 0,
            word: 0..0,
            word_used: 0,
            after_wide: false,
        }
    }

    fn words(mut self) -> Vec<Line> {
        for (at, grapheme) in self.text.text.grapheme_indices(true) {
            if grapheme == "\n" {
                self.end_line(at);
            } else if is_space(grapheme) {
                self.end_word();
                self.spaces += grapheme.width();
            } else {
                let wide = grapheme.width() > 1;
                if wide || self.after_wide {
                    self.end_word();
                }
                self.after_wide = wide;
                self.each_fitting(at, grapheme);
            }
        }
        self.end_line(self.text.text.len());
        self.lines
    }

    fn anywhere(mut self) -> Vec<Line> {
        for (at, grapheme) in self.text.text.grapheme_indices(true) {
            if grapheme == "\n" {
                self.end_line(at);
            } else {
                self.each_fitting(at, grapheme);
            }
        }
        self.end_line(self.text.text.len());
        self.lines
    }

    /// Adds a grapheme cluster, or its parts if it is wider than a line.
    fn each_fitting(&mut self, at: usize, grapheme: &str) {
        let columns = grapheme.width();
        if columns <= self.columns {
            return self.add(at..at + grapheme.len(), columns);
        }
        for (offset, part) in grapheme.char_indices() {
            // Together with what follows, a narrow character may be shown as a wide one.
            let columns = part.width().map_or(0, |columns| if columns == 0 { 0 } else { columns.max(2) });
            self.add(at + offset..at + offset + part.len_utf8(), columns);
        }
    }

    fn add(&mut self, range: Range<usize>, columns: usize) {
        if self.word_used + columns > self.columns {
            // A word that no line can hold fills lines of its own.
            if !self.line.is_empty() {
                self.take_line();
            }
            self.lines.push(self.text.line(self.word.clone()));
            self.word = range.start..range.start;
            self.word_used = 0;
            self.spaces = 0;
        }
        if self.word.is_empty() {
            self.word.start = range.start;
        }
        self.word.end = range.end;
        self.word_used += columns;
    }

    fn end_word(&mut self) {
        self.after_wide = false;
        if self.word.is_empty() {
            return;
        }
        if self.line.is_empty() {
            self.line = self.word.clone();
            self.used = self.word_used;
        } else if self.used + self.spaces + self.word_used <= self.columns {
            self.line.end = self.word.end;
            self.used += self.spaces + self.word_used;
        } else {
            self.take_line();
            self.line = self.word.clone();
            self.used = self.word_used;
        }
        self.spaces = 0;
        self.word = self.word.end..self.word.end;
        self.word_used = 0;
    }

    fn end_line(&mut self, at: usize) {
        self.end_word();
        self.take_line();
        self.line = at..at;
        self.spaces = 0;
    }

    fn take_line(&mut self) {
        self.lines.push(self.text.line(self.line.clone()));
        self.line = self.line.end..self.line.end;
        self.used = 0;
    }
}

/// Whether a line may end at this space, which is then dropped; false for non-breaking spaces.
fn is_space(grapheme: &str) -> bool {
    let mut chars = grapheme.chars();
    chars.next().is_some_and(|c| c.is_whitespace() && !matches!(c, '\u{a0}' | '\u{202f}'))
        && chars.next().is_none()
}
