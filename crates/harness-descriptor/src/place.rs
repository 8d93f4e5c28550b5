//! Places in a descriptor's text.

use std::fmt;
use std::ops::Range;
use std::sync::Arc;

use serde::ser::{Serialize, SerializeStruct as _, Serializer};

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
    /// The line of the text, cut after 200 characters.
    pub excerpt: Arc<str>,
}

const MAX_EXCERPT: usize = 200;

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
        let line_text = text.get(line_start..).unwrap_or_default();
        let excerpt = line_text.split(is_line_end).next().unwrap_or_default();
        let column = 1 + before.get(line_start..).unwrap_or_default().chars().count();
        Self {
            file: Arc::clone(file),
            line: u32::try_from(line).unwrap_or(u32::MAX),
            column: u32::try_from(column).unwrap_or(u32::MAX),
            bytes: start..bytes.end as usize,
            // A terminal must not obey what the text says.
            excerpt: excerpt
                .chars()
                .take(MAX_EXCERPT)
                .map(|c| if c.is_control() && c != '\t' { '\u{fffd}' } else { c })
                .collect::<String>()
                .into(),
        }
    }
}

impl Document {
    pub(crate) fn place(&self, id: NodeId) -> Place {
        self.place_of(self.bytes(id))
    }

    /// The place of the first `part` within a node's text as written.
    pub(crate) fn place_within(&self, id: NodeId, part: &str) -> Option<Place> {
        let Bytes { start, end } = self.bytes(id);
        let at = self.text().get(start as usize..end as usize)?.find(part)?;
        let start = start + u32::try_from(at).ok()?;
        let end = start + u32::try_from(part.len()).ok()?;
        Some(self.place_of(Bytes { start, end }))
    }

    pub(crate) fn place_of(&self, bytes: Bytes) -> Place {
        Place::new(self.label(), self.text(), bytes)
    }
}

impl Serialize for Place {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let mut out = serializer.serialize_struct("Place", 5)?;
        out.serialize_field("file", &self.file)?;
        out.serialize_field("line", &self.line)?;
        out.serialize_field("column", &self.column)?;
        out.serialize_field("start", &self.bytes.start)?;
        out.serialize_field("end", &self.bytes.end)?;
        out.end()
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
