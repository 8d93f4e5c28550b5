//! Where two JSON values part.

use harness_core::Json;
use serde_json::value::RawValue;

use crate::raw::Object;

/// Levels that are compared; deeper values are compared as a whole.
const DEEPEST: usize = 64;
/// Characters of a value that are shown.
const SHOWN: usize = 160;
/// Characters before the difference that are shown when the beginning is left out.
const BEFORE: usize = 30;

/// The first place in which `got` is not what was `expected`, for people: a path and both values.
pub(super) fn first_difference(expected: &Json, got: &Json) -> String {
    let values = (serde_json::from_str(expected.text()), serde_json::from_str(got.text()));
    let (Ok(expected), Ok(got)) = values else { return "one of them cannot be read".to_owned() };
    find(&mut String::new(), expected, got, 0).unwrap_or_else(|| "only the order of keys differs".to_owned())
}

fn find(path: &mut String, expected: &RawValue, got: &RawValue, depth: usize) -> Option<String> {
    if expected.get() == got.get() {
        return None;
    }
    if depth < DEEPEST {
        if let (Some(expected), Some(got)) = (object(expected), object(got)) {
            return in_objects(path, &expected, &got, depth);
        }
        if let (Some(expected), Some(got)) = (list(expected), list(got)) {
            return in_lists(path, &expected, &got, depth);
        }
    }
    Some(report(path, Some(expected), Some(got)))
}

fn in_objects(path: &mut String, expected: &Object<'_>, got: &Object<'_>, depth: usize) -> Option<String> {
    let value = |object: &Object<'_>, key: &str| {
        let entry = object.0.iter().find(|(known, _)| known == key);
        entry.map(|(_, value)| value.get().to_owned())
    };
    let added = got.0.iter().map(|(key, _)| key).filter(|key| value(expected, key).is_none());
    let keys: Vec<&String> = expected.0.iter().map(|(key, _)| key).chain(added).collect();
    keys.into_iter().find_map(|key| {
        let dot = if path.is_empty() { "" } else { "." };
        within(path, &format!("{dot}{key}"), |path| pair(path, value(expected, key), value(got, key), depth))
    })
}

fn in_lists(path: &mut String, expected: &[&RawValue], got: &[&RawValue], depth: usize) -> Option<String> {
    (0..expected.len().max(got.len())).find_map(|at| {
        let value = |list: &[&RawValue]| list.get(at).map(|value| value.get().to_owned());
        within(path, &format!("[{at}]"), |path| pair(path, value(expected), value(got), depth))
    })
}

fn within<T>(path: &mut String, step: &str, look: impl FnOnce(&mut String) -> T) -> T {
    let length = path.len();
    path.push_str(step);
    let found = look(path);
    path.truncate(length);
    found
}

fn pair(path: &mut String, expected: Option<String>, got: Option<String>, depth: usize) -> Option<String> {
    let raw = |text: Option<String>| text.and_then(|text| RawValue::from_string(text).ok());
    match (raw(expected), raw(got)) {
        (Some(expected), Some(got)) => find(path, &expected, &got, depth.saturating_add(1)),
        (expected, got) => Some(report(path, expected.as_deref(), got.as_deref())),
    }
}

fn report(path: &str, expected: Option<&RawValue>, got: Option<&RawValue>) -> String {
    let (expected, got) = (expected.map(RawValue::get), got.map(RawValue::get));
    let same = match (expected, got) {
        (Some(expected), Some(got)) => expected.chars().zip(got.chars()).take_while(|(a, b)| a == b).count(),
        _ => 0,
    };
    let path = if path.is_empty() { "the top" } else { path };
    format!("at {path}: expected {}, got {}", shown(expected, same), shown(got, same))
}

/// A value in one short line around the place from which it differs.
fn shown(value: Option<&str>, same: usize) -> String {
    let Some(text) = value else { return "nothing".to_owned() };
    let skipped = if text.chars().nth(SHOWN).is_some() { same.saturating_sub(BEFORE) } else { 0 };
    let window: String = text.chars().skip(skipped).take(SHOWN).collect();
    let (start, rest) = (if skipped > 0 { "…" } else { "" }, text.chars().nth(skipped.saturating_add(SHOWN)));
    format!("{start}{window}{}", if rest.is_some() { "…" } else { "" })
}

fn object(raw: &RawValue) -> Option<Object<'_>> {
    serde_json::from_str(raw.get()).ok()
}

fn list(raw: &RawValue) -> Option<Vec<&RawValue>> {
    serde_json::from_str(raw.get()).ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[track_caller]
    fn check(expected: &str, got: &str, difference: &str) {
        let [expected, got] = [expected, got].map(|text| Json::parse(text).unwrap());
        assert_eq!(first_difference(&expected, &got), difference);
    }

    #[test]
    fn the_first_difference_is_named_by_its_path() {
        check(
            r#"{"messages":[{"content":[{"text":"a"}]}]}"#,
            r#"{"messages":[{"content":[{"text":"b"}]}]}"#,
            r#"at messages[0].content[0].text: expected "a", got "b""#,
        );
        check(r#"{"a":1}"#, r#"{"a":1,"b":2}"#, "at b: expected nothing, got 2");
        check(r#"{"a":[1,2]}"#, r#"{"a":[1]}"#, "at a[1]: expected 2, got nothing");
        check("1", "[1]", "at the top: expected 1, got [1]");
    }

    #[test]
    fn numbers_are_compared_as_texts() {
        check(
            r#"{"n":9007199254740993}"#,
            r#"{"n":9007199254740992}"#,
            "at n: expected 9007199254740993, got 9007199254740992",
        );
        check(r#"{"n":1.10}"#, r#"{"n":1.1}"#, "at n: expected 1.10, got 1.1");
    }

    #[test]
    fn the_order_of_keys_is_a_difference_of_its_own() {
        check(r#"{"a":1,"b":2}"#, r#"{"b":2,"a":1}"#, "only the order of keys differs");
    }

    #[test]
    fn long_values_are_cut_around_the_difference() {
        let long = "x".repeat(200);
        let shown = format!("…{}", "x".repeat(30));
        check(
            &format!("\"{long}a\""),
            &format!("\"{long}b\""),
            &format!("at the top: expected {shown}a\", got {shown}b\""),
        );
    }

    #[test]
    fn deep_nesting_is_no_trouble() {
        let deep = |inner: &str| format!("{}{inner}{}", "[".repeat(5_000), "]".repeat(5_000));
        let [expected, got] = ["1", "2"].map(|inner| Json::parse(&deep(inner)).unwrap());
        assert!(first_difference(&expected, &got).starts_with("at [0][0]"));
    }
}
