//! JSON of a provider, read leniently: a field of an unexpected type is treated as absent, so one
//! odd field does not lose an answer.
//!
//! Fields stay raw JSON until they are needed: numbers keep their exact text, and data to return
//! later stays unchanged.

use std::fmt;
use std::marker::PhantomData;

use harness_core::Json;
use serde::de::value::MapAccessDeserializer;
use serde::de::{IgnoredAny, MapAccess, SeqAccess, Visitor};
use serde::{Deserialize, Deserializer};
use serde_json::value::RawValue;

use crate::label::{MAX_LABEL_BYTES, bounded_label};
use crate::seam::{Piece, piece_of};

pub(crate) type Raw<'a> = Option<&'a RawValue>;

/// An object, read in the same pass as what surrounds it; any other value reads as an empty one.
#[derive(Debug, Default)]
pub(crate) struct Record<T>(pub(crate) T);

/// A list, read in the same pass as what surrounds it; any other value reads as an empty one.
#[derive(Debug)]
pub(crate) struct Items<T>(pub(crate) Vec<T>);

impl<T> Default for Items<T> {
    fn default() -> Self {
        Self(Vec::new())
    }
}

/// Declares a visitor that reads values of all other kinds as the default.
macro_rules! other_kinds_are_empty {
    ($($method:ident($type:ty)),*) => {
        $(fn $method<E: serde::de::Error>(self, _: $type) -> Result<Self::Value, E> {
            Ok(Self::Value::default())
        })*
        fn visit_unit<E: serde::de::Error>(self) -> Result<Self::Value, E> {
            Ok(Self::Value::default())
        }
    };
}

impl<'de, T: Deserialize<'de> + Default> Deserialize<'de> for Record<T> {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        struct Fields<T>(PhantomData<T>);
        impl<'de, T: Deserialize<'de> + Default> Visitor<'de> for Fields<T> {
            type Value = Record<T>;
            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str("an object")
            }
            fn visit_map<A: MapAccess<'de>>(self, map: A) -> Result<Self::Value, A::Error> {
                T::deserialize(MapAccessDeserializer::new(map)).map(Record)
            }
            fn visit_seq<A: SeqAccess<'de>>(self, mut list: A) -> Result<Self::Value, A::Error> {
                while list.next_element::<IgnoredAny>()?.is_some() {}
                Ok(Record::default())
            }
            other_kinds_are_empty!(
                visit_bool(bool),
                visit_i64(i64),
                visit_u64(u64),
                visit_f64(f64),
                visit_str(&str)
            );
        }
        deserializer.deserialize_any(Fields(PhantomData))
    }
}

impl<'de, T: Deserialize<'de>> Deserialize<'de> for Items<T> {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        struct Elements<T>(PhantomData<T>);
        impl<'de, T: Deserialize<'de>> Visitor<'de> for Elements<T> {
            type Value = Items<T>;
            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str("a list")
            }
            fn visit_seq<A: SeqAccess<'de>>(self, mut list: A) -> Result<Self::Value, A::Error> {
                let mut items = Vec::new();
                while let Some(item) = list.next_element()? {
                    items.push(item);
                }
                Ok(Items(items))
            }
            fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<Self::Value, A::Error> {
                while map.next_entry::<IgnoredAny, IgnoredAny>()?.is_some() {}
                Ok(Items::default())
            }
            other_kinds_are_empty!(
                visit_bool(bool),
                visit_i64(i64),
                visit_u64(u64),
                visit_f64(f64),
                visit_str(&str)
            );
        }
        deserializer.deserialize_any(Elements(PhantomData))
    }
}

pub(crate) fn decode<'a, T: Deserialize<'a>>(raw: Raw<'a>) -> Option<T> {
    serde_json::from_str(raw?.get()).ok()
}

/// String content as a fragment of a text.
pub(crate) fn piece(raw: Raw<'_>) -> Option<Piece> {
    piece_of(raw?.get())
}

/// Whether `raw` is the string `text`, written without escapes.
pub(crate) fn is_text(raw: &RawValue, text: &str) -> bool {
    raw.get().strip_prefix('"').and_then(|rest| rest.strip_suffix('"')) == Some(text) && !text.contains('\\')
}

/// A non-empty string. Half a character in it becomes a mark.
pub(crate) fn text(raw: Raw<'_>) -> Option<String> {
    piece(raw).map(Piece::into_text).filter(|text| !text.is_empty())
}

/// A name, a status or a reason that is only passed on: cut where it is longer than [`MAX_LABEL_BYTES`].
pub(crate) fn label(raw: Raw<'_>) -> Option<String> {
    text(raw).map(bounded_label)
}

/// An id that nothing depends on: left out where it is longer than [`MAX_LABEL_BYTES`], because a part of an id names
/// something else.
pub(crate) fn id(raw: Raw<'_>) -> Option<String> {
    text(raw).filter(|id| id.len() <= MAX_LABEL_BYTES)
}

pub(crate) fn number(raw: Raw<'_>) -> Option<u64> {
    let text = raw?.get();
    text.strip_suffix(".0").unwrap_or(text).parse().ok()
}

/// The items of a list, unchanged.
pub(crate) fn list(raw: Raw<'_>) -> Vec<Json> {
    let items: Vec<&RawValue> = decode(raw).unwrap_or_default();
    items.into_iter().filter_map(|item| Json::parse(item.get()).ok()).collect()
}
