//! The product's own types in vectors, closed: a word that they would pass over is refused.

use harness_core::Json;
use serde::de::{DeserializeOwned, Error};
use serde::{Deserialize, Deserializer, Serialize};
use serde_json::Value;

/// A value of the product's type, of which every word is written back.
#[derive(Clone, Default)]
pub(crate) struct Known<T>(pub(crate) T);

impl<'de, T: DeserializeOwned + Serialize> Deserialize<'de> for Known<T> {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let written = Json::deserialize(deserializer)?;
        let read: T = written.to().map_err(D::Error::custom)?;
        let again = serde_json::to_value(&read).map_err(D::Error::custom)?;
        let written: Value = written.to().map_err(D::Error::custom)?;
        match unread(&written, &again) {
            Some(word) => Err(D::Error::custom(format!("unknown word `{word}`"))),
            None => Ok(Self(read)),
        }
    }
}

/// The first word that was not written back. What says nothing may be left out.
fn unread<'v>(written: &'v Value, again: &Value) -> Option<&'v str> {
    let says_nothing = |value: &Value| match value {
        Value::Null => true,
        Value::Array(list) => list.is_empty(),
        Value::Object(map) => map.is_empty(),
        Value::Bool(is) => !is,
        Value::Number(_) | Value::String(_) => false,
    };
    match (written, again) {
        (Value::Object(written), Value::Object(again)) => {
            written.iter().find_map(|(word, value)| match again.get(word) {
                Some(again) => unread(value, again),
                None => (!says_nothing(value)).then_some(word),
            })
        }
        (Value::Array(written), Value::Array(again)) => {
            written.iter().zip(again).find_map(|(value, again)| unread(value, again))
        }
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[derive(Deserialize, Serialize)]
    struct Words {
        #[serde(default, skip_serializing_if = "Option::is_none")]
        a: Option<u64>,
        data: Vec<Value>,
    }

    #[track_caller]
    fn check(written: &str, fault: Option<&str>) {
        let read = serde_json::from_str::<Known<Words>>(written);
        assert_eq!(read.err().map(|error| error.to_string()).as_deref(), fault);
    }

    #[test]
    fn words_that_a_type_passes_over_are_refused() {
        check(r#"{ "a": 1, "data": [{ "b": 1 }] }"#, None);
        check(r#"{ "a": null, "data": [] }"#, None);
        check(r#"{ "b": 1, "data": [] }"#, Some("unknown word `b`"));
    }
}
