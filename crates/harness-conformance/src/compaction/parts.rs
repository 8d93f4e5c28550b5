//! The smaller kinds: one function of the product each.

use std::sync::Arc;

use harness_core::port::TokenCounter as _;
use harness_core::transcript::{self, Plan, Span};
use harness_memory::compact::durability::{
    DeterminismMetadata, DurabilityPolicies, ToolDurability, ToolDurabilityPolicy,
};
use harness_memory::compact::summary::{SpanReference, StructuredSummary};
use harness_memory::compact::tokens::RoundedCharacters;
use harness_memory::compact::{
    self, CompactionPolicy, ContextCompactor, HardStop, Recency, Rung, SummaryKey, Target, Trigger,
};
use serde_json::{Value, json};

use super::convert::{Done, envelope};
use super::messages::Named;
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
    let policies = overrides(DurabilityPolicies::built_in(), at(input, "overrides"))?;
    let envelope = envelope(at(input, "envelope"))?;
    let durability = envelope.effective_durability(&policies).as_str();
    Ok(json!({"durability": durability, "placeholder": envelope.placeholder()}))
}

/// The policies with what a vector says of tools.
pub(super) fn overrides(policies: DurabilityPolicies, wire: &Value) -> Done<DurabilityPolicies> {
    wire.as_object().into_iter().flatten().try_fold(policies, |policies, (tool, policy)| {
        let word = policy.get("durability").unwrap_or(policy).clone();
        let durability: ToolDurability = serde_json::from_value(word).map_err(|e| e.to_string())?;
        Ok(policies.with(tool.as_str(), ToolDurabilityPolicy::new(durability)))
    })
}

/// The clear rung over everything but the newest messages, in tokens: four characters are one.
pub(super) fn direct_clear(input: &Value) -> Done<Value> {
    let named = Named::of(input)?;
    let number = |key: &str| at(input, key).as_u64();
    let keep = number("preserve").and_then(|keep| usize::try_from(keep).ok()).unwrap_or(2);
    let mut policy = CompactionPolicy::ladder(0);
    (policy.trigger, policy.recency, policy.min_gain) = (Trigger::Always, Recency::new(keep, 0), Some(0));
    (policy.ladder, policy.clear_from) = (vec![Rung::Clear], MAX_KEPT.div_ceil(4) + 1);
    let before = named.tokens(&RoundedCharacters, None);
    let target = number("target").filter(|target| *target > 0);
    policy.target = target.map_or(Target::Everything, |free| Target::Tokens(before.saturating_sub(free)));
    let compactor = ContextCompactor::new(policy).with_counter(Arc::new(RoundedCharacters));
    let made = named.compact(&compactor, None)?;
    let actions = made.note.iter().flat_map(|note| &note.actions);
    let cleared: u32 = actions.filter(|(action, _)| action == "clear").map(|(_, groups)| groups).sum();
    let freed = before.saturating_sub(named.tokens(&RoundedCharacters, made.plan.as_ref()));
    let view = named.view(made.plan.as_ref(), true);
    Ok(json!({"cleared": cleared, "freed_estimate": freed, "view": view}))
}

/// Characters of a result that is not cleared directly.
const MAX_KEPT: u64 = 100;

pub(super) fn pairing_repair(input: &Value) -> Done<Value> {
    let named = Named::of(input)?;
    let repaired = transcript::repair(named.log.iter()).messages;
    let made: Vec<_> = repaired.into_iter().map(|(message, _)| message).collect();
    let plan = Plan { spans: Arc::from([Span::Made(made.into())]) };
    Ok(json!({"view": named.view(Some(&plan), true)}))
}

/// The window and the shares of a budget. Its other fields are parts of the estimate, or set aside for what
/// the estimate holds already.
pub(super) fn budget(input: &Value) -> CompactionPolicy {
    let mut policy = CompactionPolicy::ladder(at(input, "max_input_tokens").as_u64().unwrap_or(WINDOW));
    let share = |key: &str| {
        let share = at(input, key).as_f64()?;
        format!("{:.0}", share * 1_000.0).parse::<u64>().ok()
    };
    policy.trigger = share("soft_threshold_percent").map_or(policy.trigger, Trigger::Share);
    policy.hard_stop = share("blocking_threshold_percent").map_or(policy.hard_stop, HardStop::Share);
    policy
}

/// The window of a budget that names none.
const WINDOW: u64 = 128_000;

pub(super) fn pressure(input: &Value) -> Value {
    let policy = budget(input);
    let estimate = at(input, "current_estimate").as_u64().unwrap_or(0);
    json!({
        "soft_threshold": policy.trigger(),
        "blocking_threshold": policy.ceiling(),
        "is_under_pressure": policy.is_due(estimate),
        "is_blocking": policy.is_too_long(estimate),
        "tokens_over": estimate.saturating_sub(policy.trigger()),
        "tokens_to_free": policy.excess(estimate),
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
    let each = Named::of(input)?.tokens_of_each(&RoundedCharacters);
    Ok(json!({"total": each.iter().sum::<u64>(), "each": each}))
}
