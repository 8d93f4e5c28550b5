//! A question to the user.

use serde::{Deserialize, Serialize};

use crate::json::Json;

/// Why the user is asked.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
#[non_exhaustive]
pub enum AskReason {
    /// Nothing was found.
    EmptyResults,
    /// What was asked for fits several things.
    AmbiguousIdentifier,
    /// The provider failed for now.
    TransientProviderError,
    /// Anything else.
    Custom,
}

impl AskReason {
    /// The wire name.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::EmptyResults => "empty_results",
            Self::AmbiguousIdentifier => "ambiguous_identifier",
            Self::TransientProviderError => "transient_provider_error",
            Self::Custom => "custom",
        }
    }
}

/// A question that a check wants the user to be asked.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
#[non_exhaustive]
pub struct Question {
    /// The question. White space around it is cut off; a blank one counts as none.
    pub text: String,
    /// Why it is asked.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub reason: Option<AskReason>,
    /// The host's own data, kept in the evidence of the stop.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub metadata: Option<Json>,
}

impl Question {
    /// A question and why it is asked.
    pub fn new(text: impl Into<String>, reason: AskReason) -> Self {
        Self { text: text.into(), reason: Some(reason), metadata: None }
    }

    /// The same question with data of the host.
    #[must_use]
    pub fn with_metadata(mut self, metadata: Json) -> Self {
        self.metadata = Some(metadata);
        self
    }
}
