//! Shapes of settings: one table for validation, editor support and meaning.

use harness_core::Millis;
use harness_core::message::Cost;
use harness_diagnostics::document::{Document, Entry, Kind, NodeId};
use harness_diagnostics::{Codes, Fields, Findings, Item};
use serde_json::{Value as Json, json};

use super::section::Switch;
use crate::error::DescriptorError;
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

/// Codes of the errors of settings.
const CODES: Codes = Codes {
    unknown: "descriptor.unknown_setting",
    missing: "descriptor.missing_setting",
    invalid: "descriptor.setting",
};

impl Shape {
    /// Reports everything in a value, which messages call `path`, that does not have this shape. Whether the value has
    /// the shape.
    pub(super) fn check(
        &self,
        document: &Document,
        node: NodeId,
        path: &str,
        faults: &Faults,
    ) -> Result<bool, DescriptorError> {
        let findings = Findings::new(document, CODES);
        self.visit(&Item::at(&findings, node, path));
        let found = findings.into_diagnostics();
        let has_shape = found.is_empty();
        found
            .into_iter()
            .try_for_each(|diagnostic| faults.report(DescriptorError::of_setting(diagnostic)))?;
        Ok(has_shape)
    }

    fn visit(&self, item: &Item<'_>) {
        let text = item.as_str();
        match (self, item.kind()) {
            (Self::Switch(_), Kind::Bool(_)) | (Self::Object, Kind::Map(_)) => {}
            (Self::Section(keys), _) | (Self::Switch(keys), Kind::Map(_)) => section(keys, item),
            (Self::Kinds(kinds), Kind::Map(_)) => kinds.visit(item),
            (Self::Choice(choice), _) => choice.visit(item),
            (Self::List(shape), _) => item.items("a list", "").iter().for_each(|item| shape.visit(item)),
            (Self::Named(shape), _) => {
                let Some(fields) = item.section("") else { return };
                fields.keys().filter_map(|name| fields.item(name)).for_each(|item| shape.visit(&item));
            }
            (Self::TextOr(other), Kind::Map(_)) => other.visit(item),
            (Self::Word(words), _) => {
                let words: Vec<(&str, ())> = words.iter().map(|(word, _)| (*word, ())).collect();
                item.one_of(&words);
            }
            (Self::Flag, _) => _ = item.flag(),
            (Self::Text, _) if text.is_none() => _ = item.text(),
            (Self::Whole { least, most }, _) => _ = item.whole((*least).into(), *most),
            (Self::Text | Self::TextOr(_), _) if text.is_some_and(|text| !is_blank(text)) => {}
            (Self::Share, Kind::Number(number)) if (0.0..=1.0).contains(number) => {}
            (Self::Span, _) if text.is_some_and(|text| span(text).is_some()) => {}
            (Self::Money, Kind::Number(number)) if number.to_string().parse::<Cost>().is_ok() => {}
            (Self::Money, _) if text.is_some_and(|text| text.parse::<Cost>().is_ok()) => {}
            (Self::Text, _) => item.expected("a text", ""),
            (Self::Share, _) => item.expected("a number from 0 to 1", ""),
            (Self::Span, _) => {
                let what = format!("a time with its unit, such as `90s`, `5m` or `1h`, or `{UNLIMITED}`");
                item.expected(&what, "");
            }
            (Self::Money, _) => item.expected("an amount from 0 on, such as `2.50`", ""),
            (Self::Switch(_), _) => item.expected("`true`, `false` or a mapping", ""),
            (Self::TextOr(_), _) => item.expected("a text or a mapping", ""),
            (Self::Kinds(kinds), _) => item.expected(&format!("{}, a mapping with `type`", kinds.what), ""),
            (Self::Object, _) => item.expected("a mapping", ""),
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

/// Checks the keys of a section.
fn section(keys: &[Key], item: &Item<'_>) {
    let Some(fields) = item.section("") else { return };
    let names: Vec<&str> = keys.iter().map(|key| key.name).collect();
    fields.known_or_notes(&names);
    for key in keys {
        match fields.item(key.name) {
            Some(item) => key.shape.visit(&item),
            None if key.required => fields.missing(key.name, ""),
            None => {}
        }
    }
}

/// The kind that the value of a key names; `None`, reported, without one.
fn kind_of(kinds: &'static [Variant], fields: &Fields<'_>, key: &str) -> Option<&'static Variant> {
    let Some(word) = fields.item(key) else {
        fields.missing(key, "");
        return None;
    };
    let words: Vec<(&str, &Variant)> = kinds.iter().map(|kind| (kind.name, kind)).collect();
    word.one_of(&words)
}

impl Kinds {
    fn visit(&self, item: &Item<'_>) {
        let Some(fields) = item.section("") else { return };
        let Some(kind) = kind_of(self.kinds, &fields, "type") else { return };
        fields.known_or_notes(&["type", "args", "description"]);
        if let Some(note) = fields.item("description") {
            Shape::Text.visit(&note);
        }
        match (fields.item("args"), kind.args.iter().find(|key| key.required)) {
            (Some(args), _) => section(kind.args, &args),
            (None, Some(key)) => fields.missing(&format!("args.{}", key.name), ""),
            (None, None) => {}
        }
    }
}

impl Choice {
    fn visit(&self, item: &Item<'_>) {
        let Some(fields) = item.section("") else { return };
        if let Some(kind) = kind_of(self.kinds, &fields, self.key) {
            return section(kind.args, item);
        }
        // Which keys there may be is not known, but what those of any kind hold is.
        for name in fields.keys().filter(|name| *name != self.key) {
            let key = self.kinds.iter().flat_map(|kind| kind.args).find(|key| key.name == name);
            if let Some((key, item)) = key.zip(fields.item(name)) {
                key.shape.visit(&item);
            }
        }
    }
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

/// A limit of time, off when there is none.
pub(super) fn span(text: &str) -> Option<Switch<Millis>> {
    if text == UNLIMITED {
        return Some(Switch::Off);
    }
    text.parse().ok().filter(|span| *span > Millis(0)).map(Switch::On)
}
