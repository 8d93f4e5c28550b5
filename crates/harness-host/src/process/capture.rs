//! Keeping a stream within a bound.

/// Keeps the start and the end of a stream, and counts the bytes between them.
///
/// It never holds more than twice its limit, however long the stream is.
#[derive(Debug)]
pub struct Capture {
    head: Vec<u8>,
    tail: Vec<u8>,
    head_limit: usize,
    tail_limit: usize,
    total: u64,
}

/// A captured stream as it can be shown.
#[derive(Debug, PartialEq, Eq)]
pub enum Shown {
    /// Text, with a note at the place of what was left out, if anything was.
    Text {
        /// Text of the stream.
        text: String,
        /// Whether nothing was left out.
        whole: bool,
    },
    /// Not text: the number of bytes in the stream.
    Binary(u64),
}

impl Capture {
    /// Keeps at most `limit` bytes: half of them from the beginning, half from the end.
    pub fn new(limit: usize) -> Self {
        let tail_limit = limit / 2;
        Self { head: Vec::new(), tail: Vec::new(), head_limit: limit - tail_limit, tail_limit, total: 0 }
    }

    /// Takes the next part of the stream.
    pub fn push(&mut self, part: &[u8]) {
        self.total = self.total.saturating_add(part.len() as u64);
        let room = self.head_limit - self.head.len();
        let (first, rest) = part.split_at(room.min(part.len()));
        self.head.extend_from_slice(first);
        let rest = last(rest, self.tail_limit);
        self.tail.extend_from_slice(rest);
        if self.tail.len() > 2 * self.tail_limit {
            self.tail.drain(..self.tail.len() - self.tail_limit);
        }
    }

    /// How many bytes the stream had.
    pub fn total(&self) -> u64 {
        self.total
    }

    /// The stream as text, with U+FFFD for invalid UTF-8 and a note in place of omitted bytes.
    pub fn lossy(&self) -> String {
        let (tail, left_out) = self.kept();
        if left_out == 0 {
            return String::from_utf8_lossy(&[&self.head, tail].concat()).into_owned();
        }
        let (head, tail) = (whole_characters(&self.head), without_rest_of_character(tail));
        let left_out = self.total - head.len() as u64 - tail.len() as u64;
        let (head, tail) = (String::from_utf8_lossy(head), String::from_utf8_lossy(tail));
        format!("{head}\n[... {left_out} bytes left out ...]\n{tail}")
    }

    /// Whether nothing was left out.
    pub fn is_whole(&self) -> bool {
        self.kept().1 == 0
    }

    /// The kept end, and how many bytes were left out before it.
    fn kept(&self) -> (&[u8], u64) {
        let tail = last(&self.tail, self.tail_limit);
        (tail, self.total - self.head.len() as u64 - tail.len() as u64)
    }

    /// The stream as text. `cut_off` accepts half a character at the end.
    pub fn show(&self, cut_off: bool) -> Shown {
        let (tail, left_out) = self.kept();
        let text = if left_out == 0 {
            text_of(&[&self.head, tail].concat(), cut_off)
        } else {
            let head = text_of(&self.head, true);
            let tail = text_of(without_rest_of_character(tail), cut_off);
            head.zip(tail).map(|(head, tail)| {
                let left_out = self.total - head.len() as u64 - tail.len() as u64;
                format!("{head}\n[... {left_out} bytes left out ...]\n{tail}")
            })
        };
        text.map_or(Shown::Binary(self.total), |text| Shown::Text { text, whole: left_out == 0 })
    }
}

fn last(bytes: &[u8], most: usize) -> &[u8] {
    bytes.split_at(bytes.len().saturating_sub(most)).1
}

/// Drops what a cut left of a character at the beginning: at most three bytes.
fn without_rest_of_character(bytes: &[u8]) -> &[u8] {
    let rest = bytes.iter().take(3).take_while(|byte| (0x80..0xC0).contains(*byte)).count();
    bytes.split_at(rest).1
}

/// Drops half a character at the end.
fn whole_characters(bytes: &[u8]) -> &[u8] {
    match std::str::from_utf8(bytes) {
        Err(e) if e.error_len().is_none() => bytes.split_at(e.valid_up_to()).0,
        _ => bytes,
    }
}

/// The bytes as UTF-8 text; `cut_off` allows half a character at the end, which is dropped.
fn text_of(bytes: &[u8], cut_off: bool) -> Option<String> {
    match std::str::from_utf8(bytes) {
        Ok(text) => Some(text.to_owned()),
        Err(e) if cut_off && e.error_len().is_none() => {
            std::str::from_utf8(bytes.split_at(e.valid_up_to()).0).ok().map(str::to_owned)
        }
        Err(_) => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn shown(limit: usize, parts: &[&[u8]], cut_off: bool) -> Shown {
        let mut capture = Capture::new(limit);
        for part in parts {
            capture.push(part);
        }
        capture.show(cut_off)
    }

    #[track_caller]
    fn check(limit: usize, input: &str, expected: &str) {
        let whole = Shown::Text { text: expected.to_owned(), whole: input == expected };
        assert_eq!(shown(limit, &[input.as_bytes()], false), whole, "in one part");
        let bytes: Vec<&[u8]> = input.as_bytes().chunks(1).collect();
        assert_eq!(shown(limit, &bytes, false), whole, "byte by byte");
    }

    #[test]
    fn beginning_and_end_are_kept_and_the_rest_is_counted() {
        check(8, "", "");
        check(8, "12345678", "12345678");
        check(8, "123456789", "1234\n[... 1 bytes left out ...]\n6789");
        check(9, "1234567890", "12345\n[... 1 bytes left out ...]\n7890");
    }

    #[test]
    fn a_cut_never_leaves_half_a_character() {
        check(8, "äääääää", "ää\n[... 6 bytes left out ...]\nää");
        check(6, "aääääääb", "aä\n[... 8 bytes left out ...]\näb");
        check(6, "€€€€€", "€\n[... 9 bytes left out ...]\n€");
    }

    #[test]
    fn what_is_not_utf_8_is_binary() {
        assert_eq!(shown(8, &[b"\xff\xfe"], false), Shown::Binary(2));
        assert_eq!(shown(8, &[b"a\xc3"], false), Shown::Binary(2));
        assert_eq!(shown(8, &[b"a\xc3"], true), Shown::Text { text: "a".to_owned(), whole: true });
        assert_eq!(shown(8, &[b"a\xff"], true), Shown::Binary(2));
    }

    #[test]
    fn what_is_not_utf_8_can_be_shown_with_marks_in_its_place() {
        let lossy = |limit, input: &[u8]| {
            let mut capture = Capture::new(limit);
            capture.push(input);
            capture.lossy()
        };
        assert_eq!(lossy(8, b"a\xffb"), "a\u{fffd}b");
        assert_eq!(lossy(8, "äääääää".as_bytes()), "ää\n[... 6 bytes left out ...]\nää");
        assert_eq!(lossy(6, b"a\xc3\xa4\xff1234"), "aä\n[... 2 bytes left out ...]\n234");
    }

    #[test]
    fn memory_is_bounded_however_long_the_stream_is() {
        let mut capture = Capture::new(64);
        for _ in 0..10_000 {
            capture.push(&[b'x'; 100]);
            assert!(capture.head.len() + capture.tail.len() <= 96);
        }
        assert_eq!(capture.total(), 1_000_000);
    }
}
