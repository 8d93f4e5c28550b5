//! JSON objects of others, of which nothing is sure.

use std::collections::BTreeMap;

use harness_core::Json;
use serde::de::{Deserialize, Deserializer, Visitor};

use crate::seam::{Piece, piece_of};

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
        text(self.json(key)?)
    }

    /// Text of a key as a fragment of a longer one; empty if absent.
    pub(super) fn piece(&self, key: &str) -> Piece {
        self.json(key).and_then(|value| piece_of(value.text())).unwrap_or_default()
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

/// Text of a value. Half a character, from programs that cut texts by UTF-16 units, becomes U+FFFD.
pub(super) fn text(value: &Json) -> Option<String> {
    struct Lossy(String);
    impl<'de> Deserialize<'de> for Lossy {
        fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
            struct Text;
            impl Visitor<'_> for Text {
                type Value = Lossy;

                fn expecting(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
                    f.write_str("a text")
                }

                fn visit_bytes<E: serde::de::Error>(self, bytes: &[u8]) -> Result<Lossy, E> {
                    Ok(Lossy(String::from_utf8_lossy(bytes).into_owned()))
                }
            }
            deserializer.deserialize_bytes(Text)
        }
    }
    value.to::<Lossy>().ok().map(|Lossy(text)| text)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[track_caller]
    fn check(value: &str, expected: Option<&str>) {
        assert_eq!(text(&Json::parse(value).unwrap()).as_deref(), expected);
    }

    #[test]
    fn texts_are_read_whatever_is_in_them() {
        check(r#""a\u017c\n""#, Some("a\u{17c}\n"));
        check(r#""\ud83d\ude80""#, Some("\u{1f680}"));
        check(r#""a\ud83d""#, Some("a\u{fffd}\u{fffd}\u{fffd}"));
        check("7", None);
        check("null", None);
        check("[97]", None);
    }
}
