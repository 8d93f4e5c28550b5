//! Lines of a text: their offsets and contents.

/// Where the lines of one text begin.
///
/// A line ends with a line feed, a carriage return, or both.
#[derive(Clone, Debug)]
pub(crate) struct Lines {
    /// Offsets in rising order, the first of which is 0.
    starts: Vec<u32>,
}

impl Lines {
    /// Finds the lines of `text`.
    pub(crate) fn of(text: &str) -> Self {
        let mut starts = vec![0];
        let bytes = text.as_bytes();
        for (at, byte) in bytes.iter().enumerate() {
            if *byte == b'\n' || *byte == b'\r' && bytes.get(at + 1) != Some(&b'\n') {
                starts.push(u32::try_from(at + 1).unwrap_or(u32::MAX));
            }
        }
        Self { starts }
    }

    /// The line and the column in characters, both from 1, of a byte that begins a character.
    pub(crate) fn position(&self, text: &str, at: usize) -> (u32, u32) {
        let line = self.starts.partition_point(|start| *start as usize <= at);
        let start = self.starts.get(line.saturating_sub(1)).map_or(0, |start| *start as usize);
        let column = 1 + text.get(start..at).unwrap_or_default().chars().count();
        (u32::try_from(line).unwrap_or(u32::MAX), u32::try_from(column).unwrap_or(u32::MAX))
    }

    /// A line by its number from 1, without its end.
    pub(crate) fn line<'a>(&self, text: &'a str, number: u32) -> Option<&'a str> {
        let at = (number as usize).checked_sub(1)?;
        let start = *self.starts.get(at)? as usize;
        let end = self.starts.get(at + 1).map_or(text.len(), |end| *end as usize);
        Some(text.get(start..end)?.trim_end_matches(['\n', '\r']))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lines_have_numbers() {
        let text = "a\r\n\rb\n\nc";
        let lines = Lines::of(text);
        let found: Vec<_> = (0..8).map(|number| lines.line(text, number)).collect();
        assert_eq!(found, [None, Some("a"), Some(""), Some("b"), Some(""), Some("c"), None, None]);
    }
}
