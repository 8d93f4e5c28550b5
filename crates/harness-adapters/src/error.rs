//! Configuration errors of adapters.

/// Error in an adapter's configuration, or an exceeded bound.
///
/// Errors of a model call are not included: they are `ModelFault`s of harness-core.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum AdapterError {
    /// The base URL cannot be used.
    #[error("the base URL `{url}` cannot be used: {reason}")]
    BaseUrl {
        /// The URL as given, without credentials.
        url: String,
        /// Reason why it is invalid.
        reason: String,
    },
    /// The key cannot be sent.
    #[error("the API key {reason}")]
    Key {
        /// Reason why it is invalid.
        reason: &'static str,
    },
    /// A header that was asked for cannot be sent.
    #[error("the header `{name}` cannot be sent: its name or value is not legal in HTTP")]
    Header {
        /// The header's name.
        name: String,
    },
    /// The name of a model is not known, or its protocol is not part of this build.
    #[error("unknown model `{name}`")]
    UnknownModel {
        /// Name of the model.
        name: String,
    },
    /// More than one thing is wrong with a configuration.
    #[error("{}", .0.iter().map(ToString::to_string).collect::<Vec<_>>().join("; "))]
    Several(Vec<AdapterError>),
    /// The settings are not a JSON object.
    #[error("the model settings are {found}, expected a JSON object")]
    Settings {
        /// The kind of value that was given.
        found: &'static str,
    },
    /// A setting names a part of the request that the adapter itself writes.
    #[error("the model setting `{key}` is reserved: the adapter writes it from the request")]
    ReservedSetting {
        /// Rejected key.
        key: String,
    },
    /// The HTTP client could not be built.
    #[error("the HTTP client could not be built: {reason}")]
    Client {
        /// The client's own words.
        reason: String,
    },
    /// Something that was read grew past its bound.
    #[error("the {what} is larger than the bound of {limit} {unit}")]
    TooLarge {
        /// Content that grew beyond the bound.
        what: &'static str,
        /// Bound, in `unit`.
        limit: usize,
        /// Unit of the bound.
        unit: &'static str,
    },
    /// The schema of an answer cannot be sent.
    #[error("the output schema cannot be used: {reason}")]
    OutputSchema {
        /// Reason why it is invalid, with its place.
        reason: String,
    },
    /// An answer is not JSON of the expected type.
    #[error("the answer is not of the expected form: {reason}")]
    Answer {
        /// Reason, with line and column.
        reason: String,
    },
    /// A file of prices cannot be used.
    #[error("the price file cannot be used: {reason}")]
    Prices {
        /// Reason, with line and column if known.
        reason: String,
    },
}

impl AdapterError {
    /// The one problem, or all of them.
    #[cfg(feature = "http")]
    pub(crate) fn of(mut problems: Vec<Self>) -> Self {
        match (problems.pop(), problems.is_empty()) {
            (Some(only), true) => only,
            (Some(last), false) => {
                problems.push(last);
                Self::Several(problems)
            }
            (None, _) => Self::Several(problems),
        }
    }

    /// Stable code of the kind of error.
    pub fn kind(&self) -> &'static str {
        match self {
            Self::BaseUrl { .. } => "adapter.base_url",
            Self::Key { .. } => "adapter.key",
            Self::Header { .. } => "adapter.header",
            Self::UnknownModel { .. } => "adapter.unknown_model",
            Self::Several(_) => "adapter.several",
            Self::Settings { .. } => "adapter.settings",
            Self::ReservedSetting { .. } => "adapter.reserved_setting",
            Self::Client { .. } => "adapter.client",
            Self::TooLarge { .. } => "adapter.too_large",
            Self::OutputSchema { .. } => "adapter.output_schema",
            Self::Answer { .. } => "adapter.answer",
            Self::Prices { .. } => "adapter.prices",
        }
    }

    /// Suggested fix, if there is one.
    pub fn hint(&self) -> Option<&'static str> {
        match self {
            Self::BaseUrl { .. } => {
                Some("give a URL such as https://openrouter.ai/api/v1, without key or password")
            }
            Self::Key { .. } => Some("check that the key was copied whole and without line breaks inside"),
            Self::Header { .. } => Some("use visible ASCII characters only"),
            Self::UnknownModel { .. } => Some("declare it under `models` in the registry file"),
            Self::Several(problems) => problems.first().and_then(Self::hint),
            Self::Settings { .. } => {
                Some("write the settings as an object, for example {\"temperature\": 0}")
            }
            Self::ReservedSetting { .. } => {
                Some("remove it; messages, tools, streaming and limits come from the request")
            }
            Self::Client { .. } => Some("check the system's TLS certificates"),
            Self::TooLarge { .. } => Some("raise the bound if this size is expected"),
            Self::OutputSchema { .. } => Some("change the schema, or make it lenient (`strict: false`)"),
            Self::Answer { .. } => Some("give the model the schema of the type, or ask again"),
            Self::Prices { .. } => Some("compare it with the form that `PriceTable` documents"),
        }
    }
}
