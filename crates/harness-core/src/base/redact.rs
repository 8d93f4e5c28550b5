//! Taking known secrets out of texts: one rule for what runs store and emit, for records, for errors of models and tool
//! servers, and for terminals. What only looks like a secret is masked by [`display`](crate::display).

use std::borrow::Cow;
use std::fmt;

use crate::json::{Json, string_end};

/// The text in place of a secret in transcripts and records.
pub const REDACTED: &str = "[redacted]";

/// Known secrets, and how they are taken out of texts.
///
/// Secrets are found as they are and in their JSON form. Where they overlap, one placeholder stands for all of them.
///
/// ```
/// use harness_core::redact::KnownSecrets;
///
/// let mut secrets = KnownSecrets::new(6, "***");
/// secrets.add("sk-0123");
/// secrets.add("short");
/// assert_eq!(secrets.text("short: sk-0123."), "short: ***.");
/// assert_eq!(secrets.json(r#"{"key":"sk-0123","n":7}"#), r#"{"key":"***","n":7}"#);
/// assert_eq!(format!("{secrets:?}"), "KnownSecrets(1)");
/// ```
#[derive(Clone, PartialEq, Eq)]
pub struct KnownSecrets {
    /// The longest first.
    texts: Vec<String>,
    shortest: usize,
    shown: &'static str,
}

impl fmt::Debug for KnownSecrets {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "KnownSecrets({})", self.texts.len())
    }
}

impl KnownSecrets {
    /// None yet. Values of fewer than `shortest` bytes are not looked for, because they are words of ordinary text.
    /// `shown` stands for each secret.
    pub const fn new(shortest: usize, shown: &'static str) -> Self {
        Self { texts: Vec::new(), shortest, shown }
    }

    /// Adds a secret.
    pub fn add(&mut self, secret: &str) {
        if secret.is_empty() || secret.len() < self.shortest {
            return;
        }
        let escaped = Json::string(secret);
        self.texts.extend([secret, escaped.text().trim_matches('"')].map(str::to_owned));
        self.texts.sort_by(|a, b| b.len().cmp(&a.len()).then_with(|| a.cmp(b)));
        self.texts.dedup();
    }

    /// How many texts are looked for.
    pub fn len(&self) -> usize {
        self.texts.len()
    }

    /// Whether there are none.
    pub fn is_empty(&self) -> bool {
        self.texts.is_empty()
    }

    /// Whether a text holds one of them.
    pub fn are_in(&self, text: &str) -> bool {
        self.texts.iter().any(|secret| text.contains(secret.as_str()))
    }

    /// The text without secrets.
    pub fn text<'t>(&self, text: &'t str) -> Cow<'t, str> {
        let mut found = Vec::new();
        for secret in &self.texts {
            found.extend(text.match_indices(secret.as_str()).map(|(at, _)| (at, at + secret.len())));
        }
        if found.is_empty() {
            return Cow::Borrowed(text);
        }
        found.sort_unstable();
        let (mut clean, mut done) = (String::with_capacity(text.len()), 0);
        for (from, to) in found {
            if from >= done {
                clean.push_str(text.get(done..from).unwrap_or_default());
                clean.push_str(self.shown);
            }
            done = done.max(to);
        }
        clean.push_str(text.get(done..).unwrap_or_default());
        Cow::Owned(clean)
    }

    /// A JSON text without secrets. A secret of digits becomes another number of as many digits.
    pub fn json<'t>(&self, text: &'t str) -> Cow<'t, str> {
        let nines = |between: &str| {
            let found = self.texts.iter().filter(|secret| between.contains(secret.as_str()));
            found.fold(between.to_owned(), |text, secret| text.replace(secret, &"9".repeat(secret.len())))
        };
        self.json_with(text, nines)
    }

    /// A JSON text without secrets; `between` cleans what is between its strings.
    pub fn json_with<'t>(&self, text: &'t str, between: impl Fn(&str) -> String) -> Cow<'t, str> {
        if self.is_empty() || !(text.contains('\\') || self.are_in(text)) {
            return Cow::Borrowed(text);
        }
        let (mut clean, mut rest) = (String::with_capacity(text.len()), text);
        while let Some((before, string)) = rest.split_once('"') {
            clean.push_str(&between(before));
            let (literal, after) = string.split_at_checked(string_end(string)).unwrap_or((string, ""));
            let quoted = format!("\"{literal}\"");
            let value: String = serde_json::from_str(&quoted).unwrap_or_default();
            match self.text(&value) {
                Cow::Borrowed(_) => clean.push_str(&quoted),
                Cow::Owned(value) => clean.push_str(Json::string(&value).text()),
            }
            rest = after.strip_prefix('"').unwrap_or(after);
        }
        clean.push_str(&between(rest));
        if clean == text { Cow::Borrowed(text) } else { Cow::Owned(clean) }
    }

    /// The bytes at the end of a text that may be the beginning of a secret.
    pub(crate) fn held(&self, text: &str) -> usize {
        let tail = |secret: &String| {
            let lengths = (1..secret.len().min(text.len() + 1)).rev();
            lengths.into_iter().find(|length| secret.get(..*length).is_some_and(|part| text.ends_with(part)))
        };
        self.texts.iter().filter_map(tail).max().unwrap_or(0)
    }

    /// The first secret of a text, the longest one of those that begin there.
    pub(crate) fn first(&self, text: &str) -> Option<(usize, usize)> {
        let found = |secret: &String| text.find(secret.as_str()).map(|at| (at, at + secret.len()));
        self.texts.iter().filter_map(found).min_by_key(|(from, to)| (*from, usize::MAX - to))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[track_caller]
    fn check(secrets: &[&str], text: &str, expected: &str) {
        let mut known = KnownSecrets::new(6, "*");
        for secret in secrets {
            known.add(secret);
        }
        assert_eq!(known.text(text), expected);
        assert_eq!(known.are_in(text), text != expected);
        let json = Json::string(text);
        assert_eq!(known.json(json.text()), Json::string(expected).text());
    }

    #[test]
    fn a_secret_is_replaced_wherever_it_is() {
        check(&["secret"], "secret secrets sec", "* *s sec");
        check(&["tok-123456", "Bearer tok-123456", "short", ""], "Bearer tok-123456, short", "*, short");
        check(&["abcdefgh", "ghijklmnop"], "xabcdefghijklmnopx", "x*x");
        check(&["say \"hi\"\n"], r#"log: say \"hi\"\n."#, "log: *.");
    }
}
