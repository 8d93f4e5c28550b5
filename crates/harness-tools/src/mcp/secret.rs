//! Values that must not be printed.

use std::ffi::OsStr;
use std::fmt;

/// The shortest value that is taken for a secret: shorter ones are words of ordinary text.
const SHORTEST: usize = 6;

/// Replacement of a secret.
const HIDDEN: &str = "[hidden]";

/// Takes secrets out of texts that come from elsewhere: a server's stderr, an HTTP library's errors.
#[derive(Clone, Default)]
pub(crate) struct Secrets(Vec<String>);

impl Secrets {
    /// Adds a value.
    pub(crate) fn add(&mut self, value: &OsStr) {
        let Some(value) = value.to_str().map(str::trim).filter(|value| value.len() >= SHORTEST) else {
            return;
        };
        self.0.push(value.to_owned());
        // The longest first: one secret may hold another.
        self.0.sort_unstable_by_key(|value| std::cmp::Reverse(value.len()));
    }

    /// The text without them.
    pub(crate) fn hide(&self, text: &str) -> String {
        self.0.iter().fold(text.to_owned(), |text, secret| text.replace(secret.as_str(), HIDDEN))
    }
}

impl fmt::Debug for Secrets {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Secrets({})", self.0.len())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn secrets_are_taken_out_of_texts_and_debug_output() {
        let mut secrets = Secrets::default();
        for value in ["tok-123456", "Bearer tok-123456", "short", ""] {
            secrets.add(value.as_ref());
        }
        assert_eq!(
            secrets.hide("sent Bearer tok-123456, short: tok-123456"),
            "sent [hidden], short: [hidden]"
        );
        assert_eq!(format!("{secrets:?}"), "Secrets(2)");
    }
}
