//! The smaller kinds: one function of the product each.

use harness_core::port::TokenCounter;
use harness_memory::compact::clear::DirectClear;
use harness_memory::compact::durability::{
    DeterminismMetadata, DurabilityPolicies, ToolDurability, ToolDurabilityPolicy,
};
use harness_memory::compact::pairing;
use harness_memory::compact::plan::wire_tokens;
use harness_memory::compact::pressure::TokenBudget;
use harness_memory::compact::summary::{SpanReference, StructuredSummary};
use harness_memory::compact::tokens::RoundedCharacters;
use harness_memory::compact::{self, SummaryKey};
use serde_json::{Value, json};

use super::convert::{Done, envelope, items, view};
use crate::turn::convert::{at, list, text};

pub(super) fn content_hash(input: &Value) -> Value {
    let contents = list(input, "contents").iter().filter_map(Value::as_str);
    let hashes: Vec<String> = contents.map(compact::content_hash).collect();
    let key = at(input, "key");
    let part = |name: &str| text(key, name);
    let key =
        SummaryKey::of(part("content"), part("policy_version"), part("model_id"), part("prompt_version"));
    json!({"hashes": hashes, "key": key.to_string()})
}

pub(super) fn determinism(input: &Value) -> Done<Value> {
    let metadata = |key: &str| {
        serde_json::from_value::<DeterminismMetadata>(at(input, key).clone()).map_err(|e| e.to_string())
    };
    Ok(json!({"changed": metadata("captured")?.has_changed(&metadata("current")?)}))
}

pub(super) fn durability(input: &Value) -> Done<Value> {
    let mut policies = DurabilityPolicies::built_in();
    for (tool, policy) in at(input, "overrides").as_object().into_iter().flatten() {
        let word = policy.get("durability").unwrap_or(policy).clone();
        let durability: ToolDurability = serde_json::from_value(word).map_err(|e| e.to_string())?;
        policies = policies.with(tool.as_str(), ToolDurabilityPolicy::new(durability));
    }
    let envelope = envelope(at(input, "envelope"))?;
    let durability = envelope.effective_durability(&policies).as_str();
    Ok(json!({"durability": durability, "placeholder": envelope.placeholder()}))
}

pub(super) fn direct_clear(input: &Value) -> Done<Value> {
    let mut items = items(input)?;
    let mut clear = DirectClear::default();
    // The only number of the input is its target.
    clear.target = input.as_object().and_then(|input| input.values().find_map(Value::as_u64));
    let cleared = clear.apply(&mut items);
    Ok(json!({"cleared": cleared.results, "freed_estimate": cleared.freed_estimate, "view": view(&items)}))
}

pub(super) fn pairing_repair(input: &Value) -> Done<Value> {
    Ok(json!({"view": view(&pairing::repair(items(input)?))}))
}

pub(super) fn budget(input: &Value) -> TokenBudget {
    let defaults = TokenBudget::default();
    let tokens = |key: &str, default: u64| input.get(key).and_then(Value::as_u64).unwrap_or(default);
    let share = |key: &str, default: f64| input.get(key).and_then(Value::as_f64).unwrap_or(default);
    TokenBudget {
        max_input_tokens: tokens("max_input_tokens", defaults.max_input_tokens),
        soft_threshold_percent: share("soft_threshold_percent", defaults.soft_threshold_percent),
        blocking_threshold_percent: share("blocking_threshold_percent", defaults.blocking_threshold_percent),
        current_estimate: tokens("current_estimate", 0),
        system_prompt_tokens: tokens("system_prompt_tokens", 0),
        tool_schema_tokens: tokens("tool_schema_tokens", 0),
        formatting_overhead_tokens: tokens("formatting_overhead_tokens", 0),
        safety_buffer_tokens: tokens("safety_buffer_tokens", defaults.safety_buffer_tokens),
        rehydration_reserve_tokens: tokens("rehydration_reserve_tokens", defaults.rehydration_reserve_tokens),
        max_rehydration_artifacts: defaults.max_rehydration_artifacts,
    }
}

pub(super) fn pressure(input: &Value) -> Value {
    let budget = budget(input);
    json!({
        "soft_threshold": budget.soft_threshold(),
        "blocking_threshold": budget.blocking_threshold(),
        "total_overhead": budget.total_overhead(),
        "available_for_messages": budget.available_for_messages(),
        "is_under_pressure": budget.is_under_pressure(),
        "is_blocking": budget.is_blocking(),
        "tokens_over": budget.tokens_over(),
        "tokens_over_threshold": budget.tokens_over_threshold(),
        "tokens_to_free": budget.tokens_to_free(),
    })
}

pub(super) fn summary_parse(input: &Value) -> Value {
    let preserve: Vec<String> =
        list(input, "preserve_facts").iter().filter_map(Value::as_str).map(str::to_owned).collect();
    let summary = SpanReference::new(["m1".into(), "m2".into()], 0, 1)
        .and_then(|span| StructuredSummary::parse(text(input, "reply"), span, &preserve));
    match summary {
        Ok(summary) => json!(summary),
        Err(error) => json!({"error": error.kind()}),
    }
}

pub(super) fn summary_render(input: &Value) -> Done<Value> {
    let summary: StructuredSummary = serde_json::from_value(input.clone()).map_err(|e| e.to_string())?;
    Ok(json!({"text": summary.render()}))
}

pub(super) fn token_count(input: &Value) -> Done<Value> {
    if input.get("messages").is_none() {
        let texts = list(input, "texts").iter().filter_map(Value::as_str);
        let counts: Vec<u64> = texts.map(|text| RoundedCharacters.count(text)).collect();
        return Ok(json!({"counts": counts}));
    }
    let each = wire_tokens(&RoundedCharacters, &items(input)?);
    Ok(json!({"total": each.iter().sum::<u64>(), "each": each}))
}
