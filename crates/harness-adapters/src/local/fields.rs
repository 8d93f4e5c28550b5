//! JSON objects of others, of which nothing is sure.

use std::collections::BTreeMap;

use harness_core::Json;

/// The entries of an object. What is missing, and what is of another type, is `None`.
#[derive(Debug, Default)]
pub(super) struct Fields(BTreeMap<String, Json>);

impl Fields {
    /// The object that a text is.
    pub(super) fn parse(text: &str) -> Option<Self> {
        serde_json::from_str(text).ok().map(Self)
    }

    /// The entries of a value that is an object.
    pub(super) fn of(value: &Json) -> Option<Self> {
        value.to().ok().map(Self)
    }

    pub(super) fn json(&self, key: &str) -> Option<&Json> {
        self.0.get(key)
    }

    pub(super) fn text(&self, key: &str) -> Option<String> {
        self.json(key)?.to().ok()
    }

    pub(super) fn number(&self, key: &str) -> Option<u64> {
        self.json(key)?.to().ok()
    }

    pub(super) fn flag(&self, key: &str) -> Option<bool> {
        self.json(key)?.to().ok()
    }

    pub(super) fn object(&self, key: &str) -> Option<Self> {
        Self::of(self.json(key)?)
    }

    pub(super) fn list(&self, key: &str) -> Option<Vec<Json>> {
        self.json(key)?.to().ok()
    }

    /// The object below a path of keys; an empty one when there is none.
    pub(super) fn below(&self, keys: &[&str]) -> Self {
        let Some((first, rest)) = keys.split_first() else { return Self(self.0.clone()) };
        self.object(first).map(|inner| inner.below(rest)).unwrap_or_default()
    }
}
