//! Shapes of settings: one table for validation, editor support and meaning.

use harness_core::Millis;
use harness_core::message::Cost;
use harness_diagnostics::document::{Document, Entry, Kind, NodeId};
use serde_json::{Value as Json, json};

use super::section::Switch;
use crate::error::{DescriptorError, Fault};
use crate::faults::Faults;
use crate::number::is_blank;
use crate::value::Value;

/// A word in place of a span of time: there is no limit.
pub(super) const UNLIMITED: &str = "unlimited";

/// Shape of a setting.
pub(super) enum Shape {
    /// A text with at least one visible character.
    Text,
    /// `true` or `false`.
    Flag,
    /// A whole number from `least` on.
    Whole {
        /// The least number.
        least: u32,
        /// The greatest number.
        most: u64,
    },
    /// A number from 0 to 1.
    Share,
    /// A number with a unit, or `unlimited`.
    Span,
    /// An amount of money.
    Money,
    /// One of some words, each with its meaning.
    Word(&'static [(&'static str, &'static str)]),
    /// List of items of one shape.
    List(&'static Shape),
    /// A mapping whose keys are free.
    Named(&'static Shape),
    /// A mapping with these keys.
    Section(&'static [Key]),
    /// `true`, `false`, or a mapping with these keys.
    Switch(&'static [Key]),
    /// A text, or something else.
    TextOr(&'static Shape),
    /// Mapping in which one key determines the arguments in another.
    Kinds(&'static Kinds),
    /// A mapping of which one key says which other keys it has.
    Choice(&'static Choice),
    /// A JSON object as it is.
    Object,
}

/// A key of a section.
pub(super) struct Key {
    pub(super) name: &'static str,
    /// Description shown by editors.
    pub(super) about: &'static str,
    pub(super) shape: Shape,
    pub(super) required: bool,
}

/// Kinds of one thing, written as `{type, args, …}`.
pub(super) struct Kinds {
    /// Name of the value with its article.
    pub(super) what: &'static str,
    pub(super) kinds: &'static [Variant],
}

/// Kinds of one thing, written as `{KEY: KIND, …}`.
pub(super) struct Choice {
    /// The key that says which; the arguments of each kind have it, too.
    pub(super) key: &'static str,
    pub(super) kinds: &'static [Variant],
}

/// One kind: its word, its meaning and its arguments.
pub(super) struct Variant {
    pub(super) name: &'static str,
    pub(super) about: &'static str,
    pub(super) args: &'static [Key],
}

/// A key that may be left out.
pub(super) const fn key(name: &'static str, about: &'static str, shape: Shape) -> Key {
    Key { name, about, shape, required: false }
}

/// A key that must be there.
pub(super) const fn required(name: &'static str, about: &'static str, shape: Shape) -> Key {
    Key { name, about, shape, required: true }
}

/// Looks for what does not have its shape.
pub(super) struct Checker<'a> {
    document: &'a Document,
    faults: &'a Faults,
    /// Node that is checked elsewhere.
    without: Option<NodeId>,
}

impl<'a> Checker<'a> {
    pub(super) fn new(document: &'a Document, faults: &'a Faults) -> Self {
        Self { document, faults, without: None }
    }

    /// Excludes one value that is checked elsewhere.
    pub(super) fn without(self, node: Option<NodeId>) -> Self {
        Self { without: node, ..self }
    }

    /// Checks a value that is known by `path`.
    pub(super) fn check(&self, shape: &Shape, node: NodeId, path: &str) -> Result<(), DescriptorError> {
        let kind = self.document.kind(node);
        match (shape, kind) {
            _ if self.without == Some(node) => Ok(()),
            (Shape::Section(keys) | Shape::Switch(keys), Kind::Map(entries)) => {
                self.section(keys, node, entries, path)
            }
            (Shape::Kinds(kinds), Kind::Map(_)) => self.kinds(kinds, node, path),
            (Shape::Choice(choice), Kind::Map(entries)) => self.choice(choice, node, entries, path),
            (Shape::List(item), Kind::List(items)) => {
                let mut each = items.iter().enumerate();
                each.try_for_each(|(at, node)| self.check(item, *node, &format!("{path}[{at}]")))
            }
            (Shape::Named(value), Kind::Map(entries)) => entries.iter().try_for_each(|entry| {
                let name = self.document.resolve(&entry.key);
                self.check(value, entry.value, &format!("{path}.{name}"))
            }),
            (Shape::TextOr(other), kind) if !matches!(kind, Kind::Text(_)) => self.check(other, node, path),
            (shape, kind) if shape.takes(self.document, kind) => Ok(()),
            _ => self.wrong(shape, node, path),
        }
    }

    fn section(
        &self,
        keys: &'static [Key],
        node: NodeId,
        entries: &[Entry],
        path: &str,
    ) -> Result<(), DescriptorError> {
        for entry in entries {
            let name = self.document.resolve(&entry.key);
            match keys.iter().find(|key| key.name == name) {
                Some(key) => self.check(&key.shape, entry.value, &format!("{path}.{name}"))?,
                None if name.starts_with("x-") => {}
                None => self.unknown(keys.iter().map(|key| key.name), entry, path)?,
            }
        }
        let missing = keys.iter().filter(|key| key.required && self.document.get(node, key.name).is_none());
        for key in missing {
            let fault = Fault::MissingSetting { owner: path.to_owned(), key: key.name };
            self.faults.report(self.at(fault, node))?;
        }
        Ok(())
    }

    fn unknown<'k>(
        &self,
        known: impl Iterator<Item = &'k str>,
        entry: &Entry,
        path: &str,
    ) -> Result<(), DescriptorError> {
        let key = self.document.resolve(&entry.key);
        let fault = Fault::UnknownSetting { owner: path.to_owned(), key: key.to_owned() };
        let place = self.document.place_of(entry.key_bytes);
        self.faults.report(DescriptorError::new(fault, Some(place)).suggest(key, known))
    }

    fn kinds(&self, kinds: &Kinds, node: NodeId, path: &str) -> Result<(), DescriptorError> {
        let entries = self.document.object(node).unwrap_or_default();
        let Some(word) = self.document.get(node, "type") else {
            let fault = Fault::MissingSetting { owner: path.to_owned(), key: "type" };
            return self.faults.report(self.at(fault, node));
        };
        let Some(kind) = self.kind_of(kinds.kinds, word, &format!("{path}.type"))? else { return Ok(()) };
        for entry in entries {
            let path = format!("{path}.{}", self.document.resolve(&entry.key));
            match self.document.resolve(&entry.key) {
                "type" => {}
                "args" => self.check(&Shape::Section(kind.args), entry.value, &path)?,
                "description" => self.check(&Shape::Text, entry.value, &path)?,
                other if other.starts_with("x-") => {}
                _ => self.unknown(["type", "args", "description"].into_iter(), entry, kinds.what)?,
            }
        }
        let missing = kind.args.iter().find(|key| key.required);
        match missing.filter(|_| self.document.get(node, "args").is_none()) {
            Some(key) => {
                let fault = Fault::MissingSetting { owner: format!("{path}.args"), key: key.name };
                self.faults.report(self.at(fault, node))
            }
            None => Ok(()),
        }
    }

    /// The kind that a word names; `None` after an error of the word.
    fn kind_of(
        &self,
        kinds: &'static [Variant],
        word: NodeId,
        path: &str,
    ) -> Result<Option<&'static Variant>, DescriptorError> {
        let name = self.document.string(word).unwrap_or_default();
        let kind = kinds.iter().find(|kind| kind.name == name);
        if kind.is_none() {
            let names = kinds.iter().map(|kind| kind.name);
            let quoted: Vec<String> = names.clone().map(|name| format!("`{name}`")).collect();
            let expected = format!("one of {}", quoted.join(", "));
            self.faults.report(self.mismatch(expected, word, path).suggest(name, names))?;
        }
        Ok(kind)
    }

    fn choice(
        &self,
        choice: &Choice,
        node: NodeId,
        entries: &[Entry],
        path: &str,
    ) -> Result<(), DescriptorError> {
        if let Some(word) = self.document.get(node, choice.key) {
            return match self.kind_of(choice.kinds, word, &format!("{path}.{}", choice.key))? {
                Some(kind) => self.section(kind.args, node, entries, path),
                None => Ok(()),
            };
        }
        let fault = Fault::MissingSetting { owner: path.to_owned(), key: choice.key };
        self.faults.report(self.at(fault, node))?;
        // Which keys there may be is not known, but what those of any kind hold is.
        for entry in entries {
            let name = self.document.resolve(&entry.key);
            if let Some(key) = choice.kinds.iter().flat_map(|kind| kind.args).find(|key| key.name == name) {
                self.check(&key.shape, entry.value, &format!("{path}.{name}"))?;
            }
        }
        Ok(())
    }

    fn wrong(&self, shape: &Shape, node: NodeId, path: &str) -> Result<(), DescriptorError> {
        let mismatch = self.mismatch(shape.expected(), node, path);
        let Shape::Word(words) = shape else { return self.faults.report(mismatch) };
        let written = self.document.string(node).unwrap_or_default();
        self.faults.report(mismatch.suggest(written, words.iter().map(|(word, _)| *word)))
    }

    fn mismatch(&self, expected: String, node: NodeId, path: &str) -> DescriptorError {
        let fault =
            Fault::SettingValue { path: path.to_owned(), found: self.found(node, &expected), expected };
        self.at(fault, node)
    }

    /// Value found, if it is short enough to show. A text in place of a mapping is not shown,
    /// because it may come from a different kind of file, for example a key file.
    fn found(&self, node: NodeId, expected: &str) -> String {
        const SHOWN: usize = 40;
        let kind = self.document.kind(node);
        match kind {
            Kind::Text(_) if expected == MAPPING => kind.name().to_owned(),
            Kind::Text(text) if is_blank(self.document.resolve(text)) => "an empty one".to_owned(),
            Kind::Bool(_) | Kind::Number(_) | Kind::Text(_) => {
                let text = self.document.display_text(node);
                let mut shown: String = text.chars().take(SHOWN).collect();
                if shown.len() < text.len() {
                    shown.push('…');
                }
                format!("`{shown}`")
            }
            Kind::Null | Kind::Instant(_) | Kind::List(_) | Kind::Map(_) => kind.name().to_owned(),
        }
    }

    fn at(&self, fault: Fault, node: NodeId) -> DescriptorError {
        DescriptorError::new(fault, Some(self.document.place(node)))
    }
}

/// Expected form of a section.
const MAPPING: &str = "a mapping";

impl Shape {
    /// Whether a scalar matches the shape.
    fn takes(&self, document: &Document, kind: &Kind) -> bool {
        let text = |kind: &Kind| match kind {
            Kind::Text(text) => document.resolve(text).to_owned(),
            Kind::Instant(instant) => instant.to_string(),
            Kind::Null | Kind::Bool(_) | Kind::Number(_) | Kind::List(_) | Kind::Map(_) => String::new(),
        };
        match self {
            Self::Text | Self::TextOr(_) => !is_blank(&text(kind)),
            Self::Flag | Self::Switch(_) => matches!(kind, Kind::Bool(_)),
            Self::Whole { least, most } => {
                matches!(kind, Kind::Number(number) if whole(*number, *least, *most))
            }
            Self::Share => matches!(kind, Kind::Number(number) if (0.0..=1.0).contains(number)),
            Self::Span => span(&text(kind)).is_some(),
            Self::Money => money(document, kind).is_some(),
            Self::Word(words) => words.iter().any(|(word, _)| *word == text(kind)),
            Self::Object => matches!(kind, Kind::Map(_)),
            Self::List(_) | Self::Named(_) | Self::Section(_) | Self::Kinds(_) | Self::Choice(_) => false,
        }
    }

    /// Expected form, for messages.
    fn expected(&self) -> String {
        match self {
            Self::Text => "a text".to_owned(),
            Self::Flag => "`true` or `false`".to_owned(),
            Self::Whole { least, .. } => format!("a whole number from {least} on"),
            Self::Share => "a number from 0 to 1".to_owned(),
            Self::Span => format!("a time with its unit, such as `90s`, `5m` or `1h`, or `{UNLIMITED}`"),
            Self::Money => "an amount from 0 on, such as `2.50`".to_owned(),
            Self::Word(words) => {
                let words: Vec<String> = words.iter().map(|(word, _)| format!("`{word}`")).collect();
                format!("one of {}", words.join(", "))
            }
            Self::List(_) => "a list".to_owned(),
            Self::Switch(_) => "`true`, `false` or a mapping".to_owned(),
            Self::TextOr(other) => format!("a text or {}", other.expected()),
            Self::Kinds(kinds) => format!("{}, a mapping with `type`", kinds.what),
            Self::Named(_) | Self::Section(_) | Self::Choice(_) | Self::Object => MAPPING.to_owned(),
        }
    }

    /// A checked value as JSON, without the notes of people (`x-…`) in its sections.
    pub(super) fn json(&self, document: &Document, node: NodeId) -> Json {
        let list =
            |items: &[NodeId], item: &Self| items.iter().map(|node| item.json(document, *node)).collect();
        let map = |entries: &[Entry], value: &dyn Fn(&str, NodeId) -> Option<Json>| {
            let entry = |entry: &Entry| {
                let name = document.resolve(&entry.key);
                Some((name.to_owned(), value(name, entry.value)?))
            };
            Json::Object(entries.iter().filter_map(entry).collect())
        };
        match (self, document.kind(node)) {
            (Self::Section(keys) | Self::Switch(keys), Kind::Map(entries)) => map(entries, &|name, node| {
                keys.iter().find(|key| key.name == name).map(|key| key.shape.json(document, node))
            }),
            (Self::Kinds(_) | Self::Choice(_), Kind::Map(entries)) => map(entries, &|name, node| {
                let is_note = name.starts_with("x-");
                (!is_note).then(|| plain(document, node))
            }),
            (Self::Named(shape), Kind::Map(entries)) => {
                map(entries, &|_, node| Some(shape.json(document, node)))
            }
            (Self::List(item), Kind::List(items)) => Json::Array(list(items, item)),
            (Self::TextOr(other), kind) if !matches!(kind, Kind::Text(_)) => other.json(document, node),
            _ => plain(document, node),
        }
    }

    /// Its JSON Schema.
    pub(super) fn schema(&self) -> Json {
        match self {
            Self::Text => json!({ "type": "string", "pattern": r"\S" }),
            Self::Flag => json!({ "type": "boolean" }),
            Self::Whole { least, most } => json!({ "type": "integer", "minimum": least, "maximum": most }),
            Self::Share => json!({ "type": "number", "minimum": 0, "maximum": 1 }),
            Self::Span => {
                json!({ "type": "string", "pattern": r"^(unlimited|[0-9]+(\.[0-9]+)?(ms|s|m|min|h))$" })
            }
            Self::Money => json!({ "type": ["number", "string"], "minimum": 0 }),
            Self::Word(words) => {
                let word = |(word, about): &(&str, &str)| json!({ "const": word, "description": about });
                json!({ "oneOf": words.iter().map(word).collect::<Vec<_>>() })
            }
            Self::List(item) => json!({ "type": "array", "items": item.schema() }),
            Self::Named(value) => json!({ "type": "object", "additionalProperties": value.schema() }),
            Self::Section(keys) => section_schema(keys),
            Self::Switch(keys) => json!({ "anyOf": [{ "type": "boolean" }, section_schema(keys)] }),
            Self::TextOr(other) => json!({ "anyOf": [Self::Text.schema(), other.schema()] }),
            Self::Kinds(kinds) => {
                json!({ "oneOf": kinds.kinds.iter().map(Variant::schema).collect::<Vec<_>>() })
            }
            Self::Choice(choice) => {
                let kind = |kind: &Variant| {
                    let mut schema = section_schema(kind.args);
                    if let Some(word) = schema.pointer_mut(&format!("/properties/{}", choice.key)) {
                        *word = json!({ "const": kind.name, "description": kind.about });
                    }
                    schema
                };
                json!({ "oneOf": choice.kinds.iter().map(kind).collect::<Vec<_>>() })
            }
            Self::Object => json!({ "type": "object" }),
        }
    }
}

fn plain(document: &Document, node: NodeId) -> Json {
    serde_json::to_value(Value::json_of(document, node)).unwrap_or_default()
}

impl Variant {
    fn schema(&self) -> Json {
        let mut needed = vec!["type"];
        if self.args.iter().any(|key| key.required) {
            needed.push("args");
        }
        json!({
            "type": "object",
            "description": self.about,
            "properties": {
                "type": { "const": self.name },
                "args": section_schema(self.args),
                "description": { "type": "string", "description": "Human-readable note." },
            },
            "required": needed,
            "additionalProperties": false,
            "patternProperties": { "^x-": true },
        })
    }
}

fn section_schema(keys: &[Key]) -> Json {
    let mut properties = serde_json::Map::new();
    for key in keys {
        let mut schema = key.shape.schema();
        if let Json::Object(schema) = &mut schema {
            schema.insert("description".to_owned(), key.about.into());
        }
        properties.insert(key.name.to_owned(), schema);
    }
    let needed: Vec<&str> = keys.iter().filter(|key| key.required).map(|key| key.name).collect();
    let mut schema = json!({
        "type": "object",
        "properties": properties,
        "additionalProperties": false,
        "patternProperties": { "^x-": true },
    });
    if let (Json::Object(schema), false) = (&mut schema, needed.is_empty()) {
        schema.insert("required".to_owned(), needed.into());
    }
    schema
}

#[expect(
    clippy::cast_precision_loss,
    reason = "limits beyond the exact range do not depend on the last digit"
)]
fn whole(number: f64, least: u32, most: u64) -> bool {
    number.fract() == 0.0 && number >= f64::from(least) && number <= most as f64
}

/// A limit of time, off when there is none.
pub(super) fn span(text: &str) -> Option<Switch<Millis>> {
    if text == UNLIMITED {
        return Some(Switch::Off);
    }
    text.parse().ok().filter(|span| *span > Millis(0)).map(Switch::On)
}

fn money(document: &Document, kind: &Kind) -> Option<Cost> {
    match kind {
        Kind::Number(number) => number.to_string().parse().ok(),
        Kind::Text(text) => document.resolve(text).parse().ok(),
        Kind::Null | Kind::Bool(_) | Kind::Instant(_) | Kind::List(_) | Kind::Map(_) => None,
    }
}
