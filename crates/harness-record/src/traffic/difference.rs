//! Where two JSON values part.

use harness_core::Json;

/// Levels that are compared; deeper values are compared as a whole.
const DEEPEST: usize = 64;
/// Characters of a value that are shown.
const SHOWN: usize = 160;
/// Characters before the difference that are shown when the beginning is left out.
const BEFORE: usize = 30;

type Entries = [(String, Json)];

/// The first place in which `got` is not what was `expected`, for people: a path and both values.
pub(super) fn first_difference(expected: &Json, got: &Json) -> String {
    find(&mut String::new(), expected, got, 0).unwrap_or_else(|| "only the order of keys differs".to_owned())
}

fn find(path: &mut String, expected: &Json, got: &Json, depth: usize) -> Option<String> {
    if expected.text() == got.text() {
        return None;
    }
    if depth < DEEPEST {
        if let (Ok(expected), Ok(got)) = (expected.entries(), got.entries()) {
            return in_objects(path, &expected, &got, depth);
        }
        if let (Ok(expected), Ok(got)) = (expected.to::<Vec<Json>>(), got.to::<Vec<Json>>()) {
            return in_lists(path, &expected, &got, depth);
        }
    }
    in_texts(path, expected, got).or_else(|| Some(report(path, Some(expected.text()), Some(got.text()))))
}

/// The first line in which two texts of several lines part.
fn in_texts(path: &mut String, expected: &Json, got: &Json) -> Option<String> {
    let texts: (String, String) = (expected.to().ok()?, got.to().ok()?);
    if !texts.0.contains('\n') && !texts.1.contains('\n') {
        return None;
    }
    let (mut expected, mut got) = (texts.0.split('\n'), texts.1.split('\n'));
    for number in 1_usize.. {
        let (expected, got) = match (expected.next(), got.next()) {
            (None, None) => break,
            (expected, got) if expected == got => continue,
            (expected, got) => (expected.map(Json::string), got.map(Json::string)),
        };
        let (expected, got) = (expected.as_ref().map(Json::text), got.as_ref().map(Json::text));
        return Some(within(path, &format!(", line {number}"), |path| report(path, expected, got)));
    }
    None
}

fn in_objects(path: &mut String, expected: &Entries, got: &Entries, depth: usize) -> Option<String> {
    let added = got.iter().map(|(key, _)| key).filter(|key| value(expected, key).is_none());
    let keys: Vec<&String> = expected.iter().map(|(key, _)| key).chain(added).collect();
    keys.into_iter().find_map(|key| {
        let dot = if path.is_empty() { "" } else { "." };
        within(path, &format!("{dot}{key}"), |path| pair(path, value(expected, key), value(got, key), depth))
    })
}

/// The first of a key's values.
fn value<'a>(entries: &'a Entries, key: &str) -> Option<&'a Json> {
    entries.iter().find(|(known, _)| known == key).map(|(_, value)| value)
}

fn in_lists(path: &mut String, expected: &[Json], got: &[Json], depth: usize) -> Option<String> {
    (0..expected.len().max(got.len())).find_map(|at| {
        within(path, &format!("[{at}]"), |path| pair(path, expected.get(at), got.get(at), depth))
    })
}

fn within<T>(path: &mut String, step: &str, look: impl FnOnce(&mut String) -> T) -> T {
    let length = path.len();
    path.push_str(step);
    let found = look(path);
    path.truncate(length);
    found
}

fn pair(path: &mut String, expected: Option<&Json>, got: Option<&Json>, depth: usize) -> Option<String> {
    match (expected, got) {
        (Some(expected), Some(got)) => find(path, expected, got, depth.saturating_add(1)),
        (expected, got) => Some(report(path, expected.map(Json::text), got.map(Json::text))),
    }
}

fn report(path: &str, expected: Option<&str>, got: Option<&str>) -> String {
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
    fn texts_of_several_lines_are_compared_line_by_line() {
        check(
            r#"{"instructions":"Be brief.\nBe kind.\nBye"}"#,
            r#"{"instructions":"Be brief.\nBe rude.\nBye"}"#,
            r#"at instructions, line 2: expected "Be kind.", got "Be rude.""#,
        );
        check(r#"["a"]"#, r#"["a\nb"]"#, r#"at [0], line 2: expected nothing, got "b""#);
        check(r#"["a\n"]"#, r#"["a"]"#, r#"at [0], line 2: expected "", got nothing"#);
        check(r#"["a\nb"]"#, r#"[7]"#, r#"at [0]: expected "a\nb", got 7"#);
        check(r#"["\u0061\nb"]"#, r#"["a\nb"]"#, r#"at [0]: expected "\u0061\nb", got "a\nb""#);
    }

    #[test]
    fn deep_nesting_is_no_trouble() {
        let deep = |inner: &str| format!("{}{inner}{}", "[".repeat(5_000), "]".repeat(5_000));
        let [expected, got] = ["1", "2"].map(|inner| Json::parse(&deep(inner)).unwrap());
        assert!(first_difference(&expected, &got).starts_with("at [0][0]"));
    }
}
