//! Replies of an endpoint, read leniently.

use serde::Deserialize;

use crate::http::lenient::{Raw, decode, number};

/// An event of a stream, or a whole reply.
#[derive(Debug, Deserialize)]
pub(super) struct Event<'a> {
    #[serde(borrow, default, rename = "type")]
    pub(super) kind: Raw<'a>,
    #[serde(borrow, default)]
    pub(super) message: Raw<'a>,
    #[serde(borrow, default)]
    pub(super) index: Raw<'a>,
    #[serde(borrow, default)]
    pub(super) content_block: Raw<'a>,
    #[serde(borrow, default)]
    pub(super) delta: Raw<'a>,
    #[serde(borrow, default)]
    pub(super) usage: Raw<'a>,
    #[serde(borrow, default)]
    pub(super) error: Raw<'a>,
}

/// A message: whole, or its head at the start of a stream.
#[derive(Debug, Default, Deserialize)]
pub(super) struct Head<'a> {
    #[serde(borrow, default)]
    pub(super) id: Raw<'a>,
    #[serde(borrow, default)]
    pub(super) model: Raw<'a>,
    #[serde(borrow, default)]
    pub(super) content: Raw<'a>,
    #[serde(borrow, default)]
    pub(super) usage: Raw<'a>,
}

/// How an answer ended.
#[derive(Debug, Default, Deserialize)]
pub(super) struct End<'a> {
    #[serde(borrow, default, rename = "stop_reason")]
    pub(super) reason: Raw<'a>,
    #[serde(borrow, default, rename = "stop_sequence")]
    pub(super) sequence: Raw<'a>,
    #[serde(borrow, default, rename = "stop_details")]
    pub(super) details: Raw<'a>,
}

/// Reason of a refusal.
#[derive(Debug, Default, Deserialize)]
pub(super) struct StopDetails<'a> {
    #[serde(borrow, default)]
    pub(super) explanation: Raw<'a>,
}

/// A block as it starts, or whole.
#[derive(Debug, Deserialize)]
pub(super) struct BlockPart<'a> {
    #[serde(borrow, default, rename = "type")]
    pub(super) kind: Raw<'a>,
    #[serde(borrow, default)]
    pub(super) text: Raw<'a>,
    #[serde(borrow, default)]
    pub(super) citations: Raw<'a>,
    #[serde(borrow, default)]
    pub(super) thinking: Raw<'a>,
    #[serde(borrow, default)]
    pub(super) signature: Raw<'a>,
    #[serde(borrow, default)]
    pub(super) data: Raw<'a>,
    #[serde(borrow, default)]
    pub(super) id: Raw<'a>,
    #[serde(borrow, default)]
    pub(super) tool_use_id: Raw<'a>,
    #[serde(borrow, default)]
    pub(super) name: Raw<'a>,
    #[serde(borrow, default)]
    pub(super) input: Raw<'a>,
}

/// More of a block.
#[derive(Debug, Deserialize)]
pub(super) struct DeltaPart<'a> {
    #[serde(borrow, default, rename = "type")]
    pub(super) kind: Raw<'a>,
    #[serde(borrow, default)]
    pub(super) text: Raw<'a>,
    #[serde(borrow, default)]
    pub(super) thinking: Raw<'a>,
    #[serde(borrow, default)]
    pub(super) signature: Raw<'a>,
    #[serde(borrow, default)]
    pub(super) partial_json: Raw<'a>,
    #[serde(borrow, default)]
    pub(super) citation: Raw<'a>,
}

#[derive(Debug, Deserialize)]
struct UsagePart<'a> {
    #[serde(borrow, default)]
    input_tokens: Raw<'a>,
    #[serde(borrow, default)]
    output_tokens: Raw<'a>,
    #[serde(borrow, default)]
    cache_read_input_tokens: Raw<'a>,
    #[serde(borrow, default)]
    cache_creation_input_tokens: Raw<'a>,
    #[serde(borrow, default)]
    cache_creation: Raw<'a>,
    #[serde(borrow, default)]
    output_tokens_details: Raw<'a>,
}

#[derive(Debug, Default, Deserialize)]
struct CacheCreation<'a> {
    #[serde(borrow, default)]
    ephemeral_5m_input_tokens: Raw<'a>,
    #[serde(borrow, default)]
    ephemeral_1h_input_tokens: Raw<'a>,
}

#[derive(Debug, Default, Deserialize)]
struct OutputDetails<'a> {
    #[serde(borrow, default)]
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
