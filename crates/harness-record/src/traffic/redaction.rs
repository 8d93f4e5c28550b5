//! Redaction of secrets in recordings.

use std::borrow::Cow;

use harness_core::Json;
use harness_core::port::{DeltaPart, Secret};
use harness_core::redact::KnownSecrets;

/// Minimum length of a secret in bytes. Local servers accept any word as a key, and words occur anywhere.
const SHORTEST: usize = 8;

/// Replacement of a secret.
const PLACEHOLDER: &str = "[key]";

/// Removes secrets from written and compared texts.
#[derive(Debug, Clone)]
pub(super) struct Redaction(KnownSecrets);

impl Default for Redaction {
    fn default() -> Self {
        Self(KnownSecrets::new(SHORTEST, PLACEHOLDER))
    }
}

impl Redaction {
    /// Adds secrets.
    pub(super) fn add(&mut self, secrets: impl IntoIterator<Item = Secret>) {
        secrets.into_iter().for_each(|secret| self.0.add(secret.expose()));
    }

    /// Adds the key of one request to a copy.
    pub(super) fn with(&self, key: Option<&Secret>) -> Self {
        let mut all = self.clone();
        all.add(key.cloned());
        all
    }

    /// Redacts a JSON text.
    pub(super) fn text(&self, text: &str) -> String {
        self.0.json(text).into_owned()
    }

    /// Redacts the form of a request.
    pub(super) fn request(&self, request: Json) -> Json {
        match self.0.json(request.text()) {
            Cow::Borrowed(_) => request,
            Cow::Owned(clean) => Json::parse(&clean).unwrap_or_else(|_| Json::string(PLACEHOLDER)),
        }
    }

    /// Joins neighboring deltas if a secret spans several of them.
    pub(super) fn deltas(&self, parts: Vec<DeltaPart>) -> Vec<DeltaPart> {
        if self.0.is_empty() {
            return parts;
        }
        let joined = joined(&parts);
        if joined.iter().filter_map(text_of).any(|text| self.0.are_in(text)) { joined } else { parts }
    }
}

/// Joins neighboring deltas of one kind.
fn joined(parts: &[DeltaPart]) -> Vec<DeltaPart> {
    let mut out: Vec<DeltaPart> = Vec::new();
    for part in parts {
        match (out.last_mut(), part) {
            (Some(DeltaPart::Text(text)), DeltaPart::Text(more))
            | (Some(DeltaPart::Thinking(text)), DeltaPart::Thinking(more)) => text.push_str(more),
            (
                Some(DeltaPart::CallArguments { index, text }),
                DeltaPart::CallArguments { index: same, text: more },
            ) if index == same => text.push_str(more),
            _ => out.push(part.clone()),
        }
    }
    out
}

fn text_of(part: &DeltaPart) -> Option<&str> {
    match part {
        DeltaPart::Text(text) | DeltaPart::Thinking(text) | DeltaPart::CallArguments { text, .. } => {
            Some(text)
        }
        DeltaPart::CallStarted { .. } | _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[track_caller]
    fn check(secret: &str, text: &str, expected: &str) {
        let mut redaction = Redaction::default();
        redaction.add([Secret::new(secret)]);
        assert_eq!(redaction.text(text), expected);
        assert!(!format!("{redaction:?}").contains(secret) || secret.is_empty());
    }

    #[test]
    fn secret_is_redacted_everywhere() {
        check(
            "sk-12345",
            r#"{"a":"sk-12345","b":["sk-1234 sk-12345"]}"#,
            r#"{"a":"[key]","b":["sk-1234 [key]"]}"#,
        );
        check(r#"sk-"\1234"#, r#"{"a":"sk-\"\\1234"}"#, r#"{"a":"[key]"}"#);
        check("ollama", r#"{"a":"ollama"}"#, r#"{"a":"ollama"}"#);
        check("", r#"{"a":""}"#, r#"{"a":""}"#);
    }

    #[test]
    fn deltas_are_joined_only_around_a_secret() {
        let text = |text: &str| DeltaPart::Text(text.to_owned());
        let mut redaction = Redaction::default();
        redaction.add([Secret::new("sk-12345")]);
        let harmless = vec![text("sk-1"), DeltaPart::Thinking("2345".to_owned()), text("2345")];
        assert_eq!(redaction.deltas(harmless.clone()), harmless);
        let spread = vec![text("my s"), text("k-1"), text("2345."), DeltaPart::Thinking("x".to_owned())];
        assert_eq!(redaction.deltas(spread), [text("my sk-12345."), DeltaPart::Thinking("x".to_owned())]);
    }
}
