//! Redaction of secrets from the environment.

use std::fmt;

use harness_host::process::Environment;

/// The shortest value that is taken for a secret: shorter ones are words of ordinary text.
const SHORTEST: usize = 6;

/// Replacement of a secret.
const HIDDEN: &str = "[hidden]";

/// Variables whose names end so hold secrets.
const ENDINGS: [&str; 6] = ["KEY", "TOKEN", "SECRET", "PASSWORD", "PASSWD", "CREDENTIALS"];

/// The secrets that a program was given, to be taken out of what it prints.
#[derive(Clone, Default)]
pub(super) struct Secrets(Vec<String>);

impl Secrets {
    /// The values of variables whose names say that they are secrets.
    pub(super) fn of(env: &Environment) -> Self {
        let secret = |name: &str| ENDINGS.iter().any(|ending| name.ends_with(ending));
        let mut values: Vec<_> = env
            .iter()
            .filter(|(name, _)| name.to_str().is_some_and(|name| secret(&name.to_ascii_uppercase())))
            .filter_map(|(_, value)| value.to_str().map(|value| value.trim().to_owned()))
            .filter(|value| value.len() >= SHORTEST)
            .collect();
        // The longest first: one secret may hold another.
        values.sort_unstable_by_key(|value| std::cmp::Reverse(value.len()));
        Self(values)
    }

    /// The text without them.
    pub(super) fn hide(&self, text: String) -> String {
        self.0.iter().fold(text, |text, secret| {
            if text.contains(secret.as_str()) { text.replace(secret.as_str(), HIDDEN) } else { text }
        })
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

    #[track_caller]
    fn check(name: &str, value: &str, expected: &str) {
        let env = Environment::from_iter([(name, value)]);
        assert_eq!(Secrets::of(&env).hide("it printed sk-12345 here".to_owned()), expected);
    }

    #[test]
    fn values_of_secret_variables_are_taken_out() {
        check("ANTHROPIC_API_KEY", "sk-12345", "it printed [hidden] here");
        check("gh_token", " sk-12345\n", "it printed [hidden] here");
    }

    #[test]
    fn other_values_and_short_ones_stay() {
        check("HOME", "sk-12345", "it printed sk-12345 here");
        check("API_KEY", "here", "it printed sk-12345 here");
    }
}
