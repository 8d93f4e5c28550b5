//! Usage of a model call: tokens, cost, time.

use std::borrow::Cow;
use std::fmt;
use std::str::FromStr;

use schemars::{JsonSchema, Schema, SchemaGenerator, json_schema};
use serde::de::Error as _;
use serde::{Deserialize, Deserializer, Serialize, Serializer};
use serde_json::value::RawValue;

/// Cost in billionths of a currency unit (for example one US dollar). Sums are exact. Stored as a decimal number.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct Cost(pub u64);

impl Cost {
    const UNIT: u64 = 1_000_000_000;

    /// Adds a cost, saturating.
    #[must_use]
    pub fn plus(self, other: Self) -> Self {
        Self(self.0.saturating_add(other.0))
    }
}

impl fmt::Display for Cost {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (whole, rest) = (self.0 / Self::UNIT, self.0 % Self::UNIT);
        if rest == 0 {
            return write!(f, "{whole}");
        }
        let digits = format!("{rest:09}");
        write!(f, "{whole}.{}", digits.trim_end_matches('0'))
    }
}

/// Invalid text of a [`Cost`].
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("invalid amount `{0}`: expected a decimal number from 0 to 18446744073")]
pub struct CostError(String);

impl FromStr for Cost {
    type Err = CostError;

    /// Parses a decimal number, with or without exponent. Digits after the ninth decimal are rounded up, so that a cost
    /// is never understated.
    fn from_str(text: &str) -> Result<Self, CostError> {
        parse_nano(text).map(Self).ok_or_else(|| CostError(text.to_owned()))
    }
}

/// Parses `text` times 10^9, rounded up; `None` if it is negative, too large or not a number.
fn parse_nano(text: &str) -> Option<u64> {
    if let Ok(whole) = text.parse::<u64>() {
        return whole.checked_mul(Cost::UNIT);
    }
    let (mantissa, exponent) = match text.split_once(['e', 'E']) {
        Some((m, e)) => (m, e.parse::<i64>().ok()?),
        None => (text, 0),
    };
    let (whole, fraction) = mantissa.split_once('.').unwrap_or((mantissa, ""));
    let whole = whole.strip_prefix('+').unwrap_or(whole);
    if whole.is_empty() && fraction.is_empty() {
        return None;
    }
    let digits: Vec<u8> = whole.bytes().chain(fraction.bytes()).collect();
    if !digits.iter().all(u8::is_ascii_digit) {
        return (digits.strip_prefix(b"-").is_some_and(|d| d.iter().all(|b| *b == b'0'))).then_some(0);
    }
    let keep = i64::try_from(whole.len()).ok()?.checked_add(exponent)?.checked_add(9)?;
    let mut value: u64 = 0;
    let mut round_up = false;
    for (i, digit) in digits.iter().enumerate() {
        if i64::try_from(i).ok()? < keep {
            value = value.checked_mul(10)?.checked_add(u64::from(digit - b'0'))?;
        } else {
            round_up |= *digit != b'0';
        }
    }
    let missing = keep.saturating_sub(i64::try_from(digits.len()).ok()?);
    if value != 0 {
        for _ in 0..missing.max(0) {
            value = value.checked_mul(10)?;
        }
    }
    value.checked_add(u64::from(round_up))
}

impl JsonSchema for Cost {
    fn schema_name() -> Cow<'static, str> {
        "Cost".into()
    }

    fn json_schema(_: &mut SchemaGenerator) -> Schema {
        json_schema!({
            "description": "Amount of money in the currency of the provider or the price list, with at most nine decimals.",
            "type": "number",
            "minimum": 0,
        })
    }
}

impl Serialize for Cost {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        // Whole numbers need no fraction.
        if self.0.is_multiple_of(Self::UNIT) {
            return serializer.serialize_u64(self.0 / Self::UNIT);
        }
        RawValue::from_string(self.to_string()).map_err(serde::ser::Error::custom)?.serialize(serializer)
    }
}

impl<'de> Deserialize<'de> for Cost {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        Box::<RawValue>::deserialize(deserializer)?.get().parse().map_err(D::Error::custom)
    }
}

/// Source of a cost. Stored as `"reported"` or `{"table":"2026-03-21"}`.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, schemars::JsonSchema)]
#[serde(rename_all = "camelCase")]
#[non_exhaustive]
pub enum CostSource {
    /// Reported by the provider.
    Reported,
    /// Estimated with the price list of this date (`YYYY-MM-DD`).
    Table(String),
}

impl fmt::Display for CostSource {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Reported => f.write_str("reported"),
            Self::Table(date) => write!(f, "price list of {date}"),
        }
    }
}

crate::schema::described! {
    /// Cost of a model call by part. Unknown costs are absent, never zero.
    #[derive(Default)]
    pub struct CostParts {
        /// Uncached input tokens.
        input: Option<Cost> = "input",
        /// Output tokens.
        output: Option<Cost> = "output",
        /// Input tokens read from a cache.
        cache_read: Option<Cost> = "cacheRead",
        /// Input tokens written to a cache.
        cache_write: Option<Cost> = "cacheWrite",
        /// Total.
        total: Option<Cost> = "total",
        /// Source of the amounts.
        source: Option<CostSource> = "source",
    }
}

crate::schema::described! {
    /// Usage of one model call. Numbers that the provider did not report are absent, never zero.
    #[derive(Default)]
    pub struct Usage {
        /// Input tokens neither read from nor written to a cache.
        input: Option<u64> = "input",
        /// Output tokens, reasoning included.
        output: Option<u64> = "output",
        /// Input tokens read from a cache.
        cache_read: Option<u64> = "cacheRead",
        /// Input tokens written to a cache.
        cache_write: Option<u64> = "cacheWrite",
        /// Reasoning tokens; part of `output`.
        reasoning: Option<u64> = "reasoning",
        /// Total tokens as the provider counts them.
        total_tokens: Option<u64> = "totalTokens",
        /// Cost.
        cost: Option<Box<CostParts>> = "cost",
        /// Number of requests, if the message took more than one.
        requests: Option<u64> = "requests",
        /// Latency in milliseconds.
        latency_ms: Option<u64> = "latencyMs",
        /// Whether the tokens are estimated because the provider reported none.
        estimated: Option<bool> = "estimated",
    }
}

impl Usage {
    /// Creates the usage of `input` and `output` tokens.
    pub fn tokens(input: u64, output: u64) -> Self {
        Self {
            input: Some(input),
            output: Some(output),
            total_tokens: Some(input.saturating_add(output)),
            ..Self::default()
        }
    }

    /// Whether the tokens are estimated.
    pub(crate) fn is_estimated(&self) -> bool {
        self.estimated == Some(true)
    }

    /// Whether it reports tokens.
    pub(crate) fn has_tokens(&self) -> bool {
        [self.input, self.output, self.cache_read, self.cache_write, self.total_tokens]
            .iter()
            .any(Option::is_some)
    }

    /// Adds estimated tokens if none are reported.
    #[must_use]
    pub(crate) fn or_estimated(self, input: u64, output: u64) -> Self {
        if self.has_tokens() {
            return self;
        }
        let total_tokens = Some(input.saturating_add(output));
        Self { input: Some(input), output: Some(output), total_tokens, estimated: Some(true), ..self }
    }

    /// Returns the total cost, if known.
    pub fn total_cost(&self) -> Option<Cost> {
        self.cost.as_ref().and_then(|cost| cost.total)
    }

    /// Returns the source of the cost, if known.
    pub fn cost_source(&self) -> Option<&CostSource> {
        self.cost.as_ref().and_then(|cost| cost.source.as_ref())
    }

    /// Sets the total cost.
    #[must_use]
    pub fn with_cost(mut self, total: Cost) -> Self {
        self.cost.get_or_insert_default().total = Some(total);
        self
    }

    /// Returns the total tokens: the provider's sum, else the sum of the parts.
    pub fn all_tokens(&self) -> u64 {
        self.total_tokens.unwrap_or_else(|| {
            [self.input, self.output, self.cache_read, self.cache_write]
                .into_iter()
                .flatten()
                .fold(0, u64::saturating_add)
        })
    }
}
