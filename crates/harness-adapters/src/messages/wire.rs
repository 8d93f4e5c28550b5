//! Replies of an endpoint, read leniently.

use serde::Deserialize;

use crate::http::lenient::{Raw, decode, number};

/// An event of a stream, or a whole reply.
#[derive(Debug, Default, Deserialize)]
#[serde(default, bound(deserialize = "'de: 'a"))]
pub(super) struct Event<'a> {
    #[serde(rename = "type")]
    pub(super) kind: Raw<'a>,
    pub(super) message: Raw<'a>,
    pub(super) index: Raw<'a>,
    pub(super) content_block: Raw<'a>,
    pub(super) delta: Raw<'a>,
    pub(super) usage: Raw<'a>,
    pub(super) error: Raw<'a>,
}

/// A message: whole, or its head at the start of a stream.
#[derive(Debug, Default, Deserialize)]
#[serde(default, bound(deserialize = "'de: 'a"))]
pub(super) struct Head<'a> {
    pub(super) id: Raw<'a>,
    pub(super) model: Raw<'a>,
    pub(super) content: Raw<'a>,
    pub(super) usage: Raw<'a>,
}

/// How an answer ended.
#[derive(Debug, Default, Deserialize)]
#[serde(default, bound(deserialize = "'de: 'a"))]
pub(super) struct Ending<'a> {
    #[serde(rename = "stop_reason")]
    pub(super) reason: Raw<'a>,
    #[serde(rename = "stop_sequence")]
    pub(super) sequence: Raw<'a>,
    #[serde(rename = "stop_details")]
    pub(super) details: Raw<'a>,
}

/// Reason of a refusal.
#[derive(Debug, Default, Deserialize)]
#[serde(default, bound(deserialize = "'de: 'a"))]
pub(super) struct StopDetails<'a> {
    pub(super) explanation: Raw<'a>,
}

/// A block as it starts, or whole.
#[derive(Debug, Default, Deserialize)]
#[serde(default, bound(deserialize = "'de: 'a"))]
pub(super) struct BlockPart<'a> {
    #[serde(rename = "type")]
    pub(super) kind: Raw<'a>,
    pub(super) text: Raw<'a>,
    pub(super) citations: Raw<'a>,
    pub(super) thinking: Raw<'a>,
    pub(super) signature: Raw<'a>,
    pub(super) data: Raw<'a>,
    pub(super) id: Raw<'a>,
    pub(super) tool_use_id: Raw<'a>,
    pub(super) name: Raw<'a>,
    pub(super) input: Raw<'a>,
}

/// More of a block.
#[derive(Debug, Default, Deserialize)]
#[serde(default, bound(deserialize = "'de: 'a"))]
pub(super) struct DeltaPart<'a> {
    #[serde(rename = "type")]
    pub(super) kind: Raw<'a>,
    pub(super) text: Raw<'a>,
    pub(super) thinking: Raw<'a>,
    pub(super) signature: Raw<'a>,
    pub(super) partial_json: Raw<'a>,
    pub(super) citation: Raw<'a>,
}

#[derive(Debug, Default, Deserialize)]
#[serde(default, bound(deserialize = "'de: 'a"))]
struct UsagePart<'a> {
    input_tokens: Raw<'a>,
    output_tokens: Raw<'a>,
    cache_read_input_tokens: Raw<'a>,
    cache_creation_input_tokens: Raw<'a>,
    cache_creation: Raw<'a>,
    output_tokens_details: Raw<'a>,
}

#[derive(Debug, Default, Deserialize)]
#[serde(default, bound(deserialize = "'de: 'a"))]
struct CacheCreation<'a> {
    ephemeral_5m_input_tokens: Raw<'a>,
    ephemeral_1h_input_tokens: Raw<'a>,
}

#[derive(Debug, Default, Deserialize)]
#[serde(default, bound(deserialize = "'de: 'a"))]
struct OutputDetails<'a> {
    thinking_tokens: Raw<'a>,
}

/// Counts so far; later ones replace earlier ones, since the endpoint counts from the start.
#[derive(Debug, Clone, Default)]
pub(super) struct Counts {
    pub(super) input: Option<u64>,
    pub(super) output: Option<u64>,
    pub(super) cache_read: Option<u64>,
    pub(super) cache_write: Option<u64>,
    /// The part of `cache_write` that stays for five minutes.
    pub(super) cache_write_short: Option<u64>,
    /// The part of `cache_write` that stays for an hour.
    pub(super) cache_write_long: Option<u64>,
    pub(super) thinking: Option<u64>,
}

impl Counts {
    pub(super) fn update(&mut self, raw: Raw<'_>) {
        let Some(part) = decode::<UsagePart<'_>>(raw) else { return };
        let creation: CacheCreation<'_> = decode(part.cache_creation).unwrap_or_default();
        let details: OutputDetails<'_> = decode(part.output_tokens_details).unwrap_or_default();
        for (slot, raw) in [
            (&mut self.input, part.input_tokens),
            (&mut self.output, part.output_tokens),
            (&mut self.cache_read, part.cache_read_input_tokens),
            (&mut self.cache_write, part.cache_creation_input_tokens),
            (&mut self.cache_write_short, creation.ephemeral_5m_input_tokens),
            (&mut self.cache_write_long, creation.ephemeral_1h_input_tokens),
            (&mut self.thinking, details.thinking_tokens),
        ] {
            *slot = number(raw).or(*slot);
        }
    }
}
