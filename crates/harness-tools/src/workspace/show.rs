//! Results about files for the model, bounded.

use harness_core::Json;
use harness_host::{WorkspaceEntry, WorkspaceHit};
use serde::ser::{Serialize, SerializeMap, Serializer};

use crate::exact::indented;

/// The most bytes that a result may have: 50 KiB.
pub(crate) const MOST: usize = 51_200;

/// Note at the end of a cut list.
const LIST_CUT: &str = "Output exceeded 50KB; narrow the query or lower the limit.";

/// Entries of a listing.
pub(crate) fn entries(entries: &[WorkspaceEntry]) -> String {
    list(entries.iter().map(|entry| {
        Object::new()
            .text("path", Some(&entry.path))
            .text("type", Some(entry.kind.as_str()))
            .filled("provider", entry.provider.as_deref())
            .filled("title", entry.title.as_deref())
            .filled("revision", entry.revision.as_deref())
            .filled("updatedAt", entry.updated_at.as_deref())
            .value("size", entry.size.map(|size| size.to_string()))
            .pairs("properties", entry.properties.iter())
            .finish()
    }))
}

/// Hits of a search.
pub(crate) fn hits(hits: &[WorkspaceHit]) -> String {
    list(hits.iter().map(|WorkspaceHit { entry, snippet, .. }| {
        let score = entry.properties.iter().find(|(key, _)| key == "score").and_then(|(_, text)| score(text));
        // An empty snippet hides the title.
        let preview = snippet.as_deref().or(entry.title.as_deref());
        let provider = entry.provider.as_deref().filter(|provider| !provider.is_empty());
        Object::new()
            .text("path", Some(&entry.path))
            .text("provider", provider.or(Some("unknown")))
            .value("score", score)
            .filled("preview", preview)
            .pairs("properties", entry.properties.iter().filter(|(key, _)| key != "score"))
            .finish()
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
    let object = Object::new().text("path", Some(path)).value("json", Some(value.text().to_owned())).finish();
    indented(&object, 0, MOST).unwrap_or_else(|| cut_object(LIST_CUT))
}

fn cut_object(message: &str) -> String {
    let object = cut(None, message);
    indented(&object, 0, MOST).unwrap_or_default()
}

fn cut(omitted: Option<usize>, message: &str) -> Json {
    Object::new()
        .value("_truncated", Some("true".to_owned()))
        .value("omitted", omitted.map(|n| n.to_string()))
        .text("message", Some(message))
        .finish()
}

/// A list that loses items from its end until it fits, and then says how many.
fn list(items: impl Iterator<Item = Json>) -> String {
    let shown: Vec<Option<String>> = items.map(|item| indented(&item, 1, MOST)).collect();
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
        let note = indented(&cut(Some(shown.len() - kept.len()), LIST_CUT), 1, MOST).unwrap_or_default();
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

/// A JSON object of the present members, in order.
struct Object<'t>(Vec<(&'static str, Member<'t>)>);

enum Member<'t> {
    Text(&'t str),
    Raw(Json),
    Pairs(Vec<(&'t str, &'t str)>),
}

impl<'t> Object<'t> {
    fn new() -> Self {
        Self(Vec::new())
    }

    fn text(mut self, key: &'static str, text: Option<&'t str>) -> Self {
        self.0.extend(text.map(|text| (key, Member::Text(text))));
        self
    }

    /// A text that is not empty.
    fn filled(self, key: &'static str, text: Option<&'t str>) -> Self {
        self.text(key, text.filter(|text| !text.is_empty()))
    }

    /// A value as JSON text.
    fn value(mut self, key: &'static str, text: Option<String>) -> Self {
        self.0.extend(text.and_then(|text| Some((key, Member::Raw(Json::parse(&text).ok()?)))));
        self
    }

    fn pairs(mut self, key: &'static str, pairs: impl Iterator<Item = &'t (String, String)>) -> Self {
        let pairs: Vec<_> = pairs.map(|(key, value)| (&**key, &**value)).collect();
        if !pairs.is_empty() {
            self.0.push((key, Member::Pairs(pairs)));
        }
        self
    }

    fn finish(self) -> Json {
        Json::of(&self).unwrap_or_default()
    }
}

impl Serialize for Object<'_> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let mut map = serializer.serialize_map(Some(self.0.len()))?;
        for (key, member) in &self.0 {
            match member {
                Member::Text(text) => map.serialize_entry(key, text)?,
                Member::Raw(json) => map.serialize_entry(key, json)?,
                Member::Pairs(pairs) => map.serialize_entry(key, &Pairs(pairs))?,
            }
        }
        map.end()
    }
}

struct Pairs<'p>(&'p [(&'p str, &'p str)]);

impl Serialize for Pairs<'_> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_map(self.0.iter().copied())
    }
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
