//! The materialized descriptor.

use std::sync::{Arc, OnceLock};

use harness_diagnostics::Place;
use harness_diagnostics::document::{Document, Kind, LossyReason, NodeId};

use crate::canonical::{self, DescriptorHash};
use crate::unknown::UnknownKey;
use crate::value::{Map, Value};

/// A loaded descriptor: plain values, with prompts and parts in place.
///
/// It is what gets hashed and what [`Graph::build`](crate::Graph::build) reads. Values that the
/// builder does not know are kept, and hashed. Cloning shares the data.
#[derive(Clone, Debug)]
pub struct Descriptor(Arc<Inner>);

#[derive(Debug)]
struct Inner {
    document: Document,
    root: NodeId,
    /// Contract from a separate file, as written.
    contract: Option<Document>,
    /// Keys that nothing reads, as the text has them.
    unknown: Vec<UnknownKey>,
    hash: OnceLock<DescriptorHash>,
}

/// Something worth telling that does not stop a descriptor from being used.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct Warning {
    /// Kind of the warning.
    pub kind: WarningKind,
    /// Place of the value.
    pub place: Place,
}

/// Subject of a [`Warning`].
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum WarningKind {
    /// The hash does not distinguish this value from others.
    HashLossy(LossyReason),
}

impl WarningKind {
    /// The stable code, such as `hash.lossy`.
    pub fn code(self) -> &'static str {
        match self {
            Self::HashLossy(_) => "hash.lossy",
        }
    }
}

impl std::fmt::Display for WarningKind {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let Self::HashLossy(reason) = self;
        f.write_str(match reason {
            LossyReason::NotFinite => "this number is hashed as `null`",
            LossyReason::Rounded => "this integer is rounded to the nearest double before it is hashed",
            LossyReason::Instant => "this date is hashed like the same text in quotes",
            LossyReason::InvalidUtf8 => "bytes here are not UTF-8 and are hashed as U+FFFD",
            LossyReason::Proto => "the key `__proto__` and its value are left out of the hash",
        })
    }
}

/// Keys that an agent without them inherits from `agent_defaults`.
const INHERITED: [&str; 3] = ["model", "modelSettings", "instructions"];

impl Descriptor {
    pub(crate) fn new(
        document: Document,
        root: NodeId,
        contract: Option<Document>,
        unknown: Vec<UnknownKey>,
    ) -> Self {
        Self(Arc::new(Inner { document, root, contract, unknown, hash: OnceLock::new() }))
    }

    pub(crate) fn unknown_keys(&self) -> &[UnknownKey] {
        &self.0.unknown
    }

    pub(crate) fn contract(&self) -> Option<&Document> {
        self.0.contract.as_ref()
    }

    pub(crate) fn document(&self) -> &Document {
        &self.0.document
    }

    pub(crate) fn root_id(&self) -> NodeId {
        self.0.root
    }

    /// The hash over [`Self::canonical_text`]; computed once.
    pub fn hash(&self) -> DescriptorHash {
        *self.0.hash.get_or_init(|| canonical::hash(&self.0.document, self.0.root))
    }

    /// Hashes of the agents, in the order of the descriptor. They show which agents a change
    /// affects.
    ///
    /// A hash covers the agent's entry as materialized, with `model`, `modelSettings` and
    /// `instructions` of `agent_defaults` if the entry lacks them. A change of the defaults
    /// therefore affects exactly the agents that inherit it, and moving a text from the agent into
    /// the defaults affects none. The targets of tools, the context and the catalog of parts are
    /// not covered (the text of a part is, in the agents that use it).
    ///
    /// Computed at each call. Agents that are not mappings are skipped.
    pub fn agent_hashes(&self) -> impl Iterator<Item = (&str, DescriptorHash)> {
        let document = &self.0.document;
        let get = |key| document.get(self.0.root, key).and_then(|id| document.object(id)).unwrap_or_default();
        let defaults: Vec<_> = canonical::properties(document, get("agent_defaults"))
            .filter(|(key, _)| INHERITED.contains(key))
            .collect();
        canonical::properties(document, get("agents")).filter_map(move |(id, agent)| {
            let mut properties: Vec<_> = canonical::properties(document, document.object(agent)?).collect();
            // `null` stands for what is inherited, in the source system as here.
            properties.retain(|(key, value)| !(INHERITED.contains(key) && document.is_null(*value)));
            for default in &defaults {
                if properties.iter().all(|(key, _)| *key != default.0) && !document.is_null(default.1) {
                    properties.push(*default);
                }
            }
            Some((id, canonical::hash_properties(document, properties)))
        })
    }

    /// A hash for each entry of `instruction_parts`, in the order of the descriptor.
    ///
    /// It covers the canonical text of the entry alone, so a part keeps its hash under another
    /// name. Computed at each call.
    pub fn part_hashes(&self) -> impl Iterator<Item = (&str, DescriptorHash)> {
        let document = &self.0.document;
        let parts = document.get(self.0.root, "instruction_parts").and_then(|id| document.object(id));
        canonical::properties(document, parts.unwrap_or_default())
            .map(|(name, part)| (name, canonical::hash(document, part)))
    }

    /// The exact text that is hashed: JSON without white space, keys sorted.
    pub fn canonical_text(&self) -> String {
        canonical::text(&self.0.document, self.0.root)
    }

    /// The targets that its tools name, in its order, as far as they are texts.
    pub fn tool_targets(&self) -> Vec<String> {
        let (document, root) = (self.document(), self.root_id());
        let tools = document.get(root, "tools").and_then(|tools| document.object(tools)).unwrap_or_default();
        let target = |tool| document.string(document.get(tool, "target")?).map(str::to_owned);
        tools.iter().filter_map(|entry| target(entry.value)).collect()
    }

    /// The whole descriptor as a value; dates become ISO text.
    pub fn to_value(&self) -> Value {
        Value::of(&self.0.document, self.0.root)
    }

    /// Place of the value at a path of keys and list positions, or `None` if there is no such
    /// value.
    ///
    /// The path has the form of a JSON pointer (`/agents/a/tools/0`); `""` is the root. Values
    /// made by loading point to what they were made from.
    pub fn place(&self, pointer: &str) -> Option<Place> {
        let mut node = self.0.root;
        let mut steps = pointer.split('/');
        // A pointer is empty or begins with `/`.
        if steps.next() != Some("") {
            return None;
        }
        for step in steps {
            let key = step.replace("~1", "/").replace("~0", "~");
            node = match self.0.document.list(node) {
                Some(items) => *items.get(key.parse::<usize>().ok()?)?,
                None => self.0.document.get(node, &key)?,
            };
        }
        Some(self.0.document.place(node))
    }

    /// The YAML text as it was read: decoded, without a byte order mark, with a final line end.
    ///
    /// The bytes of a [`Place`] are offsets in it.
    pub fn source(&self) -> &str {
        self.0.document.text()
    }

    /// A line of [`Self::source`] by its number from 1, without its end.
    pub fn source_line(&self, number: u32) -> Option<&str> {
        self.0.document.line(number)
    }

    /// Warnings of reading, in the order of the text; at most the first hundred.
    pub fn warnings(&self) -> Vec<Warning> {
        let mut lossy = self.0.document.lossy().to_vec();
        lossy.sort_by_key(|lossy| lossy.bytes.start);
        lossy
            .into_iter()
            .map(|lossy| Warning {
                kind: WarningKind::HashLossy(lossy.reason),
                place: self.0.document.place_of(lossy.bytes),
            })
            .collect()
    }
}

impl Value {
    /// Copies a node of a document as JSON contains it: non-finite numbers become `null`.
    pub fn json_of(document: &Document, id: NodeId) -> Self {
        let mut value = Self::of(document, id);
        value.make_finite();
        value
    }

    fn make_finite(&mut self) {
        match self {
            Self::Number(number) if !number.is_finite() => *self = Self::Null,
            Self::List(items) => items.iter_mut().for_each(Self::make_finite),
            Self::Map(map) => map.values_mut().for_each(Self::make_finite),
            Self::Null | Self::Bool(_) | Self::Number(_) | Self::String(_) => {}
        }
    }

    /// Copies a node.
    pub(crate) fn of(document: &Document, id: NodeId) -> Self {
        match document.kind(id) {
            Kind::Null => Value::Null,
            Kind::Bool(value) => Value::Bool(*value),
            Kind::Number(number) => Value::Number(*number),
            Kind::Instant(instant) => Value::String(instant.to_string().into()),
            Kind::Text(text) => Value::String(document.resolve(text).into()),
            Kind::List(items) => Value::List(items.iter().map(|item| Self::of(document, *item)).collect()),
            Kind::Map(entries) => {
                let entries = entries
                    .iter()
                    .map(|entry| (document.resolve(&entry.key).into(), Self::of(document, entry.value)));
                Value::Map(Map::from_unique(entries.collect()))
            }
        }
    }
}
