//! Canonical JSON and the hash over it (reference section 6).

use std::collections::HashMap;
use std::fmt;

use harness_diagnostics::document::{Document, Entry, Kind, NodeId};
use sha2::{Digest as _, Sha256};

use crate::number::{canonical_key_order, push_json_number};

/// The hash of a materialized descriptor, or of one agent or part of it: `sha256:` and 64 lower-case
/// hexadecimal digits.
///
/// Equal descriptors have equal hashes on every machine and in the source system.
#[derive(Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct DescriptorHash([u8; 32]);

impl DescriptorHash {
    /// The 32 bytes of the SHA-256 digest.
    pub fn as_bytes(&self) -> &[u8; 32] {
        &self.0
    }
}

impl fmt::Display for DescriptorHash {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("sha256:")?;
        self.0.iter().try_for_each(|byte| write!(f, "{byte:02x}"))
    }
}

impl fmt::Debug for DescriptorHash {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{self}")
    }
}

/// Hashes the canonical text of a value without building it.
pub(crate) fn hash(document: &Document, root: NodeId) -> DescriptorHash {
    hash_written(|sink| write_value(document, root, sink))
}

/// Hashes the canonical text of a mapping with these entries, whose keys differ.
pub(crate) fn hash_properties(document: &Document, properties: Vec<(&str, NodeId)>) -> DescriptorHash {
    hash_written(|sink| write_properties(document, properties, sink))
}

fn hash_written(write: impl FnOnce(&mut Hashing)) -> DescriptorHash {
    let buffer = String::with_capacity(FLUSH_AT);
    let mut sink = Hashing { buffer, digest: Sha256::new(), escaped: HashMap::new(), room: MAX_ESCAPED };
    write(&mut sink);
    sink.digest.update(sink.buffer.as_bytes());
    DescriptorHash(sink.digest.finalize().into())
}

/// The canonical text of a value.
pub(crate) fn text(document: &Document, root: NodeId) -> String {
    let mut text = String::new();
    write_value(document, root, &mut text);
    text
}

const FLUSH_AT: usize = 8 << 10;

/// Destination of canonical text: short chunks are buffered, long ones may bypass the buffer.
trait Sink {
    fn gather(&mut self) -> &mut String;
    fn pass(&mut self, text: &str);

    /// A text without its quotes.
    fn text(&mut self, _id: NodeId, text: &str)
    where
        Self: Sized,
    {
        for_each_json_piece(text, |piece| self.pass(piece));
    }
}

impl Sink for String {
    fn gather(&mut self) -> &mut String {
        self
    }

    fn pass(&mut self, text: &str) {
        self.push_str(text);
    }
}

struct Hashing {
    buffer: String,
    digest: Sha256,
    /// Long texts that occur several times, as JSON; `None` after the first occurrence.
    escaped: HashMap<NodeId, Option<String>>,
    /// Bytes that `escaped` may still take.
    room: usize,
}

/// Shorter texts are escaped as quickly as they are found again.
const LONG: usize = 512;
/// Escaped texts that are kept while a descriptor is hashed.
const MAX_ESCAPED: usize = 4 << 20;

impl Sink for Hashing {
    fn gather(&mut self) -> &mut String {
        if self.buffer.len() >= FLUSH_AT - 64 {
            self.digest.update(self.buffer.as_bytes());
            self.buffer.clear();
        }
        &mut self.buffer
    }

    fn pass(&mut self, text: &str) {
        if self.buffer.len() + text.len() <= FLUSH_AT {
            self.buffer.push_str(text);
            return;
        }
        self.digest.update(self.buffer.as_bytes());
        self.buffer.clear();
        if text.len() >= FLUSH_AT / 2 {
            self.digest.update(text.as_bytes());
        } else {
            self.buffer.push_str(text);
        }
    }

    /// Writes a text. A part of the instructions occurs in every agent that uses it, and is escaped
    /// at most twice.
    fn text(&mut self, id: NodeId, text: &str) {
        if text.len() < LONG {
            return for_each_json_piece(text, |piece| self.pass(piece));
        }
        match self.escaped.get(&id) {
            None => {
                self.escaped.insert(id, None);
                for_each_json_piece(text, |piece| self.pass(piece));
            }
            Some(Some(escaped)) => {
                self.digest.update(self.buffer.as_bytes());
                self.buffer.clear();
                self.digest.update(escaped.as_bytes());
            }
            Some(None) => {
                let mut escaped = String::with_capacity(text.len() + text.len() / 32);
                for_each_json_piece(text, |piece| escaped.push_str(piece));
                self.pass(&escaped);
                if let Some(room) = self.room.checked_sub(escaped.capacity()) {
                    self.room = room;
                    self.escaped.insert(id, Some(escaped));
                }
            }
        }
    }
}

fn write_value(document: &Document, id: NodeId, sink: &mut impl Sink) {
    match document.kind(id) {
        Kind::Null => sink.gather().push_str("null"),
        Kind::Bool(true) => sink.gather().push_str("true"),
        Kind::Bool(false) => sink.gather().push_str("false"),
        Kind::Number(number) => push_json_number(sink.gather(), *number),
        Kind::Instant(instant) => {
            let text = format!("\"{instant}\"");
            sink.gather().push_str(&text);
        }
        Kind::Text(text) => {
            sink.gather().push('"');
            sink.text(id, document.resolve(text));
            sink.gather().push('"');
        }
        Kind::List(items) => {
            sink.gather().push('[');
            for (at, item) in items.iter().enumerate() {
                if at > 0 {
                    sink.gather().push(',');
                }
                write_value(document, *item, sink);
            }
            sink.gather().push(']');
        }
        Kind::Map(entries) => write_map(document, entries, sink),
    }
}

fn write_map(document: &Document, entries: &[Entry], sink: &mut impl Sink) {
    write_properties(document, properties(document, entries).collect(), sink);
}

/// The entries that are hashed.
pub(crate) fn properties<'a>(
    document: &'a Document,
    entries: &'a [Entry],
) -> impl Iterator<Item = (&'a str, NodeId)> {
    let pairs = entries.iter().map(|entry| (document.resolve(&entry.key), entry.value));
    // Upstream sets this key on a fresh object, where it is no property.
    pairs.filter(|(key, _)| *key != "__proto__")
}

fn write_properties(document: &Document, mut sorted: Vec<(&str, NodeId)>, sink: &mut impl Sink) {
    sorted.sort_unstable_by(|(left, _), (right, _)| canonical_key_order(left, right));
    sink.gather().push('{');
    for (at, (key, value)) in sorted.into_iter().enumerate() {
        if at > 0 {
            sink.gather().push(',');
        }
        write_string(key, sink);
        sink.gather().push(':');
        write_value(document, value, sink);
    }
    sink.gather().push('}');
}

fn write_string(text: &str, sink: &mut impl Sink) {
    sink.gather().push('"');
    for_each_json_piece(text, |piece| sink.pass(piece));
    sink.gather().push('"');
}

/// Calls `emit` with the chunks of `text` as a JSON string, without the quotes.
pub(crate) fn for_each_json_piece(text: &str, mut emit: impl FnMut(&str)) {
    // Prose has line ends and perhaps quotes; a text with other controls is searched byte by byte.
    let find = if has_rare_control(text) { find_escaped } else { find_common };
    let mut rest = text;
    while let Some(at) = find(rest.as_bytes()) {
        let (raw, tail) = rest.split_at(at);
        if !raw.is_empty() {
            emit(raw);
        }
        let byte = tail.bytes().next().unwrap_or_default();
        match byte {
            b'"' => emit("\\\""),
            b'\\' => emit("\\\\"),
            0x08 => emit("\\b"),
            0x0c => emit("\\f"),
            b'\n' => emit("\\n"),
            b'\r' => emit("\\r"),
            b'\t' => emit("\\t"),
            control => emit(&format!("\\u{control:04x}")),
        }
        rest = tail.get(1..).unwrap_or_default();
    }
    if !rest.is_empty() {
        emit(rest);
    }
}

fn find_common(bytes: &[u8]) -> Option<usize> {
    memchr::memchr3(b'\n', b'"', b'\\', bytes)
}

/// The first byte that a JSON string must escape.
fn find_escaped(bytes: &[u8]) -> Option<usize> {
    bytes.iter().position(|byte| matches!(byte, 0..0x20 | b'"' | b'\\'))
}

/// Whether there is a control character that is not a line feed.
fn has_rare_control(text: &str) -> bool {
    #[expect(clippy::needless_bitwise_bool, reason = "without branches the comparisons become vector code")]
    let is_rare = |byte: u8| (byte < 0x20) & (byte != b'\n');
    text.bytes().fold(false, |found, byte| found | is_rare(byte))
}
