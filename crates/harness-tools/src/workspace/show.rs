//! Results about files for the model, bounded.

use harness_core::{Json, JsonObject};
use harness_host::{WorkspaceEntry, WorkspaceHit};

/// The most bytes that a result may have: 50 KiB.
pub(crate) const MOST: usize = 51_200;

/// Note at the end of a cut list.
const LIST_CUT: &str = "Output exceeded 50KB; narrow the query or lower the limit.";

/// Entries of a listing.
pub(crate) fn entries(entries: &[WorkspaceEntry]) -> String {
    list(entries.iter().map(|entry| {
        JsonObject::default()
            .with("path", Some(&entry.path))
            .with("type", Some(entry.kind.as_str()))
            .with("provider", filled(entry.provider.as_deref()))
            .with("title", filled(entry.title.as_deref()))
            .with("revision", filled(entry.revision.as_deref()))
            .with("updatedAt", filled(entry.updated_at.as_deref()))
            .with("size", entry.size)
            .with("properties", object(entry.properties.iter()))
            .json()
    }))
}

/// Hits of a search.
pub(crate) fn hits(hits: &[WorkspaceHit]) -> String {
    list(hits.iter().map(|WorkspaceHit { entry, snippet, .. }| {
        let score = entry.properties.iter().find(|(key, _)| key == "score").and_then(|(_, text)| score(text));
        // An empty snippet hides the title.
        let preview = snippet.as_deref().or(entry.title.as_deref());
        let provider = entry.provider.as_deref().filter(|provider| !provider.is_empty());
        JsonObject::default()
            .with("path", Some(&entry.path))
            .with("provider", provider.or(Some("unknown")))
            .with("score", score.and_then(|score| Json::parse(&score).ok()))
            .with("preview", filled(preview))
            .with("properties", object(entry.properties.iter().filter(|(key, _)| key != "score")))
            .json()
    }))
}

/// A score as ECMAScript reads and prints a number; an empty text is 0.
fn score(text: &str) -> Option<String> {
    let text = text.trim();
    let number: f64 = if text.is_empty() { 0.0 } else { text.parse().ok()? };
    if !number.is_finite() || !text.bytes().all(|b| b.is_ascii_digit() || b"+-.eE".contains(&b)) {
        return None;
    }
    if number.fract() == 0.0 && number.abs() < 1e15 {
        #[expect(clippy::cast_possible_truncation, reason = "whole and within bounds")]
        return Some((number as i64).to_string());
    }
    Json::of(&number).ok().map(|json| json.text().to_owned())
}

/// The value of a JSON file.
pub(crate) fn json(path: &str, value: &Json) -> String {
    let object = JsonObject::default().with("path", Some(path)).with("json", Some(value)).json();
    object.indented(0, MOST).unwrap_or_else(|| cut_object(LIST_CUT))
}

fn cut_object(message: &str) -> String {
    let object = cut(None, message);
    object.indented(0, MOST).unwrap_or_default()
}

fn cut(omitted: Option<usize>, message: &str) -> Json {
    JsonObject::default()
        .with("_truncated", Some(true))
        .with("omitted", omitted)
        .with("message", Some(message))
        .json()
}

/// A list that loses items from its end until it fits, and then says how many.
fn list(items: impl Iterator<Item = Json>) -> String {
    let shown: Vec<Option<String>> = items.map(|item| item.indented(1, MOST)).collect();
    if let Some(all) = shown.iter().map(Option::as_deref).collect::<Option<Vec<_>>>() {
        let text = bracketed(&all);
        if text.len() <= MOST {
            return text;
        }
    }
    let mut kept: Vec<&str> = shown.iter().map_while(Option::as_deref).collect();
    // Each item costs its text, a comma, a line break and two spaces.
    let mut bytes: usize = kept.iter().map(|item| item.len() + 4).sum();
    loop {
        let note = cut(Some(shown.len() - kept.len()), LIST_CUT).indented(1, MOST).unwrap_or_default();
        if bytes + note.len() + 6 <= MOST || kept.is_empty() {
            kept.push(&note);
            return bracketed(&kept);
        }
        bytes -= kept.pop().map_or(0, |item| item.len() + 4);
    }
}

fn bracketed(items: &[&str]) -> String {
    if items.is_empty() { "[]".to_owned() } else { format!("[\n  {}\n]", items.join(",\n  ")) }
}

/// A text that is not empty.
fn filled(text: Option<&str>) -> Option<&str> {
    text.filter(|text| !text.is_empty())
}

/// An object of these pairs, if there are any.
fn object<'t>(pairs: impl Iterator<Item = &'t (String, String)>) -> Option<JsonObject> {
    let object: JsonObject = pairs.map(|(key, value)| (key.as_str(), Json::string(value))).collect();
    Some(object).filter(|object| !object.is_empty())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[track_caller]
    fn check(text: &str, expected: Option<&str>) {
        assert_eq!(score(text).as_deref(), expected);
    }

    #[test]
    fn scores_are_read_as_numbers() {
        check("", Some("0"));
        check(" 12 ", Some("12"));
        check("0.5", Some("0.5"));
        check("-0", Some("0"));
        check("high", None);
        check("inf", None);
        check("1e999", None);
    }
}
