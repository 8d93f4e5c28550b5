//! Exact JSON: values that stay text, so that numbers, key order and unknown keys survive.

use std::fmt;
use std::sync::{Arc, LazyLock};

use serde::de::{DeserializeOwned, Error as _, MapAccess, Visitor};
use serde::{Deserialize, Deserializer, Serialize, Serializer};
use serde_json::value::RawValue;

static EMPTY_OBJECT: LazyLock<Json> = LazyLock::new(|| {
    Json(
        RawValue::from_string("{}".to_owned())
            .map_or_else(|_| Arc::from(RawValue::NULL.to_owned()), Arc::from),
    )
});

/// One valid JSON value, kept as the text it was written in.
///
/// Numbers are never rounded (`9007199254740993`, `1e400`, `1.10` come back as they were), keys keep
/// their order, and a clone is one reference count. The text never holds a raw line break, so a value
/// always fits on one line of a JSON Lines file.
///
/// Two values are equal when their texts are equal.
///
/// Because serde's buffered representations (`flatten`, `untagged`, internally tagged enums) cannot
/// carry raw text, do not use those attributes around a field of this type.
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

impl Json {
    /// Checks `text` and keeps it without the white space between its tokens.
    ///
    /// # Errors
    /// When `text` is not exactly one JSON value; the error names line and column.
    pub fn parse(text: &str) -> Result<Self, serde_json::Error> {
        let raw: Box<RawValue> = serde_json::from_str(text)?;
        Ok(Self::compacted(raw))
    }

    /// The JSON form of `value`.
    ///
    /// # Errors
    /// When `value` has no JSON form (for example a map whose keys are no strings).
    pub fn of<T: Serialize + ?Sized>(value: &T) -> Result<Self, serde_json::Error> {
        serde_json::value::to_raw_value(value).map(|raw| Self(Arc::from(raw)))
    }

    /// A JSON string. Total: every Rust string has a JSON form.
    pub fn string(text: &str) -> Self {
        Self::of(text).unwrap_or_else(|_| Self::null())
    }

    /// The value `null`.
    pub fn null() -> Self {
        Self(Arc::from(RawValue::NULL.to_owned()))
    }

    /// The value `{}`; shared, so it costs no allocation.
    pub fn empty_object() -> Self {
        EMPTY_OBJECT.clone()
    }

    /// The text of the value.
    pub fn text(&self) -> &str {
        self.0.get()
    }

    /// Decodes the value.
    ///
    /// # Errors
    /// When the value does not have the shape of `T`.
    pub fn to<T: DeserializeOwned>(&self) -> Result<T, serde_json::Error> {
        serde_json::from_str(self.text())
    }

    /// The entries of an object in their order, each with its exact value; a key that is repeated is there
    /// as often as it stands there.
    ///
    /// # Errors
    /// When it is no object.
    pub fn entries(&self) -> Result<Vec<(String, Json)>, serde_json::Error> {
        self.to::<Object>().map(|Object(entries)| entries)
    }

    /// Whether the value is `null`.
    pub fn is_null(&self) -> bool {
        self.text() == "null"
    }

    /// Whether the value is an object.
    pub fn is_object(&self) -> bool {
        self.text().starts_with('{')
    }

    /// Whether lists and objects lie inside each other more than `levels` deep. Looks at the text up to there and needs
    /// no stack of its own.
    pub(crate) fn is_deeper_than(&self, levels: usize) -> bool {
        // Each level takes two characters.
        if self.text().len() / 2 <= levels {
            return false;
        }
        let (mut depth, mut in_string, mut escaped) = (0_usize, false, false);
        for byte in self.text().bytes() {
            match byte {
                _ if escaped => escaped = false,
                b'\\' => escaped = in_string,
                b'"' => in_string = !in_string,
                b'[' | b'{' if !in_string => {
                    depth += 1;
                    if depth > levels {
                        return true;
                    }
                }
                b']' | b'}' if !in_string => depth = depth.saturating_sub(1),
                _ => {}
            }
        }
        false
    }

    fn compacted(raw: Box<RawValue>) -> Self {
        if !raw.get().bytes().any(|b| matches!(b, b' ' | b'\n' | b'\r' | b'\t')) {
            return Self(Arc::from(raw));
        }
        let compact = without_white_space(raw.get());
        Self(RawValue::from_string(compact).map_or_else(|_| Arc::from(raw), Arc::from))
    }
}

/// Removes white space between tokens; white space inside strings stays.
fn without_white_space(text: &str) -> String {
    let mut out = String::with_capacity(text.len());
    let (mut in_string, mut escaped) = (false, false);
    for c in text.chars() {
        if in_string {
            out.push(c);
            match (escaped, c) {
                (true, _) => escaped = false,
                (false, '\\') => escaped = true,
                (false, '"') => in_string = false,
                (false, _) => {}
            }
        } else if !matches!(c, ' ' | '\n' | '\r' | '\t') {
            in_string = c == '"';
            out.push(c);
        }
    }
    out
}

impl From<serde_json::Value> for Json {
    /// The value with the keys of its objects sorted: which order `serde_json` keeps them in depends on a
    /// feature that any part of a program may turn on, and neither a request nor a record may depend on that.
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
        // A value read from one line holds no raw line break; anything else is brought to one line.
        if raw.get().bytes().any(|b| matches!(b, b'\n' | b'\r')) {
            return Ok(Self::compacted(raw));
        }
        Ok(Self(Arc::from(raw)))
    }
}

/// All entries of an object, in their order.
struct Object(Vec<(String, Json)>);

impl<'de> Deserialize<'de> for Object {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        struct Collect;
        impl<'de> Visitor<'de> for Collect {
            type Value = Object;

            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str("an object")
            }

            fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<Object, A::Error> {
                let mut entries = Vec::new();
                while let Some(entry) = map.next_entry()? {
                    entries.push(entry);
                }
                Ok(Object(entries))
            }
        }
        deserializer.deserialize_map(Collect)
    }
}

/// Keys that a stored struct does not know, kept in their order and written back.
///
/// Empty in the common case, where it costs one word and no allocation.
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
    /// Adds a key. A key that is already there is kept, too.
    pub fn push(&mut self, key: impl Into<Box<str>>, value: Json) {
        self.0.get_or_insert_default().push((key.into(), value));
    }

    /// The value of the last entry named `key`.
    pub fn get(&self, key: &str) -> Option<&Json> {
        self.0.as_ref()?.iter().rev().find(|(k, _)| **k == *key).map(|(_, v)| v)
    }

    /// All entries in order.
    pub fn iter(&self) -> impl Iterator<Item = (&str, &Json)> {
        self.0.iter().flat_map(|entries| entries.iter()).map(|(k, v)| (&**k, v))
    }

    /// Whether there is no entry.
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
    fn text_is_kept_exactly_but_for_white_space() {
        check("9007199254740993", "9007199254740993");
        check("1e400", "1e400");
        check("1.10", "1.10");
        check(" { \"z\" : 1,\n \"a\" : \" x \\\" y \" } ", r#"{"z":1,"a":" x \" y "}"#);
    }

    #[test]
    fn a_value_never_holds_a_line_break() {
        let read: Json = serde_json::from_str("{\"a\":\n1}").expect("valid JSON");
        assert_eq!(read.text(), r#"{"a":1}"#);
    }

    #[test]
    fn the_entries_of_an_object_are_all_there_in_their_order() {
        let entries =
            Json::parse(r#"{"b":1.10,"a":{},"b":null}"#).expect("JSON").entries().expect("an object");
        let told: Vec<_> = entries.iter().map(|(key, value)| format!("{key}={value}")).collect();
        assert_eq!(told, ["b=1.10", "a={}", "b=null"]);
        assert!(Json::parse("[]").expect("JSON").entries().is_err());
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
    fn two_values_are_refused() {
        assert!(Json::parse("1 2").is_err());
    }
}
