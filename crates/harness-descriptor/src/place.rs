//! Places in a descriptor's text.

use std::fmt;
use std::ops::Range;
use std::sync::Arc;

use crate::document::{Bytes, Document, NodeId};

/// Where in a file a value stands.
///
/// Shown as `file:line:column`.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct Place {
    /// The file, or `<inline descriptor>`.
    pub file: Arc<str>,
    /// The line, from 1.
    pub line: u32,
    /// The column in characters, from 1.
    pub column: u32,
    /// The bytes of the value in the decoded text, a leading byte order mark not counted.
    pub bytes: Range<usize>,
}

impl Place {
    pub(crate) fn new(file: &Arc<str>, text: &str, bytes: Bytes) -> Self {
        let start = text.floor_char_boundary(bytes.start as usize);
        let before = text.get(..start).unwrap_or_default();
        let line_start = before.rfind(is_line_end).map_or(0, |at| at + 1);
        // CRLF is one line end: its line feed is counted, its carriage return is not.
        let line = 1 + before
            .char_indices()
            .filter(|(at, c)| *c == '\n' || *c == '\r' && text.as_bytes().get(at + 1) != Some(&b'\n'))
            .count();
        let column = 1 + before.get(line_start..).unwrap_or_default().chars().count();
        Self {
            file: Arc::clone(file),
            line: u32::try_from(line).unwrap_or(u32::MAX),
            column: u32::try_from(column).unwrap_or(u32::MAX),
            bytes: start..bytes.end as usize,
        }
    }
}

impl Document {
    pub(crate) fn place(&self, id: NodeId) -> Place {
        self.place_of(self.bytes(id))
    }

    pub(crate) fn place_of(&self, bytes: Bytes) -> Place {
        Place::new(self.label(), self.text(), bytes)
    }
}

fn is_line_end(c: char) -> bool {
    matches!(c, '\n' | '\r')
}

impl fmt::Display for Place {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}:{}:{}", self.file, self.line, self.column)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[track_caller]
    fn check(text: &str, at: u32, expected: &str) {
        let place = Place::new(&"f".into(), text, Bytes { start: at, end: at });
        assert_eq!(place.to_string(), expected);
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
}
