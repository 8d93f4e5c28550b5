//! Texts that no recording may hold.

use harness_core::Json;
use harness_core::port::{DeltaPart, Secret};

/// Shorter texts are no secrets: local servers take any word for a key, and a word may stand anywhere.
const SHORTEST: usize = 8;

/// What stands in the place of a secret.
const PLACEHOLDER: &str = "[key]";

/// Takes secrets out of what is written, and out of what is compared with it.
#[derive(Debug, Clone, Default)]
pub(super) struct Redaction {
    secrets: Vec<Secret>,
}

impl Redaction {
    /// Adds secrets.
    pub(super) fn add(&mut self, secrets: impl IntoIterator<Item = Secret>) {
        self.secrets.extend(secrets.into_iter().filter(|secret| secret.expose().len() >= SHORTEST));
    }

    /// The same, and the key of one request.
    pub(super) fn with(&self, key: Option<&Secret>) -> Self {
        let mut all = self.clone();
        all.add(key.cloned());
        all
    }

    /// A JSON text without the secrets, which stay within its strings: their escaped form is looked for too.
    pub(super) fn text(&self, text: String) -> String {
        self.secrets.iter().fold(text, |text, secret| {
            let plain = secret.expose();
            let escaped = Json::string(plain);
            let escaped = escaped.text().trim_matches('"');
            if text.contains(escaped) { text.replace(escaped, PLACEHOLDER) } else { text }
        })
    }

    /// A canonical request without the secrets.
    pub(super) fn request(&self, request: Json) -> Json {
        if self.secrets.is_empty() {
            return request;
        }
        Json::parse(&self.text(request.text().to_owned())).unwrap_or(request)
    }

    /// Pieces such that no secret is spread over several of them: where one is, neighbours are joined.
    pub(super) fn pieces(&self, parts: Vec<DeltaPart>) -> Vec<DeltaPart> {
        if self.secrets.is_empty() {
            return parts;
        }
        let joined = joined(&parts);
        let holds = |text: &str| self.secrets.iter().any(|secret| text.contains(secret.expose()));
        if joined.iter().filter_map(text_of).any(holds) { joined } else { parts }
    }
}

/// Neighbours of one kind as one piece.
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
    fn a_secret_is_taken_out_wherever_it_stands() {
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
    fn pieces_are_joined_only_where_a_secret_is_spread_over_them() {
        let text = |text: &str| DeltaPart::Text(text.to_owned());
        let mut redaction = Redaction::default();
        redaction.add([Secret::new("sk-12345")]);
        let harmless = vec![text("sk-1"), DeltaPart::Thinking("2345".to_owned()), text("2345")];
        assert_eq!(redaction.pieces(harmless.clone()), harmless);
        let spread = vec![text("my s"), text("k-1"), text("2345."), DeltaPart::Thinking("x".to_owned())];
        assert_eq!(redaction.pieces(spread), [text("my sk-12345."), DeltaPart::Thinking("x".to_owned())]);
    }
}
