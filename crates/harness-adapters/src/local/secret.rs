//! Redaction of secrets from the environment.

use harness_core::redact::KnownSecrets;
use harness_host::process::Environment;

/// The shortest value that is taken for a secret: shorter ones are words of ordinary text.
const SHORTEST: usize = 6;

/// Replacement of a secret.
const HIDDEN: &str = "[hidden]";

/// Variables whose names end so hold secrets.
const ENDINGS: [&str; 6] = ["KEY", "TOKEN", "SECRET", "PASSWORD", "PASSWD", "CREDENTIALS"];

/// The values of variables whose names say that they are secrets, to be taken out of what a program prints.
pub(super) fn secrets_of(env: &Environment) -> KnownSecrets {
    let secret = |name: &str| ENDINGS.iter().any(|ending| name.ends_with(ending));
    let mut secrets = KnownSecrets::new(SHORTEST, HIDDEN);
    env.iter()
        .filter(|(name, _)| name.to_str().is_some_and(|name| secret(&name.to_ascii_uppercase())))
        .filter_map(|(_, value)| value.to_str())
        .for_each(|value| secrets.add(value.trim()));
    secrets
}

#[cfg(test)]
mod tests {
    use super::*;

    #[track_caller]
    fn check(name: &str, value: &str, expected: &str) {
        let env = Environment::from_iter([(name, value)]);
        assert_eq!(secrets_of(&env).text("it printed sk-12345 here"), expected);
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
