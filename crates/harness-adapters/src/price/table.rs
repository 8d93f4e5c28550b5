//! Lists of prices, and what a usage costs by them.

use std::sync::{Arc, LazyLock};

use harness_core::message::{Cost, CostParts, CostSource, Usage};
use serde::Deserialize;

use crate::AdapterError;

/// The version of the file form that is read here.
const VERSION: u64 = 1;

/// Tokens that a price is for.
const PER: u128 = 1_000_000;

static BUILTIN: LazyLock<PriceTable> =
    LazyLock::new(|| PriceTable::parse(include_str!("prices.json")).unwrap_or_default());

/// Prices of models, by provider and name. Cloning is cheap.
///
/// The form of a file, JSON; amounts are US dollars for a million tokens:
///
/// ```
/// use harness_adapters::PriceTable;
///
/// let own = PriceTable::parse(
///     r#"{
///         "kind": "harness.prices",
///         "version": 1,
///         "lists": [{
///             "date": "2026-05-01",
///             "source": "our contract",
///             "providers": ["gateway.example.com"],
///             "models": [
///                 { "name": "house-model", "input": 0.4, "cacheRead": 0.04, "output": 1.6 }
///             ]
///         }]
///     }"#,
/// )?;
/// let prices = own.before(&PriceTable::builtin());
/// # Ok::<(), harness_adapters::AdapterError>(())
/// ```
///
/// - `providers` are the names under which adapters know an endpoint (`openrouter`, or its host); a list
///   without them holds for every provider.
/// - `vendor`, when there is one, is a prefix (`vendor/name`) that a model's name may carry.
/// - Names are compared without regard to case, with `.` like `-`, and without a date or `latest` at
///   their end: `Claude-Sonnet-4.5` is `claude-sonnet-4-5-20250929`. Any other difference, such as the
///   `:free` of a routed model, is another model.
/// - `cacheRead` and `cacheWrite` default to `input`, `cacheWrite1h` (tokens that a cache keeps for an hour)
///   to `cacheWrite`.
/// - `above` holds the prices of a request with more input than its `tokens`.
#[derive(Debug, Clone, Default)]
pub struct PriceTable(Arc<[PriceList]>);

#[derive(Debug, Clone, Deserialize)]
#[serde(deny_unknown_fields)]
struct PriceFile {
    kind: String,
    version: u64,
    lists: Vec<PriceList>,
}

#[derive(Debug, Clone, Default, Deserialize)]
#[serde(deny_unknown_fields)]
struct PriceList {
    date: String,
    /// Source of the prices, for reviewers of the file.
    #[serde(rename = "source")]
    _source: String,
    #[serde(default)]
    vendor: Option<String>,
    #[serde(default)]
    providers: Vec<String>,
    models: Vec<ModelPrice>,
    /// Prices of all models.
    #[serde(skip)]
    flat: Option<TokenPrices>,
}

#[derive(Debug, Clone, Deserialize)]
#[serde(deny_unknown_fields, rename_all = "camelCase")]
struct ModelPrice {
    name: String,
    input: Cost,
    output: Cost,
    #[serde(default)]
    cache_read: Option<Cost>,
    #[serde(default)]
    cache_write: Option<Cost>,
    #[serde(default, rename = "cacheWrite1h")]
    cache_write_1h: Option<Cost>,
    #[serde(default)]
    above: Option<LongPrice>,
}

/// The prices of a long request.
#[derive(Debug, Clone, Deserialize)]
#[serde(deny_unknown_fields, rename_all = "camelCase")]
struct LongPrice {
    tokens: u64,
    input: Cost,
    output: Cost,
    #[serde(default)]
    cache_read: Option<Cost>,
    #[serde(default)]
    cache_write: Option<Cost>,
    #[serde(default, rename = "cacheWrite1h")]
    cache_write_1h: Option<Cost>,
}

/// Prices of one model, in US dollars for a million tokens.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub struct TokenPrices {
    /// Input tokens that were not cached.
    pub input: Cost,
    /// Output tokens.
    pub output: Cost,
    /// Input tokens read from a cache. Default: as `input`.
    pub cache_read: Cost,
    /// Input tokens written to a cache for minutes. Default: as `input`.
    pub cache_write: Cost,
    /// Input tokens written to a cache for an hour. Default: as `cache_write`.
    pub cache_write_1h: Cost,
}

impl TokenPrices {
    /// Prices of a model whose cached tokens cost as much as others.
    pub fn new(input: Cost, output: Cost) -> Self {
        Self { input, output, cache_read: input, cache_write: input, cache_write_1h: input }
    }
}

impl PriceTable {
    /// Price list of this crate: well-known models of OpenAI, Anthropic and Google at their vendors
    /// and through OpenRouter, in standard processing. Prices change; every calculated cost names
    /// the date of its list.
    pub fn builtin() -> Self {
        BUILTIN.clone()
    }

    /// No prices: a cost that is not reported is unknown.
    pub fn empty() -> Self {
        Self::default()
    }

    /// One price list for every model. `list` names them in the source of a cost, for example by
    /// their date.
    pub fn flat(prices: TokenPrices, list: impl Into<String>) -> Self {
        Self(Arc::new([PriceList { date: list.into(), flat: Some(prices), ..PriceList::default() }]))
    }

    /// Reads a file of prices.
    ///
    /// # Errors
    /// [`AdapterError::Prices`] when the text is no such file, or of a newer version.
    pub fn parse(text: &str) -> Result<Self, AdapterError> {
        let fault = |reason: String| AdapterError::Prices { reason };
        let file: PriceFile = serde_json::from_str(text).map_err(|error| fault(error.to_string()))?;
        if file.kind != "harness.prices" {
            return Err(fault(format!("its kind is `{}`, expected `harness.prices`", file.kind)));
        }
        if file.version != VERSION {
            return Err(fault(format!("it has version {}, this program reads {VERSION}", file.version)));
        }
        match file.lists.iter().find(|list| !is_date(&list.date)) {
            Some(list) => Err(fault(format!("the date `{}` is not of the form YYYY-MM-DD", list.date))),
            None => Ok(Self(file.lists.into())),
        }
    }

    /// These prices, and where they know none, those of `other`.
    #[must_use]
    pub fn before(&self, other: &Self) -> Self {
        Self(self.0.iter().chain(other.0.iter()).cloned().collect())
    }

    /// Completes the cost of one model call.
    ///
    /// A cost that the provider gave stays, marked as reported. Else it is counted from the first list
    /// that knows the model, part by part, each part rounded up to a billionth; it stays unknown when no
    /// list does, or when the provider did not count the tokens.
    pub fn settle(&self, provider: &str, model: &str, usage: &mut Usage) {
        self.settle_call(provider, model, usage, 0);
    }

    /// Completes the cost of a call of whose cache writes `hour` tokens are kept for an hour.
    pub(crate) fn settle_call(&self, provider: &str, model: &str, usage: &mut Usage, hour: u64) {
        if let Some(cost) = usage.cost.as_mut().filter(|cost| cost.total.is_some()) {
            cost.source.get_or_insert(CostSource::Reported);
            return;
        }
        let (Some(input), Some(output)) = (usage.input, usage.output) else { return };
        let (cache_read, cache_write) = (usage.cache_read.unwrap_or(0), usage.cache_write.unwrap_or(0));
        let request = input.saturating_add(cache_read).saturating_add(cache_write);
        let Some((list, prices)) = self.find(provider, model, request) else { return };
        let hour = hour.min(cache_write);
        let written = charge(cache_write.saturating_sub(hour), prices.cache_write);
        let parts = [
            charge(input, prices.input),
            charge(output, prices.output),
            charge(cache_read, prices.cache_read),
            written.plus(charge(hour, prices.cache_write_1h)),
        ];
        let mut cost = CostParts::default();
        cost.total = Some(parts.iter().fold(Cost::default(), |sum, part| sum.plus(*part)));
        [cost.input, cost.output, cost.cache_read, cost.cache_write] = parts.map(Some);
        cost.source = Some(CostSource::Table(list.to_owned()));
        usage.cost = Some(Box::new(cost));
    }

    /// The first list that knows the model, and its prices for a request of this size.
    fn find(&self, provider: &str, model: &str, request: u64) -> Option<(&str, TokenPrices)> {
        let asked = plain(model);
        self.0.iter().filter(|list| list.serves(provider)).find_map(|list| {
            let bare = list.without_vendor(&asked);
            let known = || Some(list.models.iter().find(|price| plain(&price.name) == bare)?.prices(request));
            Some((list.date.as_str(), list.flat.or_else(known)?))
        })
    }
}

impl PriceList {
    fn serves(&self, provider: &str) -> bool {
        self.providers.is_empty() || self.providers.iter().any(|known| known == provider)
    }

    fn without_vendor<'a>(&self, name: &'a str) -> &'a str {
        let prefix = self.vendor.as_deref();
        let bare = prefix.and_then(|vendor| name.strip_prefix(vendor)?.strip_prefix('/'));
        bare.unwrap_or(name)
    }
}

impl ModelPrice {
    fn prices(&self, request: u64) -> TokenPrices {
        let (base, cached) = if let Some(long) = self.above.as_ref().filter(|long| request > long.tokens) {
            let cached = (long.cache_read, long.cache_write, long.cache_write_1h);
            (TokenPrices::new(long.input, long.output), cached)
        } else {
            let cached = (self.cache_read, self.cache_write, self.cache_write_1h);
            (TokenPrices::new(self.input, self.output), cached)
        };
        let (read, write, hour) = cached;
        let cache_write = write.unwrap_or(base.input);
        TokenPrices {
            cache_read: read.unwrap_or(base.input),
            cache_write,
            cache_write_1h: hour.unwrap_or(cache_write),
            ..base
        }
    }
}

fn charge(tokens: u64, per_million: Cost) -> Cost {
    let exact = u128::from(tokens).saturating_mul(u128::from(per_million.0)).div_ceil(PER);
    Cost(u64::try_from(exact).unwrap_or(u64::MAX))
}

/// A name as it is compared: lower case, dashes for dots, no date at the end.
fn plain(name: &str) -> String {
    let name = name.to_ascii_lowercase().replace('.', "-");
    let digits = |text: &str, lengths: &[usize]| {
        let parts: Vec<&str> = text.split('-').collect();
        parts.len() == lengths.len()
            && parts
                .iter()
                .zip(lengths)
                .all(|(part, length)| part.len() == *length && part.bytes().all(|byte| byte.is_ascii_digit()))
    };
    for (length, shape) in [(8, &[8][..]), (10, &[4, 2, 2])] {
        let cut = name.len().checked_sub(length).and_then(|at| name.split_at_checked(at));
        if let Some((bare, end)) = cut
            && let Some(bare) = bare.strip_suffix('-').filter(|_| digits(end, shape))
        {
            return bare.to_owned();
        }
    }
    name.strip_suffix("-latest").map(str::to_owned).unwrap_or(name)
}

fn is_date(text: &str) -> bool {
    let shape =
        |(at, byte): (usize, u8)| if matches!(at, 4 | 7) { byte == b'-' } else { byte.is_ascii_digit() };
    text.len() == 10 && text.bytes().enumerate().all(shape)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The cost of `input, cache read, cache write, output` tokens, and where it is known from.
    #[track_caller]
    fn check(provider: &str, model: &str, tokens: [u64; 4], expected: &str) {
        let mut usage = Usage::tokens(tokens[0], tokens[3]);
        (usage.cache_read, usage.cache_write) = (Some(tokens[1]), Some(tokens[2]));
        PriceTable::builtin().settle(provider, model, &mut usage);
        let shown = usage.total_cost().zip(usage.cost_source());
        let shown = shown.map_or("unknown".to_owned(), |(cost, source)| format!("{cost}, {source}"));
        assert_eq!(shown, expected);
    }

    const MILLION: u64 = 1_000_000;

    #[test]
    fn each_class_of_tokens_has_its_price() {
        check("anthropic", "claude-haiku-4-5", [MILLION, 0, 0, 0], "1, price list of 2026-03-21");
        check("anthropic", "claude-haiku-4-5", [0, 0, 0, MILLION], "5, price list of 2026-03-21");
        check("anthropic", "claude-haiku-4-5", [0, MILLION, 0, 0], "0.1, price list of 2026-03-21");
        check("anthropic", "claude-haiku-4-5", [0, 0, MILLION, 0], "1.25, price list of 2026-03-21");
        check("anthropic", "claude-haiku-4-5", [1, 1, 1, 1], "0.00000735, price list of 2026-03-21");
        check("anthropic", "claude-haiku-4-5", [0; 4], "0, price list of 2026-03-21");
    }

    #[test]
    fn cache_writes_for_an_hour_have_their_own_price() {
        let mut usage = Usage::tokens(0, 0);
        usage.cache_write = Some(MILLION);
        PriceTable::builtin().settle_call("anthropic", "claude-haiku-4-5", &mut usage, MILLION / 2);
        assert_eq!(usage.total_cost().unwrap().to_string(), "1.625");
    }

    #[test]
    fn flat_prices_apply_to_every_model() {
        let prices = PriceTable::flat(TokenPrices::new(Cost(1_000_000_000), Cost(2)), "our contract");
        let mut usage = Usage::tokens(MILLION, 0);
        prices.settle("anywhere", "anything", &mut usage);
        assert_eq!(usage.total_cost().unwrap().to_string(), "1");
    }

    #[test]
    fn a_long_request_has_prices_of_its_own() {
        let long = "price list of 2026-03-21";
        check("anthropic", "claude-sonnet-4-5", [200_000, 0, 0, 0], &format!("0.6, {long}"));
        check("anthropic", "claude-sonnet-4-5", [200_000, 1, 0, 0], &format!("1.2000006, {long}"));
    }

    #[test]
    fn a_model_is_known_under_each_of_its_names() {
        let million = [MILLION, 0, 0, 0];
        for (provider, model) in [
            ("openrouter", "anthropic/claude-sonnet-4.6"),
            ("api.anthropic.com", "Claude-Sonnet-4-6"),
            ("anthropic", "claude-sonnet-4-6-20260217"),
            ("anthropic", "claude-sonnet-4-6-latest"),
        ] {
            check(provider, model, million, "3, price list of 2026-03-21");
        }
        check("openai", "gpt-5-2025-08-07", million, "1.25, price list of 2026-03-21");
        check("openrouter", "openai/gpt-5-mini", million, "0.25, price list of 2026-03-21");
    }

    #[test]
    fn what_no_list_knows_is_unknown_and_not_free() {
        let million = [MILLION, 0, 0, 0];
        check("localhost", "gpt-5", million, "unknown");
        check("openrouter", "openai/gpt-5:free", million, "unknown");
        check("openrouter", "openai/gpt-5-ultra", million, "unknown");
        check("openai", "anthropic/claude-sonnet-4.6", million, "unknown");
        let mut uncounted = Usage::default();
        uncounted.output = Some(5);
        PriceTable::builtin().settle("openai", "gpt-5", &mut uncounted);
        assert_eq!(uncounted.cost, None);
    }

    #[test]
    fn what_the_provider_reports_stays() {
        let mut usage = Usage::tokens(MILLION, MILLION).with_cost(Cost(7));
        PriceTable::builtin().settle("openai", "gpt-5", &mut usage);
        assert_eq!((usage.total_cost(), usage.cost_source()), (Some(Cost(7)), Some(&CostSource::Reported)));
    }

    fn own(list: &str) -> Result<PriceTable, AdapterError> {
        PriceTable::parse(&format!(r#"{{"kind":"harness.prices","version":1,"lists":[{list}]}}"#))
    }

    #[test]
    fn an_own_table_goes_first_and_may_hold_for_every_provider() {
        let list =
            r#"{"date":"2026-05-01","source":"ours","models":[{"name":"gpt-5","input":1,"output":2}]}"#;
        let prices = own(list).unwrap().before(&PriceTable::builtin());
        for (model, expected) in [("gpt-5", Cost(3)), ("claude-haiku-4-5", Cost(6))] {
            let mut usage = Usage::tokens(MILLION, MILLION);
            prices.settle("anthropic", model, &mut usage);
            assert_eq!(usage.total_cost(), Some(Cost(expected.0 * 1_000_000_000)), "{model}");
        }
    }

    #[track_caller]
    fn check_fault(text: &str, expected: &str) {
        let fault = PriceTable::parse(text).unwrap_err();
        assert_eq!((fault.kind(), fault.to_string().as_str()), ("adapter.prices", expected));
    }

    #[test]
    fn a_file_that_is_none_is_refused_by_name() {
        check_fault(
            r#"{"kind":"x","version":1,"lists":[]}"#,
            "the price file cannot be used: its kind is `x`, expected `harness.prices`",
        );
        check_fault(
            r#"{"kind":"harness.prices","version":2,"lists":[]}"#,
            "the price file cannot be used: it has version 2, this program reads 1",
        );
        let list = r#"{"date":"1 May","source":"ours","models":[]}"#;
        let fault = own(list).unwrap_err().to_string();
        assert_eq!(fault, "the price file cannot be used: the date `1 May` is not of the form YYYY-MM-DD");
        let typo = r#"{"date":"2026-05-01","source":"ours","models":[{"name":"m","input":1,"ouput":2}]}"#;
        let fault = own(typo).unwrap_err().to_string();
        assert!(fault.contains("unknown field `ouput`"), "{fault}");
    }

    #[test]
    fn the_table_that_ships_can_be_read() {
        assert!(!PriceTable::builtin().0.is_empty());
    }
}
