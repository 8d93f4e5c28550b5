//! Differences between JSON values: in comparisons of records, and in replays of recordings.

use harness_core::{Json, canonical};
use serde::Serialize;

/// Maximum depth of a comparison; deeper values are compared as a whole.
const DEEPEST: usize = 64;
/// Maximum characters shown of a value.
const SHOWN: usize = 160;
/// Characters shown before the difference, if the start of the value is cut.
const BEFORE: usize = 30;

/// Kind of a difference.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum DifferenceKind {
    /// The values differ.
    Mismatch,
    /// The left side has no value.
    MissingLeft,
    /// The right side has no value.
    MissingRight,
}

/// Difference between two values. The left side is the recorded one.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[non_exhaustive]
pub struct Difference {
    /// Path of the values: `response`, `toolCalls[2].argsHash`, `messages[0].content, line 3`, …
    pub path: String,
    /// Kind of the difference.
    pub kind: DifferenceKind,
    /// Left value.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub left: Option<Json>,
    /// Right value.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub right: Option<Json>,
}

impl Difference {
    /// Compares two values by their canonical text.
    pub(crate) fn of(path: impl Into<String>, left: Option<Json>, right: Option<Json>) -> Option<Self> {
        if let (Some(left), Some(right)) = (&left, &right)
            && canonical::text(left) == canonical::text(right)
        {
            return None;
        }
        Self::new(path.into(), left, right)
    }

    fn new(path: String, left: Option<Json>, right: Option<Json>) -> Option<Self> {
        let kind = match (&left, &right) {
            (Some(_), Some(_)) => DifferenceKind::Mismatch,
            (None, Some(_)) => DifferenceKind::MissingLeft,
            (Some(_), None) => DifferenceKind::MissingRight,
            (None, None) => return None,
        };
        Some(Self { path, kind, left, right })
    }

    /// Finds the first difference inside two values, down to a line of a text. Numbers are compared exactly. `None` if
    /// at most the order of keys differs.
    pub(crate) fn first(left: &Json, right: &Json) -> Option<Self> {
        find(&mut String::new(), left, right, 0)
    }

    /// Human-readable line: `PATH: LEFT → RIGHT`, cut around the difference.
    pub fn line(&self) -> String {
        let same = match (&self.left, &self.right) {
            (Some(left), Some(right)) => {
                left.text().chars().zip(right.text().chars()).take_while(|(a, b)| a == b).count()
            }
            _ => 0,
        };
        let path = if self.path.is_empty() { "the request" } else { &self.path };
        format!("{path}: {} → {}", shown(self.left.as_ref(), same), shown(self.right.as_ref(), same))
    }
}

/// Cuts a value to a short line around its first difference.
fn shown(value: Option<&Json>, same: usize) -> String {
    let Some(text) = value.map(Json::text) else { return "nothing".to_owned() };
    let skipped = if text.chars().nth(SHOWN).is_some() { same.saturating_sub(BEFORE) } else { 0 };
    let window: String = text.chars().skip(skipped).take(SHOWN).collect();
    let (start, rest) = (if skipped > 0 { "…" } else { "" }, text.chars().nth(skipped.saturating_add(SHOWN)));
    format!("{start}{window}{}", if rest.is_some() { "…" } else { "" })
}

type Entries = [(String, Json)];

fn find(path: &mut String, left: &Json, right: &Json, depth: usize) -> Option<Difference> {
    if left.text() == right.text() {
        return None;
    }
    if depth < DEEPEST {
        if let (Ok(left), Ok(right)) = (left.entries(), right.entries()) {
            return in_objects(path, &left, &right, depth);
        }
        if let (Ok(left), Ok(right)) = (left.to::<Vec<Json>>(), right.to::<Vec<Json>>()) {
            return in_lists(path, &left, &right, depth);
        }
    }
    let whole = || Difference::new(path.clone(), Some(left.clone()), Some(right.clone()));
    in_texts(path, left, right).or_else(whole)
}

/// Finds the first different line of two texts with several lines.
fn in_texts(path: &str, left: &Json, right: &Json) -> Option<Difference> {
    let (left, right): (String, String) = (left.to().ok()?, right.to().ok()?);
    if !left.contains('\n') && !right.contains('\n') {
        return None;
    }
    let (mut lefts, mut rights) = (left.split('\n'), right.split('\n'));
    for number in 1_usize.. {
        let (left, right) = (lefts.next(), rights.next());
        if left.is_none() && right.is_none() {
            break;
        }
        if left != right {
            let path = format!("{path}, line {number}");
            return Difference::new(path, left.map(Json::string), right.map(Json::string));
        }
    }
    None
}

fn in_objects(path: &mut String, left: &Entries, right: &Entries, depth: usize) -> Option<Difference> {
    let added = right.iter().map(|(key, _)| key).filter(|key| value(left, key).is_none());
    let keys: Vec<&String> = left.iter().map(|(key, _)| key).chain(added).collect();
    keys.into_iter().find_map(|key| {
        let dot = if path.is_empty() { "" } else { "." };
        at(path, &format!("{dot}{key}"), value(left, key), value(right, key), depth)
    })
}

/// The first value of a key.
fn value<'a>(entries: &'a Entries, key: &str) -> Option<&'a Json> {
    entries.iter().find(|(known, _)| known == key).map(|(_, value)| value)
}

fn in_lists(path: &mut String, left: &[Json], right: &[Json], depth: usize) -> Option<Difference> {
    (0..left.len().max(right.len()))
        .find_map(|index| at(path, &format!("[{index}]"), left.get(index), right.get(index), depth))
}

/// Compares the values at one step below a path.
fn at(
    path: &mut String,
    step: &str,
    left: Option<&Json>,
    right: Option<&Json>,
    depth: usize,
) -> Option<Difference> {
    let length = path.len();
    path.push_str(step);
    let found = match (left, right) {
        (Some(left), Some(right)) => find(path, left, right, depth.saturating_add(1)),
        (left, right) => Difference::new(path.clone(), left.cloned(), right.cloned()),
    };
    path.truncate(length);
    found
}

#[cfg(test)]
mod tests {
    use super::*;

    #[track_caller]
    fn check(left: &str, right: &str, expected: &str) {
        let [left, right] = [left, right].map(|text| Json::parse(text).unwrap());
        let found = Difference::first(&left, &right).map(|found| found.line());
        assert_eq!(found.as_deref().unwrap_or("none"), expected);
    }

    #[test]
    fn first_difference_is_named_by_its_path() {
        check(
            r#"{"messages":[{"content":[{"text":"a"}]}]}"#,
            r#"{"messages":[{"content":[{"text":"b"}]}]}"#,
            r#"messages[0].content[0].text: "a" → "b""#,
        );
        check(r#"{"a":1}"#, r#"{"a":1,"b":2}"#, "b: nothing → 2");
        check(r#"{"a":[1,2]}"#, r#"{"a":[1]}"#, "a[1]: 2 → nothing");
        check("1", "[1]", "the request: 1 → [1]");
    }

    #[test]
    fn numbers_are_compared_as_texts() {
        check(
            r#"{"n":9007199254740993}"#,
            r#"{"n":9007199254740992}"#,
            "n: 9007199254740993 → 9007199254740992",
        );
        check(r#"{"n":1.10}"#, r#"{"n":1.1}"#, "n: 1.10 → 1.1");
    }

    #[test]
    fn order_of_keys_is_no_difference() {
        check(r#"{"a":1,"b":2}"#, r#"{"b":2,"a":1}"#, "none");
    }

    #[test]
    fn long_values_are_cut_around_the_difference() {
        let long = "x".repeat(200);
        let start = format!("…{}", "x".repeat(30));
        check(
            &format!("\"{long}a\""),
            &format!("\"{long}b\""),
            &format!("the request: {start}a\" → {start}b\""),
        );
    }

    #[test]
    fn texts_of_several_lines_are_compared_line_by_line() {
        check(
            r#"{"systemPrompt":"Be brief.\nBe kind.\nBye"}"#,
            r#"{"systemPrompt":"Be brief.\nBe rude.\nBye"}"#,
            r#"systemPrompt, line 2: "Be kind." → "Be rude.""#,
        );
        check(r#"["a"]"#, r#"["a\nb"]"#, r#"[0], line 2: nothing → "b""#);
        check(r#"["a\n"]"#, r#"["a"]"#, r#"[0], line 2: "" → nothing"#);
        check(r#"["a\nb"]"#, r#"[7]"#, r#"[0]: "a\nb" → 7"#);
    }

    #[test]
    fn deep_nesting_is_bounded() {
        let deep = |inner: &str| format!("{}{inner}{}", "[".repeat(5_000), "]".repeat(5_000));
        let [left, right] = ["1", "2"].map(|inner| Json::parse(&deep(inner)).unwrap());
        assert!(Difference::first(&left, &right).unwrap().line().starts_with("[0][0]"));
    }
}
