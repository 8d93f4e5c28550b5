//! Redaction of secrets in recordings.

use harness_core::Json;
use harness_core::port::{DeltaPart, Secret};

/// Minimum length of a secret in bytes. Local servers accept any word as a key, and words occur anywhere.
const SHORTEST: usize = 8;

/// Replacement of a secret.
const PLACEHOLDER: &str = "[key]";

/// Removes secrets from written and compared texts.
#[derive(Debug, Clone, Default)]
pub(super) struct Redaction {
    secrets: Vec<Secret>,
}

impl Redaction {
    /// Adds secrets.
    pub(super) fn add(&mut self, secrets: impl IntoIterator<Item = Secret>) {
        self.secrets.extend(secrets.into_iter().filter(|secret| secret.expose().len() >= SHORTEST));
    }

    /// Adds the key of one request to a copy.
    pub(super) fn with(&self, key: Option<&Secret>) -> Self {
        let mut all = self.clone();
        all.add(key.cloned());
        all
    }

    /// Redacts a JSON text, including escaped forms of the secrets.
    pub(super) fn text(&self, text: String) -> String {
        self.secrets.iter().fold(text, |text, secret| {
            let plain = secret.expose();
            let escaped = Json::string(plain);
            let escaped = escaped.text().trim_matches('"');
            if text.contains(escaped) { text.replace(escaped, PLACEHOLDER) } else { text }
        })
    }

    /// Redacts the form of a request.
    pub(super) fn request(&self, request: Json) -> Json {
        if self.secrets.is_empty() {
            return request;
        }
        Json::parse(&self.text(request.text().to_owned())).unwrap_or(request)
    }

    /// Joins neighboring deltas if a secret spans several of them.
    pub(super) fn deltas(&self, parts: Vec<DeltaPart>) -> Vec<DeltaPart> {
        if self.secrets.is_empty() {
            return parts;
        }
        let joined = joined(&parts);
        let holds = |text: &str| self.secrets.iter().any(|secret| text.contains(secret.expose()));
        if joined.iter().filter_map(text_of).any(holds) { joined } else { parts }
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
        assert_eq!(redaction.text(text.to_owned()), expected);
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
