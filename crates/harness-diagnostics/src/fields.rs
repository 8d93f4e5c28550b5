//! Reads the keys of a mapping, and reports those that are invalid.

use std::time::Duration;

use harness_core::{Json, Millis};

use crate::document::{Bytes, Document, Kind, NodeId};
use crate::findings::{Findings, Problem};
use crate::suggest;

/// The keys of one mapping.
///
/// A getter returns `None` for a key that is absent, and for one whose value is invalid, which it
/// reports. Messages name values by their dotted path, such as `tools.look.timeout`.
#[derive(Clone, Debug)]
pub struct Fields<'a> {
    findings: &'a Findings<'a>,
    node: NodeId,
    path: String,
    /// Name of the mapping in messages.
    owner: String,
    nulls_are_absent: bool,
}

impl<'a> Fields<'a> {
    /// The keys of a whole document, which messages call `owner`; `None`, reported, if it is not a
    /// mapping.
    pub fn root(findings: &'a Findings<'a>, owner: &str) -> Option<Self> {
        let item = Item::root(findings, owner);
        Some(Self { path: String::new(), ..item.section("")? })
    }

    /// The keys of the mapping under `key`; `None`, reported, if it is not a mapping.
    pub fn section(&self, key: &str, hint: &str) -> Option<Self> {
        self.item(key)?.section(hint)
    }

    /// Like [`Self::section`], but `null` counts as an empty mapping.
    pub fn section_or_empty(&self, key: &str, hint: &str) -> Option<Self> {
        let item = self.item(key)?;
        if self.document().is_null(item.node) { Some(item.fields()) } else { item.section(hint) }
    }

    /// The mappings in the list under `key`; items that are not mappings are reported and omitted.
    pub fn sections(&self, key: &str, hint: &str) -> Vec<Self> {
        let items = self.item(key).map(|item| item.items("a list of mappings", hint)).unwrap_or_default();
        items.iter().filter_map(|item| item.section(hint)).collect()
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

    /// Counts keys with `null` as absent, here and below.
    #[must_use]
    pub fn with_nulls_absent(self) -> Self {
        Self { nulls_are_absent: true, ..self }
    }

    /// The node of a key's value.
    pub fn node(&self, key: &str) -> Option<NodeId> {
        let node = self.document().get(self.node, key)?;
        Some(node).filter(|node| !(self.nulls_are_absent && self.document().is_null(*node)))
    }

    /// The value of a key, with its path.
    pub fn item(&self, key: &str) -> Option<Item<'a>> {
        Some(self.at(key, self.node(key)?))
    }

    /// Whether the key is present.
    pub fn has(&self, key: &str) -> bool {
        self.node(key).is_some()
    }

    /// Dotted path of a key.
    pub fn path_of(&self, key: &str) -> String {
        if self.path.is_empty() { key.to_owned() } else { format!("{}.{key}", self.path) }
    }

    /// Reports the keys that are not among `known`.
    pub fn known(&self, known: &[&str]) {
        for key in self.keys() {
            self.check_known(key, known, "");
        }
    }

    /// Like [`Self::known`], but keys that start with `x-` are notes.
    pub fn known_or_notes(&self, known: &[&str]) {
        for key in self.keys().filter(|key| !key.starts_with("x-")) {
            self.check_known(key, known, "; your own keys start with `x-`");
        }
    }

    fn check_known(&self, key: &str, known: &[&str], otherwise: &str) {
        if known.contains(&key) {
            return;
        }
        let names = known.iter().copied();
        let hint = suggest::did_you_mean(key, names.clone())
            .unwrap_or_else(|| format!("expected {}{otherwise}", suggest::list(names, "or")));
        let message = format!("unknown key `{key}` in {}", self.owner);
        self.findings.report(Problem::Unknown, self.key_bytes(key), message, Some(hint));
    }

    fn key_bytes(&self, key: &str) -> Bytes {
        let document = self.document();
        document.entry(self.node, key).map_or_else(|| document.bytes(self.node), |entry| entry.key_bytes)
    }

    /// Reports an error of a value: `{path}: {problem}`.
    pub fn error(&self, key: &str, problem: impl AsRef<str>, hint: impl Into<String>) {
        self.item_or_own(key).error(problem, hint);
    }

    /// Reports an error at a key.
    pub fn key_error(&self, key: &str, message: impl Into<String>, hint: impl Into<String>) {
        self.findings.at(self.key_bytes(key), message, Some(hint.into()));
    }

    /// Reports a value that is not what it must be: `{path} must be {what}, not {found}`.
    pub fn expected(&self, key: &str, what: &str, hint: &str) {
        self.item_or_own(key).expected(what, hint);
    }

    fn item_or_own(&self, key: &str) -> Item<'a> {
        self.at(key, self.node(key).unwrap_or(self.node))
    }

    fn at(&self, key: &str, node: NodeId) -> Item<'a> {
        let (path, nulls_are_absent) = (self.path_of(key), self.nulls_are_absent);
        Item { findings: self.findings, node, path, nulls_are_absent }
    }

    /// Reports a required key that is absent, at the key of its mapping.
    pub fn missing(&self, key: &str, hint: &str) {
        let message = format!("missing `{key}` in {}", self.owner);
        self.findings.report(Problem::Missing, self.own_bytes(), message, hint_of(hint));
    }

    /// Reports an error of the whole mapping, at its key.
    pub fn own_error(&self, message: impl Into<String>, hint: &str) {
        self.findings.at(self.own_bytes(), message, Some(hint.to_owned()));
    }

    fn own_bytes(&self) -> Bytes {
        let document = self.document();
        document.key_of(self.node).unwrap_or_else(|| document.bytes(self.node))
    }

    /// String under a key; any other value is a finding.
    pub fn text(&self, key: &str) -> Option<String> {
        self.item(key)?.text()
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

    /// A list of strings; those that are not are reported and omitted.
    pub fn texts(&self, key: &str) -> Vec<String> {
        let hint = "write it as a list: `[a, b]`";
        let items = self.item(key).map(|item| item.items("a list of strings", hint)).unwrap_or_default();
        items.iter().filter_map(Item::text).collect()
    }

    /// A mapping of strings; values that are not strings are reported and omitted.
    pub fn pairs(&self, key: &str) -> Vec<(String, String)> {
        let Some(fields) = self.section(key, "write it as `{ NAME: value }`") else { return Vec::new() };
        fields.keys().filter_map(|name| Some((name.to_owned(), fields.text(name)?))).collect()
    }

    /// `true` or `false`.
    pub fn flag(&self, key: &str) -> Option<bool> {
        self.item(key)?.flag()
    }

    /// One of some words, as the value that it stands for.
    pub fn one_of<T: Copy>(&self, key: &str, words: &[(&str, T)]) -> Option<T> {
        self.item(key)?.one_of(words)
    }

    /// A whole number within bounds.
    pub fn whole(&self, key: &str, least: u64, most: u64) -> Option<u64> {
        self.item(key)?.whole(least, most)
    }

    /// A duration with its unit, greater than zero and at most `most`.
    pub fn duration(&self, key: &str, most: Duration) -> Option<Duration> {
        self.item(key)?.duration(most)
    }

    /// A size in bytes within bounds, as a number or with the unit `B`, `KiB` or `MiB`.
    pub fn size(&self, key: &str, least: u64, most: u64) -> Option<u64> {
        self.item(key)?.size(least, most)
    }
}

/// A value with its path, under a key or in a list.
///
/// A getter returns `None` for a value of another form, which it reports.
#[derive(Clone, Debug)]
pub struct Item<'a> {
    findings: &'a Findings<'a>,
    node: NodeId,
    path: String,
    nulls_are_absent: bool,
}

impl<'a> Item<'a> {
    /// The value of a whole document, which messages call `name`.
    pub fn root(findings: &'a Findings<'a>, name: &str) -> Self {
        let node = findings.document().root().unwrap_or(NodeId::NONE);
        Self::at(findings, node, name)
    }

    /// A node of the document, which messages call `path`.
    pub fn at(findings: &'a Findings<'a>, node: NodeId, path: &str) -> Self {
        Self { findings, node, path: path.to_owned(), nulls_are_absent: false }
    }

    /// Node of the value in its document.
    pub fn node(&self) -> NodeId {
        self.node
    }

    /// Value of the node.
    pub fn kind(&self) -> &'a Kind {
        self.findings.document().kind(self.node)
    }

    /// Reports an error of the value: `{path}: {problem}`.
    pub fn error(&self, problem: impl AsRef<str>, hint: impl Into<String>) {
        let message = format!("{}: {}", self.path, problem.as_ref());
        self.findings.value(self.node, message, hint_of(hint));
    }

    /// Reports that the value is not what it must be: `{path} must be {what}, not {found}`.
    pub fn expected(&self, what: &str, hint: &str) {
        // A string in place of a mapping may be a line of a different file, such as a key file.
        let document = self.findings.document();
        let is_mapping = what.contains("mapping");
        let found = if is_mapping { document.describe_kind(self.node) } else { document.describe(self.node) };
        let message = format!("{} must be {what}, not {found}", self.path);
        self.findings.value(self.node, message, hint_of(hint));
    }

    /// The value of a getter; without one, the value is not what it must be.
    fn or_expected<T>(&self, value: Option<T>, what: &str, hint: &str) -> Option<T> {
        if value.is_none() {
            self.expected(what, hint);
        }
        value
    }

    /// The keys of a mapping.
    pub fn section(&self, hint: &str) -> Option<Fields<'a>> {
        let entries = self.findings.document().entries(self.node);
        self.or_expected(entries, "a mapping", hint)?;
        Some(self.fields())
    }

    fn fields(&self) -> Fields<'a> {
        let (owner, path) = (self.path.clone(), self.path.clone());
        let nulls_are_absent = self.nulls_are_absent;
        Fields { findings: self.findings, node: self.node, path, owner, nulls_are_absent }
    }

    /// The items of a list, which messages call `what`.
    pub fn items(&self, what: &str, hint: &str) -> Vec<Self> {
        let items = self.or_expected(self.findings.document().list(self.node), what, hint);
        let item = |(at, node): (usize, &NodeId)| {
            let path = format!("{}[{at}]", self.path);
            Self { findings: self.findings, node: *node, path, nulls_are_absent: self.nulls_are_absent }
        };
        items.unwrap_or_default().iter().enumerate().map(item).collect()
    }

    /// A string, or a date as written; anything else is not reported.
    pub fn as_str(&self) -> Option<&'a str> {
        let document = self.findings.document();
        match self.kind() {
            Kind::Text(text) => Some(document.resolve(text)),
            Kind::Instant(_) => Some(document.written(self.node)),
            Kind::Null | Kind::Bool(_) | Kind::Number(_) | Kind::List(_) | Kind::Map(_) => None,
        }
    }

    /// String of the node; any other value is a finding.
    pub fn text(&self) -> Option<String> {
        let hint = if matches!(self.kind(), Kind::List(_) | Kind::Map(_)) { "" } else { "put it in quotes" };
        let text = self.or_expected(self.as_str(), "a string", hint)?;
        if text.contains('\0') {
            let message = format!("{} must not contain a NUL character", self.path);
            self.findings.value(self.node, message, None);
            return None;
        }
        Some(text.to_owned())
    }

    /// `true` or `false`.
    pub fn flag(&self) -> Option<bool> {
        let flag = if let Kind::Bool(value) = self.kind() { Some(*value) } else { None };
        self.or_expected(flag, "`true` or `false`", "")
    }

    /// One of some words, as the value that it stands for.
    pub fn one_of<T: Copy>(&self, words: &[(&str, T)]) -> Option<T> {
        let word = self.findings.document().string(self.node).unwrap_or_default();
        let value = words.iter().find(|(known, _)| *known == word).map(|(_, value)| *value);
        let known = words.iter().map(|(known, _)| *known);
        let near = suggest::did_you_mean(word, known.clone()).unwrap_or_default();
        self.or_expected(value, &suggest::list(known, "or"), &near)
    }

    /// A whole number within bounds.
    pub fn whole(&self, least: u64, most: u64) -> Option<u64> {
        let written = self.findings.document().whole(self.node);
        let number = written.filter(|number| (least..=most).contains(number));
        // A bound that nobody reaches says nothing.
        let what = if most < u32::MAX.into() || written > Some(most) {
            format!("a whole number from {least} to {most}")
        } else {
            format!("a whole number from {least} on")
        };
        self.or_expected(number, &what, "")
    }

    /// A duration with its unit, greater than zero and at most `most`.
    pub fn duration(&self, most: Duration) -> Option<Duration> {
        let text = self.findings.document().string(self.node).unwrap_or_default();
        let span = text.split_whitespace().collect::<String>().parse::<Millis>().ok();
        let span = span.map(Millis::duration).filter(|span| !span.is_zero() && *span <= most);
        let what = format!("a duration of at most {}", hours(most));
        self.or_expected(span, &what, "write a number with `ms`, `s`, `m` or `h`, such as `500ms` or `90s`")
    }

    /// A size in bytes within bounds, as a number or with the unit `B`, `KiB` or `MiB`.
    pub fn size(&self, least: u64, most: u64) -> Option<u64> {
        let whole = || self.findings.document().whole(self.node);
        let size = self.as_str().map_or_else(whole, size_in);
        let size = size.filter(|size| (least..=most).contains(size));
        let what = format!("a size from {} to {}", size_text(least), size_text(most));
        self.or_expected(size, &what, "write a number with `B`, `KiB` or `MiB`, such as `64KiB`")
    }
}

fn hint_of(hint: impl Into<String>) -> Option<String> {
    Some(hint.into()).filter(|hint| !hint.is_empty())
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

#[cfg(test)]
mod tests {
    use super::*;
    use crate::findings::Codes;
    use crate::yaml::{YamlLimits, read};

    const CODES: Codes = Codes { unknown: "f.unknown", missing: "f.missing", invalid: "f.invalid" };

    #[track_caller]
    fn check(text: &str, visit: impl FnOnce(&Fields<'_>), expected: &[&str]) {
        let document = read(text, "f", &YamlLimits::for_text(1 << 16), None).unwrap();
        let findings = Findings::new(&document, CODES);
        if let Some(fields) = Fields::root(&findings, "the file") {
            visit(&fields);
        }
        let found = findings.into_diagnostics();
        let found: Vec<String> = found.iter().map(|error| format!("{error} ({})", error.code)).collect();
        assert_eq!(found, expected);
    }

    #[test]
    fn errors_have_place_path_suggestion_and_code() {
        let visit = |fields: &Fields<'_>| {
            fields.known(&["mode", "items"]);
            fields.one_of("mode", &[("strict", 1), ("loose", 2)]);
            for item in fields.sections("items", "write `- name: NAME`") {
                item.known_or_notes(&["name"]);
                item.required("name", "name it");
            }
        };
        check("", visit, &["f:1:1: the file must be a mapping, not nothing (f.invalid)"]);
        check(
            "mdoe: strict\nmode: strickt\nitems:\n- name: 7\n- { x-note: a, own: b }\n- c\n",
            visit,
            &[
                "f:1:1: unknown key `mdoe` in the file; did you mean `mode`? (f.unknown)",
                "f:2:7: mode must be `strict` or `loose`, not `strickt`; did you mean `strict`? (f.invalid)",
                "f:4:9: items[0].name must be a string, not `7`; put it in quotes (f.invalid)",
                "f:5:3: missing `name` in items[1]; name it (f.missing)",
                "f:5:16: unknown key `own` in items[1]; expected `name`; your own keys start with `x-` (f.unknown)",
                "f:6:3: items[2] must be a mapping, not a string; write `- name: NAME` (f.invalid)",
            ],
        );
    }

    #[test]
    fn values_keep_their_digits_and_dates_their_text() {
        let visit = |fields: &Fields<'_>| {
            assert_eq!(fields.whole("version", 0, u64::MAX), Some(u64::MAX));
            assert_eq!(fields.texts("days"), ["2026-01-02", "2026-01-02"]);
            let pairs = [("a".to_owned(), "x".to_owned()), ("b".to_owned(), "y".to_owned())];
            assert_eq!(fields.pairs("labels"), pairs);
        };
        let text =
            "version: 18446744073709551615\ndays: [&b 2026-01-02, *b]\nlabels: { a: x, <<: { b: 'y' } }\n";
        check(text, visit, &[]);
    }

    #[test]
    fn whole_numbers_name_the_bound_that_matters() {
        let visit = |fields: &Fields<'_>| {
            fields.whole("a", 1, 9);
            fields.whole("b", 1, u64::MAX - 1);
            fields.whole("c", 1, 1 << 32);
        };
        check(
            "a: 10\nb: 0\nc: 4294967297\n",
            visit,
            &[
                "f:1:4: a must be a whole number from 1 to 9, not `10` (f.invalid)",
                "f:2:4: b must be a whole number from 1 on, not `0` (f.invalid)",
                "f:3:4: c must be a whole number from 1 to 4294967296, not `4294967297` (f.invalid)",
            ],
        );
    }

    #[test]
    fn null_is_a_value_unless_it_counts_as_absent() {
        let visit = |fields: &Fields<'_>| _ = fields.text("a");
        check("a: ~\n", visit, &["f:1:4: a must be a string, not null; put it in quotes (f.invalid)"]);
        check("a: ~\n", |fields| visit(&fields.clone().with_nulls_absent()), &[]);
    }

    #[test]
    fn aliases_cannot_multiply_a_text() {
        let bomb = (1..10).fold("a0: &a0 [x, x, x, x, x, x, x, x, x, x]\n".to_owned(), |text, n| {
            let list = vec![format!("*a{}", n - 1); 10].join(", ");
            format!("{text}a{n}: &a{n} [{list}]\n")
        });
        let error = read(bomb, "f", &YamlLimits::for_text(1 << 16), None).unwrap_err();
        assert_eq!(crate::Diagnostic::from(error).code, "yaml.too_large");
    }
}
