//! Replies of an endpoint, read leniently.

use serde::Deserialize;

use crate::http::lenient::{Raw, decode, number};

/// An event of a stream, or a whole reply.
#[derive(Debug, Deserialize)]
pub(super) struct Event<'a> {
    #[serde(borrow, default, rename = "type")]
    pub(super) kind: Raw<'a>,
    #[serde(borrow, default)]
    pub(super) object: Raw<'a>,
    #[serde(borrow, default)]
    pub(super) response: Raw<'a>,
    #[serde(borrow, default)]
    pub(super) output_index: Raw<'a>,
    #[serde(borrow, default)]
    pub(super) content_index: Raw<'a>,
    #[serde(borrow, default)]
    pub(super) item: Raw<'a>,
    #[serde(borrow, default)]
    pub(super) delta: Raw<'a>,
    #[serde(borrow, default)]
    pub(super) error: Raw<'a>,
}

/// Response, complete or in progress.
#[derive(Debug, Default, Deserialize)]
pub(super) struct Response<'a> {
    #[serde(borrow, default)]
    pub(super) id: Raw<'a>,
    #[serde(borrow, default)]
    pub(super) model: Raw<'a>,
    #[serde(borrow, default)]
    pub(super) status: Raw<'a>,
    #[serde(borrow, default)]
    pub(super) incomplete_details: Raw<'a>,
    #[serde(borrow, default)]
    pub(super) error: Raw<'a>,
    #[serde(borrow, default)]
    pub(super) output: Raw<'a>,
    #[serde(borrow, default)]
    pub(super) usage: Raw<'a>,
}

#[derive(Debug, Default, Deserialize)]
pub(super) struct IncompleteDetails<'a> {
    #[serde(borrow, default)]
    pub(super) reason: Raw<'a>,
}

/// An item of the output.
#[derive(Debug, Deserialize)]
pub(super) struct ItemPart<'a> {
    #[serde(borrow, default, rename = "type")]
    pub(super) kind: Raw<'a>,
    #[serde(borrow, default)]
    pub(super) id: Raw<'a>,
    #[serde(borrow, default)]
    pub(super) status: Raw<'a>,
    #[serde(borrow, default)]
    pub(super) phase: Raw<'a>,
    #[serde(borrow, default)]
    pub(super) content: Raw<'a>,
    #[serde(borrow, default)]
    pub(super) summary: Raw<'a>,
    #[serde(borrow, default)]
    pub(super) call_id: Raw<'a>,
    #[serde(borrow, default)]
    pub(super) name: Raw<'a>,
    #[serde(borrow, default)]
    pub(super) arguments: Raw<'a>,
}

/// A part of a message or of reasoning.
#[derive(Debug, Deserialize)]
pub(super) struct ContentPart<'a> {
    #[serde(borrow, default)]
    pub(super) text: Raw<'a>,
    #[serde(borrow, default)]
    pub(super) refusal: Raw<'a>,
    #[serde(borrow, default)]
    pub(super) annotations: Raw<'a>,
}

#[derive(Debug, Deserialize)]
struct UsagePart<'a> {
    #[serde(borrow, default)]
    input_tokens: Raw<'a>,
    #[serde(borrow, default)]
    output_tokens: Raw<'a>,
    #[serde(borrow, default)]
    total_tokens: Raw<'a>,
    #[serde(borrow, default)]
    input_tokens_details: Raw<'a>,
    #[serde(borrow, default)]
    output_tokens_details: Raw<'a>,
    #[serde(borrow, default)]
    cost: Raw<'a>,
}

#[derive(Debug, Default, Deserialize)]
struct UsageDetails<'a> {
    #[serde(borrow, default, rename = "cached_tokens")]
    cached: Raw<'a>,
    #[serde(borrow, default, rename = "cache_write_tokens")]
    cache_write: Raw<'a>,
    #[serde(borrow, default, rename = "reasoning_tokens")]
    reasoning: Raw<'a>,
}

/// Counts as the endpoint gave them: what a cache served or took is part of `input`.
#[derive(Debug, Clone, Default)]
pub(super) struct Counts {
    pub(super) input: Option<u64>,
    pub(super) output: Option<u64>,
    pub(super) total: Option<u64>,
    pub(super) cached: Option<u64>,
    pub(super) cache_write: Option<u64>,
    pub(super) reasoning: Option<u64>,
    pub(super) cost: Option<harness_core::message::Cost>,
}

impl Counts {
    pub(super) fn read(raw: Raw<'_>) -> Option<Self> {
        let part: UsagePart<'_> = decode(raw)?;
        let input: UsageDetails<'_> = decode(part.input_tokens_details).unwrap_or_default();
        let output: UsageDetails<'_> = decode(part.output_tokens_details).unwrap_or_default();
        Some(Self {
            input: number(part.input_tokens),
            output: number(part.output_tokens),
            total: number(part.total_tokens),
            cached: number(input.cached),
            cache_write: number(input.cache_write),
            reasoning: number(output.reasoning),
            cost: part.cost.and_then(|cost| cost.get().parse().ok()),
        })
    }
}
