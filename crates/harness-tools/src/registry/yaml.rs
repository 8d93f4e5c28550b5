//! The YAML library, behind a tree of our own. No other module knows it.

use std::fmt;

use harness_core::Json;
use harness_core::bracket_depth;
use serde::de::{
    DeserializeSeed, Deserializer, EnumAccess, Error as _, IgnoredAny, MapAccess, SeqAccess, Visitor,
};
use serde_yaml::Value;

use crate::error::Place;

/// A YAML node. Mappings keep the order of the file.
#[derive(Clone, Debug, PartialEq)]
pub(crate) enum Node {
    Null,
    Bool(bool),
    /// A number: its text, and its value if it is a whole number from 0.
    Number(String, Option<u64>),
    Text(String),
    List(Vec<Node>),
    Map(Vec<(String, Node)>),
    /// A node with a tag, or a mapping with a key that is no scalar.
    Other,
}

/// One step from a node to one of its children.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Step {
    Key(String),
    Index(usize),
}

/// Which of a mapping's entry a place is asked for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Part {
    Key,
    Value,
}

/// Levels of brackets, at most.
const MOST_LEVELS: usize = 1_000;

/// Why a text is not YAML.
#[derive(Debug)]
pub(crate) struct NotYaml {
    pub(crate) place: Option<Place>,
    pub(crate) problem: String,
    pub(crate) hint: &'static str,
}

/// Reads one document; merge keys (`<<`) are resolved.
pub(crate) fn parse(text: &str) -> Result<Node, NotYaml> {
    // The parser's time grows with the square of the depth before it finds that there is too much of it.
    if bracket_depth(text) > MOST_LEVELS {
        let problem = format!("it nests deeper than {MOST_LEVELS} levels");
        return Err(NotYaml { place: None, problem, hint: "write it with fewer levels" });
    }
    let mut value: Value = serde_yaml::from_str(text).map_err(|e| not_yaml(&e))?;
    value.apply_merge().map_err(|e| not_yaml(&e))?;
    Ok(node(value))
}

fn not_yaml(error: &serde_yaml::Error) -> NotYaml {
    let problem = error.to_string();
    // The place is told beside the text.
    let problem = problem.split(" at line ").next().unwrap_or_default().to_owned();
    let hint = if problem.contains("duplicate entry") {
        "keep only one of them"
    } else if problem.contains("more than one document") {
        "keep one document in the file"
    } else if problem.contains("limit exceeded") {
        "write it with fewer aliases and levels"
    } else {
        "check indentation and quotes at that place"
    };
    NotYaml { place: place_of(error), problem, hint }
}

fn place_of(error: &serde_yaml::Error) -> Option<Place> {
    error.location().map(|at| Place { line: at.line(), column: at.column() })
}

fn node(value: Value) -> Node {
    match value {
        Value::Null => Node::Null,
        Value::Bool(value) => Node::Bool(value),
        Value::Number(number) => Node::Number(number.to_string(), number.as_u64()),
        Value::String(text) => Node::Text(text),
        Value::Sequence(list) => Node::List(list.into_iter().map(node).collect()),
        Value::Mapping(map) => {
            let entries = map.into_iter().map(|(key, value)| Some((key_text(key)?, node(value))));
            entries.collect::<Option<_>>().map_or(Node::Other, Node::Map)
        }
        Value::Tagged(_) => Node::Other,
    }
}

fn key_text(key: Value) -> Option<String> {
    match key {
        Value::String(text) => Some(text),
        Value::Number(number) => Some(number.to_string()),
        Value::Bool(value) => Some(value.to_string()),
        Value::Null | Value::Sequence(_) | Value::Mapping(_) | Value::Tagged(_) => None,
    }
}

impl Node {
    /// What it is, for messages: `a list`.
    pub(crate) fn kind(&self) -> &'static str {
        match self {
            Self::Null => "nothing",
            Self::Bool(_) => "a boolean",
            Self::Number(..) => "a number",
            Self::Text(_) => "a text",
            Self::List(_) => "a list",
            Self::Map(_) => "a mapping",
            Self::Other => "a value with a tag or a key that is no text",
        }
    }

    pub(crate) fn as_bool(&self) -> Option<bool> {
        if let Self::Bool(value) = self { Some(*value) } else { None }
    }

    pub(crate) fn as_text(&self) -> Option<&str> {
        if let Self::Text(text) = self { Some(text) } else { None }
    }

    pub(crate) fn as_list(&self) -> Option<&[Node]> {
        if let Self::List(items) = self { Some(items) } else { None }
    }

    pub(crate) fn as_map(&self) -> Option<&[(String, Node)]> {
        if let Self::Map(entries) = self { Some(entries) } else { None }
    }

    /// The node as JSON; `None` where JSON has no such value (tags, infinity, not-a-number).
    pub(crate) fn to_json(&self) -> Option<Json> {
        let mut text = String::new();
        self.write_json(&mut text)?;
        Json::parse(&text).ok()
    }

    fn write_json(&self, out: &mut String) -> Option<()> {
        match self {
            Self::Null => out.push_str("null"),
            Self::Bool(value) => out.push_str(if *value { "true" } else { "false" }),
            Self::Number(text, _) => out.push_str(Json::parse(text).ok()?.text()),
            Self::Text(text) => out.push_str(Json::string(text).text()),
            Self::List(items) => {
                out.push('[');
                for (i, item) in items.iter().enumerate() {
                    out.push_str(if i == 0 { "" } else { "," });
                    item.write_json(out)?;
                }
                out.push(']');
            }
            Self::Map(entries) => {
                out.push('{');
                for (i, (key, value)) in entries.iter().enumerate() {
                    out.push_str(if i == 0 { "" } else { "," });
                    out.push_str(Json::string(key).text());
                    out.push(':');
                    value.write_json(out)?;
                }
                out.push('}');
            }
            Self::Other => return None,
        }
        Some(())
    }
}

/// Where the node at `path` begins, or its key; where there is no such node, its nearest parent.
///
/// The library tells places only in errors. So this reads the text once more with a reader that fails
/// when it arrives: slow, but only asked for faults, whose number is bounded.
pub(crate) fn place(text: &str, path: &[Step], part: Part) -> Option<Place> {
    let reader = serde_yaml::Deserializer::from_str(text);
    let error = Seek { path, part }.deserialize(reader).err()?;
    place_of(&error)
}

/// Descends along a path and fails at its end.
#[derive(Clone, Copy)]
struct Seek<'a> {
    path: &'a [Step],
    part: Part,
}

const ARRIVED: &str = "arrived";

impl<'de> DeserializeSeed<'de> for Seek<'_> {
    type Value = ();

    fn deserialize<D: Deserializer<'de>>(self, reader: D) -> Result<(), D::Error> {
        reader.deserialize_any(self)
    }
}

/// Every value that is not on the way is an arrival: either the end of the path or its nearest parent.
impl<'de> Visitor<'de> for Seek<'_> {
    type Value = ();

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(ARRIVED)
    }

    fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<(), A::Error> {
        let Some((Step::Key(wanted), rest)) = self.path.split_first() else {
            return Err(A::Error::custom(ARRIVED));
        };
        let stop = rest.is_empty() && self.part == Part::Key;
        while let Some(found) = map.next_key_seed(KeyIs { wanted, stop })? {
            if found {
                return map.next_value_seed(Self { path: rest, part: self.part });
            }
            map.next_value::<IgnoredAny>()?;
        }
        Err(A::Error::custom(ARRIVED))
    }

    fn visit_seq<A: SeqAccess<'de>>(self, mut list: A) -> Result<(), A::Error> {
        let Some((Step::Index(wanted), rest)) = self.path.split_first() else {
            return Err(A::Error::custom(ARRIVED));
        };
        for _ in 0..*wanted {
            list.next_element::<IgnoredAny>()?;
        }
        list.next_element_seed(Self { path: rest, part: self.part })?;
        Err(A::Error::custom(ARRIVED))
    }

    fn visit_enum<A: EnumAccess<'de>>(self, _: A) -> Result<(), A::Error> {
        Err(A::Error::custom(ARRIVED))
    }
}

/// Whether a key is the wanted one; fails there if the search is to stop at it.
struct KeyIs<'a> {
    wanted: &'a str,
    stop: bool,
}

impl KeyIs<'_> {
    fn matches<E: serde::de::Error>(&self, key: &str) -> Result<bool, E> {
        match (key == self.wanted, self.stop) {
            (true, true) => Err(E::custom(ARRIVED)),
            (found, _) => Ok(found),
        }
    }
}

impl<'de> DeserializeSeed<'de> for KeyIs<'_> {
    type Value = bool;

    fn deserialize<D: Deserializer<'de>>(self, reader: D) -> Result<bool, D::Error> {
        reader.deserialize_str(self)
    }
}

impl Visitor<'_> for KeyIs<'_> {
    type Value = bool;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a key")
    }

    fn visit_str<E: serde::de::Error>(self, key: &str) -> Result<bool, E> {
        self.matches(key)
    }
}
