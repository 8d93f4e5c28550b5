//! Any JSON object, its keys in their order, its values exact.

use harness_core::Json;
use serde::de::Error as _;
use serde::ser::SerializeMap;
use serde::{Deserialize, Deserializer, Serialize, Serializer};

/// An object of any shape.
#[derive(Clone, Debug, Default)]
pub(crate) struct Fields(Vec<(String, Json)>);

impl Fields {
    pub(crate) fn get(&self, key: &str) -> Option<&Json> {
        self.0.iter().find(|(known, _)| known == key).map(|(_, value)| value)
    }

    /// The value of a key, when it is a text.
    pub(crate) fn text(&self, key: &str) -> Option<String> {
        self.get(key)?.to().ok()
    }

    pub(crate) fn take(&mut self, key: &str) -> Option<Json> {
        let at = self.0.iter().position(|(known, _)| known == key)?;
        Some(self.0.remove(at).1)
    }

    /// Sets the value of a key, in its place if it exists, else at the end.
    pub(crate) fn set(&mut self, key: &str, value: Json) {
        match self.0.iter_mut().find(|(known, _)| known == key) {
            Some((_, known)) => *known = value,
            None => self.0.push((key.to_owned(), value)),
        }
    }

    /// Gives a key its value, when there is one.
    pub(crate) fn set_some(&mut self, key: &str, value: Option<Json>) {
        if let Some(value) = value {
            self.set(key, value);
        }
    }

    pub(crate) fn set_text(&mut self, key: &str, text: &str) {
        self.set(key, Json::string(text));
    }

    /// Puts the fields of another object behind these.
    pub(crate) fn extend(&mut self, other: Self) {
        self.0.extend(other.0);
    }
}

impl<'de> Deserialize<'de> for Fields {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        Json::deserialize(deserializer)?.entries().map(Self).map_err(D::Error::custom)
    }
}

impl Serialize for Fields {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let mut map = serializer.serialize_map(Some(self.0.len()))?;
        for (key, value) in &self.0 {
            map.serialize_entry(key, value)?;
        }
        map.end()
    }
}
