//! Reads the keys of a mapping, and reports those that are invalid.

use std::time::Duration;

use harness_core::{Json, Millis};

use crate::document::{Document, Entry, Kind, NodeId};
use crate::findings::Findings;
use crate::suggest;

/// The keys of one mapping.
///
/// A getter returns `None` for a key that is absent, and for one whose value is invalid, which it
/// reports. Messages name values by their dotted path, such as `tools.look.timeout`.
#[derive(Debug)]
pub struct Fields<'a> {
    findings: &'a Findings<'a>,
    node: NodeId,
    path: String,
    /// Name of the mapping in messages.
    owner: String,
}

impl<'a> Fields<'a> {
    /// The keys of a whole document, which messages call `owner`; `None`, reported, if it is not a
    /// mapping.
    pub fn root(findings: &'a Findings<'a>, owner: &str) -> Option<Self> {
        let document = findings.document();
        let root = document.root().unwrap_or(NodeId::NONE);
        if document.entries(root).is_none() {
            let found = document.describe_kind(root);
            findings.value(root, format!("{owner} must be a mapping, not {found}"), None);
            return None;
        }
        Some(Self { findings, node: root, path: String::new(), owner: owner.to_owned() })
    }

    /// The keys of the mapping under `key`; `None`, reported, if it is not a mapping.
    pub fn section(&self, key: &str, hint: &str) -> Option<Self> {
        let node = self.node(key)?;
        if self.document().entries(node).is_none() {
            self.expected(key, "a mapping", hint);
            return None;
        }
        let path = self.path_of(key);
        Some(Self { findings: self.findings, node, owner: path.clone(), path })
    }

    /// Like [`Self::section`], but `null` counts as an empty mapping.
    pub fn section_or_empty(&self, key: &str, hint: &str) -> Option<Self> {
        let node = self.node(key)?;
        if !self.document().is_null(node) {
            return self.section(key, hint);
        }
        let path = self.path_of(key);
        Some(Self { findings: self.findings, node, owner: path.clone(), path })
    }

    /// The document that is read.
    pub fn document(&self) -> &'a Document {
        self.findings.document()
    }

    /// Where errors are reported.
    pub fn findings(&self) -> &'a Findings<'a> {
        self.findings
    }

    /// The names of all keys, in the order of the text.
    pub fn keys(&self) -> impl Iterator<Item = &'a str> + use<'a> {
        let document = self.document();
        document.entries(self.node).unwrap_or_default().iter().map(move |entry| document.resolve(&entry.key))
    }

    /// The value of a key.
    pub fn node(&self, key: &str) -> Option<NodeId> {
        self.document().get(self.node, key)
    }

    /// Whether the key is present.
    pub fn has(&self, key: &str) -> bool {
        self.node(key).is_some()
    }

    fn entry(&self, key: &str) -> Option<&'a Entry> {
        self.document().entry(self.node, key)
    }

    /// Dotted path of a key.
    pub fn path_of(&self, key: &str) -> String {
        if self.path.is_empty() { key.to_owned() } else { format!("{}.{key}", self.path) }
    }

    /// Reports the keys that are not among `known`.
    pub fn known(&self, known: &[&str]) {
        for key in self.keys().filter(|key| !known.contains(key)) {
            let message = format!("unknown key `{key}` in {}", self.owner);
            self.key_error(key, message, suggest::hint(key, known.iter().copied()));
        }
    }

    /// Reports an error of a value: `{path}: {problem}`.
    pub fn error(&self, key: &str, problem: impl AsRef<str>, hint: impl Into<String>) {
        let message = format!("{}: {}", self.path_of(key), problem.as_ref());
        self.findings.value(self.node(key).unwrap_or(self.node), message, Some(hint.into()));
    }

    /// Reports an error at a key.
    pub fn key_error(&self, key: &str, message: impl Into<String>, hint: impl Into<String>) {
        match self.entry(key) {
            Some(entry) => self.findings.at(entry.key_bytes, message, Some(hint.into())),
            None => self.findings.value(self.node, message, Some(hint.into())),
        }
    }

    /// Reports a value that is not what it must be: `{path} must be {what}, not {found}`.
    pub fn expected(&self, key: &str, what: &str, hint: &str) {
        self.mismatch(self.node(key).unwrap_or(self.node), &self.path_of(key), what, hint);
    }

    fn mismatch(&self, node: NodeId, path: &str, what: &str, hint: &str) {
        // A string in place of a mapping may be a line of a different file, such as a key file.
        let document = self.document();
        let is_mapping = what.contains("mapping");
        let found = if is_mapping { document.describe_kind(node) } else { document.describe(node) };
        let message = format!("{path} must be {what}, not {found}");
        self.findings.value(node, message, Some(hint.to_owned()).filter(|hint| !hint.is_empty()));
    }

    /// Reports a required key that is absent, at the key of its mapping.
    pub fn missing(&self, key: &str, hint: &str) {
        self.own_error(format!("missing `{key}` in {}", self.owner), hint);
    }

    /// Reports an error of the whole mapping, at its key.
    pub fn own_error(&self, message: impl Into<String>, hint: &str) {
        let document = self.document();
        let own = document.key_of(self.node).unwrap_or_else(|| document.bytes(self.node));
        self.findings.at(own, message, Some(hint.to_owned()));
    }

    /// A string.
    pub fn text(&self, key: &str) -> Option<String> {
        self.string(self.node(key)?, &self.path_of(key))
    }

    /// A required string that is not blank; the empty string if it was reported.
    pub fn required(&self, key: &str, hint: &str) -> String {
        if !self.has(key) {
            self.missing(key, hint);
            return String::new();
        }
        let text = self.text(key);
        if text.as_deref().is_some_and(|text| text.trim().is_empty()) {
            self.error(key, "the string is empty", hint);
        }
        text.unwrap_or_default()
    }

    fn string(&self, node: NodeId, path: &str) -> Option<String> {
        let document = self.document();
        let text = match document.kind(node) {
            Kind::Text(text) => document.resolve(text),
            Kind::Instant(_) => document.written(node),
            Kind::Null | Kind::Bool(_) | Kind::Number(_) | Kind::List(_) | Kind::Map(_) => {
                self.mismatch(node, path, "a string", "put it in quotes");
                return None;
            }
        };
        if text.contains('\0') {
            self.findings.value(node, format!("{path} must not contain a NUL character"), None);
            return None;
        }
        Some(text.to_owned())
    }

    /// A list of strings; those that are not are reported and omitted.
    pub fn texts(&self, key: &str) -> Vec<String> {
        let Some(node) = self.node(key) else { return Vec::new() };
        let Some(items) = self.document().list(node) else {
            self.expected(key, "a list of strings", "write it as a list: `[a, b]`");
            return Vec::new();
        };
        let path = self.path_of(key);
        let item = |(at, node): (usize, &NodeId)| self.string(*node, &format!("{path}[{at}]"));
        items.iter().enumerate().filter_map(item).collect()
    }

    /// A mapping of strings; values that are not strings are reported and omitted.
    pub fn pairs(&self, key: &str) -> Vec<(String, String)> {
        let Some(fields) = self.section(key, "write it as `{ NAME: value }`") else { return Vec::new() };
        fields.keys().filter_map(|name| Some((name.to_owned(), fields.text(name)?))).collect()
    }

    /// `true` or `false`.
    pub fn flag(&self, key: &str) -> Option<bool> {
        if let Kind::Bool(value) = self.document().kind(self.node(key)?) {
            return Some(*value);
        }
        self.expected(key, "`true` or `false`", "");
        None
    }

    /// One of some words, as the value that it stands for.
    pub fn one_of<T: Copy>(&self, key: &str, words: &[(&str, T)]) -> Option<T> {
        let node = self.node(key)?;
        let word = self.document().string(node).unwrap_or_default();
        if let Some((_, value)) = words.iter().find(|(known, _)| *known == word) {
            return Some(*value);
        }
        let known = words.iter().map(|(known, _)| *known);
        let near = suggest::did_you_mean(word, known.clone()).unwrap_or_default();
        self.expected(key, &suggest::list(known, "or"), &near);
        None
    }

    /// A whole number within bounds.
    pub fn whole(&self, key: &str, least: u64, most: u64) -> Option<u64> {
        let node = self.node(key)?;
        let number = self.document().whole(node).filter(|number| (least..=most).contains(number));
        if number.is_none() {
            self.expected(key, &format!("a whole number from {least} to {most}"), "");
        }
        number
    }

    /// A duration with its unit, greater than zero and at most `most`.
    pub fn duration(&self, key: &str, most: Duration) -> Option<Duration> {
        let text = self.document().string(self.node(key)?).unwrap_or_default();
        let span = text.split_whitespace().collect::<String>().parse::<Millis>().ok();
        let span = span.map(Millis::duration).filter(|span| !span.is_zero() && *span <= most);
        if span.is_none() {
            let what = format!("a duration of at most {}", hours(most));
            self.expected(key, &what, "write a number with `ms`, `s`, `m` or `h`, such as `500ms` or `90s`");
        }
        span
    }

    /// A size in bytes within bounds, as a number or with the unit `B`, `KiB` or `MiB`.
    pub fn size(&self, key: &str, least: u64, most: u64) -> Option<u64> {
        let node = self.node(key)?;
        let size = match self.document().string(node) {
            Some(text) => size_in(text),
            None => self.document().whole(node),
        };
        let size = size.filter(|size| (least..=most).contains(size));
        if size.is_none() {
            let what = format!("a size from {} to {}", size_text(least), size_text(most));
            self.expected(key, &what, "write a number with `B`, `KiB` or `MiB`, such as `64KiB`");
        }
        size
    }
}

/// A limit of time in its largest whole unit.
fn hours(span: Duration) -> String {
    match span.as_secs() {
        secs if secs > 0 && secs.is_multiple_of(3600) => format!("{}h", secs / 3600),
        secs if secs > 0 && secs.is_multiple_of(60) => format!("{}m", secs / 60),
        secs => format!("{secs}s"),
    }
}

fn size_in(text: &str) -> Option<u64> {
    let text = text.trim();
    let (digits, unit) = text.split_at(text.find(|c: char| !c.is_ascii_digit())?);
    let factor = match unit.trim_start() {
        "B" => 1,
        "KiB" => 1 << 10,
        "MiB" => 1 << 20,
        _ => return None,
    };
    digits.parse::<u64>().ok()?.checked_mul(factor)
}

/// A size in its largest whole unit.
fn size_text(bytes: u64) -> String {
    match bytes {
        bytes if bytes >= 1 << 20 && bytes.is_multiple_of(1 << 20) => format!("{}MiB", bytes >> 20),
        bytes if bytes >= 1 << 10 && bytes.is_multiple_of(1 << 10) => format!("{}KiB", bytes >> 10),
        bytes => format!("{bytes}B"),
    }
}

impl Document {
    /// A node as JSON; `None` if it contains a number that JSON does not have.
    ///
    /// Numbers keep the digits of the text, and dates are strings as written.
    pub fn json(&self, id: NodeId) -> Option<Json> {
        let mut text = String::new();
        self.push_json(&mut text, id)?;
        Json::parse(&text).ok()
    }

    fn push_json(&self, out: &mut String, id: NodeId) -> Option<()> {
        match self.kind(id) {
            Kind::Null => out.push_str("null"),
            Kind::Bool(value) => out.push_str(if *value { "true" } else { "false" }),
            Kind::Number(number) => match Json::parse(self.written(id)) {
                Ok(exact) => out.push_str(exact.text()),
                Err(_) if number.is_finite() => crate::number::push_number(out, *number),
                Err(_) => return None,
            },
            Kind::Instant(_) => out.push_str(Json::string(self.written(id)).text()),
            Kind::Text(text) => out.push_str(Json::string(self.resolve(text)).text()),
            Kind::List(items) => {
                out.push('[');
                for (at, item) in items.iter().enumerate() {
                    out.push_str(if at == 0 { "" } else { "," });
                    self.push_json(out, *item)?;
                }
                out.push(']');
            }
            Kind::Map(entries) => {
                out.push('{');
                for (at, entry) in entries.iter().enumerate() {
                    out.push_str(if at == 0 { "" } else { "," });
                    out.push_str(Json::string(self.resolve(&entry.key)).text());
                    out.push(':');
                    self.push_json(out, entry.value)?;
                }
                out.push('}');
            }
        }
        Some(())
    }

    /// A number without fraction from 0 on, exact up to `u64::MAX` if it is written in decimal digits.
    pub fn whole(&self, id: NodeId) -> Option<u64> {
        const EXACT: f64 = 9_007_199_254_740_992.0;
        let Kind::Number(number) = self.kind(id) else { return None };
        if let Ok(exact) = self.written(id).parse() {
            return Some(exact);
        }
        let is_whole = number.fract() == 0.0 && (0.0..=EXACT).contains(number);
        #[expect(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "whole and in range")]
        is_whole.then_some(*number as u64)
    }

    /// The value for a message: a short scalar as written, else its kind.
    pub fn describe(&self, id: NodeId) -> String {
        const SHOWN: usize = 40;
        let kind = self.kind(id);
        match kind {
            Kind::Text(text) if self.resolve(text).trim().is_empty() => "an empty string".to_owned(),
            Kind::Bool(_) | Kind::Number(_) | Kind::Text(_) => {
                let text = match self.written(id) {
                    written if !written.is_empty() && !matches!(kind, Kind::Text(_)) => written.to_owned(),
                    _ => self.display_text(id),
                };
                let mut shown: String = text.chars().take(SHOWN).collect();
                if shown.len() < text.len() {
                    shown.push('…');
                }
                format!("`{shown}`")
            }
            Kind::Null | Kind::Instant(_) | Kind::List(_) | Kind::Map(_) => self.describe_kind(id),
        }
    }

    fn describe_kind(&self, id: NodeId) -> String {
        let kind = self.kind(id);
        let is_absent = matches!(kind, Kind::Null) && self.written(id).is_empty();
        if is_absent { "nothing".to_owned() } else { kind.name().to_owned() }
    }
}
