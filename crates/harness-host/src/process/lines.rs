//! The lines of a stream that comes in parts.

/// One line, without its line break.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Line<'a> {
    /// The whole line.
    Whole(&'a [u8]),
    /// The beginning of a line that is longer than the bound. The rest of it is dropped.
    Cut(&'a [u8]),
}

/// Cuts a stream into lines, however its parts are cut. A line holds at most a given number of bytes; of
/// a longer one only the beginning is kept.
///
/// ```
/// use harness_host::process::{Line, Lines};
///
/// let mut lines = Lines::new(1024);
/// let mut seen = Vec::new();
/// for part in [b"on".as_slice(), b"e\r\ntw", b"o"] {
///     lines.push(part, &mut |line| seen.push(format!("{line:?}").len()));
/// }
/// assert_eq!(seen.len(), 1);
/// assert_eq!(lines.rest(), Some(Line::Whole(b"two".as_slice())));
/// ```
#[derive(Debug)]
pub struct Lines {
    line: Vec<u8>,
    most: usize,
    cut: bool,
}

impl Lines {
    /// Lines of at most `most` bytes, line breaks not counted.
    pub fn new(most: usize) -> Self {
        Self { line: Vec::new(), most, cut: false }
    }

    /// Takes the next part of the stream, and hands on each line that ends in it.
    pub fn push(&mut self, part: &[u8], each: &mut dyn FnMut(Line<'_>)) {
        for piece in part.split_inclusive(|byte| *byte == b'\n') {
            let ends = piece.ends_with(b"\n");
            self.take(if ends { piece.split_at(piece.len() - 1).0 } else { piece });
            if ends {
                if let Some(line) = self.rest() {
                    each(line);
                } else {
                    each(Line::Whole(b""));
                }
                self.line.clear();
                self.cut = false;
            }
        }
    }

    /// The last line, when the stream has ended without a line break.
    pub fn rest(&self) -> Option<Line<'_>> {
        if self.cut {
            return Some(Line::Cut(&self.line));
        }
        let line = self.line.strip_suffix(b"\r").unwrap_or(&self.line);
        (!self.line.is_empty()).then_some(Line::Whole(line))
    }

    fn take(&mut self, piece: &[u8]) {
        let room = self.most - self.line.len();
        self.cut |= piece.len() > room;
        self.line.extend_from_slice(piece.split_at(room.min(piece.len())).0);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn seen(most: usize, parts: &[&[u8]]) -> Vec<String> {
        let mut lines = Lines::new(most);
        let mut seen = Vec::new();
        let mut see = |line: Line<'_>| {
            seen.push(match line {
                Line::Whole(bytes) => String::from_utf8_lossy(bytes).into_owned(),
                Line::Cut(bytes) => format!("{}..", String::from_utf8_lossy(bytes)),
            });
        };
        for part in parts {
            lines.push(part, &mut see);
        }
        if let Some(rest) = lines.rest() {
            see(rest);
        }
        seen
    }

    #[track_caller]
    fn check(input: &str, expected: &[&str]) {
        assert_eq!(seen(4, &[input.as_bytes()]), expected, "in one part");
        let bytes: Vec<&[u8]> = input.as_bytes().chunks(1).collect();
        assert_eq!(seen(4, &bytes), expected, "byte by byte");
    }

    #[test]
    fn lines_are_the_same_however_the_stream_is_cut() {
        check("", &[]);
        check("a", &["a"]);
        check("a\nb\n", &["a", "b"]);
        check("a\r\n\nb", &["a", "", "b"]);
        check("\u{17c}\u{f3}\n", &["\u{17c}\u{f3}"]);
    }

    #[test]
    fn a_line_over_the_bound_is_cut_and_the_next_one_is_whole() {
        check("1234\n12345\n1\n", &["1234", "1234..", "1"]);
        check("123456789", &["1234.."]);
    }

    #[test]
    fn memory_is_bounded_however_long_a_line_is() {
        let mut lines = Lines::new(64);
        for _ in 0..10_000 {
            lines.push(&[b'x'; 100], &mut |_| panic!("no line ends"));
            assert!(lines.line.len() <= 64);
        }
    }
}
