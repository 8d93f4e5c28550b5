//! Fast reader for the most common chunk: one choice whose delta adds text, reasoning or a fragment
//! of a call's arguments. It reads the chunk in one pass and borrows its text.
//!
//! Any other content makes the chunk unreadable here, and the lenient reader takes over. Both
//! readers interpret the chunks that this one accepts in the same way.

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

/// Content that the chunk adds.
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

/// Fragment of a call.
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

    /// Returns the delta of the chunk.
    pub(super) fn into_delta(self) -> Delta<'a> {
        let [choice] = self.choices;
        choice.delta
    }

    /// Borrows the delta of the chunk.
    pub(super) fn delta(&self) -> &Delta<'a> {
        let [choice] = &self.choices;
        &choice.delta
    }
}

impl<'a> Delta<'a> {
    /// Raw text of the chunk, if the delta adds nothing else.
    pub(super) fn only_text(&self) -> Option<&'a str> {
        let others = [&self.reasoning, &self.reasoning_content];
        let alone = self.tool_calls.is_none() && others.iter().all(|other| other.as_str().is_none());
        match self.content.0 {
            Cow::Borrowed(text) if alone && !text.is_empty() => Some(text),
            Cow::Borrowed(_) | Cow::Owned(_) => None,
        }
    }

    /// Takes the fragment of a call.
    pub(super) fn take_call(&mut self) -> Option<Call<'a>> {
        let [call] = self.tool_calls.take()?;
        Some(call)
    }
}

/// A chunk without its text. Most chunks of a stream differ only in their text, so a chunk with the
/// same beginning and end as the previous one is not parsed again.
#[derive(Debug, Default)]
pub(super) struct Pattern {
    before: String,
    after: String,
}

impl Pattern {
    /// Takes the pattern of `data`, of which `text` is a part.
    pub(super) fn learn(&mut self, data: &str, text: &str) {
        self.forget();
        let start = text.as_ptr().addr().checked_sub(data.as_ptr().addr());
        let around = start.and_then(|start| {
            let end = start.checked_add(text.len())?;
            Some((data.get(..start)?, data.get(end..)?))
        });
        if let Some((before, after)) = around {
            self.before.push_str(before);
            self.after.push_str(after);
        }
    }

    /// Resets the pattern, so that it matches no chunk.
    pub(super) fn forget(&mut self) {
        self.before.clear();
        self.after.clear();
    }

    /// The text of a chunk that fits. One with escapes in it has to be read.
    pub(super) fn text<'a>(&self, data: &'a str) -> Option<&'a str> {
        if self.before.is_empty() {
            return None;
        }
        let text = data.strip_prefix(&*self.before)?.strip_suffix(&*self.after)?;
        text.bytes().all(|byte| byte >= b' ' && !matches!(byte, b'"' | b'\\')).then_some(text)
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
