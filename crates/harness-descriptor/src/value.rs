//! Values of contexts and results: JSON with ECMAScript's key order.

use std::collections::HashMap;
use std::fmt;
use std::sync::Arc;

use serde::de::{Deserialize, Deserializer, MapAccess, SeqAccess, Visitor};
use serde::ser::{Serialize, SerializeMap, SerializeSeq, Serializer};

use crate::canonical::for_each_json_piece;
use crate::number::{array_index, push_json_number};

/// A JSON value with double-precision numbers and mappings that keep their order.
///
/// Contexts are made of it, because templates print mappings in that order. Cloning is cheap for
/// strings.
#[derive(Clone, Debug, Default, PartialEq)]
#[non_exhaustive]
pub enum Value {
    /// `null`.
    #[default]
    Null,
    /// `true` or `false`.
    Bool(bool),
    /// A number; not-a-number and infinities serialize as `null`.
    Number(f64),
    /// Text, shared.
    String(Arc<str>),
    /// Values in order.
    List(Vec<Value>),
    /// Keys and values in order.
    Map(Map),
}

/// A mapping in ECMAScript property order.
///
/// Keys that are array indexes (`0`, `17`) come first in numeric order, all others in the order
/// of their first insertion.
#[derive(Clone, Debug, Default)]
pub struct Map {
    entries: Vec<(Arc<str>, Value)>,
}

impl PartialEq for Map {
    /// Equal keys with equal values, in any order.
    fn eq(&self, other: &Self) -> bool {
        self.len() == other.len() && self.iter().all(|(key, value)| other.get(key) == Some(value))
    }
}

impl Value {
    /// The string, if it is one.
    pub fn as_str(&self) -> Option<&str> {
        match self {
            Self::String(text) => Some(text),
            Self::Null | Self::Bool(_) | Self::Number(_) | Self::List(_) | Self::Map(_) => None,
        }
    }

    /// The boolean, if it is one.
    pub fn as_bool(&self) -> Option<bool> {
        match self {
            Self::Bool(value) => Some(*value),
            Self::Null | Self::Number(_) | Self::String(_) | Self::List(_) | Self::Map(_) => None,
        }
    }

    /// The items, if it is a list.
    pub fn as_list(&self) -> Option<&[Value]> {
        match self {
            Self::List(items) => Some(items),
            Self::Null | Self::Bool(_) | Self::Number(_) | Self::String(_) | Self::Map(_) => None,
        }
    }

    /// The mapping, if it is one.
    pub fn as_map(&self) -> Option<&Map> {
        match self {
            Self::Map(map) => Some(map),
            Self::Null | Self::Bool(_) | Self::Number(_) | Self::String(_) | Self::List(_) => None,
        }
    }

    /// The value of a key, if it is a mapping that has it.
    pub fn get(&self, key: &str) -> Option<&Value> {
        self.as_map()?.get(key)
    }

    /// Kind of the value, for messages.
    pub(crate) fn kind_name(&self) -> &'static str {
        match self {
            Self::Null => "null",
            Self::Bool(_) => "a boolean",
            Self::Number(_) => "a number",
            Self::String(_) => "a string",
            Self::List(_) => "a list",
            Self::Map(_) => "a mapping",
        }
    }

    /// Appends the value as JSON without white space.
    pub(crate) fn push_json(&self, out: &mut String) {
        match self {
            Self::Null => out.push_str("null"),
            Self::Bool(value) => out.push_str(if *value { "true" } else { "false" }),
            Self::Number(number) => push_json_number(out, *number),
            Self::String(text) => push_json_string(out, text),
            Self::List(items) => {
                out.push('[');
                for (at, item) in items.iter().enumerate() {
                    if at > 0 {
                        out.push(',');
                    }
                    item.push_json(out);
                }
                out.push(']');
            }
            Self::Map(map) => {
                out.push('{');
                for (at, (key, value)) in map.iter().enumerate() {
                    if at > 0 {
                        out.push(',');
                    }
                    push_json_string(out, key);
                    out.push(':');
                    value.push_json(out);
                }
                out.push('}');
            }
        }
    }
}

fn push_json_string(out: &mut String, text: &str) {
    out.push('"');
    for_each_json_piece(text, |piece| out.push_str(piece));
    out.push('"');
}

/// JSON without white space.
impl fmt::Display for Value {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let mut json = String::new();
        self.push_json(&mut json);
        f.write_str(&json)
    }
}

impl Map {
    /// An empty mapping.
    pub fn new() -> Self {
        Self::default()
    }

    /// The number of keys.
    pub fn len(&self) -> usize {
        self.entries.len()
    }

    /// Whether there is no key.
    pub fn is_empty(&self) -> bool {
        self.entries.is_empty()
    }

    /// The value of a key.
    pub fn get(&self, key: &str) -> Option<&Value> {
        self.entries.iter().find(|(known, _)| **known == *key).map(|(_, value)| value)
    }

    /// The value of a key, to change it.
    pub fn get_mut(&mut self, key: &str) -> Option<&mut Value> {
        self.entries.iter_mut().find(|(known, _)| **known == *key).map(|(_, value)| value)
    }

    /// The keys and values in order.
    pub fn iter(&self) -> impl Iterator<Item = (&str, &Value)> {
        self.entries.iter().map(|(key, value)| (&**key, value))
    }

    /// Sets a key; a known key keeps its position.
    pub fn insert(&mut self, key: impl Into<Arc<str>>, value: Value) {
        let key = key.into();
        match self.get_mut(&key) {
            Some(known) => *known = value,
            None => self.insert_new(key, value),
        }
    }

    fn insert_new(&mut self, key: Arc<str>, value: Value) {
        let at = match array_index(&key) {
            None => self.entries.len(),
            Some(new) => self
                .entries
                .iter()
                .position(|(known, _)| array_index(known).is_none_or(|known| known > new))
                .unwrap_or(self.entries.len()),
        };
        self.entries.insert(at, (key, value));
    }

    pub(crate) fn values_mut(&mut self) -> impl Iterator<Item = &mut Value> {
        self.entries.iter_mut().map(|(_, value)| value)
    }

    /// Builds a map from entries with unique keys in property order.
    pub(crate) fn from_unique(entries: Vec<(Arc<str>, Value)>) -> Self {
        Self { entries }
    }
}

impl FromIterator<(Arc<str>, Value)> for Map {
    /// The last of several values of one key wins and takes the first one's position.
    fn from_iter<I: IntoIterator<Item = (Arc<str>, Value)>>(entries: I) -> Self {
        let mut unique: Vec<(Arc<str>, Value)> = Vec::new();
        let mut positions: HashMap<Arc<str>, usize> = HashMap::new();
        for (key, value) in entries {
            if let Some((_, known)) = positions.get(&key).and_then(|at| unique.get_mut(*at)) {
                *known = value;
            } else {
                positions.insert(Arc::clone(&key), unique.len());
                unique.push((key, value));
            }
        }
        unique.sort_by_key(|(key, _)| array_index(key).map_or(u64::MAX, u64::from));
        Self { entries: unique }
    }
}

impl From<&str> for Value {
    fn from(text: &str) -> Self {
        Self::String(text.into())
    }
}

impl From<bool> for Value {
    fn from(value: bool) -> Self {
        Self::Bool(value)
    }
}

impl From<f64> for Value {
    fn from(number: f64) -> Self {
        Self::Number(number)
    }
}

impl Serialize for Value {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        match self {
            Self::Null => serializer.serialize_unit(),
            Self::Bool(value) => serializer.serialize_bool(*value),
            Self::Number(number) => serialize_number(*number, serializer),
            Self::String(text) => serializer.serialize_str(text),
            Self::List(items) => {
                let mut list = serializer.serialize_seq(Some(items.len()))?;
                items.iter().try_for_each(|item| list.serialize_element(item))?;
                list.end()
            }
            Self::Map(map) => {
                let mut entries = serializer.serialize_map(Some(map.len()))?;
                map.iter().try_for_each(|(key, value)| entries.serialize_entry(key, value))?;
                entries.end()
            }
        }
    }
}

/// Whole numbers in the exact range are written without a fraction, as ECMAScript writes them.
fn serialize_number<S: Serializer>(number: f64, serializer: S) -> Result<S::Ok, S::Error> {
    const EXACT: f64 = 9_007_199_254_740_992.0;
    if !number.is_finite() {
        serializer.serialize_unit()
    } else if number.fract() == 0.0 && number.abs() <= EXACT {
        #[expect(clippy::cast_possible_truncation, reason = "whole and within the exact range")]
        serializer.serialize_i64(number as i64)
    } else {
        serializer.serialize_f64(number)
    }
}

impl<'de> Deserialize<'de> for Value {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        deserializer.deserialize_any(ValueVisitor)
    }
}

struct ValueVisitor;

impl<'de> Visitor<'de> for ValueVisitor {
    type Value = Value;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a JSON value")
    }

    fn visit_unit<E>(self) -> Result<Value, E> {
        Ok(Value::Null)
    }

    fn visit_none<E>(self) -> Result<Value, E> {
        Ok(Value::Null)
    }

    fn visit_some<D: Deserializer<'de>>(self, deserializer: D) -> Result<Value, D::Error> {
        Deserialize::deserialize(deserializer)
    }

    fn visit_bool<E>(self, value: bool) -> Result<Value, E> {
        Ok(Value::Bool(value))
    }

    #[expect(clippy::cast_precision_loss, reason = "numbers are doubles here, as documented")]
    fn visit_i64<E>(self, number: i64) -> Result<Value, E> {
        Ok(Value::Number(number as f64))
    }

    #[expect(clippy::cast_precision_loss, reason = "numbers are doubles here, as documented")]
    fn visit_u64<E>(self, number: u64) -> Result<Value, E> {
        Ok(Value::Number(number as f64))
    }

    fn visit_f64<E>(self, number: f64) -> Result<Value, E> {
        Ok(Value::Number(number))
    }

    fn visit_str<E>(self, text: &str) -> Result<Value, E> {
        Ok(text.into())
    }

    fn visit_seq<A: SeqAccess<'de>>(self, mut access: A) -> Result<Value, A::Error> {
        let mut items = Vec::new();
        while let Some(item) = access.next_element()? {
            items.push(item);
        }
        Ok(Value::List(items))
    }

    fn visit_map<A: MapAccess<'de>>(self, mut access: A) -> Result<Value, A::Error> {
        let mut entries: Vec<(Arc<str>, Value)> = Vec::new();
        while let Some((key, value)) = access.next_entry::<String, Value>()? {
            entries.push((key.into(), value));
        }
        Ok(Value::Map(entries.into_iter().collect()))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[track_caller]
    fn check(json: &str, expected: &str) {
        let value: Value = serde_json::from_str(json).unwrap();
        assert_eq!(value.to_string(), expected);
        assert_eq!(serde_json::from_str::<Value>(&serde_json::to_string(&value).unwrap()).unwrap(), value);
    }

    #[test]
    fn keys_keep_property_order() {
        check(r#"{"b":1,"10":2,"a":3,"9":4,"01":5}"#, r#"{"9":4,"10":2,"b":1,"a":3,"01":5}"#);
        check(r#"{"b":1,"a":2,"b":3}"#, r#"{"b":3,"a":2}"#);
    }

    #[test]
    fn numbers_are_written_as_ecmascript_does() {
        check("[1.0,-0.0,1e21,1e-7,123456789012345680000]", "[1,0,1e+21,1e-7,123456789012345680000]");
    }

    #[test]
    fn inserted_indexes_find_their_place() {
        let mut map = Map::new();
        for key in ["x", "10", "2", "y", "3"] {
            map.insert(key, Value::Null);
        }
        assert_eq!(Value::Map(map).to_string(), r#"{"2":null,"3":null,"10":null,"x":null,"y":null}"#);
    }
}
