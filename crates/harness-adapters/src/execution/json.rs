//! JSON objects written key by key, and JSON laid out for a prompt.

use std::iter::{from_fn, repeat_n};

use harness_core::Json;
use serde::Serialize;
use serde::ser::{SerializeMap as _, Serializer};

/// Depth beyond which values are written on one line: indentation grows with the square of the
/// depth.
const DEEPEST: usize = 64;

/// An object with these keys, in this order.
pub(crate) fn object<'a>(entries: impl IntoIterator<Item = (&'a str, Json)>) -> Json {
    struct Object<'a>(Vec<(&'a str, Json)>);
    impl Serialize for Object<'_> {
        fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
            let mut map = serializer.serialize_map(Some(self.0.len()))?;
            for (key, value) in &self.0 {
                map.serialize_entry(key, value)?;
            }
            map.end()
        }
    }
    Json::of(&Object(entries.into_iter().collect())).unwrap_or_else(|_| Json::empty_object())
}

/// A value of an object: the last one of this name.
pub(crate) fn entry(object: &Json, name: &str) -> Option<Json> {
    object.entries().ok()?.into_iter().rev().find(|(key, _)| key == name).map(|(_, value)| value)
}

/// The value with two spaces of indentation: empty lists and objects on one line, keys in their order,
/// numbers as they are written, no needless escapes.
pub(crate) fn indented(value: &Json) -> String {
    let mut out = String::with_capacity(value.text().len().saturating_mul(2));
    let mut tokens = tokens(value.text()).peekable();
    let mut depth = 0_usize;
    while let Some(token) = tokens.next() {
        match token {
            "{" | "[" => {
                out.push_str(token);
                depth = depth.saturating_add(1);
                if let Some(close) = tokens.next_if(|next| matches!(*next, "}" | "]")) {
                    depth = depth.saturating_sub(1);
                    out.push_str(close);
                } else {
                    new_line(&mut out, depth, depth);
                }
            }
            "}" | "]" => {
                depth = depth.saturating_sub(1);
                new_line(&mut out, depth, depth.saturating_add(1));
                out.push_str(token);
            }
            "," => {
                out.push(',');
                new_line(&mut out, depth, depth);
            }
            ":" => out.push_str(": "),
            text if text.starts_with('"') => out.push_str(&without_needless_escapes(text)),
            plain => out.push_str(plain),
        }
    }
    out
}

/// Starts a new line at `depth`, unless the content at `inside` is too deep for separate lines.
fn new_line(out: &mut String, depth: usize, inside: usize) {
    if inside <= DEEPEST {
        out.push('\n');
        out.extend(repeat_n("  ", depth));
    }
}

/// The tokens of a JSON text, without the white space between them.
fn tokens(mut rest: &str) -> impl Iterator<Item = &str> {
    from_fn(move || {
        rest = rest.trim_start_matches([' ', '\n', '\r', '\t']);
        let first = rest.chars().next()?;
        let length = match first {
            '"' => string_length(rest),
            '{' | '}' | '[' | ']' | ',' | ':' => 1,
            _ => rest.find([',', '}', ']', ' ', '\n', '\r', '\t']).unwrap_or(rest.len()),
        };
        let (token, after) = rest.split_at_checked(length)?;
        rest = after;
        Some(token)
    })
}

/// The bytes of the string that `text` begins with, its quotes included.
fn string_length(text: &str) -> usize {
    let mut escaped = false;
    let end = text.bytes().enumerate().skip(1).find(|(_, byte)| {
        let ends = *byte == b'"' && !escaped;
        escaped = *byte == b'\\' && !escaped;
        ends
    });
    end.map_or(text.len(), |(at, _)| at.saturating_add(1))
}

/// The string with its characters in place of their escapes; as it is when it holds half a character.
fn without_needless_escapes(text: &str) -> String {
    let decoded = serde_json::from_str::<String>(text).ok();
    decoded.map_or_else(|| text.to_owned(), |decoded| Json::string(&decoded).text().to_owned())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[track_caller]
    fn check(value: &str, expected: &str) {
        assert_eq!(indented(&Json::parse(value).unwrap()), expected);
    }

    #[test]
    fn values_are_laid_out_with_two_spaces() {
        check(
            r#"{"a":{"b":[1,{"c":null}],"d":[]},"e":{},"g":1.50}"#,
            "{\n  \"a\": {\n    \"b\": [\n      1,\n      {\n        \"c\": null\n      }\n    ],\n    \"d\": []\n  },\n  \"e\": {},\n  \"g\": 1.50\n}",
        );
        check("[true, -1e9 ]", "[\n  true,\n  -1e9\n]");
        check("[]", "[]");
        check("7", "7");
    }

    #[test]
    fn white_space_of_the_source_does_not_count_and_that_of_strings_stays() {
        let json: Json = serde_json::from_str(r#"{ "a b" : [ ] , "c" : "{ }, [" }"#).unwrap();
        assert_eq!(indented(&json), "{\n  \"a b\": [],\n  \"c\": \"{ }, [\"\n}");
    }

    #[test]
    fn strings_are_written_with_as_few_escapes_as_can_be() {
        check(r#"["\u017c\/\u000a\"\\"]"#, "[\n  \"ż/\\n\\\"\\\\\"\n]");
        check(r#"["\ud800"]"#, "[\n  \"\\ud800\"\n]");
    }

    #[test]
    fn what_is_nested_without_end_stays_small() {
        let deep = format!("{}1{}", "[".repeat(100_000), "]".repeat(100_000));
        let shown = indented(&Json::parse(&deep).unwrap());
        assert!(shown.len() < 250_000, "{}", shown.len());
        assert_eq!(shown.matches('[').count(), 100_000);
    }

    #[test]
    fn an_object_keeps_the_order_of_its_keys() {
        let value = object([("b", Json::null()), ("a", Json::string("x"))]);
        assert_eq!(value.text(), r#"{"b":null,"a":"x"}"#);
    }
}
