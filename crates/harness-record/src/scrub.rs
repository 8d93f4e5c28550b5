//! Removing values from exact JSON, by path and by content.

use std::borrow::Cow;

use harness_core::Json;
use harness_core::redact::{KnownSecrets, REDACTED};

/// Minimum length of a text to redact by content.
const SHORTEST_TEXT: usize = 4;

/// Minimum digits of a number to redact by content.
const SHORTEST_NUMBER: usize = 6;

fn object(entries: &[(String, Json)]) -> Json {
    let mut text = String::from("{");
    for (at, (key, value)) in entries.iter().enumerate() {
        if at > 0 {
            text.push(',');
        }
        text.push_str(Json::string(key).text());
        text.push(':');
        text.push_str(value.text());
    }
    text.push('}');
    Json::parse(&text).unwrap_or_else(|_| Json::string(REDACTED))
}

/// Splits a dotted path.
pub(super) fn segments(path: &str) -> Vec<&str> {
    path.split('.').map(str::trim).filter(|segment| !segment.is_empty()).collect()
}

/// Values at a path; several if an object repeats a key.
pub(super) fn at_path(value: &Json, path: &[&str]) -> Vec<Json> {
    let Some((first, rest)) = path.split_first() else { return vec![value.clone()] };
    if let Ok(entries) = value.entries() {
        return entries
            .iter()
            .filter(|(key, _)| key == first)
            .flat_map(|(_, value)| at_path(value, rest))
            .collect();
    }
    let (Ok(items), Ok(at)) = (value.to::<Vec<Json>>(), first.parse::<usize>()) else { return Vec::new() };
    items.get(at).map(|item| at_path(item, rest)).unwrap_or_default()
}

/// Replaces the values at a path; `None` without a value.
pub(super) fn without_path(value: &Json, path: &[&str]) -> Option<Json> {
    let Some((first, rest)) = path.split_first() else { return Some(Json::string(REDACTED)) };
    if let Ok(mut entries) = value.entries() {
        let mut changed = false;
        for (_, value) in entries.iter_mut().filter(|(key, _)| key == first) {
            if let Some(new) = without_path(value, rest) {
                (*value, changed) = (new, true);
            }
        }
        return changed.then(|| object(&entries));
    }
    let (mut items, at) = (value.to::<Vec<Json>>().ok()?, first.parse::<usize>().ok()?);
    let slot = items.get_mut(at)?;
    *slot = without_path(slot, rest)?;
    Json::of(&items).ok()
}

/// Values to redact by content.
#[derive(Clone, Debug)]
pub(super) struct Secrets {
    known: KnownSecrets,
    /// Numbers, which are redacted as values.
    numbers: Vec<String>,
}

impl Default for Secrets {
    fn default() -> Self {
        Self { known: KnownSecrets::new(1, REDACTED), numbers: Vec::new() }
    }
}

impl Secrets {
    /// Adds the texts and long numbers of a value.
    pub(super) fn add(&mut self, value: &Json) {
        for token in tokens(value.text()) {
            match token {
                Token::String(literal) => {
                    let text: String = serde_json::from_str(literal).unwrap_or_default();
                    let text = text.trim();
                    if text.chars().count() >= SHORTEST_TEXT {
                        self.known.add(text);
                    }
                }
                Token::Plain(text) if text.bytes().filter(u8::is_ascii_digit).count() >= SHORTEST_NUMBER => {
                    self.known.add(text);
                    self.numbers.push(text.to_owned());
                }
                Token::Plain(_) | Token::Mark(_) => {}
            }
        }
    }

    /// Redacts a text.
    pub(super) fn text<'a>(&self, text: &'a str) -> Cow<'a, str> {
        self.known.text(text)
    }

    /// Redacts a value, including keys.
    pub(super) fn json(&self, value: &Json) -> Json {
        match self.known.json_with(value.text(), |between| self.numbers(between)) {
            Cow::Borrowed(_) => value.clone(),
            Cow::Owned(clean) => Json::parse(&clean).unwrap_or_else(|_| Json::string(REDACTED)),
        }
    }

    /// Redacts the numbers between the strings of a JSON text.
    fn numbers(&self, between: &str) -> String {
        let clean = tokens(between).map(|token| match token {
            Token::Plain(plain) if self.numbers.iter().any(|number| number == plain) => {
                Json::string(REDACTED).text().to_owned()
            }
            Token::Plain(other) | Token::String(other) => other.to_owned(),
            Token::Mark(mark) => mark.to_string(),
        });
        clean.collect()
    }
}

pub(super) enum Token<'a> {
    /// A quoted string.
    String(&'a str),
    /// A number or a literal.
    Plain(&'a str),
    /// Punctuation.
    Mark(char),
}

/// Splits a valid JSON text into tokens.
pub(super) fn tokens(text: &str) -> impl Iterator<Item = Token<'_>> {
    let mut rest = text;
    std::iter::from_fn(move || {
        let first = rest.chars().next()?;
        let end = match first {
            '"' => end_of_string(rest),
            '{' | '}' | '[' | ']' | ',' | ':' | ' ' | '\n' | '\r' | '\t' => {
                rest = rest.get(1..).unwrap_or_default();
                return Some(Token::Mark(first));
            }
            _ => rest.find(['{', '}', '[', ']', ',', ':', ' ', '\n', '\r', '\t']).unwrap_or(rest.len()),
        };
        let (token, tail) = rest.split_at_checked(end).unwrap_or((rest, ""));
        rest = tail;
        Some(if first == '"' { Token::String(token) } else { Token::Plain(token) })
    })
}

fn end_of_string(rest: &str) -> usize {
    let mut escaped = false;
    let end = rest.bytes().skip(1).position(|byte| {
        let ends = byte == b'"' && !escaped;
        escaped = byte == b'\\' && !escaped;
        ends
    });
    end.map_or(rest.len(), |at| at + 2)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[track_caller]
    fn check_path(value: &str, path: &str, expected: Option<&str>) {
        let value = Json::parse(value).unwrap();
        let without = without_path(&value, &segments(path));
        assert_eq!(without.as_ref().map(Json::text), expected);
    }

    #[test]
    fn path_removes_exactly_its_value() {
        check_path(r#"{"a":{"b":1.10,"c":2}}"#, "a.b", Some(r#"{"a":{"b":"[redacted]","c":2}}"#));
        check_path(r#"{"a":[{"b":1},{"b":2}]}"#, "a.1.b", Some(r#"{"a":[{"b":1},{"b":"[redacted]"}]}"#));
        check_path(r#"{"a":1,"a":2}"#, " a ", Some(r#"{"a":"[redacted]","a":"[redacted]"}"#));
        check_path(r#"{"a":1}"#, "b", None);
        check_path(r#"{"a":1}"#, "a.b", None);
        check_path("7", "a", None);
    }

    #[test]
    fn secrets_are_found_everywhere() {
        let mut secrets = Secrets::default();
        secrets.add(&Json::parse(r#"{"mail":"a@b.de","n":4111111111111111,"ok":true,"x":"ab"}"#).unwrap());
        assert_eq!(secrets.text("to a@b.de, not ab"), "to [redacted], not ab");
        let value = Json::parse(r#"{"a@b.de":["x a@b.de",4111111111111111,41,true]}"#).unwrap();
        let clean = r#"{"[redacted]":["x [redacted]","[redacted]",41,true]}"#;
        assert_eq!(secrets.json(&value).text(), clean);
    }

    #[test]
    fn escaped_secret_is_found() {
        let mut secrets = Secrets::default();
        secrets.add(&Json::string("Zoë \"Z\""));
        let value = Json::parse(r#"["Zo\u00eb \"Z\" said"]"#).unwrap();
        assert_eq!(secrets.json(&value).text(), r#"["[redacted] said"]"#);
    }
}
