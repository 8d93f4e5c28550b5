//! JSON as a tree that keeps the order of keys and the text of numbers.

use harness_core::Json;
use serde::{Serialize, Serializer};

/// Below this depth a value stays the text that it is.
const MAX_DEPTH: usize = 128;

/// Below this depth a value replaces another instead of being merged into it.
const MERGE_DEPTH: usize = 32;

/// Keys that name no data in JavaScript; they are never taken over.
const NO_DATA: [&str; 2] = ["__proto__", "constructor"];

/// A JSON value.
#[derive(Clone, Debug, PartialEq)]
pub(crate) enum Tree {
    /// A number, `true`, `false`, `null`, or a value that is too deep to be taken apart.
    Leaf(Json),
    /// String value.
    Text(String),
    /// List of values.
    List(Vec<Self>),
    /// An object, its keys in order and each once.
    Object(Vec<(String, Self)>),
}

impl Tree {
    /// Takes a value apart. Of keys that occur twice the last value counts, in the place of the first.
    pub(crate) fn of(json: &Json) -> Self {
        Self::at_depth(json, 0)
    }

    fn at_depth(json: &Json, depth: usize) -> Self {
        if depth >= MAX_DEPTH {
            return Self::Leaf(json.clone());
        }
        let tree = match json.text().chars().next() {
            Some('"') => json.to().map(Self::Text),
            Some('[') => json
                .to::<Vec<Json>>()
                .map(|list| Self::List(list.iter().map(|value| Self::at_depth(value, depth + 1)).collect())),
            Some('{') => json.entries().map(|entries| {
                let mut object = Vec::new();
                for (key, value) in entries {
                    put(&mut object, key, Self::at_depth(&value, depth + 1));
                }
                Self::Object(object)
            }),
            _ => Ok(Self::Leaf(json.clone())),
        };
        tree.unwrap_or_else(|_| Self::Leaf(json.clone()))
    }

    /// The value as JSON.
    pub(crate) fn json(&self) -> Json {
        Json::of(self).unwrap_or_default()
    }

    /// The value as JSON text, indented by two spaces.
    pub(crate) fn pretty(&self) -> String {
        serde_json::to_string_pretty(self).unwrap_or_default()
    }

    /// Whether there is nothing in it: an empty text, list or object, or `null`.
    pub(crate) fn is_empty(&self) -> bool {
        match self {
            Self::Leaf(json) => json.is_null(),
            Self::Text(text) => text.is_empty(),
            Self::List(list) => list.is_empty(),
            Self::Object(entries) => entries.is_empty(),
        }
    }

    /// Merges `update` into this value: objects are merged key by key, anything else is replaced. Keys that name no
    /// data are omitted.
    pub(crate) fn merged(self, update: Self) -> Self {
        merged(self, update.cleaned(), 0)
    }

    /// The value without keys that name no data.
    fn cleaned(self) -> Self {
        match self {
            Self::Object(entries) => Self::Object(
                entries
                    .into_iter()
                    .filter(|(key, _)| !NO_DATA.contains(&key.as_str()))
                    .map(|(key, value)| (key, value.cleaned()))
                    .collect(),
            ),
            Self::List(list) => Self::List(list.into_iter().map(Self::cleaned).collect()),
            Self::Leaf(_) | Self::Text(_) => self,
        }
    }
}

fn merged(old: Tree, new: Tree, depth: usize) -> Tree {
    match (old, new) {
        (Tree::Object(mut entries), Tree::Object(update)) if depth < MERGE_DEPTH => {
            for (key, value) in update {
                let there = entries.iter_mut().find(|(known, _)| *known == key);
                if let Some((_, slot)) = there {
                    let old = std::mem::replace(slot, Tree::List(Vec::new()));
                    *slot = merged(old, value, depth + 1);
                } else {
                    entries.push((key, value));
                }
            }
            Tree::Object(entries)
        }
        (_, new) => new,
    }
}

/// Sets a key of an object.
pub(crate) fn put(object: &mut Vec<(String, Tree)>, key: String, value: Tree) {
    match object.iter_mut().find(|(known, _)| *known == key) {
        Some((_, slot)) => *slot = value,
        None => object.push((key, value)),
    }
}

impl Serialize for Tree {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        match self {
            Self::Leaf(json) => json.serialize(serializer),
            Self::Text(text) => serializer.serialize_str(text),
            Self::List(list) => serializer.collect_seq(list),
            Self::Object(entries) => serializer.collect_map(entries.iter().map(|(key, value)| (key, value))),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[track_caller]
    fn check(old: &str, update: &str, expected: &str) {
        let tree = |text: &str| Tree::of(&Json::parse(text).unwrap());
        assert_eq!(tree(old).merged(tree(update)).json().text(), expected);
    }

    #[test]
    fn objects_merge_and_everything_else_replaces() {
        check(r#"{"a":{"x":1},"b":[1,2]}"#, r#"{"a":{"y":2},"b":[3]}"#, r#"{"a":{"x":1,"y":2},"b":[3]}"#);
        check(r#"{"a":1}"#, r#"{"a":{"b":2}}"#, r#"{"a":{"b":2}}"#);
        check(r#"{"a":{"b":2}}"#, r#"{"a":null}"#, r#"{"a":null}"#);
        check("3", r#"{"a":1}"#, r#"{"a":1}"#);
    }

    #[test]
    fn numbers_and_the_order_of_keys_are_kept() {
        check(
            r#"{"z":1.10,"a":9007199254740993}"#,
            r#"{"m":1e400}"#,
            r#"{"z":1.10,"a":9007199254740993,"m":1e400}"#,
        );
        check("{}", r#"{"k":1,"j":2,"k":3}"#, r#"{"k":3,"j":2}"#);
    }

    #[test]
    fn keys_that_are_no_data_are_left_out_at_every_depth() {
        let update = r#"{"__proto__":1,"a":{"constructor":{},"list":[{"__proto__":2,"k":3}]}}"#;
        check("{}", update, r#"{"a":{"list":[{"k":3}]}}"#);
    }

    #[test]
    fn below_depth_32_a_value_replaces() {
        let nested =
            |inner: &str, depth: usize| format!("{}{inner}{}", r#"{"k":"#.repeat(depth), "}".repeat(depth));
        check(&nested(r#"{"a":1}"#, 31), &nested(r#"{"b":2}"#, 31), &nested(r#"{"a":1,"b":2}"#, 31));
        check(&nested(r#"{"a":1}"#, 32), &nested(r#"{"b":2}"#, 32), &nested(r#"{"b":2}"#, 32));
    }

    #[test]
    fn a_value_however_deep_is_kept_whole() {
        let deep = format!("{}1{}", "[".repeat(5_000), "]".repeat(5_000));
        check("{}", &deep, &deep);
    }
}
