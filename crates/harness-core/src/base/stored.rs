//! The one macro behind every stored struct: wire names, unknown keys, exact JSON.
//!
//! Public for the crates of this workspace that declare stored structs, and no part of the promised API.

use std::borrow::Cow;
use std::fmt;
use std::marker::PhantomData;

use serde::de::{DeserializeSeed, Deserializer, Error as _, MapAccess, Visitor};
use serde::ser::SerializeMap;
use serde::{Deserialize, Serialize};

use crate::json::Json;

/// A text that is looked at and not kept: a key, a tag. Borrowed from the input where it stands there as it
/// is, so that reading a message allocates nothing for it. (`Cow` alone is always read as an owned text.)
#[doc(hidden)]
#[derive(Debug)]
pub struct Word<'de>(pub Cow<'de, str>);

impl<'de> Deserialize<'de> for Word<'de> {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        struct Text;
        impl<'de> Visitor<'de> for Text {
            type Value = Word<'de>;

            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str("a string")
            }

            fn visit_borrowed_str<E>(self, text: &'de str) -> Result<Word<'de>, E> {
                Ok(Word(Cow::Borrowed(text)))
            }

            fn visit_str<E>(self, text: &str) -> Result<Word<'de>, E> {
                Ok(Word(Cow::Owned(text.to_owned())))
            }

            fn visit_string<E>(self, text: String) -> Result<Word<'de>, E> {
                Ok(Word(Cow::Owned(text)))
            }
        }
        deserializer.deserialize_str(Text)
    }
}

/// Reads and writes one field of a stored struct.
#[doc(hidden)]
pub trait Slot: Sized {
    /// The value of a field that is not there; `None` when the field is required.
    fn absent() -> Option<Self>;

    /// Whether the field is left out when written.
    fn skip(&self) -> bool {
        false
    }

    /// Reads the value of a field that is there.
    fn read<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error>;
}

impl<T: for<'de> Deserialize<'de>> Slot for Option<T> {
    fn absent() -> Option<Self> {
        Some(None)
    }

    fn skip(&self) -> bool {
        self.is_none()
    }

    fn read<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        Self::deserialize(deserializer)
    }
}

/// Required fields, and fields with a default that are always written.
#[doc(hidden)]
#[macro_export]
macro_rules! slots {
    ($($ty:ty => $absent:expr),* $(,)?) => {$(
        impl $crate::stored::Slot for $ty {
            fn absent() -> Option<Self> {
                $absent
            }

            fn read<'de, D: serde::Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
                serde::Deserialize::deserialize(deserializer)
            }
        }
    )*};
}

crate::slots! {
    String => None,
    bool => Some(false),
}

impl Slot for Json {
    fn absent() -> Option<Self> {
        Some(Self::empty_object())
    }

    /// A null reads as the empty object, as upstream's arguments do.
    fn read<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let value = Self::deserialize(deserializer)?;
        Ok(if value.is_null() { Self::empty_object() } else { value })
    }
}

/// What lists of stored structs hold; a list that is not there is empty.
#[doc(hidden)]
pub trait Item: for<'de> Deserialize<'de> {
    /// Reads a list.
    fn read_list<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Vec<Self>, D::Error> {
        Vec::deserialize(deserializer)
    }
}

impl<T: Item> Slot for Vec<T> {
    fn absent() -> Option<Self> {
        Some(Self::new())
    }

    fn read<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        T::read_list(deserializer)
    }
}

/// Seed that reads a [`Slot`].
#[doc(hidden)]
#[derive(Debug)]
pub struct SlotSeed<T>(pub PhantomData<T>);

impl<'de, T: Slot> DeserializeSeed<'de> for SlotSeed<T> {
    type Value = T;

    fn deserialize<D: Deserializer<'de>>(self, deserializer: D) -> Result<T, D::Error> {
        T::read(deserializer)
    }
}

/// Reads a [`Slot`] from text that was kept while the tag of its struct was looked for.
pub fn read_kept<T: Slot>(value: &Json) -> Result<T, serde_json::Error> {
    T::read(&mut serde_json::Deserializer::from_str(value.text()))
}

/// A struct that a tagged union can read field by field.
#[doc(hidden)]
pub trait Stored: Sized {
    /// Reads the fields that were kept before the tag, then the rest of the map.
    fn read_map<'de, A: MapAccess<'de>>(kept: Kept, map: &mut A) -> Result<Self, A::Error>;

    /// Writes the fields, known ones first, into an open map.
    fn write_map<M: SerializeMap>(&self, map: &mut M) -> Result<(), M::Error>;
}

/// Fields that were kept while the tag of their struct was looked for.
pub type Kept = Vec<(String, Json)>;

/// Reads the fields of a map up to the tag: the ones kept on the way and the tag's value.
pub(crate) fn read_tag<'de, A: MapAccess<'de>>(
    tag: &'static str,
    map: &mut A,
) -> Result<(Kept, Cow<'de, str>), A::Error> {
    let mut kept = Vec::new();
    while let Some(Word(key)) = map.next_key()? {
        if key == tag {
            let Word(value) = map.next_value()?;
            return Ok((kept, value));
        }
        kept.push((key.into_owned(), map.next_value()?));
    }
    Err(A::Error::missing_field(tag))
}

/// Reads and writes a [`Stored`] struct alone, outside of a tagged union.
#[doc(hidden)]
#[macro_export]
macro_rules! stored_serde {
    ($name:ident) => {
        impl serde::Serialize for $name {
            fn serialize<S: serde::Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
                use serde::ser::SerializeMap as _;
                let mut map = serializer.serialize_map(None)?;
                $crate::stored::Stored::write_map(self, &mut map)?;
                map.end()
            }
        }

        impl<'de> serde::Deserialize<'de> for $name {
            fn deserialize<D: serde::Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
                struct Fields;
                impl<'de> serde::de::Visitor<'de> for Fields {
                    type Value = $name;

                    fn expecting(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
                        f.write_str(concat!("an object with the fields of ", stringify!($name)))
                    }

                    fn visit_map<A: serde::de::MapAccess<'de>>(self, mut map: A) -> Result<$name, A::Error> {
                        $crate::stored::Stored::read_map(Vec::new(), &mut map)
                    }
                }
                deserializer.deserialize_map(Fields)
            }
        }
    };
}

/// Declares a struct that is written with explicit wire names and keeps unknown keys in `extra`.
#[doc(hidden)]
#[macro_export]
macro_rules! stored {
    (
        $(#[$meta:meta])*
        pub struct $name:ident {
            $( $(#[$field_meta:meta])* $field:ident : $ty:ty = $wire:literal ),* $(,)?
        }
    ) => {
        $(#[$meta])*
        #[derive(Clone, Debug, PartialEq, Eq)]
        #[non_exhaustive]
        pub struct $name {
            $( $(#[$field_meta])* pub $field: $ty, )*
            /// Keys that this version does not know; written back unchanged.
            pub extra: $crate::Extra,
        }

        impl $crate::stored::Stored for $name {
            fn read_map<'de, A: serde::de::MapAccess<'de>>(
                kept: Vec<(String, $crate::Json)>,
                map: &mut A,
            ) -> Result<Self, A::Error> {
                use serde::de::Error as _;
                use $crate::stored::{Slot, SlotSeed, Word, read_kept};
                $( let mut $field: Option<$ty> = None; )*
                let mut extra = $crate::Extra::default();
                for (key, value) in kept {
                    match key.as_str() {
                        $( $wire => $field = Some(read_kept(&value)
                            .map_err(|e| A::Error::custom(format_args!("`{key}`: {e}")))?), )*
                        _ => extra.push(key, value),
                    }
                }
                while let Some(Word(key)) = map.next_key()? {
                    match &*key {
                        $( $wire => $field = Some(map.next_value_seed(SlotSeed(std::marker::PhantomData))?), )*
                        _ => extra.push(key.into_owned(), map.next_value()?),
                    }
                }
                Ok(Self {
                    $( $field: match $field.or_else(<$ty as Slot>::absent) {
                        Some(value) => value,
                        None => return Err(A::Error::missing_field($wire)),
                    }, )*
                    extra,
                })
            }

            fn write_map<M: serde::ser::SerializeMap>(&self, map: &mut M) -> Result<(), M::Error> {
                use $crate::stored::Slot;
                $( if !self.$field.skip() { map.serialize_entry($wire, &self.$field)?; } )*
                for (key, value) in self.extra.iter() {
                    map.serialize_entry(key, value)?;
                }
                Ok(())
            }
        }

        $crate::stored_serde! { $name }
    };
}

/// Writes a tagged variant: the tag first, then the fields of `body`.
pub(crate) fn write_tagged<S: serde::Serializer, B: Stored>(
    serializer: S,
    tag: &'static str,
    value: &str,
    body: &B,
) -> Result<S::Ok, S::Error> {
    let mut map = serializer.serialize_map(None)?;
    map.serialize_entry(tag, value)?;
    body.write_map(&mut map)?;
    map.end()
}

/// Reads the rest of a map that nothing knows and rebuilds it as one object, in its order.
pub(crate) fn rebuild<'de, A: MapAccess<'de>>(
    kept: Kept,
    tag: &'static str,
    value: &str,
    map: &mut A,
) -> Result<Json, A::Error> {
    let mut out = String::from("{");
    let mut field = |key: &str, value: &Json| {
        if out.len() > 1 {
            out.push(',');
        }
        out.push_str(Json::string(key).text());
        out.push(':');
        out.push_str(value.text());
    };
    for (key, value) in &kept {
        field(key, value);
    }
    field(tag, &Json::string(value));
    while let Some((key, value)) = map.next_entry::<String, Json>()? {
        field(&key, &value);
    }
    out.push('}');
    Json::parse(&out).map_err(A::Error::custom)
}

/// Serializes anything as the exact JSON value it holds.
pub(crate) fn write_raw<S: serde::Serializer>(serializer: S, value: &Json) -> Result<S::Ok, S::Error> {
    value.serialize(serializer)
}
