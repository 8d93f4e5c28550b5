//! The plain part of YAML that nearly all descriptors are written in, read without the library.
//!
//! The library takes a token at a time through several queues; for the layouts below that is ten
//! times the work. What is read here is read as the library reads it, and at the first thing that
//! is not listed the whole text goes to the library, which also tells all faults:
//!
//! - block mappings with keys such as `model` or `user.name`, block lists, whole-line comments;
//! - lists and mappings in brackets that end on their line;
//! - plain and quoted strings of one line, without escapes;
//! - literal blocks (`|`, `|-`).
//!
//! No tabs, carriage returns, anchors, aliases, tags, document markers, directives or absent values.

use std::borrow::Cow;

use granit_parser::ScalarStyle;
use memchr::{memchr, memchr3};

use super::frame::{Frame, Shape};
use super::input;
use super::reader::Builder;
use crate::document::Bytes;

/// Reads the builder's whole source; `None` if it is not of the plain part, or has a fault.
pub(super) fn read(builder: &mut Builder<'_>) -> Option<()> {
    let source = builder.source;
    let unfit = memchr3(b'\t', b'\r', b'\0', source.as_bytes()).is_some()
        || input::is_suspicious(source)
            && (input::forbidden(source).is_some() || source.contains(['\u{feff}', '\u{85}']));
    if unfit {
        return None;
    }
    let mut quick = Quick { source, bytes: source.as_bytes(), at: 0, block: String::new(), builder };
    let (column, _) = quick.line()?;
    if column != 0 {
        return None;
    }
    quick.mapping(0)?;
    quick.line().is_none().then_some(())
}

struct Quick<'a, 'src> {
    source: &'src str,
    bytes: &'src [u8],
    /// Where to read on: the start of a line between values, any place within one.
    at: usize,
    /// The text of a literal block; one for all of them.
    block: String,
    builder: &'a mut Builder<'src>,
}

impl<'src> Quick<'_, 'src> {
    /// Skips to the next line with content: its column and offset. `None` at the end.
    fn line(&mut self) -> Option<(usize, usize)> {
        loop {
            let rest = self.bytes.get(self.at..)?;
            let column = rest.iter().position(|byte| *byte != b' ')?;
            match rest.get(column)? {
                b'\n' => self.at += column + 1,
                b'#' => self.at += memchr(b'\n', rest)? + 1,
                _ => return Some((column, self.at + column)),
            }
        }
    }

    fn peek(&self) -> Option<u8> {
        self.bytes.get(self.at).copied()
    }

    fn eat(&mut self, byte: u8) -> Option<()> {
        (self.peek()? == byte).then(|| self.at += 1)
    }

    fn blanks(&mut self) {
        while self.peek() == Some(b' ') {
            self.at += 1;
        }
    }

    /// The mapping at `column`, which begins with the next line.
    fn mapping(&mut self, column: usize) -> Option<()> {
        let (_, start) = self.line()?;
        self.open(Shape::map(), self.builder.entries.len(), false, (start, column))?;
        self.entries(column)?;
        self.close()
    }

    /// Entries on lines of their own.
    fn entries(&mut self, column: usize) -> Option<()> {
        while let Some((found, start)) = self.line() {
            if found < column {
                break;
            }
            let length = key_length(self.bytes.get(start..)?)?;
            if found > column {
                return None;
            }
            self.entry(start, length, column)?;
        }
        Some(())
    }

    /// A key of so many bytes and its value.
    fn entry(&mut self, start: usize, length: usize, column: usize) -> Option<()> {
        self.scalar(start, start + length, ScalarStyle::Plain)?;
        self.at = start + length + 1;
        self.blanks();
        if self.peek()? != b'\n' {
            return self.inline(column);
        }
        let (found, start) = self.line()?;
        match self.at_entry(start) {
            true if found >= column => self.list(found, found == column),
            false if found > column => self.mapping(found),
            _ => None,
        }
    }

    /// `- ` stands here.
    fn at_entry(&self, start: usize) -> bool {
        self.bytes.get(start..).is_some_and(|rest| rest.starts_with(b"- ") || rest.starts_with(b"-\n"))
    }

    /// The items at `column`, the first of which is the next line.
    fn list(&mut self, column: usize, is_flush: bool) -> Option<()> {
        let (_, mut start) = self.line()?;
        if is_flush {
            // To the library a list that is no deeper than its key begins behind the first dash.
            let dash = self.bytes.get(start + 1..)?;
            start += 1 + dash.iter().position(|byte| *byte != b' ')?;
        }
        self.open(Shape::List, self.builder.items.len(), false, (start, column))?;
        while let Some((found, start)) = self.line() {
            if found < column || found == column && !self.at_entry(start) {
                break;
            }
            if found > column {
                return None;
            }
            self.at = start + 1;
            self.blanks();
            let rest = self.bytes.get(self.at..)?;
            if self.peek()? == b'\n' || self.at_entry(self.at) {
                return None;
            }
            match key_length(rest) {
                None => self.inline(column)?,
                // A mapping whose first key stands behind the dash.
                Some(length) => {
                    let (start, inner) = (self.at, column + self.at - start);
                    self.open(Shape::map(), self.builder.entries.len(), false, (start, inner))?;
                    self.entry(start, length, inner)?;
                    self.entries(inner)?;
                    self.close()?;
                }
            }
        }
        self.close()
    }

    /// A value that begins within a line, up to the end of that line or of its block.
    fn inline(&mut self, parent: usize) -> Option<()> {
        match self.peek()? {
            b'[' | b'{' => {
                self.flow()?;
                self.eat(b'\n')
            }
            b'"' | b'\'' => {
                self.quoted()?;
                self.eat(b'\n')
            }
            b'|' => self.literal(parent),
            _ => self.plain(parent),
        }
    }

    /// A plain string up to the end of its line.
    fn plain(&mut self, parent: usize) -> Option<()> {
        let rest = self.bytes.get(self.at..)?;
        let length = memchr(b'\n', rest)?;
        let text = rest.get(..length)?;
        let ends_early = |pair: &[u8]| matches!(pair, [b':', b' '] | [b' ', b'#']);
        if !begins_plain(text)
            || text.ends_with(b" ")
            || text.ends_with(b":")
            || text.windows(2).any(ends_early)
        {
            return None;
        }
        let start = self.at;
        self.at += length + 1;
        // A deeper line would go on with the string.
        if self.next_column().is_some_and(|column| column > parent) {
            return None;
        }
        self.scalar(start, start + length, ScalarStyle::Plain)
    }

    /// The column of the next line that is not blank, comments included.
    fn next_column(&self) -> Option<usize> {
        let rest = self.bytes.get(self.at..)?;
        let content = rest.iter().position(|byte| !matches!(byte, b' ' | b'\n'))?;
        let line = rest.get(..content)?.iter().rposition(|byte| *byte == b'\n').map_or(0, |end| end + 1);
        Some(content - line)
    }

    /// A quoted string without escapes that ends on its line.
    fn quoted(&mut self) -> Option<()> {
        let start = self.at;
        let quote = self.peek()?;
        let rest = self.bytes.get(start + 1..)?;
        let length = memchr3(quote, b'\\', b'\n', rest)?;
        let end = start + 1 + length;
        if *rest.get(length)? != quote || rest.get(length + 1) == Some(&b'\'') {
            return None;
        }
        self.at = end + 1;
        let style = if quote == b'"' { ScalarStyle::DoubleQuoted } else { ScalarStyle::SingleQuoted };
        let text = Cow::Borrowed(self.source.get(start + 1..end)?);
        self.builder.scalar(text, style, 0, None, bytes(start, end + 1)?).ok()
    }

    /// A collection in brackets that ends on its line.
    fn flow(&mut self) -> Option<()> {
        let start = self.at;
        let is_list = self.peek()? == b'[';
        let (shape, base, end) = if is_list {
            (Shape::List, self.builder.items.len(), b']')
        } else {
            (Shape::map(), self.builder.entries.len(), b'}')
        };
        // The column matters for strings of several lines only, of which there are none.
        self.open(shape, base, true, (start, 0))?;
        self.at += 1;
        self.blanks();
        if self.peek()? != end {
            loop {
                if !is_list {
                    self.flow_value()?;
                    self.eat(b':')?;
                    self.eat(b' ')?;
                    self.blanks();
                }
                self.flow_value()?;
                self.blanks();
                if self.peek()? == end {
                    break;
                }
                self.eat(b',')?;
                self.blanks();
            }
        }
        let close = bytes(self.at, self.at + 1)?;
        self.at += 1;
        self.builder.close(close).ok()
    }

    fn flow_value(&mut self) -> Option<()> {
        match self.peek()? {
            b'[' | b'{' => self.flow(),
            b'"' | b'\'' => self.quoted(),
            _ => {
                let rest = self.bytes.get(self.at..)?;
                let is_part = |byte: &u8| is_word(*byte) || matches!(byte, b' ' | b'+' | b'(' | b')');
                let length = rest.iter().position(|byte| !is_part(byte))?;
                let text = rest.get(..length)?.trim_ascii_end();
                if !begins_plain(text) || !matches!(rest.get(length)?, b',' | b']' | b'}' | b':') {
                    return None;
                }
                let start = self.at;
                self.at += text.len();
                self.scalar(start, start + text.len(), ScalarStyle::Plain)
            }
        }
    }

    /// A literal block: `|` or `|-`, and lines that are deeper than `parent`.
    fn literal(&mut self, parent: usize) -> Option<()> {
        self.eat(b'|')?;
        let keeps_end = self.eat(b'-').is_none();
        self.eat(b'\n')?;
        // Blank lines before the first one are rare, and have rules of their own.
        let column = self.bytes.get(self.at..)?.iter().position(|byte| *byte != b' ')?;
        let start = self.at + column;
        if column <= parent || self.bytes.get(start) == Some(&b'\n') {
            return None;
        }
        self.block.clear();
        let mut blank_lines = 0;
        let end = loop {
            let rest = self.bytes.get(self.at..)?;
            let indent = rest.iter().take(column).take_while(|byte| **byte == b' ').count();
            match rest.get(indent) {
                None => break self.at + indent,
                Some(b'\n') => {
                    blank_lines += 1;
                    self.at += indent + 1;
                }
                Some(_) if indent == column => {
                    (0..blank_lines).for_each(|_| self.block.push('\n'));
                    blank_lines = 0;
                    let length = memchr(b'\n', rest)? + 1;
                    self.block.push_str(self.source.get(self.at + column..self.at + length)?);
                    self.at += length;
                }
                Some(_) if indent > parent => return None,
                Some(_) => break self.at + indent,
            }
        };
        if !keeps_end {
            self.block.pop();
        }
        self.builder.literal(&self.block, bytes(start, end)?).ok()
    }

    fn scalar(&mut self, start: usize, end: usize, style: ScalarStyle) -> Option<()> {
        let text = Cow::Borrowed(self.source.get(start..end)?);
        self.builder.scalar(text, style, 0, None, bytes(start, end)?).ok()
    }

    fn open(&mut self, shape: Shape<'src>, base: usize, flow: bool, at: (usize, usize)) -> Option<()> {
        let (start, column) = at;
        let place = bytes(start, start + usize::from(flow))?;
        self.builder.open(Frame::new(shape, base, 0, flow, (place, column)), None).ok()
    }

    /// Ends a block collection.
    fn close(&mut self) -> Option<()> {
        self.builder.close(bytes(self.at, self.at)?).ok()
    }
}

fn bytes(start: usize, end: usize) -> Option<Bytes> {
    Some(Bytes { start: u32::try_from(start).ok()?, end: u32::try_from(end).ok()? })
}

/// The length of the key at the start of `rest`, if one stands there.
fn key_length(rest: &[u8]) -> Option<usize> {
    let length = rest.iter().take(MAX_KEY).position(|byte| !is_word(*byte))?;
    let begins = rest.first().is_some_and(|first| first.is_ascii_alphanumeric() || *first == b'_');
    let ends = matches!(rest.get(length..length + 2)?, [b':', b' ' | b'\n']);
    (begins && ends).then_some(length)
}

/// Longer keys are left to the library.
const MAX_KEY: usize = 512;

/// A byte that means nothing to YAML within a word.
fn is_word(byte: u8) -> bool {
    byte.is_ascii_alphanumeric() || matches!(byte, b'_' | b'-' | b'.' | b'/') || byte >= 0x80
}

/// Whether a plain string can begin like this.
fn begins_plain(text: &[u8]) -> bool {
    match text {
        [b'-', next, ..] => next.is_ascii_digit(),
        [first, ..] => {
            first.is_ascii_alphanumeric()
                || matches!(first, b'_' | b'.' | b'/' | b'+' | b'(' | b'~')
                || *first >= 0x80
        }
        [] => false,
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::super::reader::{quickly, thoroughly};
    use crate::limits::Limits;

    /// Reads both ways; whether the quick way took the text. If it did, both give the same.
    #[track_caller]
    fn agrees(yaml: &str) -> bool {
        let limits = Limits::default();
        let (text, label) = (std::sync::Arc::new(yaml.to_owned()), "f".into());
        let Some(quick) = quickly(&text, &label, &limits) else { return false };
        let thorough = thoroughly(&text, &label, &limits, &crate::faults::Faults::first());
        let thorough = thorough.unwrap_or_else(|error| panic!("{error}: {yaml:?}"));
        assert_eq!(format!("{quick:?}"), format!("{thorough:?}"), "{yaml:?}");
        true
    }

    #[track_caller]
    fn taken(yaml: &str) {
        assert!(agrees(yaml), "left to the library: {yaml:?}");
    }

    #[track_caller]
    fn left(yaml: &str) {
        assert!(!agrees(yaml), "taken: {yaml:?}");
    }

    #[test]
    fn blocks() {
        taken(
            "a: b\nc:\n  d: 1.50\n  e:\n    - f\n    - g: h\n      i: j\n\n# k\n  # l\nm:\n- n\n- o: p\nq: r\n",
        );
        taken("a:\n  - b: |\n      c\n    d: e\n  - [f]\n");
        taken("a: x: y\n".replace("x: y", "x:y").as_str());
        taken("a: it's \"so\", [or] {so}\nb: é—x\nc: +1 -2 ~\nd: ~\ne: -1\n");
    }

    #[test]
    fn brackets_and_quotes() {
        taken(
            "a: [b, c d, 'e f', \"g\", [], {}, {h: i, \"j\": [k]}]\nl: { m : n }\n"
                .replace("m :", "m:")
                .as_str(),
        );
        taken("a: \"b: #c\"\nd: ''\ne: {f: {g: 1}}\n");
    }

    #[test]
    fn literal_blocks() {
        taken("a: |\n  b\n\n    c\n   \n  # d\n\n\ne: |-\n f\n\n");
        taken("a:\n  - |\n   b\n   c\n  - |-\n     d\n");
        taken("a: |\n  b\n      \n  c\n");
    }

    #[test]
    fn the_rest_is_left_to_the_library() {
        for yaml in [
            "",
            "a",
            "- a\n",
            "{a: b}\n",
            "---\na: b\n",
            "a: b\n...\n",
            "a:\nb: c\n",
            "a: &b c\n",
            "a: !!str b\n",
            "a: b # c\n",
            "a: b\n  c\n",
            "a: b\n  # c\n",
            "a: b: c\n",
            "a: b:\n",
            "a: >\n  b\n",
            "a: |+\n  b\n",
            "a: |\n\n  b\n",
            "a: |\nb: c\n",
            "a: |\n    b\n  c\n",
            "a: 'b''c'\n",
            "a: \"b\\n\"\n",
            "a: 'b\n  c'\n",
            "a: [b\n  ]\n",
            "a: [b] c\n",
            "a: [b: c]\n",
            "a: [b,]\n",
            "a: {b}\n",
            "a: {b:c}\n",
            "a: [-]\n",
            "a: b \n",
            "a: 1\na: 2\n",
            "<<: {a: b}\n",
            "a b: c\n",
            "a:\tb\n",
            "a: b\r\n",
            "a: \u{7f}\n",
            "a: \u{85}\n",
            "a:\n-\n",
            "a:\n  - - b\n",
            " a: b\n",
            "a: b\n c: d\n",
            "a:\n  b: c\n d: e\n",
            "? a\n: b\n",
            "a: *b\n",
            "a: @b\n",
        ] {
            left(yaml);
        }
        let deep = (0..101).fold(String::new(), |yaml, depth| yaml + &" ".repeat(depth) + "a:\n");
        left(&(deep + &" ".repeat(101) + "a: b\n"));
    }

    fn content() -> impl Strategy<Value = &'static str> {
        prop::sample::select(vec![
            "a: b",
            "b:",
            "c: |",
            "d: |-",
            "- e",
            "- f: g",
            "- h:",
            "- |",
            "- [i, {j: k}]",
            "l: [m, 'n']",
            "o: \"p\"",
            "# q",
            "",
            "r s",
            "t: {u: v, w: []}",
            "1: 2",
            "true: 2020-01-01",
            "x: y z",
            "z: -1",
            "- - a",
            "é: ö",
            "a:",
            "- 'x y'",
            "e: ''",
        ])
    }

    proptest! {
        #![proptest_config(ProptestConfig { failure_persistence: None, ..ProptestConfig::with_cases(4000) })]

        #[test]
        fn both_ways_agree(lines in prop::collection::vec((0_usize..5, content()), 1..12)) {
            // The first line decides whether a text is read at all, so it is always a good one.
            let mut yaml = String::from("k: v\n");
            for (at, (indent, content)) in lines.into_iter().enumerate() {
                let is_key = content.starts_with(|c: char| c.is_ascii_lowercase());
                let number = if is_key { format!("k{at}") } else { String::new() };
                yaml.extend([&" ".repeat(indent), &number, content, "\n"]);
            }
            agrees(&yaml);
        }
    }
}
