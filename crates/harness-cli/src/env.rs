//! The environment: every name that the program reads, and the only code that reads it.

use harness::adapters::ApiKey;

/// The key for OpenRouter.
pub(crate) const OPENROUTER_KEY: &str = "OPENROUTER_API_KEY";

/// The key for an endpoint that is given with `--base-url`. A name of its own, so that the key of one
/// provider never travels to another.
pub(crate) const ENDPOINT_KEY: &str = "HARNESS_API_KEY";

/// What `--log` takes when it is not given.
pub(crate) const LOG: &str = "HARNESS_LOG";

/// The key of that name; an empty one counts as absent.
pub(crate) fn key(name: &str) -> Option<ApiKey> {
    #[expect(clippy::disallowed_methods, reason = "this module is the one that reads the environment")]
    let text = std::env::var(name).ok()?;
    let key = ApiKey::new(text);
    (!key.is_empty()).then_some(key)
}
