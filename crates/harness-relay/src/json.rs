//! Looking into JSON of others, one level at a time; values keep their exact text.

use harness_core::Json;
use serde::Serialize;
use serde::ser::SerializeMap as _;

use harness_adapters::lenient_text;

/// An object as its entries; the last one of a repeated key counts.
#[derive(Clone, Debug, Default)]
pub(super) struct Object(Vec<(String, Json)>);

impl Object {
    /// The entries of an object; `None` for any other value.
    pub(super) fn of(value: &Json) -> Option<Self> {
        value.entries().ok().map(Self)
    }

    /// The entries of the text of an object.
    pub(super) fn parse(text: &str) -> Option<Self> {
        Self::of(&Json::parse(text).ok()?)
    }

    pub(super) fn get(&self, key: &str) -> Option<&Json> {
        self.0.iter().rev().find(|(known, _)| known == key).map(|(_, value)| value)
    }

    /// The value when it is there and not null.
    pub(super) fn present(&self, key: &str) -> Option<&Json> {
        self.get(key).filter(|value| !value.is_null())
    }

    /// A text. Half a character in it becomes a mark.
    pub(super) fn text(&self, key: &str) -> Option<String> {
        lenient_text(self.get(key)?)
    }

    /// A text that holds more than white space.
    pub(super) fn written(&self, key: &str) -> Option<String> {
        self.text(key).filter(|text| !text.trim().is_empty())
    }

    pub(super) fn object(&self, key: &str) -> Option<Self> {
        Self::of(self.get(key)?)
    }

    /// The objects of a list; other values in it are left out.
    pub(super) fn objects(&self, key: &str) -> Vec<Self> {
        let list: Vec<Json> = self.get(key).and_then(|list| list.to().ok()).unwrap_or_default();
        list.iter().filter_map(Self::of).collect()
    }

    /// Sets a key, and keeps its place.
    pub(super) fn set(&mut self, key: &str, value: Json) {
        match self.0.iter().rposition(|(known, _)| known == key).and_then(|at| self.0.get_mut(at)) {
            Some((_, old)) => *old = value,
            None => self.0.push((key.to_owned(), value)),
        }
    }

    pub(super) fn entries(&self) -> impl Iterator<Item = (&str, &Json)> {
        self.0.iter().map(|(key, value)| (key.as_str(), value))
    }

    pub(super) fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// The object as a value.
    pub(super) fn json(&self) -> Json {
        Json::of(self).unwrap_or_default()
    }
}

impl Serialize for Object {
    fn serialize<S: serde::Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let mut map = serializer.serialize_map(Some(self.0.len()))?;
        for (key, value) in &self.0 {
            map.serialize_entry(key, value)?;
        }
        map.end()
    }
}

impl<'a> FromIterator<(&'a str, Json)> for Object {
    fn from_iter<I: IntoIterator<Item = (&'a str, Json)>>(entries: I) -> Self {
        Self(entries.into_iter().map(|(key, value)| (key.to_owned(), value)).collect())
    }
}
