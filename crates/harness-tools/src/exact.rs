//! Human-readable JSON with every number as written.

use harness_core::Json;
use harness_core::tool::ToolOutcome;
use serde::Serialize;

/// A success with data, which the model receives indented.
pub(crate) fn answered(value: &impl Serialize) -> ToolOutcome {
    let json = Json::of(value).unwrap_or_default();
    let mut outcome = ToolOutcome::text(indented(&json, 0, usize::MAX).unwrap_or_default());
    outcome.structured = Some(json);
    outcome
}

/// A JSON value, indented by two spaces; numbers, the order of keys and keys that occur twice
/// are kept. `None` when it would be longer than `most` bytes.
pub(crate) fn indented(value: &Json, depth: usize, most: usize) -> Option<String> {
    let mut out = Indented { text: String::new(), depth, most };
    let mut rest = value.text();
    while let Some(first) = rest.chars().next() {
        let length = match first {
            '"' => string_length(rest),
            '{' | '[' | '}' | ']' | ',' | ':' => 1,
            _ => rest.find([',', '}', ']']).unwrap_or(rest.len()),
        };
        let (token, after) = rest.split_at(length);
        rest = after;
        match first {
            '{' | '[' if rest.starts_with(['}', ']']) => {
                let (close, after) = rest.split_at(1);
                out.text.extend([token, close]);
                rest = after;
            }
            '{' | '[' => {
                out.text.push_str(token);
                out.depth += 1;
                out.line()?;
            }
            '}' | ']' => {
                out.depth = out.depth.saturating_sub(1);
                out.line()?;
                out.text.push_str(token);
            }
            ',' => {
                out.text.push_str(token);
                out.line()?;
            }
            ':' => out.text.push_str(": "),
            '"' => out.text.push_str(&plain(token)),
            _ => out.text.push_str(token),
        }
        if out.text.len() > most {
            return None;
        }
    }
    Some(out.text)
}

struct Indented {
    text: String,
    depth: usize,
    most: usize,
}

impl Indented {
    fn line(&mut self) -> Option<()> {
        if self.text.len() + 2 * self.depth >= self.most {
            return None;
        }
        self.text.push('\n');
        (0..self.depth).for_each(|_| self.text.push_str("  "));
        Some(())
    }
}

/// The length of the JSON string that the text begins with.
fn string_length(text: &str) -> usize {
    let mut escaped = false;
    for (at, byte) in text.bytes().enumerate().skip(1) {
        match (escaped, byte) {
            (true, _) => escaped = false,
            (false, b'\\') => escaped = true,
            (false, b'"') => return at + 1,
            (false, _) => {}
        }
    }
    text.len()
}

/// The string without escapes that are not needed; one that stands for no text (half a surrogate pair) stays.
fn plain(token: &str) -> String {
    let text: Result<String, _> = serde_json::from_str(token);
    text.map_or_else(|_| token.to_owned(), |text| Json::string(&text).text().to_owned())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[track_caller]
    fn check(json: &str, expected: Option<&str>) {
        assert_eq!(indented(&Json::parse(json).unwrap(), 0, 100).as_deref(), expected);
    }

    #[test]
    fn values_are_indented_and_numbers_exact() {
        check("null", Some("null"));
        check("[]", Some("[]"));
        check("[[],{}]", Some("[\n  [],\n  {}\n]"));
        check(
            r#"{"b":1.0,"a":12345678901234567890,"b":1e400}"#,
            Some("{\n  \"b\": 1.0,\n  \"a\": 12345678901234567890,\n  \"b\": 1e400\n}"),
        );
        check(
            r#"{"k":[1,{"x":true}]}"#,
            Some("{\n  \"k\": [\n    1,\n    {\n      \"x\": true\n    }\n  ]\n}"),
        );
    }

    #[test]
    fn strings_lose_only_needless_escapes() {
        check(r#""\u00fc\/\n,]\"""#, Some(r#""ü/\n,]\"""#));
        check(r#""\ud800""#, Some(r#""\ud800""#));
        check(r#"{"a:,":"b"}"#, Some("{\n  \"a:,\": \"b\"\n}"));
    }

    #[test]
    fn what_is_too_long_or_too_deep_is_refused() {
        check(&format!("\"{}\"", "x".repeat(99)), None);
        check(&format!("{}{}", "[".repeat(5_000), "]".repeat(5_000)), None);
    }
}
