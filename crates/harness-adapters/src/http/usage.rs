//! Token counts and cost in the words of OpenAI's protocols.

use harness_core::message::{Cost, CostParts, Usage};
use serde::Deserialize;

use super::lenient::{Raw, decode, number};

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
    /// The price in the endpoint's currency unit (OpenRouter: US dollar), read digit by digit. With the
    /// user's own API key at the provider behind a router, it includes what that provider charges.
    pub cost: Option<Cost>,
}

/// Chat completions count `prompt` and `completion`, the Responses API `input` and `output`.
#[derive(Debug, Default, Deserialize)]
#[serde(default, bound(deserialize = "'de: 'a"))]
struct UsagePart<'a> {
    prompt_tokens: Raw<'a>,
    input_tokens: Raw<'a>,
    completion_tokens: Raw<'a>,
    output_tokens: Raw<'a>,
    total_tokens: Raw<'a>,
    cost: Raw<'a>,
    is_byok: Raw<'a>,
    cost_details: Raw<'a>,
    prompt_tokens_details: Raw<'a>,
    input_tokens_details: Raw<'a>,
    completion_tokens_details: Raw<'a>,
    output_tokens_details: Raw<'a>,
}

#[derive(Debug, Default, Deserialize)]
#[serde(default, bound(deserialize = "'de: 'a"))]
struct CostDetails<'a> {
    upstream_inference_cost: Raw<'a>,
}

#[derive(Debug, Default, Deserialize)]
#[serde(default, bound(deserialize = "'de: 'a"))]
struct UsageDetails<'a> {
    #[serde(rename = "cached_tokens")]
    cached: Raw<'a>,
    #[serde(rename = "cache_write_tokens")]
    cache_write: Raw<'a>,
    #[serde(rename = "reasoning_tokens")]
    reasoning: Raw<'a>,
}

impl ReportedUsage {
    pub(crate) fn read(raw: Raw<'_>) -> Option<Self> {
        let part: UsagePart<'_> = decode(raw)?;
        let input = part.prompt_tokens_details.or(part.input_tokens_details);
        let output = part.completion_tokens_details.or(part.output_tokens_details);
        let input: UsageDetails<'_> = decode(input).unwrap_or_default();
        let output: UsageDetails<'_> = decode(output).unwrap_or_default();
        Some(Self {
            prompt: number(part.prompt_tokens.or(part.input_tokens)),
            completion: number(part.completion_tokens.or(part.output_tokens)),
            total: number(part.total_tokens),
            cached: number(input.cached),
            cache_write: number(input.cache_write),
            reasoning: number(output.reasoning),
            cost: cost(&part),
        })
    }

    /// The counts of a message, split so that the parts add up: cached tokens are not input again.
    pub(crate) fn usage(&self) -> Usage {
        let cached = self.cached.unwrap_or(0).saturating_add(self.cache_write.unwrap_or(0));
        let mut usage = Usage::default();
        usage.input = self.prompt.map(|prompt| prompt.saturating_sub(cached));
        usage.output = self.completion;
        usage.cache_read = self.cached;
        usage.cache_write = self.cache_write;
        usage.reasoning = self.reasoning;
        usage.total_tokens = self.total.or_else(|| Some(self.prompt?.saturating_add(self.completion?)));
        usage.cost = self.cost.map(|total| {
            let mut parts = CostParts::default();
            parts.total = Some(total);
            Box::new(parts)
        });
        usage
    }
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
