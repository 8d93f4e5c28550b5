//! Values of a YAML text, with the place of every node.
//!
//! Nodes are in one list and refer to each other by number. An alias repeats the number of its
//! anchor, so a shared mapping stays one node: a change is visible everywhere it is used. Children
//! have smaller numbers than their parents, so a document has no cycles.

use std::collections::HashMap;
use std::ops::Range;
use std::sync::{Arc, OnceLock};

use crate::instant::Instant;
use crate::lines::Lines;
use crate::number::{array_index, push_number};

/// The number of a node in its [`Document`].
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct NodeId(u32);

/// A range of bytes in the text of a document.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Bytes {
    /// Offset of the first byte.
    pub start: u32,
    /// Offset behind the last byte.
    pub end: u32,
}

/// String: a slice of the document's text, or an owned string.
#[derive(Clone, Debug)]
pub enum Text {
    /// Slice of the document's text.
    Source(Bytes),
    /// Owned string.
    Shared(Arc<str>),
}

/// Value of a node.
#[derive(Clone, Debug)]
pub enum Kind {
    /// `null`, `~` or nothing.
    Null,
    /// `true` or `false`.
    Bool(bool),
    /// A number, as a double.
    Number(f64),
    /// An unquoted date or timestamp.
    Instant(Instant),
    /// A string, quoted or not.
    Text(Text),
    /// Items in order.
    List(Vec<NodeId>),
    /// Entries in ECMAScript property order.
    Map(Vec<Entry>),
}

/// Entry of a mapping.
#[derive(Clone, Debug)]
pub struct Entry {
    /// Key as text.
    pub key: Text,
    /// Place of the key.
    pub key_bytes: Bytes,
    /// Node of the value.
    pub value: NodeId,
    /// Copied by a merge key; an explicit key of the same mapping may still replace it.
    pub merged: bool,
}

#[derive(Clone, Debug)]
struct Slot {
    kind: Kind,
    bytes: Bytes,
}

/// File in a string that was made from files.
#[derive(Clone, Debug)]
pub struct Origin {
    /// Name of the file in messages.
    pub file: Arc<str>,
    /// Bytes of its text in the string.
    pub bytes: Range<usize>,
}

/// A value that two different texts share, and why.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Lossy {
    /// Place of the value.
    pub bytes: Bytes,
    /// Reason why it is not exact.
    pub reason: LossyReason,
}

/// Maximum number of lossy values that are reported.
const MAX_LOSSY: usize = 100;

/// Reason why two different descriptors may share a hash.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum LossyReason {
    /// Not-a-number and infinities are hashed as `null`.
    NotFinite,
    /// An integer above 2^53 is rounded to the nearest double.
    Rounded,
    /// An unquoted date is hashed like its ISO text.
    Instant,
    /// A key `__proto__` is left out of the hash together with its value.
    Proto,
    /// Bytes that are not UTF-8 are hashed as U+FFFD.
    InvalidUtf8,
}

/// Nodes of one YAML text.
#[derive(Clone, Debug, Default)]
pub struct Document {
    text: Arc<String>,
    label: Arc<str>,
    slots: Vec<Slot>,
    root: Option<NodeId>,
    lossy: Vec<Lossy>,
    /// Strings that came from prompt files.
    origins: HashMap<NodeId, Vec<Origin>>,
    /// Made when the first place is asked for: most descriptors have nothing to complain about.
    lines: OnceLock<Lines>,
}

static MISSING: Slot = Slot { kind: Kind::Null, bytes: Bytes { start: 0, end: 0 } };

impl Document {
    pub(crate) fn new(text: Arc<String>, label: Arc<str>) -> Self {
        Self {
            text,
            label,
            slots: Vec::new(),
            root: None,
            lossy: Vec::new(),
            origins: HashMap::new(),
            lines: OnceLock::new(),
        }
    }

    /// Name of the text in messages, such as a path.
    pub fn label(&self) -> &Arc<str> {
        &self.label
    }

    /// The text, decoded, with a final line end.
    pub fn text(&self) -> &str {
        &self.text
    }

    /// A line of the text by its number from 1, without its end.
    pub fn line(&self, number: u32) -> Option<&str> {
        self.lines().line(&self.text, number)
    }

    pub(crate) fn lines(&self) -> &Lines {
        self.lines.get_or_init(|| Lines::of(&self.text))
    }

    /// The root value; `None` when the text holds no value at all.
    pub fn root(&self) -> Option<NodeId> {
        self.root
    }

    pub(crate) fn set_root(&mut self, root: NodeId) {
        self.root = Some(root);
    }

    /// Values that are not exact, at most the first hundred.
    pub fn lossy(&self) -> &[Lossy] {
        &self.lossy
    }

    /// Marks a value as not exact.
    pub fn push_lossy(&mut self, bytes: Bytes, reason: LossyReason) {
        if self.lossy.len() < MAX_LOSSY {
            self.lossy.push(Lossy { bytes, reason });
        }
    }

    /// Files that a string consists of, in order; empty if it is written in the document itself.
    pub fn origins(&self, id: NodeId) -> &[Origin] {
        self.origins.get(&id).map(Vec::as_slice).unwrap_or_default()
    }

    /// Sets the files that a string consists of.
    pub fn set_origins(&mut self, id: NodeId, origins: Vec<Origin>) {
        self.origins.insert(id, origins);
    }

    /// The number of nodes, shared ones counted once.
    pub(crate) fn len(&self) -> usize {
        self.slots.len()
    }

    /// Adds a node. The caller's limits keep the count far below `u32::MAX`.
    pub fn push(&mut self, kind: Kind, bytes: Bytes) -> NodeId {
        let id = NodeId(u32::try_from(self.slots.len()).unwrap_or(u32::MAX));
        self.slots.push(Slot { kind, bytes });
        id
    }

    pub(crate) fn ids(&self) -> impl Iterator<Item = NodeId> + use<> {
        (0..u32::try_from(self.slots.len()).unwrap_or(u32::MAX)).map(NodeId)
    }

    fn slot(&self, id: NodeId) -> &Slot {
        self.slots.get(id.index()).unwrap_or(&MISSING)
    }

    /// Value of a node.
    pub fn kind(&self, id: NodeId) -> &Kind {
        &self.slot(id).kind
    }

    /// Place of a node in the text.
    pub fn bytes(&self, id: NodeId) -> Bytes {
        self.slot(id).bytes
    }

    /// Text of a node as written, with its quotes.
    pub fn written(&self, id: NodeId) -> &str {
        let Bytes { start, end } = self.bytes(id);
        self.text.get(start as usize..end as usize).unwrap_or_default()
    }

    /// Value of a string.
    pub fn resolve<'a>(&'a self, text: &'a Text) -> &'a str {
        match text {
            Text::Source(Bytes { start, end }) => {
                self.text.get(*start as usize..*end as usize).unwrap_or_default()
            }
            Text::Shared(text) => text,
        }
    }

    /// The string, if the node is one.
    pub fn string(&self, id: NodeId) -> Option<&str> {
        match self.kind(id) {
            Kind::Text(text) => Some(self.resolve(text)),
            Kind::Null
            | Kind::Bool(_)
            | Kind::Number(_)
            | Kind::Instant(_)
            | Kind::List(_)
            | Kind::Map(_) => None,
        }
    }

    /// The items, if the node is a list.
    pub fn list(&self, id: NodeId) -> Option<&[NodeId]> {
        match self.kind(id) {
            Kind::List(items) => Some(items),
            Kind::Null
            | Kind::Bool(_)
            | Kind::Number(_)
            | Kind::Instant(_)
            | Kind::Text(_)
            | Kind::Map(_) => None,
        }
    }

    /// The entries, if the node is a mapping. A date counts as an empty mapping.
    pub fn object(&self, id: NodeId) -> Option<&[Entry]> {
        match self.kind(id) {
            Kind::Map(entries) => Some(entries),
            Kind::Instant(_) => Some(&[]),
            Kind::Null | Kind::Bool(_) | Kind::Number(_) | Kind::Text(_) | Kind::List(_) => None,
        }
    }

    /// Whether the node is `null`.
    pub fn is_null(&self, id: NodeId) -> bool {
        matches!(self.kind(id), Kind::Null)
    }

    /// The entries, if the node is a mapping.
    pub fn entries(&self, id: NodeId) -> Option<&[Entry]> {
        if let Kind::Map(entries) = self.kind(id) { Some(entries) } else { None }
    }

    /// The place of the key under which a mapping contains this node.
    pub(crate) fn key_of(&self, id: NodeId) -> Option<Bytes> {
        let mut entries = self
            .slots
            .iter()
            .filter_map(|slot| if let Kind::Map(entries) = &slot.kind { Some(entries) } else { None });
        entries
            .find_map(|entries| entries.iter().find(|entry| entry.value == id))
            .map(|entry| entry.key_bytes)
    }

    /// The value of `key`, if `id` is an object that has it.
    pub fn get(&self, id: NodeId, key: &str) -> Option<NodeId> {
        self.entry(id, key).map(|entry| entry.value)
    }

    /// The entry of `key`, if `id` is an object that has it.
    pub fn entry(&self, id: NodeId, key: &str) -> Option<&Entry> {
        self.object(id)?.iter().find(|entry| self.resolve(&entry.key) == key)
    }

    /// The value at a path of keys.
    pub fn get_path(&self, id: NodeId, path: &[&str]) -> Option<NodeId> {
        path.iter().try_fold(id, |id, key| self.get(id, key))
    }

    /// Sets a key of a mapping in place: a new key goes last, as no caller adds index keys.
    pub fn set(&mut self, map: NodeId, key: &'static str, value: NodeId) {
        let known = self
            .object(map)
            .and_then(|entries| entries.iter().position(|entry| self.resolve(&entry.key) == key));
        let key_bytes = self.bytes(value);
        let Some(Slot { kind: Kind::Map(entries), .. }) = self.slots.get_mut(map.index()) else { return };
        match known.and_then(|at| entries.get_mut(at)) {
            Some(entry) => entry.value = value,
            None => entries.push(Entry { key: Text::Shared(key.into()), key_bytes, value, merged: false }),
        }
    }

    /// Copies a value of another document and places it at `bytes`. The recursion is bounded by the
    /// depth limit of reading.
    pub fn graft(&mut self, from: &Self, id: NodeId, bytes: Bytes) -> NodeId {
        let text = |text: &Text| Text::Shared(from.resolve(text).into());
        let kind = match from.kind(id) {
            Kind::Text(value) => Kind::Text(text(value)),
            Kind::List(items) => {
                Kind::List(items.iter().map(|item| self.graft(from, *item, bytes)).collect())
            }
            Kind::Map(entries) => {
                let entry = |entry: &Entry| {
                    let value = self.graft(from, entry.value, bytes);
                    Entry { key: text(&entry.key), key_bytes: bytes, value, merged: false }
                };
                Kind::Map(entries.iter().map(entry).collect())
            }
            plain @ (Kind::Null | Kind::Bool(_) | Kind::Number(_) | Kind::Instant(_)) => plain.clone(),
        };
        self.push(kind, bytes)
    }

    /// Removes a key of a mapping in place.
    pub fn remove(&mut self, map: NodeId, key: &str) {
        let known = self
            .object(map)
            .and_then(|entries| entries.iter().position(|entry| self.resolve(&entry.key) == key));
        if let (Some(at), Some(Slot { kind: Kind::Map(entries), .. })) =
            (known, self.slots.get_mut(map.index()))
        {
            entries.remove(at);
        }
    }

    /// The value as ECMAScript's `String(value)` prints it.
    pub fn display_text(&self, id: NodeId) -> String {
        let mut out = String::new();
        self.push_display_text(&mut out, id);
        out
    }

    fn push_display_text(&self, out: &mut String, id: NodeId) {
        match self.kind(id) {
            Kind::Null => out.push_str("null"),
            Kind::Bool(value) => out.push_str(if *value { "true" } else { "false" }),
            Kind::Number(number) => push_number(out, *number),
            Kind::Instant(instant) => out.push_str(&instant.to_string()),
            Kind::Text(text) => out.push_str(self.resolve(text)),
            Kind::List(items) => {
                for (at, item) in items.iter().enumerate() {
                    if at > 0 {
                        out.push(',');
                    }
                    if !self.is_null(*item) {
                        self.push_display_text(out, *item);
                    }
                }
            }
            Kind::Map(_) => out.push_str("[object Object]"),
        }
    }
}

impl Kind {
    /// Kind of the value, for messages.
    pub fn name(&self) -> &'static str {
        match self {
            Self::Null => "null",
            Self::Bool(_) => "a boolean",
            Self::Number(_) => "a number",
            Self::Instant(_) => "a date",
            Self::Text(_) => "a string",
            Self::List(_) => "a list",
            Self::Map(_) => "a mapping",
        }
    }
}

impl NodeId {
    /// A node that no document has; it is `null`.
    pub const NONE: Self = Self(u32::MAX);

    pub(crate) fn index(self) -> usize {
        self.0 as usize
    }
}

/// Brings entries in order of insertion into ECMAScript property order.
pub(crate) fn sort_properties(entries: &mut [Entry], text: &str) {
    let key = |entry: &Entry| match &entry.key {
        Text::Source(Bytes { start, end }) => text.get(*start as usize..*end as usize).and_then(array_index),
        Text::Shared(key) => array_index(key),
    };
    if entries.iter().any(|entry| key(entry).is_some()) {
        // A stable sort: the other keys keep their order behind the indexes.
        entries.sort_by_key(|entry| key(entry).map_or(u64::MAX, u64::from));
    }
}
