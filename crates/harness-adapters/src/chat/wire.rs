//! Replies of an endpoint, read leniently.

use harness_core::Json;
use harness_core::message::Cost;
use serde::Deserialize;
use serde_json::value::RawValue;

use crate::http::lenient::{Raw, decode, number, piece, text};
use crate::seam::Piece;

/// A chunk of a stream, or a whole reply.
#[derive(Debug, Deserialize)]
pub(crate) struct Chunk<'a> {
    #[serde(borrow, default)]
    pub(crate) id: Raw<'a>,
    #[serde(borrow, default)]
    pub(crate) model: Raw<'a>,
    #[serde(borrow, default)]
    pub(crate) provider: Raw<'a>,
    #[serde(borrow, default)]
    pub(crate) choices: Raw<'a>,
    #[serde(borrow, default)]
    pub(crate) usage: Raw<'a>,
    #[serde(borrow, default)]
    pub(crate) error: Raw<'a>,
}

#[derive(Debug, Deserialize)]
pub(crate) struct Choice<'a> {
    #[serde(borrow, default)]
    pub(crate) index: Raw<'a>,
    #[serde(borrow, default)]
    pub(crate) delta: Raw<'a>,
    #[serde(borrow, default)]
    pub(crate) message: Raw<'a>,
    #[serde(borrow, default)]
    pub(crate) finish_reason: Raw<'a>,
    #[serde(borrow, default)]
    pub(crate) native_finish_reason: Raw<'a>,
    #[serde(borrow, default)]
    pub(crate) usage: Raw<'a>,
    #[serde(borrow, default)]
    pub(crate) error: Raw<'a>,
}

/// The message of a choice, whole or as a delta.
#[derive(Debug, Default, Deserialize)]
pub(crate) struct Body<'a> {
    #[serde(borrow, default)]
    pub(crate) content: Raw<'a>,
    #[serde(borrow, default)]
    pub(crate) reasoning: Raw<'a>,
    #[serde(borrow, default)]
    pub(crate) reasoning_content: Raw<'a>,
    #[serde(borrow, default)]
    pub(crate) reasoning_details: Raw<'a>,
    #[serde(borrow, default)]
    pub(crate) refusal: Raw<'a>,
    #[serde(borrow, default)]
    pub(crate) tool_calls: Raw<'a>,
}

#[derive(Debug, Deserialize)]
pub(crate) struct CallPart<'a> {
    #[serde(borrow, default)]
    pub(crate) index: Raw<'a>,
    #[serde(borrow, default)]
    pub(crate) id: Raw<'a>,
    #[serde(borrow, default)]
    pub(crate) function: Raw<'a>,
}

#[derive(Debug, Default, Deserialize)]
pub(crate) struct FunctionPart<'a> {
    #[serde(borrow, default)]
    pub(crate) name: Raw<'a>,
    #[serde(borrow, default)]
    pub(crate) arguments: Raw<'a>,
}

#[derive(Debug, Default, Deserialize)]
struct UsagePart<'a> {
    #[serde(borrow, default)]
    prompt_tokens: Raw<'a>,
    #[serde(borrow, default)]
    completion_tokens: Raw<'a>,
    #[serde(borrow, default)]
    total_tokens: Raw<'a>,
    #[serde(borrow, default)]
    cost: Raw<'a>,
    #[serde(borrow, default)]
    is_byok: Raw<'a>,
    #[serde(borrow, default)]
    cost_details: Raw<'a>,
    #[serde(borrow, default)]
    prompt_tokens_details: Raw<'a>,
    #[serde(borrow, default)]
    completion_tokens_details: Raw<'a>,
}

#[derive(Debug, Default, Deserialize)]
struct CostDetails<'a> {
    #[serde(borrow, default)]
    upstream_inference_cost: Raw<'a>,
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

/// Token counts and cost of one answer, as the endpoint gave them; a number that it left out is `None`.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct ReportedUsage {
    /// All tokens of the request, cached ones included.
    pub prompt: Option<u64>,
    /// Tokens of the answer, reasoning included.
    pub completion: Option<u64>,
    /// Sum, as the endpoint counts it.
    pub total: Option<u64>,
    /// Request tokens that were read from a cache.
    pub cached: Option<u64>,
    /// Request tokens that were written to a cache.
    pub cache_write: Option<u64>,
    /// Answer tokens spent on reasoning.
    pub reasoning: Option<u64>,
    /// The price in the endpoint's currency unit (OpenRouter: US dollar), read digit by digit. With a key
    /// of one's own at the provider behind a router, what that provider charges is part of it.
    pub cost: Option<Cost>,
}

/// A string, or the joined texts of a list of parts.
pub(crate) fn content(raw: Raw<'_>) -> Option<Piece> {
    #[derive(Deserialize)]
    struct Part<'a> {
        #[serde(borrow, default, rename = "type")]
        kind: Raw<'a>,
        #[serde(borrow, default)]
        text: Raw<'a>,
        #[serde(borrow, default)]
        content: Raw<'a>,
    }
    if let Some(piece) = piece(raw) {
        return Some(piece).filter(|piece| !piece.is_empty());
    }
    let parts: Vec<&RawValue> = decode(raw)?;
    let joined: String = parts
        .into_iter()
        .filter_map(|part| {
            let Some(fields) = decode::<Part<'_>>(Some(part)) else { return text(Some(part)) };
            let kind = text(fields.kind).unwrap_or_default();
            let is_text = matches!(kind.as_str(), "" | "text" | "output_text" | "summary_text");
            text(fields.text).or_else(|| text(fields.content)).filter(|_| is_text)
        })
        .collect();
    (!joined.is_empty()).then(|| joined.into())
}

/// The argument text of a call: the string, or the compact JSON of anything else.
pub(crate) fn arguments(raw: Raw<'_>) -> Option<Piece> {
    piece(raw).or_else(|| Some(Json::parse(raw?.get()).ok()?.text().to_owned().into()))
}

/// Charged cost. With the user's own API key at the provider, the router reports only its share, so
/// the total is unknown unless the provider's share is included.
fn cost(part: &UsagePart<'_>) -> Option<Cost> {
    let amount = |raw: Raw<'_>| raw?.get().parse::<Cost>().ok();
    let charged = amount(part.cost)?;
    if decode(part.is_byok) != Some(true) {
        return Some(charged);
    }
    let details: CostDetails<'_> = decode(part.cost_details).unwrap_or_default();
    Some(charged.plus(amount(details.upstream_inference_cost)?))
}

pub(crate) fn usage(raw: Raw<'_>) -> Option<ReportedUsage> {
    let part: UsagePart<'_> = decode(raw)?;
    let prompt: UsageDetails<'_> = decode(part.prompt_tokens_details).unwrap_or_default();
    let completion: UsageDetails<'_> = decode(part.completion_tokens_details).unwrap_or_default();
    Some(ReportedUsage {
        prompt: number(part.prompt_tokens),
        completion: number(part.completion_tokens),
        total: number(part.total_tokens),
        cached: number(prompt.cached),
        cache_write: number(prompt.cache_write),
        reasoning: number(completion.reasoning),
        cost: cost(&part),
    })
}
