//! JSON objects as entries with exact values.

use std::fmt;

use serde::de::{MapAccess, Visitor};
use serde::ser::SerializeMap as _;
use serde::{Deserialize, Deserializer, Serialize, Serializer};

use super::json::Json;

/// JSON object as its entries in order, with exact values.
///
/// Repeated keys of a text are all kept; getters return the last one.
///
/// ```
/// use harness_core::{Json, JsonObject};
///
/// let mut object = JsonObject::parse(r#"{"b":1.10,"a":null}"#).unwrap();
/// object.set("a", Json::string("x"));
/// assert_eq!(object.with("c", None::<u32>).with("d", Some(7)).json().text(), r#"{"b":1.10,"a":"x","d":7}"#);
/// ```
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct JsonObject(pub(crate) Vec<(String, Json)>);

impl JsonObject {
    /// Returns the entries of an object; `None` for any other value.
    pub fn of(value: &Json) -> Option<Self> {
        value.to().ok()
    }

    /// Parses the text of an object; `None` for any other text.
    pub fn parse(text: &str) -> Option<Self> {
        Self::of(&Json::parse(text).ok()?)
    }

    /// Returns the value of a key.
    pub fn get(&self, key: &str) -> Option<&Json> {
        self.0.iter().rev().find(|(known, _)| known == key).map(|(_, value)| value)
    }

    /// Returns the value of a key, if it has the form of `T`.
    pub fn to<T: serde::de::DeserializeOwned>(&self, key: &str) -> Option<T> {
        self.get(key)?.to().ok()
    }

    /// Returns the text of a key, if it is a string ([`Json::lenient_text`]).
    pub fn text(&self, key: &str) -> Option<String> {
        self.get(key)?.lenient_text()
    }

    /// Returns the text of a key, unless it is blank.
    pub fn filled_text(&self, key: &str) -> Option<String> {
        self.text(key).filter(|text| !text.trim().is_empty())
    }

    /// Returns the value of a key, unless it is `null`.
    pub fn present(&self, key: &str) -> Option<&Json> {
        self.get(key).filter(|value| !value.is_null())
    }

    /// Returns the object of a key.
    pub fn object(&self, key: &str) -> Option<Self> {
        Self::of(self.get(key)?)
    }

    /// Returns the objects in the list of a key; other values in it are omitted.
    pub fn objects(&self, key: &str) -> Vec<Self> {
        let list: Vec<Json> = self.to(key).unwrap_or_default();
        list.iter().filter_map(Self::of).collect()
    }

    /// Sets the value of a key, in its place if it exists, else at the end.
    pub fn set(&mut self, key: &str, value: Json) {
        match self.0.iter_mut().rfind(|(known, _)| known == key) {
            Some((_, old)) => *old = value,
            None => self.0.push((key.to_owned(), value)),
        }
    }

    /// Removes a key, and returns its value.
    pub fn take(&mut self, key: &str) -> Option<Json> {
        let mut taken = None;
        self.0.retain_mut(|(known, value)| {
            let is_key = known == key;
            if is_key {
                taken = Some(std::mem::take(value));
            }
            !is_key
        });
        taken
    }

    /// Adds a key at the end, unless the value is `None` or has no JSON form.
    #[must_use]
    pub fn with(mut self, key: &str, value: Option<impl Serialize>) -> Self {
        let value = value.and_then(|value| Json::of(&value).ok());
        self.0.extend(value.map(|value| (key.to_owned(), value)));
        self
    }

    /// Iterates over all entries in order.
    pub fn entries(&self) -> impl Iterator<Item = (&str, &Json)> {
        self.0.iter().map(|(key, value)| (key.as_str(), value))
    }

    /// Whether there are no entries.
    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// Returns the object as a value.
    pub fn json(&self) -> Json {
        Json::of(self).unwrap_or_default()
    }
}

impl Json {
    /// Returns the entries of an object in order, with exact values. Repeated keys are all included.
    ///
    /// # Errors
    /// If the value is not an object.
    pub fn entries(&self) -> Result<Vec<(String, Json)>, serde_json::Error> {
        self.to::<JsonObject>().map(|object| object.0)
    }
}

impl<K: Into<String>> FromIterator<(K, Json)> for JsonObject {
    fn from_iter<I: IntoIterator<Item = (K, Json)>>(entries: I) -> Self {
        Self(entries.into_iter().map(|(key, value)| (key.into(), value)).collect())
    }
}

impl Extend<(String, Json)> for JsonObject {
    fn extend<I: IntoIterator<Item = (String, Json)>>(&mut self, entries: I) {
        self.0.extend(entries);
    }
}

impl IntoIterator for JsonObject {
    type Item = (String, Json);
    type IntoIter = std::vec::IntoIter<(String, Json)>;

    fn into_iter(self) -> Self::IntoIter {
        self.0.into_iter()
    }
}

impl Serialize for JsonObject {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let mut map = serializer.serialize_map(Some(self.0.len()))?;
        for (key, value) in &self.0 {
            map.serialize_entry(key, value)?;
        }
        map.end()
    }
}

impl<'de> Deserialize<'de> for JsonObject {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        struct Collect;
        impl<'de> Visitor<'de> for Collect {
            type Value = JsonObject;

            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str("an object")
            }

            fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<JsonObject, A::Error> {
                let mut entries = Vec::new();
                while let Some(entry) = map.next_entry()? {
                    entries.push(entry);
                }
                Ok(JsonObject(entries))
            }
        }
        deserializer.deserialize_map(Collect)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn repeated_keys_are_kept_and_the_last_one_counts() {
        let mut object = JsonObject::parse(r#"{"a":1,"b":2,"a":3}"#).expect("an object");
        assert_eq!(object.to::<u32>("a"), Some(3));
        object.set("a", Json::null());
        assert_eq!(object.json().text(), r#"{"a":1,"b":2,"a":null}"#);
        assert_eq!(object.take("a"), Some(Json::null()));
        assert_eq!((object.json().text(), object.take("a")), (r#"{"b":2}"#, None));
    }

    #[test]
    fn entries_keep_order_and_repeated_keys() {
        let entries =
            Json::parse(r#"{"b":1.10,"a":{},"b":null}"#).expect("JSON").entries().expect("an object");
        let entries: Vec<_> = entries.iter().map(|(key, value)| format!("{key}={value}")).collect();
        assert_eq!(entries, ["b=1.10", "a={}", "b=null"]);
        assert!(Json::parse("[]").expect("JSON").entries().is_err());
    }

    #[test]
    fn getters_return_nothing_for_another_form() {
        let object = JsonObject::parse(r#"{"n":"7","l":[{"x":1},2],"o":{}}"#).expect("an object");
        assert_eq!((object.to::<u32>("n"), object.text("l"), object.object("n")), (None, None, None));
        assert_eq!((object.objects("l").len(), object.objects("n").len()), (1, 0));
        assert_eq!(object.object("o"), Some(JsonObject::default()));
        assert_eq!((JsonObject::parse("[1]"), JsonObject::parse("{")), (None, None));
    }
}
