//! The chunk that nearly every event of a stream is: one choice whose delta adds text, a thought or a piece of
//! a call's arguments. It is read in one pass and borrows its text.
//!
//! Whatever else stands in a chunk makes it unreadable here, and it is read leniently instead: what this
//! reader accepts, the lenient one would understand in the same way.

use std::borrow::Cow;
use std::fmt;

use serde::de::{Deserialize, Deserializer, Error, Visitor};

/// A chunk of the common shape.
#[derive(Debug, serde::Deserialize)]
pub(super) struct Chunk<'a> {
    #[serde(borrow, default)]
    pub(super) id: Text<'a>,
    #[serde(borrow, default)]
    pub(super) model: Text<'a>,
    #[serde(borrow, default)]
    pub(super) provider: Text<'a>,
    #[serde(borrow)]
    choices: [Choice<'a>; 1],
    #[serde(default, rename = "usage")]
    _usage: Absent,
    #[serde(default, rename = "error")]
    _error: Absent,
}

#[derive(Debug, serde::Deserialize)]
struct Choice<'a> {
    #[serde(default, rename = "index")]
    _index: First,
    #[serde(borrow)]
    delta: Delta<'a>,
    #[serde(default, rename = "finish_reason")]
    _finish_reason: Absent,
    #[serde(default, rename = "native_finish_reason")]
    _native_finish_reason: Absent,
    #[serde(default, rename = "usage")]
    _usage: Absent,
    #[serde(default, rename = "error")]
    _error: Absent,
}

/// What the chunk adds.
#[derive(Debug, serde::Deserialize)]
pub(super) struct Delta<'a> {
    #[serde(borrow, default)]
    pub(super) content: Text<'a>,
    #[serde(borrow, default)]
    pub(super) reasoning: Text<'a>,
    #[serde(borrow, default)]
    pub(super) reasoning_content: Text<'a>,
    #[serde(borrow, default)]
    tool_calls: Option<[Call<'a>; 1]>,
    #[serde(default, rename = "reasoning_details")]
    _reasoning_details: Absent,
    #[serde(default, rename = "refusal")]
    _refusal: Absent,
}

/// A piece of a call.
#[derive(Debug, serde::Deserialize)]
pub(super) struct Call<'a> {
    pub(super) index: u64,
    #[serde(borrow, default)]
    pub(super) id: Text<'a>,
    #[serde(borrow)]
    pub(super) function: Function<'a>,
}

#[derive(Debug, serde::Deserialize)]
pub(super) struct Function<'a> {
    #[serde(borrow, default)]
    pub(super) name: Text<'a>,
    #[serde(borrow, default)]
    pub(super) arguments: Text<'a>,
}

impl<'a> Chunk<'a> {
    /// Reads a chunk, if it has the common shape.
    pub(super) fn read(data: &'a str) -> Option<Self> {
        serde_json::from_str(data).ok()
    }

    /// What it adds.
    pub(super) fn into_delta(self) -> Delta<'a> {
        let [choice] = self.choices;
        choice.delta
    }
}

impl<'a> Delta<'a> {
    /// The piece of a call in it.
    pub(super) fn take_call(&mut self) -> Option<Call<'a>> {
        let [call] = self.tool_calls.take()?;
        Some(call)
    }
}

/// A string, null or nothing; the last two are the same as an empty string.
#[derive(Debug, Default)]
pub(super) struct Text<'a>(Cow<'a, str>);

impl Text<'_> {
    pub(super) fn as_str(&self) -> Option<&str> {
        Some(&*self.0).filter(|text| !text.is_empty())
    }

    pub(super) fn into_string(self) -> Option<String> {
        Some(self.0).filter(|text| !text.is_empty()).map(Cow::into_owned)
    }
}

impl<'de: 'a, 'a> Deserialize<'de> for Text<'a> {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        struct TextVisitor;

        impl<'de> Visitor<'de> for TextVisitor {
            type Value = Text<'de>;

            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str("a string or null")
            }

            fn visit_borrowed_str<E: Error>(self, text: &'de str) -> Result<Text<'de>, E> {
                Ok(Text(Cow::Borrowed(text)))
            }

            fn visit_str<E: Error>(self, text: &str) -> Result<Text<'de>, E> {
                Ok(Text(Cow::Owned(text.to_owned())))
            }

            fn visit_unit<E: Error>(self) -> Result<Text<'de>, E> {
                Ok(Text::default())
            }
        }

        deserializer.deserialize_any(TextVisitor)
    }
}

/// Null or nothing.
#[derive(Debug, Default)]
struct Absent;

impl<'de> Deserialize<'de> for Absent {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        <()>::deserialize(deserializer).map(|()| Self)
    }
}

/// The number of the first choice, the only one that is read.
#[derive(Debug, Default)]
struct First;

impl<'de> Deserialize<'de> for First {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        match u64::deserialize(deserializer)? {
            0 => Ok(Self),
            _ => Err(D::Error::custom("another choice")),
        }
    }
}
