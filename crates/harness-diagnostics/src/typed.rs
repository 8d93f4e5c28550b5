//! Fills serde types from YAML, with the place of an error.

use std::fmt;

use serde::de::{
    DeserializeOwned, DeserializeSeed, Deserializer, Error as _, IntoDeserializer, MapAccess, SeqAccess,
    Unexpected, Visitor, value::MapAccessDeserializer, value::StrDeserializer,
};
use serde::forward_to_deserialize_any;

use crate::diagnostic::{Diagnostic, Severity};
use crate::document::{Bytes, Document, Entry, Kind, NodeId};
use crate::suggest;
use crate::yaml::{YamlLimits, read};

/// Reads a value from a YAML text that messages call `label`.
///
/// # Errors
/// The first error: of the text, with a code `yaml.…`, or of a value, with `code`.
///
/// ```
/// use harness_diagnostics::{Style, YamlLimits, typed::from_yaml};
///
/// #[derive(Debug, serde::Deserialize)]
/// #[serde(deny_unknown_fields)]
/// struct Suite {
///     cases: Vec<Case>,
/// }
///
/// #[derive(Debug, serde::Deserialize)]
/// #[serde(deny_unknown_fields)]
/// struct Case {
///     baseline: String,
/// }
///
/// let limits = YamlLimits::for_text(1 << 20);
/// let suite: Suite = from_yaml("cases: [{ baseline: a.json }]", "suite.yaml", &limits, "suite.invalid")?;
/// assert_eq!(suite.cases[0].baseline, "a.json");
///
/// let error = from_yaml::<Suite>("cases: [{ basline: a.json }]", "suite.yaml", &limits, "suite.invalid");
/// assert_eq!(error.unwrap_err().render(Style::Plain).to_string(), "\
/// suite.yaml:1:11: error[suite.invalid]: cases[0]: unknown key `basline`
///   |
/// 1 | cases: [{ basline: a.json }]
///   |           ^^^^^^^
/// help: did you mean `baseline`?
/// ");
/// # Ok::<(), Box<harness_diagnostics::Diagnostic>>(())
/// ```
pub fn from_yaml<T: DeserializeOwned>(
    text: &str,
    label: &str,
    limits: &YamlLimits,
    code: &'static str,
) -> Result<T, Box<Diagnostic>> {
    let document = read(text, label, limits, None).map_err(|error| Box::new(error.into()))?;
    from_document(&document, code)
}

/// Reads a value from a document.
///
/// # Errors
/// The first error, with `code`.
pub fn from_document<T: DeserializeOwned>(
    document: &Document,
    code: &'static str,
) -> Result<T, Box<Diagnostic>> {
    let node = document.root().unwrap_or(NodeId::NONE);
    T::deserialize(Value { document, node }).map_err(|error| {
        let Invalid { message, hint, path, bytes } = error;
        let message = if path.is_empty() { message } else { format!("{path}: {message}") };
        let place = document.place_of(bytes.unwrap_or_else(|| document.bytes(node)));
        Box::new(Diagnostic::new(Severity::Error, code, message).at(place).with_hint(hint))
    })
}

/// An error on its way out of the document.
#[derive(Debug)]
struct Invalid {
    message: String,
    hint: Option<String>,
    /// Dotted path of the value, as far as it is known.
    path: String,
    bytes: Option<Bytes>,
}

impl Invalid {
    /// Adds the place of the innermost value.
    fn or_at(mut self, bytes: Bytes) -> Self {
        self.bytes.get_or_insert(bytes);
        self
    }

    /// Adds the step from a value to the one that contains it.
    fn below(mut self, step: &str) -> Self {
        let joint = if self.path.is_empty() || self.path.starts_with('[') { "" } else { "." };
        self.path = format!("{step}{joint}{}", self.path);
        self
    }
}

impl fmt::Display for Invalid {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.message)
    }
}

impl std::error::Error for Invalid {}

impl serde::de::Error for Invalid {
    fn custom<T: fmt::Display>(message: T) -> Self {
        Self { message: message.to_string(), hint: None, path: String::new(), bytes: None }
    }

    fn invalid_type(found: Unexpected<'_>, expected: &dyn serde::de::Expected) -> Self {
        let expected = match expected.to_string() {
            kind if kind.starts_with("struct ") || kind == "a map" => "a mapping".to_owned(),
            kind if kind == "a sequence" => "a list".to_owned(),
            kind if kind.starts_with(['i', 'u']) && kind.len() <= 5 => "a whole number".to_owned(),
            kind => kind,
        };
        Self::custom(format!("expected {expected}, not {}", describe(found)))
    }

    fn invalid_value(found: Unexpected<'_>, expected: &dyn serde::de::Expected) -> Self {
        let found = if let Unexpected::Str(text) = found { format!("`{text}`") } else { describe(found) };
        Self::custom(format!("expected {expected}, not {found}"))
    }

    fn unknown_field(field: &str, expected: &'static [&'static str]) -> Self {
        let hint = suggest::hint(field, expected.iter().copied());
        Self { hint: Some(hint), ..Self::custom(format!("unknown key `{field}`")) }
    }

    fn unknown_variant(variant: &str, expected: &'static [&'static str]) -> Self {
        let hint = suggest::did_you_mean(variant, expected.iter().copied());
        let list = suggest::list(expected, "or");
        Self { hint, ..Self::custom(format!("expected {list}, not `{variant}`")) }
    }

    fn missing_field(field: &'static str) -> Self {
        Self::custom(format!("missing `{field}`"))
    }
}

#[expect(clippy::wildcard_enum_match_arm, reason = "the others do not occur in YAML")]
fn describe(found: Unexpected<'_>) -> String {
    match found {
        Unexpected::Unit | Unexpected::Option => "null".to_owned(),
        Unexpected::Seq => "a list".to_owned(),
        Unexpected::Map => "a mapping".to_owned(),
        // A string may be a line of a different file, such as a key file.
        Unexpected::Str(_) => "a string".to_owned(),
        Unexpected::Bool(value) => format!("`{value}`"),
        Unexpected::Unsigned(number) => format!("`{number}`"),
        Unexpected::Signed(number) => format!("`{number}`"),
        Unexpected::Float(number) => format!("`{number}`"),
        other => other.to_string(),
    }
}

/// A node as a source of data.
#[derive(Clone, Copy)]
struct Value<'d> {
    document: &'d Document,
    node: NodeId,
}

impl Value<'_> {
    fn at<T>(self, result: Result<T, Invalid>) -> Result<T, Invalid> {
        result.map_err(|error| error.or_at(self.document.bytes(self.node)))
    }

    fn visit<'de, V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, Invalid> {
        let document = self.document;
        match document.kind(self.node) {
            Kind::Null => visitor.visit_unit(),
            Kind::Bool(value) => visitor.visit_bool(*value),
            Kind::Number(number) => self.visit_number(*number, visitor),
            Kind::Instant(_) => visitor.visit_str(document.written(self.node)),
            Kind::Text(text) => visitor.visit_str(document.resolve(text)),
            Kind::List(items) => visitor.visit_seq(Items { document, rest: items.iter(), at: 0 }),
            Kind::Map(entries) => visitor.visit_map(Entries { document, rest: entries.iter(), next: None }),
        }
    }

    /// Whole numbers are exact as far as 64 bits reach.
    fn visit_number<'de, V: Visitor<'de>>(self, number: f64, visitor: V) -> Result<V::Value, Invalid> {
        if let Some(whole) = self.document.whole(self.node) {
            return visitor.visit_u64(whole);
        }
        match self.document.written(self.node).parse() {
            Ok(negative) => visitor.visit_i64(negative),
            Err(_) => visitor.visit_f64(number),
        }
    }
}

impl<'de> Deserializer<'de> for Value<'_> {
    type Error = Invalid;

    fn deserialize_any<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, Invalid> {
        self.at(self.visit(visitor))
    }

    fn deserialize_option<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, Invalid> {
        match self.document.kind(self.node) {
            Kind::Null => visitor.visit_none(),
            Kind::Bool(_)
            | Kind::Number(_)
            | Kind::Instant(_)
            | Kind::Text(_)
            | Kind::List(_)
            | Kind::Map(_) => self.at(visitor.visit_some(self)),
        }
    }

    fn deserialize_newtype_struct<V: Visitor<'de>>(
        self,
        _: &'static str,
        visitor: V,
    ) -> Result<V::Value, Invalid> {
        self.at(visitor.visit_newtype_struct(self))
    }

    fn deserialize_enum<V: Visitor<'de>>(
        self,
        _: &'static str,
        _: &'static [&'static str],
        visitor: V,
    ) -> Result<V::Value, Invalid> {
        let document = self.document;
        self.at(match document.kind(self.node) {
            Kind::Text(text) => {
                let word: StrDeserializer<'_, Invalid> = document.resolve(text).into_deserializer();
                visitor.visit_enum(word)
            }
            Kind::Map(entries) => {
                let entries = Entries { document, rest: entries.iter(), next: None };
                visitor.visit_enum(MapAccessDeserializer::new(entries))
            }
            Kind::Null | Kind::Bool(_) | Kind::Number(_) | Kind::Instant(_) | Kind::List(_) => {
                let found = document.describe(self.node);
                Err(Invalid::custom(format!("expected a word, not {found}")))
            }
        })
    }

    forward_to_deserialize_any! {
        bool i8 i16 i32 i64 i128 u8 u16 u32 u64 u128 f32 f64 char str string bytes byte_buf unit unit_struct
        seq tuple tuple_struct map struct identifier ignored_any
    }
}

struct Items<'d> {
    document: &'d Document,
    rest: std::slice::Iter<'d, NodeId>,
    at: usize,
}

impl<'de> SeqAccess<'de> for Items<'_> {
    type Error = Invalid;

    fn next_element_seed<T: DeserializeSeed<'de>>(&mut self, seed: T) -> Result<Option<T::Value>, Invalid> {
        let Some(node) = self.rest.next() else { return Ok(None) };
        let (document, at) = (self.document, self.at);
        self.at += 1;
        let item = seed.deserialize(Value { document, node: *node });
        item.map(Some).map_err(|error| error.below(&format!("[{at}]")))
    }
}

struct Entries<'d> {
    document: &'d Document,
    rest: std::slice::Iter<'d, Entry>,
    /// The entry whose value comes next.
    next: Option<&'d Entry>,
}

impl<'de> MapAccess<'de> for Entries<'_> {
    type Error = Invalid;

    fn next_key_seed<K: DeserializeSeed<'de>>(&mut self, seed: K) -> Result<Option<K::Value>, Invalid> {
        self.next = self.rest.next();
        let Some(entry) = self.next else { return Ok(None) };
        let key: StrDeserializer<'_, Invalid> = self.document.resolve(&entry.key).into_deserializer();
        seed.deserialize(key).map(Some).map_err(|error| error.or_at(entry.key_bytes))
    }

    fn next_value_seed<V: DeserializeSeed<'de>>(&mut self, seed: V) -> Result<V::Value, Invalid> {
        let Some(entry) = self.next.take() else { return Err(Invalid::custom("a value without a key")) };
        let document = self.document;
        let value = seed.deserialize(Value { document, node: entry.value });
        value.map_err(|error| error.below(document.resolve(&entry.key)))
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;

    use serde::Deserialize;

    use super::*;

    #[derive(Debug, Deserialize, PartialEq)]
    #[serde(deny_unknown_fields, rename_all = "snake_case")]
    struct File {
        version: u64,
        #[serde(default)]
        mode: Mode,
        #[serde(default)]
        items: Vec<Item>,
        #[serde(default)]
        labels: BTreeMap<String, String>,
        share: Option<f64>,
        offset: Option<i64>,
    }

    #[derive(Debug, Default, Deserialize, PartialEq)]
    #[serde(rename_all = "snake_case")]
    enum Mode {
        #[default]
        Strict,
        Loose,
    }

    #[derive(Debug, Deserialize, PartialEq)]
    #[serde(deny_unknown_fields)]
    struct Item {
        name: String,
    }

    fn file(text: &str) -> Result<File, Box<Diagnostic>> {
        from_yaml(text, "f", &YamlLimits::for_text(1 << 16), "file.invalid")
    }

    #[track_caller]
    fn refused(text: &str, expected: &str) {
        assert_eq!(file(text).unwrap_err().to_string(), expected);
    }

    #[test]
    fn values_keep_their_digits_and_dates_their_text() {
        let text = "
version: 18446744073709551615
mode: loose
items: [{ name: a }, &b { name: 2026-01-02 }, *b]
labels: { a: x, <<: { b: 'y' } }
share: 1
offset: -3
";
        let item = |name: &str| Item { name: name.to_owned() };
        let expected = File {
            version: u64::MAX,
            mode: Mode::Loose,
            items: vec![item("a"), item("2026-01-02"), item("2026-01-02")],
            labels: [("a".to_owned(), "x".to_owned()), ("b".to_owned(), "y".to_owned())].into(),
            share: Some(1.0),
            offset: Some(-3),
        };
        assert_eq!(file(text), Ok(expected));
    }

    #[test]
    fn errors_have_place_path_and_suggestion() {
        refused("", "f:1:1: expected a mapping, not null");
        refused("mode: strict\n", "f:1:1: missing `version`");
        refused("version: 1\nmdoe: strict\n", "f:2:1: unknown key `mdoe`; did you mean `mode`?");
        refused(
            "version: 1\nmode: strickt\n",
            "f:2:7: mode: expected `strict` or `loose`, not `strickt`; did you mean `strict`?",
        );
        refused("version: 1\nmode: [a]\n", "f:2:7: mode: expected a word, not a list");
        refused(
            "version: 1\nitems:\n- name: a\n- name: 7\n",
            "f:4:9: items[1].name: expected a string, not `7`",
        );
        refused("version: 1\nlabels: { a: ~ }\n", "f:2:14: labels.a: expected a string, not null");
        refused("version: 1\nversion: 2\n", "f:2:1: duplicate key `version`, first defined on line 1");
        refused(
            "version: [1\n",
            "f:1:10: invalid YAML: unclosed bracket '['; check indentation and quotes at that place",
        );
    }

    #[test]
    fn aliases_cannot_multiply_a_text() {
        let bomb = (1..10).fold("a0: &a0 [x, x, x, x, x, x, x, x, x, x]\n".to_owned(), |text, n| {
            let list = vec![format!("*a{}", n - 1); 10].join(", ");
            format!("{text}a{n}: &a{n} [{list}]\n")
        });
        let error = file(&bomb).unwrap_err();
        assert_eq!(error.code, "yaml.too_large", "{error}");
    }
}
