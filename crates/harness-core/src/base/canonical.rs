//! Canonical JSON text and its SHA-256 hash, for proposals, approvals and request fingerprints.
//!
//! Equal values have equal text in every program that follows these rules: no white space; keys that are array
//! indexes first, in numeric order, the rest by UTF-16 code units; the last value of a repeated key, and no key
//! `__proto__`; numbers as ECMAScript prints the double (`1.0` is `1`, `1e400` is `null`); strings with the fewest
//! escapes, lone surrogates escaped.
//!
//! ```
//! use harness_core::{Json, canonical};
//!
//! let value = Json::parse(r#"{ "b": 1.0, "10": "\u00e9", "9": [1e21, -0] }"#)?;
//! assert_eq!(canonical::text(&value), r#"{"9":[1e+21,0],"10":"é","b":1}"#);
//! # Ok::<(), serde_json::Error>(())
//! ```

use std::borrow::Cow;
use std::fmt::Write as _;

use serde::Serialize;
use sha2::{Digest as _, Sha256};

use crate::json::{Json, string_end};

/// Returns the canonical text of a value. Not recursive: the cost is that of the length and of sorting the keys.
pub fn text(value: &Json) -> String {
    let source = value.text();
    let mut reader = Reader { source, at: 0, nodes: Vec::new(), open: Vec::new() };
    while reader.step() {}
    write(&reader.nodes, source.len())
}

/// Serializes `value` and returns its canonical text.
///
/// # Errors
/// If `value` has no JSON form.
pub fn text_of<T: Serialize + ?Sized>(value: &T) -> Result<String, serde_json::Error> {
    Json::of(value).map(|value| text(&value))
}

/// Returns the SHA-256 of a value's canonical text as 64 lower-case hex digits.
pub fn hash(value: &Json) -> String {
    sha256_hex(text(value))
}

/// Returns the SHA-256 of bytes as 64 lower-case hex digits.
pub fn sha256_hex(bytes: impl AsRef<[u8]>) -> String {
    let digest = Sha256::digest(bytes);
    digest.iter().fold(String::with_capacity(64), |mut hex, byte| {
        let _ = write!(hex, "{byte:02x}");
        hex
    })
}

/// Parsed value. Children are positions in the list of all nodes.
enum Node<'a> {
    /// Canonical literal: a string, a number, `true`, `false` or `null`.
    Literal(Cow<'a, str>),
    List(Vec<usize>),
    /// In canonical order.
    Object(Vec<Entry<'a>>),
}

struct Entry<'a> {
    key: Cow<'a, str>,
    value: usize,
}

/// List or object whose end is not reached yet.
enum Open<'a> {
    List(Vec<usize>),
    Object { entries: Vec<Entry<'a>>, key: Option<Cow<'a, str>> },
}

/// Reads valid JSON without recursion. The last node is the whole value.
struct Reader<'a> {
    source: &'a str,
    at: usize,
    nodes: Vec<Node<'a>>,
    open: Vec<Open<'a>>,
}

impl<'a> Reader<'a> {
    /// Reads the next token. Returns false at the end.
    fn step(&mut self) -> bool {
        let rest = self.source.get(self.at..).unwrap_or_default();
        let Some(first) = rest.bytes().next() else { return false };
        let length = match first {
            b' ' | b'\n' | b'\r' | b'\t' | b',' | b':' => 1,
            b'{' => {
                self.open.push(Open::Object { entries: Vec::new(), key: None });
                1
            }
            b'[' => {
                self.open.push(Open::List(Vec::new()));
                1
            }
            b'}' | b']' => {
                self.close();
                1
            }
            b'"' => {
                let length = 2 + string_end(rest.get(1..).unwrap_or_default());
                let canonical = canonical_string(rest.get(..length).unwrap_or(rest));
                if let Some(Open::Object { key: key @ None, .. }) = self.open.last_mut() {
                    *key = Some(canonical);
                } else {
                    self.value(Node::Literal(canonical));
                }
                length
            }
            _ => {
                let end = rest.find([',', ']', '}', ' ', '\n', '\r', '\t']).unwrap_or(rest.len());
                self.value(Node::Literal(plain(rest.get(..end).unwrap_or_default())));
                end
            }
        };
        self.at = self.at.saturating_add(length.max(1));
        true
    }

    /// Adds a complete value to the open list or object.
    fn value(&mut self, node: Node<'a>) {
        let value = self.nodes.len();
        self.nodes.push(node);
        match self.open.last_mut() {
            Some(Open::List(items)) => items.push(value),
            Some(Open::Object { entries, key }) => {
                entries.extend(key.take().map(|key| Entry { key, value }));
            }
            None => {}
        }
    }

    fn close(&mut self) {
        match self.open.pop() {
            Some(Open::Object { entries, .. }) => self.value(Node::Object(in_order(entries))),
            Some(Open::List(items)) => self.value(Node::List(items)),
            None => {}
        }
    }
}

/// Part that is not written yet.
enum Task<'n, 'a> {
    Value(usize),
    Items(std::slice::Iter<'n, usize>, &'static str),
    Entries(std::slice::Iter<'n, Entry<'a>>, &'static str),
}

/// Writes the last node.
fn write(nodes: &[Node<'_>], size: usize) -> String {
    let mut out = String::with_capacity(size);
    let mut tasks: Vec<Task<'_, '_>> = nodes.len().checked_sub(1).map(Task::Value).into_iter().collect();
    while let Some(task) = tasks.pop() {
        match task {
            Task::Value(at) => match nodes.get(at) {
                Some(Node::Literal(literal)) => out.push_str(literal),
                Some(Node::List(items)) => {
                    out.push('[');
                    tasks.push(Task::Items(items.iter(), ""));
                }
                Some(Node::Object(entries)) => {
                    out.push('{');
                    tasks.push(Task::Entries(entries.iter(), ""));
                }
                None => {}
            },
            Task::Items(mut items, comma) => match items.next() {
                Some(item) => {
                    out.push_str(comma);
                    tasks.extend([Task::Items(items, ","), Task::Value(*item)]);
                }
                None => out.push(']'),
            },
            Task::Entries(mut entries, comma) => match entries.next() {
                Some(Entry { key, value }) => {
                    out.push_str(comma);
                    out.push_str(key);
                    out.push(':');
                    tasks.extend([Task::Entries(entries, ","), Task::Value(*value)]);
                }
                None => out.push('}'),
            },
        }
    }
    out
}

/// Writes a string literal with the fewest escapes.
fn canonical_string(literal: &str) -> Cow<'_, str> {
    if !literal.contains('\\') {
        return Cow::Borrowed(literal);
    }
    let mut out = String::with_capacity(literal.len());
    out.push('"');
    for decoded in char::decode_utf16(units(inner(literal))) {
        match decoded {
            Ok('"') => out.push_str("\\\""),
            Ok('\\') => out.push_str("\\\\"),
            Ok('\u{8}') => out.push_str("\\b"),
            Ok('\u{c}') => out.push_str("\\f"),
            Ok('\n') => out.push_str("\\n"),
            Ok('\r') => out.push_str("\\r"),
            Ok('\t') => out.push_str("\\t"),
            Ok(control @ '\0'..='\u{1f}') => {
                let _ = write!(out, "\\u{:04x}", u32::from(control));
            }
            Ok(plain) => out.push(plain),
            Err(lone) => {
                let _ = write!(out, "\\u{:04x}", lone.unpaired_surrogate());
            }
        }
    }
    out.push('"');
    Cow::Owned(out)
}

/// The inside of a string literal.
fn inner(literal: &str) -> &str {
    literal.get(1..literal.len().saturating_sub(1)).unwrap_or_default()
}

/// Sorts the entries of an object; keeps the last one of equal keys, and drops `__proto__`.
fn in_order(entries: Vec<Entry<'_>>) -> Vec<Entry<'_>> {
    let mut sorted: Vec<(SortKey, Entry<'_>)> =
        entries.into_iter().map(|entry| (SortKey::of(&entry.key), entry)).collect();
    // Stable, so that of equal keys the last one comes last.
    sorted.sort_by(|(left, _), (right, _)| left.cmp(right));
    let mut sorted = sorted.into_iter().peekable();
    let mut entries = Vec::with_capacity(sorted.len());
    while let Some((key, entry)) = sorted.next() {
        let is_replaced = sorted.peek().is_some_and(|(next, _)| *next == key);
        if !is_replaced && entry.key != r#""__proto__""# {
            entries.push(entry);
        }
    }
    entries
}

/// Order of keys: array indexes first, then code units.
#[derive(PartialEq, Eq, PartialOrd, Ord)]
enum SortKey {
    Index(u32),
    Units(Vec<u16>),
}

impl SortKey {
    fn of(literal: &str) -> Self {
        array_index(inner(literal)).map_or_else(|| Self::Units(units(inner(literal))), Self::Index)
    }
}

/// Parses a canonical array index: decimal `0`..`4294967294`, no leading zero, no sign.
fn array_index(key: &str) -> Option<u32> {
    let digits = key.bytes().all(|byte| byte.is_ascii_digit());
    let canonical = digits && (key == "0" || !key.starts_with('0'));
    key.parse::<u32>().ok().filter(|index| canonical && *index != u32::MAX)
}

/// Decodes the inside of a string literal to code units.
fn units(mut rest: &str) -> Vec<u16> {
    let mut units = Vec::with_capacity(rest.len());
    while let Some((raw, escape)) = rest.split_once('\\') {
        units.extend(raw.encode_utf16());
        let mut length = 1;
        units.push(match escape.bytes().next().unwrap_or(b'\\') {
            b'b' => 0x08,
            b'f' => 0x0c,
            b'n' => 0x0a,
            b'r' => 0x0d,
            b't' => 0x09,
            b'u' => {
                length = 5;
                escape.get(1..5).and_then(|hex| u16::from_str_radix(hex, 16).ok()).unwrap_or(0xfffd)
            }
            plain => u16::from(plain),
        });
        rest = escape.get(length..).unwrap_or_default();
    }
    units.extend(rest.encode_utf16());
    units
}

/// Canonical form of a number, `true`, `false` or `null`.
fn plain(plain: &str) -> Cow<'_, str> {
    if !plain.starts_with(|c: char| c == '-' || c.is_ascii_digit()) {
        return Cow::Borrowed(plain);
    }
    let number: f64 = plain.parse().unwrap_or(f64::NAN);
    if number.is_finite() {
        Cow::Owned(ryu_js::Buffer::new().format_finite(number).to_owned())
    } else {
        Cow::Borrowed("null")
    }
}
