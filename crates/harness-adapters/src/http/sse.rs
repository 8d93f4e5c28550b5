//! The event-stream framing: bytes in, `data` payloads out.
//!
//! Follows the event-stream rules of the HTML standard as far as chat completions need them: the
//! fields `event`, `id` and `retry` carry nothing here and are skipped. Lines are decoded as UTF-8
//! once they are whole, so a character that a network read cuts in two is never damaged.

use std::borrow::Cow;

const BOM: &[u8] = b"\xEF\xBB\xBF";

/// A line or an event grew past its bound; the stream cannot be read any further.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Overflow {
    /// Kind of content that grew: `line` or `event`.
    pub(crate) what: &'static str,
    /// The bound, in bytes.
    pub(crate) limit: usize,
}

/// One thing that the stream said.
#[derive(Debug, PartialEq, Eq)]
pub(crate) enum Item<'a> {
    /// A comment line: the connection is alive.
    Comment,
    /// The joined `data` lines of one event.
    Data(&'a str),
}

/// Incremental decoder; the result does not depend on how the bytes were cut.
#[derive(Debug)]
pub(crate) struct Decoder {
    line: Vec<u8>,
    data: String,
    has_data: bool,
    first_line: bool,
    after_carriage_return: bool,
    max_line: usize,
    max_event: usize,
}

impl Decoder {
    pub(crate) fn new(max_line: usize, max_event: usize) -> Self {
        Self {
            line: Vec::new(),
            data: String::new(),
            has_data: false,
            first_line: true,
            after_carriage_return: false,
            max_line,
            max_event,
        }
    }

    /// Reads `bytes` and hands every item that became complete to `sink`. Bytes of an unfinished
    /// event wait for the next call; at the end of the stream they are dropped with the decoder.
    pub(crate) fn feed(&mut self, mut bytes: &[u8], sink: &mut dyn FnMut(Item<'_>)) -> Result<(), Overflow> {
        if std::mem::take(&mut self.after_carriage_return) {
            match bytes {
                [b'\n', rest @ ..] => bytes = rest,
                [] => self.after_carriage_return = true,
                _ => {}
            }
        }
        while let Some(end) = memchr::memchr2(b'\n', b'\r', bytes) {
            let (head, tail) = bytes.split_at(end);
            bytes = match tail {
                [b'\r', b'\n', rest @ ..] => rest,
                [b'\r'] => {
                    self.after_carriage_return = true;
                    &[]
                }
                [_, rest @ ..] => rest,
                [] => &[],
            };
            if self.line.is_empty() {
                check(head.len(), self.max_line, "line")?;
                if let Some((value, rest)) = self.whole_event(head, bytes) {
                    check(value.len().saturating_add(1), self.max_event, "event")?;
                    sink(Item::Data(&decoded(value)));
                    bytes = rest;
                    continue;
                }
                self.line_ended(head, sink)?;
            } else {
                self.keep(head)?;
                let mut line = std::mem::take(&mut self.line);
                self.line_ended(&line, sink)?;
                line.clear();
                self.line = line;
            }
        }
        self.keep(bytes)
    }

    /// The data of an event that is this one line, and what follows the event: most are so, and nothing of
    /// them needs to be kept.
    fn whole_event<'a>(&self, line: &'a [u8], rest: &'a [u8]) -> Option<(&'a [u8], &'a [u8])> {
        if self.has_data || self.first_line {
            return None;
        }
        let rest = rest.strip_prefix(b"\n").or_else(|| rest.strip_prefix(b"\r\n"))?;
        Some((data(line)?, rest))
    }

    fn keep(&mut self, part: &[u8]) -> Result<(), Overflow> {
        check(self.line.len().saturating_add(part.len()), self.max_line, "line")?;
        self.line.extend_from_slice(part);
        Ok(())
    }

    fn line_ended(&mut self, line: &[u8], sink: &mut dyn FnMut(Item<'_>)) -> Result<(), Overflow> {
        let line = match line.strip_prefix(BOM) {
            Some(rest) if self.first_line => rest,
            _ => line,
        };
        self.first_line = false;
        if line.is_empty() {
            if std::mem::take(&mut self.has_data) {
                sink(Item::Data(&self.data));
                self.data.clear();
            }
            return Ok(());
        }
        if line.starts_with(b":") {
            sink(Item::Comment);
            return Ok(());
        }
        let Some(value) = data(line) else { return Ok(()) };
        check(self.data.len().saturating_add(value.len()).saturating_add(1), self.max_event, "event")?;
        if std::mem::replace(&mut self.has_data, true) {
            self.data.push('\n');
        }
        self.data.push_str(&decoded(value));
        Ok(())
    }
}

/// The value of a `data` line.
fn data(line: &[u8]) -> Option<&[u8]> {
    match line.strip_prefix(b"data")? {
        [] => Some(&[]),
        [b':', b' ', value @ ..] | [b':', value @ ..] => Some(value),
        _ => None,
    }
}

/// Decodes text, replacing invalid UTF-8. Nearly all text is valid, which is quickly checked.
fn decoded(bytes: &[u8]) -> Cow<'_, str> {
    std::str::from_utf8(bytes).map_or_else(|_| String::from_utf8_lossy(bytes), Cow::Borrowed)
}

fn check(size: usize, limit: usize, what: &'static str) -> Result<(), Overflow> {
    if size > limit { Err(Overflow { what, limit }) } else { Ok(()) }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn read(reads: &[&[u8]]) -> Vec<String> {
        let mut decoder = Decoder::new(1 << 16, 1 << 16);
        let mut seen = Vec::new();
        for bytes in reads {
            decoder
                .feed(bytes, &mut |item| {
                    seen.push(match item {
                        Item::Comment => "<comment>".to_owned(),
                        Item::Data(text) => text.to_owned(),
                    });
                })
                .unwrap();
        }
        seen
    }

    #[track_caller]
    fn check_events(stream: &str, expected: &[&str]) {
        assert_eq!(read(&[stream.as_bytes()]), expected);
        let single: Vec<&[u8]> = stream.as_bytes().chunks(1).collect();
        assert_eq!(read(&single), expected, "byte by byte");
    }

    #[test]
    fn every_line_ending_ends_a_line() {
        check_events("data: a\n\ndata: b\r\n\r\ndata: c\r\rdata: d\n\n", &["a", "b", "c", "d"]);
    }

    #[test]
    fn the_space_after_the_colon_is_optional_and_only_one_is_dropped() {
        check_events("data:x\n\ndata: x\n\ndata:  x\n\n", &["x", "x", " x"]);
    }

    #[test]
    fn data_lines_of_one_event_join_with_newlines() {
        check_events("data: one\ndata\ndata: three\n\n", &["one\n\nthree"]);
    }

    #[test]
    fn a_comment_inside_an_event_does_not_end_it() {
        check_events(":hello\ndata: a\n: there\ndata: b\n\n", &["<comment>", "<comment>", "a\nb"]);
    }

    #[test]
    fn other_fields_are_skipped_and_carry_no_event() {
        check_events("event: message\nid: 7\nretry: 10\n\ndatum: x\n\ndata: y\n\n", &["y"]);
    }

    #[test]
    fn only_a_leading_byte_order_mark_is_dropped() {
        check_events("\u{feff}data: a\n\n\u{feff}data: b\n\n", &["a"]);
    }

    #[test]
    fn an_unterminated_event_is_not_delivered() {
        check_events("data: a\n\ndata: b\n", &["a"]);
    }

    #[test]
    fn an_event_with_an_empty_data_line_is_delivered() {
        check_events("data:\n\n", &[""]);
    }

    #[test]
    fn damaged_utf8_is_replaced_and_the_stream_goes_on() {
        assert_eq!(read(&[b"data: a\xFFb\n\ndata: c\n\n"]), ["a\u{fffd}b", "c"]);
    }

    #[track_caller]
    fn check_overflow(max_line: usize, max_event: usize, reads: &[&str], expected: Option<Overflow>) {
        let mut decoder = Decoder::new(max_line, max_event);
        let fault = reads.iter().find_map(|read| decoder.feed(read.as_bytes(), &mut |_| ()).err());
        assert_eq!(fault, expected);
    }

    #[test]
    fn a_line_may_reach_its_bound_but_not_pass_it() {
        let fault = Some(Overflow { what: "line", limit: 7 });
        check_overflow(7, 100, &["data: a\n\n"], None);
        check_overflow(7, 100, &["data: ab\n\n"], fault);
        check_overflow(7, 100, &["data", ": a", "b"], fault);
    }

    #[test]
    fn an_event_of_many_lines_is_bounded_too() {
        let fault = Some(Overflow { what: "event", limit: 4 });
        check_overflow(100, 4, &["data: a\ndata: b\n\n"], None);
        check_overflow(100, 4, &["data: a\ndata: b\ndata: c\n\n"], fault);
    }

    const PIECES: &[&[u8]] = &[
        b"data: ",
        b"data:",
        b"\n",
        b"\r",
        b"\r\n",
        b": c",
        b"\xEF\xBB\xBF",
        "\u{e9}\u{1f680}".as_bytes(),
        b"\xF0\x9F",
        b"x",
        b"id: 1",
    ];

    proptest! {
        #[test]
        fn the_cut_never_matters(
            bytes in proptest::collection::vec(proptest::sample::select(PIECES), 0..40),
            cuts in proptest::collection::vec(0usize..200, 0..20),
        ) {
            let stream = bytes.concat();
            let mut cuts: Vec<usize> = cuts.into_iter().map(|cut| cut.min(stream.len())).collect();
            cuts.extend([0, stream.len()]);
            cuts.sort_unstable();
            let pieces: Vec<&[u8]> = cuts.windows(2).map(|pair| &stream[pair[0]..pair[1]]).collect();
            prop_assert_eq!(read(&pieces), read(&[&stream]));
        }
    }
}
