//! Declaration of stored structs: wire names, unknown keys, exact JSON.
//!
//! Public for the crates of this workspace that declare stored structs, and not part of the promised API.

use std::borrow::Cow;
use std::marker::PhantomData;

use serde::Deserialize;
use serde::de::{DeserializeSeed, Deserializer, Error as _, MapAccess};
use serde::ser::SerializeMap;

use crate::json::Json;

/// Key or tag, borrowed from the input where possible. (A plain `Cow` is always deserialized as an owned text.)
#[doc(hidden)]
#[derive(Debug, Deserialize)]
#[serde(transparent)]
pub struct Word<'a>(#[serde(borrow)] pub Cow<'a, str>);

/// Field of a stored struct.
#[doc(hidden)]
pub trait Slot: Sized {
    /// Whether the field is omitted without a value.
    const IS_OPTIONAL: bool = false;

    /// Value of a missing field; `None` if the field is required.
    fn absent() -> Option<Self>;

    /// Whether the field is omitted when written.
    fn skip(&self) -> bool {
        false
    }

    /// Deserializes the field.
    fn read<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error>;
}

impl<T: for<'de> Deserialize<'de>> Slot for Option<T> {
    const IS_OPTIONAL: bool = true;

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

/// Types of required fields, and of fields with a default that are always written.
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

    /// Deserializes null as the empty object: some providers send null for no arguments.
    fn read<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let value = Self::deserialize(deserializer)?;
        Ok(if value.is_null() { Self::empty_object() } else { value })
    }
}

/// Item of a list in a stored struct; a missing list is empty.
#[doc(hidden)]
pub trait Item: for<'de> Deserialize<'de> {
    /// Deserializes a list.
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

/// Seed that deserializes a [`Slot`].
#[doc(hidden)]
#[derive(Debug)]
pub struct SlotSeed<T>(pub PhantomData<T>);

impl<'de, T: Slot> DeserializeSeed<'de> for SlotSeed<T> {
    type Value = T;

    fn deserialize<D: Deserializer<'de>>(self, deserializer: D) -> Result<T, D::Error> {
        T::read(deserializer)
    }
}

/// Deserializes a [`Slot`] from an entry before the tag.
pub fn read_entry<T: Slot>(value: &Json) -> Result<T, serde_json::Error> {
    T::read(&mut serde_json::Deserializer::from_str(value.text()))
}

/// Struct that a tagged union reads field by field.
#[doc(hidden)]
pub trait Stored: Sized {
    /// Reads the entries before the tag, then the rest of the map.
    fn read_map<'de, A: MapAccess<'de>>(before: Entries, map: &mut A) -> Result<Self, A::Error>;

    /// Writes the fields, known ones first, into an open map.
    fn write_map<M: SerializeMap>(&self, map: &mut M) -> Result<(), M::Error>;
}

/// Entries of an object that come before its tag.
pub type Entries = Vec<(String, Json)>;

/// Reads a map up to its tag: the entries before it and the tag's value.
pub(crate) fn read_tag<'de, A: MapAccess<'de>>(
    tag: &'static str,
    map: &mut A,
) -> Result<(Entries, Cow<'de, str>), A::Error> {
    let mut before = Vec::new();
    while let Some(Word(key)) = map.next_key()? {
        if key == tag {
            let Word(value) = map.next_value()?;
            return Ok((before, value));
        }
        before.push((key.into_owned(), map.next_value()?));
    }
    Err(A::Error::missing_field(tag))
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
            /// Unknown keys, written back unchanged.
            pub extra: $crate::Extra,
        }

        impl $crate::stored::Stored for $name {
            fn read_map<'de, A: serde::de::MapAccess<'de>>(
                before: $crate::stored::Entries,
                map: &mut A,
            ) -> Result<Self, A::Error> {
                use serde::de::Error as _;
                use $crate::stored::{Slot, SlotSeed, Word, read_entry};
                $( let mut $field: Option<$ty> = None; )*
                let mut extra = $crate::Extra::default();
                for (key, value) in before {
                    match key.as_str() {
                        $( $wire => $field = Some(read_entry(&value)
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

/// Writes a tagged variant: the tag, then the fields of `body`.
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

/// Reads the rest of a map with an unknown tag as one object, in order.
pub(crate) fn read_unknown<'de, A: MapAccess<'de>>(
    mut entries: Entries,
    tag: &'static str,
    value: &str,
    map: &mut A,
) -> Result<Json, A::Error> {
    entries.push((tag.to_owned(), Json::string(value)));
    while let Some(entry) = map.next_entry()? {
        entries.push(entry);
    }
    Ok(Json::object(entries))
}
