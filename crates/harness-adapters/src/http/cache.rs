//! Marks up to which a provider keeps a request for the next one.

use serde::Serialize;

/// How long the provider keeps the stable beginning of a request, so that the next one is cheaper.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
#[non_exhaustive]
pub enum PromptCache {
    /// Nothing is marked. An endpoint that caches by itself still does.
    Off,
    /// For five minutes after its last use; writing costs a quarter more than plain input.
    #[default]
    FiveMinutes,
    /// For an hour after its last use; writing costs twice as much as plain input.
    OneHour,
}

/// A mark up to which the provider keeps the request.
#[derive(Debug, Clone, Copy, Serialize)]
pub(crate) struct CacheControl {
    #[serde(rename = "type")]
    kind: &'static str,
    #[serde(skip_serializing_if = "Option::is_none")]
    ttl: Option<&'static str>,
}

impl CacheControl {
    pub(crate) fn of(cache: PromptCache) -> Option<Self> {
        match cache {
            PromptCache::Off => None,
            PromptCache::FiveMinutes => Some(Self { kind: "ephemeral", ttl: None }),
            PromptCache::OneHour => Some(Self { kind: "ephemeral", ttl: Some("1h") }),
        }
    }
}
