//! The providers that model names can have as a prefix.

use crate::env;

/// A provider of models, selected by the prefix `NAME/`.
#[derive(Debug)]
pub(crate) struct Provider {
    /// Prefix of model names before the slash, and the provider's entry in a key file.
    pub(crate) name: &'static str,
    /// Human-readable name.
    pub(crate) title: &'static str,
    /// Protocol of its API.
    pub(crate) protocol: Protocol,
    /// Default base URL; `None` if only the user can set it.
    pub(crate) base_url: Option<&'static str>,
    /// Environment variable that overrides the base URL.
    pub(crate) base_url_name: Option<&'static str>,
    /// Environment variable with its API key.
    pub(crate) key_name: &'static str,
    /// Whether it runs on the user's machine, and requires no API key.
    pub(crate) local: bool,
}

/// Protocol of a provider's API.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Protocol {
    /// OpenRouter's chat completions.
    OpenRouter,
    /// Chat completions of other providers.
    Chat,
    /// Anthropic's Messages API.
    Messages,
    /// OpenAI's Responses API.
    Responses,
}

impl Provider {
    /// Base URL: the user's override, or the default.
    pub(crate) fn address(&self) -> Option<String> {
        let Some(own) = self.base_url_name.and_then(env::text) else {
            return self.base_url.map(str::to_owned);
        };
        let path = own.trim_end_matches('/');
        // Anthropic's own programs take the address without the version.
        let without = self.protocol == Protocol::Messages && !path.ends_with("/v1");
        Some(if without { format!("{path}/v1") } else { own })
    }

    /// A name as the provider writes it.
    pub(crate) fn own_name(&self, name: &str) -> String {
        // OpenRouter writes `claude-sonnet-4.5`; no name of Anthropic's has a dot.
        if self.protocol == Protocol::Messages { name.replace('.', "-") } else { name.to_owned() }
    }
}

/// OpenRouter, which has the models of most providers under their own names.
pub(crate) const OPENROUTER: Provider = Provider {
    name: "openrouter",
    title: "OpenRouter",
    protocol: Protocol::OpenRouter,
    base_url: Some("https://openrouter.ai/api/v1"),
    base_url_name: Some(env::OPENROUTER_URL),
    key_name: env::OPENROUTER_KEY,
    local: false,
};

/// An endpoint that the user configures.
pub(crate) const ENDPOINT: Provider = Provider {
    name: "local",
    title: "custom endpoint",
    protocol: Protocol::Chat,
    base_url: None,
    base_url_name: Some(env::LOCAL_URL),
    key_name: env::ENDPOINT_KEY,
    local: true,
};

/// OpenAI in its Responses API, as `openai-responses/NAME`.
pub(crate) const OPENAI_RESPONSES: Provider = Provider {
    name: "openai",
    title: "OpenAI",
    protocol: Protocol::Responses,
    base_url: Some("https://api.openai.com/v1"),
    base_url_name: Some(env::OPENAI_URL),
    key_name: env::OPENAI_KEY,
    local: false,
};

/// All providers. A name without the prefix of a provider is a model of OpenRouter.
pub(crate) const PROVIDERS: [Provider; 6] = [
    OPENROUTER,
    Provider {
        name: "anthropic",
        title: "Anthropic",
        protocol: Protocol::Messages,
        base_url: Some("https://api.anthropic.com/v1"),
        base_url_name: Some(env::ANTHROPIC_URL),
        key_name: env::ANTHROPIC_KEY,
        local: false,
    },
    Provider {
        name: "openai",
        title: "OpenAI",
        protocol: Protocol::Chat,
        base_url: Some("https://api.openai.com/v1"),
        base_url_name: Some(env::OPENAI_URL),
        key_name: env::OPENAI_KEY,
        local: false,
    },
    Provider {
        name: "ollama",
        title: "Ollama",
        protocol: Protocol::Chat,
        base_url: Some("http://localhost:11434/v1"),
        base_url_name: Some(env::OLLAMA_URL),
        key_name: env::ENDPOINT_KEY,
        local: true,
    },
    Provider {
        name: "lmstudio",
        title: "LM Studio",
        protocol: Protocol::Chat,
        base_url: Some("http://localhost:1234/v1"),
        base_url_name: Some(env::LMSTUDIO_URL),
        key_name: env::ENDPOINT_KEY,
        local: true,
    },
    ENDPOINT,
];

/// The provider that a name starts with, and the rest of the name.
pub(crate) fn split(model: &str) -> Option<(&'static Provider, &str)> {
    let (prefix, rest) = model.split_once('/')?;
    let provider = match prefix {
        "openai-responses" => &OPENAI_RESPONSES,
        prefix => PROVIDERS.iter().find(|provider| provider.name == prefix)?,
    };
    (!rest.is_empty()).then_some((provider, rest))
}
