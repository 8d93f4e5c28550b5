//! An error in the words of an endpoint.

use serde::Deserialize;

use super::lenient::{Raw, decode, number, text};

#[derive(Debug, Default, Deserialize)]
#[serde(default, bound(deserialize = "'de: 'a"))]
struct ErrorPart<'a> {
    code: Raw<'a>,
    message: Raw<'a>,
    #[serde(rename = "type")]
    kind: Raw<'a>,
    metadata: Raw<'a>,
}

#[derive(Debug, Default, Deserialize)]
#[serde(default, bound(deserialize = "'de: 'a"))]
struct ErrorMetadata<'a> {
    error_type: Raw<'a>,
    limit_source: Raw<'a>,
    provider_name: Raw<'a>,
    reasons: Raw<'a>,
    flagged_input: Raw<'a>,
}

/// An error that the endpoint reported in its own words.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct ReportedError {
    /// `error.code`: a number as text, or a name.
    pub code: Option<String>,
    /// `error.message`; may be empty.
    pub message: String,
    /// `error.metadata.error_type` (OpenRouter) or `error.type` (OpenAI).
    pub error_type: Option<String>,
    /// `error.metadata.limit_source`, which distinguishes a temporary 402 from an empty account.
    pub limit_source: Option<String>,
    /// `error.metadata.provider_name`: the provider behind a router.
    pub provider: Option<String>,
    /// Whether a moderation refused the input: `error.metadata` gives its reasons.
    pub moderated: bool,
}

/// An `error` value: an object, or a bare text as some servers send it.
pub(crate) fn error(raw: Raw<'_>) -> Option<ReportedError> {
    let raw = raw?;
    let Some(part) = decode::<ErrorPart<'_>>(Some(raw)) else {
        let message = text(Some(raw))?;
        return Some(ReportedError { message, ..ReportedError::default() });
    };
    let metadata: ErrorMetadata<'_> = decode(part.metadata).unwrap_or_default();
    let code = text(part.code).or_else(|| number(part.code).map(|code| code.to_string()));
    Some(ReportedError {
        code,
        message: text(part.message).unwrap_or_default(),
        error_type: text(metadata.error_type).or_else(|| text(part.kind)),
        limit_source: text(metadata.limit_source),
        provider: text(metadata.provider_name),
        moderated: metadata.reasons.or(metadata.flagged_input).is_some(),
    })
}
