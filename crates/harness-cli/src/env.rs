//! Environment variables: all names that the program reads, and the only code that reads them.

use std::path::PathBuf;

use harness::adapters::ApiKey;
use harness::host::process::Environment;

use crate::secrets;

/// API key for OpenRouter.
pub(crate) const OPENROUTER_KEY: &str = "OPENROUTER_API_KEY";

/// API key for the endpoint of `--base-url`. It has a separate name, so that the API key of one provider is never sent
/// to another.
pub(crate) const ENDPOINT_KEY: &str = "HARNESS_API_KEY";

/// API key for OpenAI.
pub(crate) const OPENAI_KEY: &str = "OPENAI_API_KEY";

/// API key for Anthropic.
pub(crate) const ANTHROPIC_KEY: &str = "ANTHROPIC_API_KEY";

/// Base URL that replaces OpenRouter's.
pub(crate) const OPENROUTER_URL: &str = "OPENROUTER_BASE_URL";

/// Base URL that replaces OpenAI's.
pub(crate) const OPENAI_URL: &str = "OPENAI_BASE_URL";

/// Base URL that replaces Anthropic's.
pub(crate) const ANTHROPIC_URL: &str = "ANTHROPIC_BASE_URL";

/// Base URL that replaces Ollama's.
pub(crate) const OLLAMA_URL: &str = "OLLAMA_BASE_URL";

/// Base URL that replaces LM Studio's.
pub(crate) const LMSTUDIO_URL: &str = "LMSTUDIO_BASE_URL";

/// Base URL of models whose names start with `local/`.
pub(crate) const LOCAL_URL: &str = "HARNESS_LOCAL_BASE_URL";

/// Directory of the connection file of a relay broker.
pub(crate) const RELAY_STATE: &str = "AGENT_RELAY_STATE_DIR";

/// Default of `--log`.
pub(crate) const LOG: &str = "HARNESS_LOG";

/// Default of `--session-key`.
pub(crate) const SESSION_KEY: &str = "HARNESS_SESSION_KEY";

/// Headers for the collector of `--otlp`; the standard name.
pub(crate) const OTLP_HEADERS: &str = "OTEL_EXPORTER_OTLP_HEADERS";

/// The user's editors, in the order of preference; the standard names.
pub(crate) const VISUAL: &str = "VISUAL";
pub(crate) const EDITOR: &str = "EDITOR";

/// The user's pager; the standard name.
pub(crate) const PAGER: &str = "PAGER";

/// Kind of the terminal; the standard name.
pub(crate) const TERM: &str = "TERM";

/// Program and window of the terminal, as it names them.
pub(crate) const TERM_PROGRAM: &str = "TERM_PROGRAM";
pub(crate) const KITTY_WINDOW_ID: &str = "KITTY_WINDOW_ID";

/// Set inside of the terminal multiplexers tmux and screen.
pub(crate) const TMUX: &str = "TMUX";
pub(crate) const STY: &str = "STY";

/// Default of `dev cluster --server`.
pub(crate) const RESTATE_SERVER: &str = "HARNESS_RESTATE_SERVER";

/// Default of `bridge --channel`.
pub(crate) const RELAY_CHANNEL: &str = "RELAY_CHANNEL";

/// Default of `bridge --worker-name`.
pub(crate) const RELAY_WORKER: &str = "RELAY_WORKER";

/// Default of `bridge --model`.
pub(crate) const RELAY_MODEL: &str = "RELAY_MODEL";

/// Default of `bridge --timeout-ms`.
pub(crate) const BRIDGE_TIMEOUT: &str = "BYOH_WORKER_TIMEOUT_MS";

/// Reads a variable; an empty one counts as absent.
pub(crate) fn text(name: &str) -> Option<String> {
    #[expect(clippy::disallowed_methods, reason = "this module is the one that reads the environment")]
    let text = std::env::var(name).ok()?;
    (!text.trim().is_empty()).then_some(text)
}

/// Reads an API key; an empty one counts as absent.
pub(crate) fn key(name: &str) -> Option<ApiKey> {
    text(name).map(ApiKey::new)
}

/// Suffixes of variables that contain secrets.
const SECRET_NAMES: [&str; 6] = ["API_KEY", "_TOKEN", "_SECRET", "_PASSWORD", "_ACCESS_KEY", "_PRIVATE_KEY"];

/// Registers the secrets of the environment for redaction, because a tool may print any of them.
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

/// All variables, from which child processes receive their share.
pub(crate) fn surroundings() -> Environment {
    Environment::of_process()
}

/// Directory of the program's settings, which may not exist; `None` without a home directory.
pub(crate) fn settings() -> Option<PathBuf> {
    let own = text("XDG_CONFIG_HOME").map(PathBuf::from).filter(|path| path.is_absolute());
    let config = own.or_else(|| Some(PathBuf::from(text("HOME")?).join(".config")));
    Some(config?.join("harness"))
}

/// Directory of the program's own data, which may not exist; `None` without a home directory.
pub(crate) fn state() -> Option<PathBuf> {
    let own = text("XDG_STATE_HOME").map(PathBuf::from).filter(|path| path.is_absolute());
    let state = own.or_else(|| Some(home()?.join(".local/state")));
    Some(state?.join("harness"))
}

/// The user's editor, possibly with options; by default `vi`.
pub(crate) fn editor() -> String {
    text(VISUAL).or_else(|| text(EDITOR)).unwrap_or_else(|| "vi".to_owned())
}

/// The user's pager, possibly with options; by default `less`.
pub(crate) fn pager() -> String {
    text(PAGER).unwrap_or_else(|| "less".to_owned())
}

/// Whether the terminal cannot do more than print.
pub(crate) fn is_dumb_terminal() -> bool {
    text(TERM).as_deref() == Some("dumb")
}

/// The user's home directory.
pub(crate) fn home() -> Option<PathBuf> {
    text("HOME").map(PathBuf::from)
}
