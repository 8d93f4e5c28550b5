//! Places in a text.

use std::fmt;
use std::ops::Range;
use std::sync::Arc;

use harness_core::display::mask_line;
use serde::ser::{Serialize, SerializeStruct as _, Serializer};

use crate::document::{Bytes, Document, Kind, NodeId, Text};
use crate::lines::Lines;

/// Place of a value in a file.
///
/// Shown as `file:line:column`.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct Place {
    /// Name of the file or text.
    pub file: Arc<str>,
    /// The line, from 1.
    pub line: u32,
    /// The column in characters, from 1.
    pub column: u32,
    /// The line on which the value ends.
    pub end_line: u32,
    /// The column behind the value's last character, on `end_line`.
    pub end_column: u32,
    /// The bytes of the value in the decoded text, a leading byte order mark not counted.
    pub bytes: Range<usize>,
    /// The line of the text; of a long line at most 200 characters around the value, with `…` for
    /// the character where it is cut.
    pub excerpt: Arc<str>,
    /// The column of the excerpt's first character, 1 unless the line is long.
    pub excerpt_column: u32,
}

const MAX_EXCERPT: usize = 200;
/// Characters of a long line that are shown before the value.
const BEFORE_VALUE: usize = 60;

/// Characters on both sides of an excerpt that are looked at for the beginning and the end of a key.
const AROUND: usize = 2048;

impl Place {
    pub(crate) fn new(file: &Arc<str>, text: &str, lines: &Lines, bytes: Bytes) -> Self {
        let start = text.floor_char_boundary(bytes.start as usize);
        let end = text.floor_char_boundary(bytes.end as usize).max(start);
        // A block ends where its last line has content, not where the next value begins.
        let end = start + text.get(start..end).unwrap_or_default().trim_ascii_end().len();
        let (line, column) = lines.position(text, start);
        let (end_line, end_column) = lines.position(text, end);
        let (excerpt, left_out) = excerpt(lines.line(text, line).unwrap_or_default(), column as usize - 1);
        Self {
            file: Arc::clone(file),
            line,
            column,
            end_line,
            end_column,
            bytes: start..end,
            excerpt: excerpt.into(),
            excerpt_column: u32::try_from(left_out + 1).unwrap_or(u32::MAX),
        }
    }

    /// Removes the excerpt, so that a message never shows the line; for files with secrets.
    #[must_use]
    pub fn without_excerpt(mut self) -> Self {
        self.excerpt = "".into();
        self
    }

    /// The characters of the excerpt before the value.
    pub(crate) fn before(&self) -> usize {
        self.column.saturating_sub(self.excerpt_column) as usize
    }

    /// The characters of the value on its first line, as far as [`Self::excerpt`] shows them; at least 1.
    pub fn width(&self) -> usize {
        let room = self.excerpt.chars().count().saturating_sub(self.before());
        let width =
            if self.end_line == self.line { (self.end_column - self.column) as usize } else { usize::MAX };
        width.clamp(1, room.max(1))
    }
}

/// Excerpt of a line with a value at this character, and the number of characters omitted before
/// it.
fn excerpt(line: &str, at: usize) -> (String, usize) {
    // A terminal must not obey what the text says.
    let visible = |c: char| if c.is_control() && c != '\t' { '\u{fffd}' } else { c };
    let left_out = if at < MAX_EXCERPT - BEFORE_VALUE { 0 } else { at - BEFORE_VALUE };
    // Many places may be in one long line.
    let far_left = left_out.saturating_sub(AROUND);
    let byte = |text: &str, count: usize| text.char_indices().nth(count).map_or(text.len(), |(at, _)| at);
    let line = line.get(byte(line, far_left)..).unwrap_or_default();
    let near = line.get(..byte(line, 2 * AROUND + MAX_EXCERPT)).unwrap_or(line);
    // A key file that was named by mistake is quoted, too.
    let near = mask_line(near);
    let mut rest = near.chars().skip(left_out - far_left).map(visible);
    let mut shown: String = rest.by_ref().take(MAX_EXCERPT).collect();
    if left_out > 0 {
        shown = std::iter::once('…').chain(shown.chars().skip(1)).collect();
    }
    if rest.next().is_some() {
        shown.pop();
        shown.push('…');
    }
    (shown, left_out)
}

impl Document {
    /// Place of the value at a path of keys, or of the nearest value that contains it.
    pub fn place_at(&self, path: &[&str]) -> Place {
        let mut node = self.root().unwrap_or(NodeId::NONE);
        for key in path {
            let Some(next) = self.get(node, key) else { break };
            node = next;
        }
        self.place(node)
    }

    /// Place of a node.
    pub fn place(&self, id: NodeId) -> Place {
        self.place_of(self.bytes(id))
    }

    /// The place of the first `part` within a node's text as written, also in the prompt file that the
    /// text came from.
    pub fn place_within(&self, id: NodeId, part: &str) -> Option<Place> {
        if !self.origins(id).is_empty() {
            let at = self.string(id)?.find(part)?;
            return self.place_in_file(id, at..at + part.len());
        }
        let Bytes { start, end } = self.bytes(id);
        let at = self.text().get(start as usize..end as usize)?.find(part)?;
        let start = start + u32::try_from(at).ok()?;
        let end = start + u32::try_from(part.len()).ok()?;
        Some(self.place_of(Bytes { start, end }))
    }

    /// The place of a part of a string, given by its bytes in the string's value.
    pub fn place_in(&self, id: NodeId, at: Range<usize>) -> Place {
        if let Kind::Text(Text::Source(Bytes { start, .. })) = self.kind(id) {
            let offset = |at: usize| start.saturating_add(u32::try_from(at).unwrap_or(u32::MAX));
            return self.place_of(Bytes { start: offset(at.start), end: offset(at.end) });
        }
        let in_file = self.place_in_file(id, at.clone());
        let part = self.string(id).and_then(|text| text.get(at)).filter(|part| !part.is_empty());
        let place = in_file.or_else(|| self.place_within(id, part?));
        place.unwrap_or_else(|| self.place(id))
    }

    /// The place in the prompt file that holds this part of a string.
    fn place_in_file(&self, id: NodeId, at: Range<usize>) -> Option<Place> {
        let origin = self.origins(id).iter().find(|origin| origin.bytes.contains(&at.start))?;
        let text = self.string(id)?.get(origin.bytes.clone())?;
        let offset = |at: usize| u32::try_from(at.saturating_sub(origin.bytes.start)).unwrap_or(u32::MAX);
        let bytes = Bytes { start: offset(at.start), end: offset(at.end) };
        Some(Place::new(&origin.file, text, &Lines::of(text), bytes))
    }

    /// Place of a part of the text.
    pub fn place_of(&self, bytes: Bytes) -> Place {
        Place::new(self.label(), self.text(), self.lines(), bytes)
    }
}

impl Serialize for Place {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let mut out = serializer.serialize_struct("Place", 7)?;
        out.serialize_field("file", &self.file)?;
        out.serialize_field("line", &self.line)?;
        out.serialize_field("column", &self.column)?;
        out.serialize_field("endLine", &self.end_line)?;
        out.serialize_field("endColumn", &self.end_column)?;
        out.serialize_field("start", &self.bytes.start)?;
        out.serialize_field("end", &self.bytes.end)?;
        out.end()
    }
}

impl fmt::Display for Place {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}:{}:{}", self.file, self.line, self.column)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn place(text: &str, bytes: std::ops::Range<u32>) -> Place {
        Place::new(&"f".into(), text, &Lines::of(text), Bytes { start: bytes.start, end: bytes.end })
    }

    #[track_caller]
    fn check(text: &str, at: u32, expected: &str) {
        assert_eq!(place(text, at..at).to_string(), expected);
    }

    #[test]
    fn lines_and_columns_count_from_one() {
        check("", 0, "f:1:1");
        check("ab\ncd", 4, "f:2:2");
        check("ab\r\ncd", 4, "f:2:1");
        check("ab\rcd", 3, "f:2:1");
        check("é\nüx", 5, "f:2:2");
        check("ab", 9, "f:1:3");
    }

    #[track_caller]
    fn check_end(text: &str, bytes: std::ops::Range<u32>, end: (u32, u32), width: usize) {
        let place = place(text, bytes);
        assert_eq!(((place.end_line, place.end_column), place.width()), (end, width));
    }

    #[test]
    fn long_lines_are_shown_around_the_value() {
        let line = format!("{}value{}", "a".repeat(500), "b".repeat(500));
        let place = place(&line, 500..505);
        assert_eq!((place.column, place.excerpt_column, place.before(), place.width()), (501, 441, 60, 5));
        assert!(place.excerpt.starts_with("…aaa") && place.excerpt.ends_with("bbb…"));
        assert_eq!(place.excerpt.chars().count(), MAX_EXCERPT);
    }

    #[test]
    fn ends_and_widths() {
        check_end("a: büx # c", 3..7, (1, 7), 3);
        check_end("a: bcd", 3..3, (1, 4), 1);
        check_end("a: bcd", 6..6, (1, 7), 1);
        check_end("a: 'b\n  c'\nd: 1", 3..10, (2, 5), 2);
        check_end("a: |\n  b\n\nd: 1", 3..10, (2, 4), 1);
        check_end(&"x".repeat(300), 100..250, (1, 251), 100);
    }
}
