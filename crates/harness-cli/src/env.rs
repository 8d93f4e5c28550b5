//! The environment: every name that the program reads, and the only code that reads it.

use std::path::PathBuf;

use harness::adapters::ApiKey;
use harness::host::process::Environment;

use crate::secrets;

/// The key for OpenRouter.
pub(crate) const OPENROUTER_KEY: &str = "OPENROUTER_API_KEY";

/// The key for an endpoint that is given with `--base-url`. A name of its own, so that the key of one
/// provider never travels to another.
pub(crate) const ENDPOINT_KEY: &str = "HARNESS_API_KEY";

/// The key for OpenAI.
pub(crate) const OPENAI_KEY: &str = "OPENAI_API_KEY";

/// The key for Anthropic.
pub(crate) const ANTHROPIC_KEY: &str = "ANTHROPIC_API_KEY";

/// Another address of OpenRouter.
pub(crate) const OPENROUTER_URL: &str = "OPENROUTER_BASE_URL";

/// Another address of OpenAI.
pub(crate) const OPENAI_URL: &str = "OPENAI_BASE_URL";

/// Another address of Anthropic.
pub(crate) const ANTHROPIC_URL: &str = "ANTHROPIC_BASE_URL";

/// Another address of Ollama.
pub(crate) const OLLAMA_URL: &str = "OLLAMA_BASE_URL";

/// Another address of LM Studio.
pub(crate) const LMSTUDIO_URL: &str = "LMSTUDIO_BASE_URL";

/// The address of models whose names begin with `local/`.
pub(crate) const LOCAL_URL: &str = "HARNESS_LOCAL_BASE_URL";

/// The folder of the connection file of a relay broker.
pub(crate) const RELAY_STATE: &str = "AGENT_RELAY_STATE_DIR";

/// What `--log` takes when it is not given.
pub(crate) const LOG: &str = "HARNESS_LOG";

/// Headers for the collector of `--otlp`; the standard name.
pub(crate) const OTLP_HEADERS: &str = "OTEL_EXPORTER_OTLP_HEADERS";

/// What `bridge --channel` takes when it is not given.
pub(crate) const RELAY_CHANNEL: &str = "RELAY_CHANNEL";

/// What `bridge --worker-name` takes.
pub(crate) const RELAY_WORKER: &str = "RELAY_WORKER";

/// What `bridge --model` takes.
pub(crate) const RELAY_MODEL: &str = "RELAY_MODEL";

/// What `bridge --timeout-ms` takes.
pub(crate) const BRIDGE_TIMEOUT: &str = "BYOH_WORKER_TIMEOUT_MS";

/// The text of that name; an empty one counts as absent.
pub(crate) fn text(name: &str) -> Option<String> {
    #[expect(clippy::disallowed_methods, reason = "this module is the one that reads the environment")]
    let text = std::env::var(name).ok()?;
    (!text.trim().is_empty()).then_some(text)
}

/// The key of that name; an empty one counts as absent.
pub(crate) fn key(name: &str) -> Option<ApiKey> {
    text(name).map(ApiKey::new)
}

/// The ends of names that variables with secrets have.
const SECRET_NAMES: [&str; 6] = ["API_KEY", "_TOKEN", "_SECRET", "_PASSWORD", "_ACCESS_KEY", "_PRIVATE_KEY"];

/// Notes the secrets of the environment, used or not: a tool may find them in another way.
pub(crate) fn learn_secrets() {
    for (name, value) in surroundings().iter() {
        let (Some(name), Some(value)) = (name.to_str(), value.to_str()) else { continue };
        if name == OTLP_HEADERS {
            value
                .split(',')
                .filter_map(|header| header.split_once('='))
                .for_each(|(_, value)| secrets::learn(value));
        } else if SECRET_NAMES.iter().any(|end| name.to_ascii_uppercase().ends_with(end)) {
            secrets::learn(value);
        }
    }
}

/// All variables, from which programs that are started get their share.
pub(crate) fn surroundings() -> Environment {
    Environment::of_process()
}

/// The folder with the settings of this program, whether it is there or not; `None` without a home.
pub(crate) fn settings() -> Option<PathBuf> {
    let own = text("XDG_CONFIG_HOME").map(PathBuf::from).filter(|path| path.is_absolute());
    let config = own.or_else(|| Some(PathBuf::from(text("HOME")?).join(".config")));
    Some(config?.join("harness"))
}

/// The folder of what this program keeps for itself, whether it is there or not; `None` without a home.
pub(crate) fn state() -> Option<PathBuf> {
    let own = text("XDG_STATE_HOME").map(PathBuf::from).filter(|path| path.is_absolute());
    let state = own.or_else(|| Some(home()?.join(".local/state")));
    Some(state?.join("harness"))
}

/// The folder of the person's own files.
pub(crate) fn home() -> Option<PathBuf> {
    text("HOME").map(PathBuf::from)
}
