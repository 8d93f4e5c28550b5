//! Exact JSON: values are kept as text, so that numbers, key order and unknown keys survive.

use std::borrow::Cow;
use std::sync::{Arc, LazyLock};
use std::{fmt, io};

use schemars::{JsonSchema, Schema, SchemaGenerator, json_schema};
use serde::de::{DeserializeOwned, Error as _, Visitor};
use serde::{Deserialize, Deserializer, Serialize, Serializer};
use serde_json::value::RawValue;

static EMPTY_OBJECT: LazyLock<Json> = LazyLock::new(|| Json::parse("{}").unwrap_or_else(|_| Json::null()));

/// Valid JSON value, kept as text.
///
/// Numbers are never rounded (`9007199254740993`, `1e400` and `1.10` are unchanged), keys keep their order, and a clone
/// costs one reference count. The text never contains a raw line break, so a value fits on one line of a JSON Lines file.
///
/// Two values are equal when their texts are equal.
///
/// serde's buffered representations (`flatten`, `untagged`, internally tagged enums) lose the text: do not use those
/// attributes around a field of this type.
///
/// ```
/// use harness_core::Json;
///
/// let value = Json::parse(r#"{ "n": 9007199254740993 }"#)?;
/// assert_eq!(value.text(), r#"{"n":9007199254740993}"#);
/// # Ok::<(), serde_json::Error>(())
/// ```
#[derive(Clone)]
pub struct Json(Arc<RawValue>);

impl JsonSchema for Json {
    fn inline_schema() -> bool {
        true
    }

    fn schema_name() -> Cow<'static, str> {
        "Json".into()
    }

    fn json_schema(_: &mut SchemaGenerator) -> Schema {
        json_schema!({})
    }
}

impl Json {
    /// Validates `text` and keeps it without the white space between tokens.
    ///
    /// # Errors
    /// If `text` is not exactly one JSON value; the error names line and column.
    pub fn parse(text: &str) -> Result<Self, serde_json::Error> {
        let raw: Box<RawValue> = serde_json::from_str(text)?;
        Ok(Self::compacted(raw))
    }

    /// Serializes `value`.
    ///
    /// # Errors
    /// If `value` has no JSON form, for example a map whose keys are not strings.
    pub fn of<T: Serialize + ?Sized>(value: &T) -> Result<Self, serde_json::Error> {
        serde_json::value::to_raw_value(value).map(|raw| Self(Arc::from(raw)))
    }

    /// Bytes of the JSON text of `value`, without making the text. A value without a JSON form counts up to its first part
    /// that has none.
    ///
    /// ```
    /// assert_eq!(harness_core::Json::size_of(&["a", "ü"]), 10);
    /// ```
    pub fn size_of<T: Serialize + ?Sized>(value: &T) -> usize {
        struct Counter(usize);
        impl io::Write for Counter {
            fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
                self.0 = self.0.saturating_add(bytes.len());
                Ok(bytes.len())
            }

            fn flush(&mut self) -> io::Result<()> {
                Ok(())
            }
        }
        let mut counter = Counter(0);
        let _ = serde_json::to_writer(&mut counter, value);
        counter.0
    }

    /// Creates a JSON string.
    pub fn string(text: &str) -> Self {
        Self::of(text).unwrap_or_else(|_| Self::null())
    }

    /// Returns `null`.
    pub fn null() -> Self {
        Self(Arc::from(RawValue::NULL.to_owned()))
    }

    /// Returns `{}` without an allocation.
    pub fn empty_object() -> Self {
        EMPTY_OBJECT.clone()
    }

    /// Returns the JSON text.
    pub fn text(&self) -> &str {
        self.0.get()
    }

    /// Deserializes the value.
    ///
    /// # Errors
    /// If the value does not have the shape of `T`.
    pub fn to<T: DeserializeOwned>(&self) -> Result<T, serde_json::Error> {
        serde_json::from_str(self.text())
    }

    /// Creates an object of these entries, in order.
    pub fn object<K: AsRef<str>>(entries: impl IntoIterator<Item = (K, Json)>) -> Self {
        let entry = |(key, value): (K, Json)| format!("{}:{value}", Json::string(key.as_ref()));
        let text = entries.into_iter().map(entry).collect::<Vec<_>>().join(",");
        Self::parse(&format!("{{{text}}}")).unwrap_or_default()
    }

    /// Returns the text of a JSON string; `None` for any other value. JSON can contain half a character (`\ud83d` alone),
    /// which no Rust text can: U+FFFD stands for it.
    ///
    /// ```
    /// use harness_core::Json;
    ///
    /// assert_eq!(Json::parse(r#""cut \ud83d""#)?.lenient_text().as_deref(), Some("cut \u{fffd}"));
    /// assert_eq!(Json::parse("4")?.lenient_text(), None);
    /// # Ok::<(), serde_json::Error>(())
    /// ```
    pub fn lenient_text(&self) -> Option<String> {
        self.to::<LenientText>().ok().map(|LenientText(text)| text)
    }

    /// Whether the value is `null`.
    pub fn is_null(&self) -> bool {
        self.text() == "null"
    }

    /// Whether the value is an object.
    pub fn is_object(&self) -> bool {
        self.text().starts_with('{')
    }

    /// Whether lists and objects nest more than `levels` deep. Not recursive; stops at the first deeper level.
    pub(crate) fn is_deeper_than(&self, levels: usize) -> bool {
        // Each level takes two characters.
        if self.text().len() / 2 <= levels {
            return false;
        }
        let mut depth = 0_usize;
        for (_, byte) in marked(self.text()).filter(|(in_string, _)| !in_string) {
            match byte {
                b'[' | b'{' => depth += 1,
                b']' | b'}' => depth = depth.saturating_sub(1),
                _ => {}
            }
            if depth > levels {
                return true;
            }
        }
        false
    }

    /// Removes white space between tokens, but not inside strings.
    fn compacted(raw: Box<RawValue>) -> Self {
        let is_space = |byte: u8| matches!(byte, b' ' | b'\n' | b'\r' | b'\t');
        if !raw.get().bytes().any(is_space) {
            return Self(Arc::from(raw));
        }
        let kept = marked(raw.get()).filter(|(in_string, byte)| *in_string || !is_space(*byte));
        let compact = String::from_utf8(kept.map(|(_, byte)| byte).collect()).unwrap_or_default();
        Self(RawValue::from_string(compact).map_or_else(|_| Arc::from(raw), Arc::from))
    }
}

struct LenientText(String);

impl<'de> Deserialize<'de> for LenientText {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        struct Text;
        impl Visitor<'_> for Text {
            type Value = LenientText;

            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str("a string")
            }

            fn visit_bytes<E: serde::de::Error>(self, bytes: &[u8]) -> Result<LenientText, E> {
                Ok(LenientText(marked_halves(bytes)))
            }
        }
        deserializer.deserialize_bytes(Text)
    }
}

/// Text of UTF-8 that may have halves of characters, three bytes each.
fn marked_halves(bytes: &[u8]) -> String {
    if let Ok(text) = str::from_utf8(bytes) {
        return text.to_owned();
    }
    let mut marked = Vec::with_capacity(bytes.len());
    let mut rest = bytes;
    loop {
        rest = match rest {
            [] => return String::from_utf8_lossy(&marked).into_owned(),
            [0xed, 0xa0..=0xbf, _, after @ ..] => {
                marked.extend("\u{fffd}".bytes());
                after
            }
            [byte, after @ ..] => {
                marked.push(*byte);
                after
            }
        };
    }
}

/// The bytes of a JSON text, and whether each is inside of a string.
fn marked(text: &str) -> impl Iterator<Item = (bool, u8)> {
    let (mut in_string, mut escaped) = (false, false);
    text.bytes().map(move |byte| {
        let was_in_string = in_string;
        match byte {
            _ if escaped => escaped = false,
            b'\\' => escaped = in_string,
            b'"' => in_string = !in_string,
            _ => {}
        }
        (was_in_string, byte)
    })
}

/// Position of the quote that ends a string whose first quote was read.
pub(crate) fn string_end(rest: &str) -> usize {
    let mut escaped = false;
    let end = rest.bytes().position(|byte| {
        let ends = byte == b'"' && !escaped;
        escaped = byte == b'\\' && !escaped;
        ends
    });
    end.unwrap_or(rest.len())
}

impl From<serde_json::Value> for Json {
    /// Converts the value with sorted keys: their order in `serde_json` depends on a feature that any part of a program
    /// may enable, and neither a request nor a record may depend on that.
    fn from(mut value: serde_json::Value) -> Self {
        value.sort_all_objects();
        Self::of(&value).unwrap_or_else(|_| Self::null())
    }
}

impl Default for Json {
    /// The empty object.
    fn default() -> Self {
        Self::empty_object()
    }
}

impl PartialEq for Json {
    fn eq(&self, other: &Self) -> bool {
        self.text() == other.text()
    }
}

impl Eq for Json {}

impl fmt::Debug for Json {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.text())
    }
}

impl fmt::Display for Json {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.text())
    }
}

impl Serialize for Json {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        self.0.serialize(serializer)
    }
}

impl<'de> Deserialize<'de> for Json {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let raw = Box::<RawValue>::deserialize(deserializer)
            .map_err(|e| D::Error::custom(format_args!("exact JSON expected: {e}")))?;
        // Values must fit on one line.
        if raw.get().bytes().any(|b| matches!(b, b'\n' | b'\r')) {
            return Ok(Self::compacted(raw));
        }
        Ok(Self(Arc::from(raw)))
    }
}

/// Unknown keys of a stored struct, kept in order and written back.
///
/// ```
/// use harness_core::message::UserMessage;
/// use harness_core::{Extra, Json};
///
/// let mut message = UserMessage::text("Hello");
/// let extra: &mut Extra = &mut message.extra;
/// extra.push("importance", Json::string("high"));
/// assert!(Json::of(&message)?.text().contains(r#""importance":"high""#));
/// # Ok::<(), serde_json::Error>(())
/// ```
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Extra(Option<Box<Entries>>);

type Entries = Vec<(Box<str>, Json)>;

impl Extra {
    /// Adds a key. An existing key of that name is kept, too.
    pub fn push(&mut self, key: impl Into<Box<str>>, value: Json) {
        self.0.get_or_insert_default().push((key.into(), value));
    }

    /// Returns the value of the last entry named `key`.
    pub fn get(&self, key: &str) -> Option<&Json> {
        self.0.as_ref()?.iter().rev().find(|(k, _)| **k == *key).map(|(_, v)| v)
    }

    /// Iterates over all entries in order.
    pub fn iter(&self) -> impl Iterator<Item = (&str, &Json)> {
        self.0.iter().flat_map(|entries| entries.iter()).map(|(k, v)| (&**k, v))
    }

    /// Whether there are no entries.
    pub fn is_empty(&self) -> bool {
        self.0.is_none()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[track_caller]
    fn check(input: &str, expected: &str) {
        assert_eq!(Json::parse(input).expect("valid JSON").text(), expected);
    }

    #[test]
    fn text_is_exact_except_for_white_space() {
        check("9007199254740993", "9007199254740993");
        check("1e400", "1e400");
        check("1.10", "1.10");
        check(" { \"z\" : 1,\n \"a\" : \" x \\\" y \" } ", r#"{"z":1,"a":" x \" y "}"#);
    }

    #[test]
    fn value_contains_no_line_break() {
        let read: Json = serde_json::from_str("{\"a\":\n1}").expect("valid JSON");
        assert_eq!(read.text(), r#"{"a":1}"#);
    }

    #[test]
    fn fault_23_depth_counts_lists_and_objects_outside_of_strings() {
        for (text, depth) in [
            ("1", 0),
            ("[]", 1),
            (r#"{"a":[{}],"b":[]}"#, 3),
            (r#"["[[[[",{"\"[[":"\\"},[]]"#, 2),
            (r#"[[],[[]],[]]"#, 3),
        ] {
            let value = Json::parse(text).expect("JSON");
            assert!(!value.is_deeper_than(depth), "{text}");
            assert!(depth == 0 || value.is_deeper_than(depth - 1), "{text}");
        }
    }

    #[test]
    fn texts_are_read_whatever_is_in_them() {
        let text = |json: &str| Json::parse(json).expect("JSON").lenient_text();
        assert_eq!(text(r#""a\u017c\n""#).as_deref(), Some("a\u{17c}\n"));
        assert_eq!(text(r#""\ud83d\ude80""#).as_deref(), Some("\u{1f680}"));
        assert_eq!(text(r#""a\ud83db\ude80\ud83d""#).as_deref(), Some("a\u{fffd}b\u{fffd}\u{fffd}"));
        assert_eq!((text("null"), text("[97]"), text("{}")), (None, None, None));
    }

    #[test]
    fn two_values_are_rejected() {
        assert!(Json::parse("1 2").is_err());
    }
}
