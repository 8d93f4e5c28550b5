//! The smaller kinds: one function of the product each.

use std::collections::BTreeMap;
use std::sync::Arc;

use harness_core::transcript::{self, Plan, Span};
use harness_memory::compact::durability::{
    DeterminismMetadata, DurabilityPolicies, ToolDurability, ToolDurabilityPolicy, ToolResultEnvelope,
};
use harness_memory::compact::summary::{SpanReference, StructuredSummary};
use harness_memory::compact::tokens::TokenCounter as _;
use harness_memory::compact::{
    self, CompactionPolicy, ContextCompactor, HardStop, Recency, Rung, SummaryKey, Target, Trigger,
};
use serde::Deserialize;
use serde::de::IgnoredAny;
use serde_json::{Value, json};

use super::convert::MessageWords;
use super::messages::Named;
use crate::Done;
use crate::counters::RoundedCharacters;
use crate::known::Known;

/// Values that must be equal for a summary to be reused.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct Hashed {
    contents: Vec<String>,
    key: KeyWords,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct KeyWords {
    content: String,
    policy_version: String,
    model_id: String,
    prompt_version: String,
}

pub(super) fn content_hash(Hashed { contents, key }: &Hashed) -> Value {
    let hashes: Vec<String> = contents.iter().map(|content| compact::content_hash(content)).collect();
    let key = SummaryKey::of(&key.content, &key.policy_version, &key.model_id, &key.prompt_version);
    json!({"hashes": hashes, "key": key.to_string()})
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct Sources {
    captured: Known<DeterminismMetadata>,
    current: Known<DeterminismMetadata>,
}

pub(super) fn determinism(Sources { captured, current }: &Sources) -> Value {
    json!({"changed": captured.0.has_changed(&current.0)})
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct Durable {
    envelope: Known<ToolResultEnvelope>,
    #[serde(default)]
    overrides: Overrides,
}

/// Results of tools in a vector.
pub(super) type Overrides = BTreeMap<String, ToolDurability>;

pub(super) fn durability(Durable { envelope: Known(envelope), overrides }: Durable) -> Value {
    let policies = overridden(DurabilityPolicies::built_in(), overrides);
    let durability = envelope.effective_durability(&policies);
    json!({"durability": durability, "placeholder": envelope.placeholder()})
}

/// The policies with what a vector says of tools.
pub(super) fn overridden(policies: DurabilityPolicies, overrides: Overrides) -> DurabilityPolicies {
    overrides.into_iter().fold(policies, |policies, (tool, durability)| {
        policies.with(tool, ToolDurabilityPolicy::new(durability))
    })
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct Clearing {
    messages: Vec<MessageWords>,
    /// Messages that are left alone.
    #[serde(default = "two")]
    preserve: usize,
    /// Tokens to free; all when there are none.
    #[serde(default)]
    target: u64,
}

fn two() -> usize {
    2
}

/// The clear rung over everything but the newest messages, in tokens: four characters are one.
pub(super) fn direct_clear(Clearing { messages, preserve, target }: Clearing) -> Done<Value> {
    let named = Named::of(messages);
    let mut policy = CompactionPolicy::ladder(0);
    (policy.trigger, policy.recency, policy.min_gain) = (Trigger::Always, Recency::new(preserve, 0), Some(0));
    (policy.ladder, policy.clear_from) = (vec![Rung::Clear], MAX_KEPT.div_ceil(4) + 1);
    let before = named.tokens(&RoundedCharacters, None);
    policy.target = match target {
        0 => Target::Everything,
        free => Target::Tokens(before.saturating_sub(free)),
    };
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

/// Nothing but messages.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct Messages {
    pub(super) messages: Vec<MessageWords>,
}

pub(super) fn pairing_repair(Messages { messages }: Messages) -> Value {
    let named = Named::of(messages);
    let repaired = transcript::repair(named.log.iter()).messages;
    let made: Vec<_> = repaired.into_iter().map(|(message, _)| message).collect();
    let plan = Plan { spans: Arc::from([Span::Made(made.into())]) };
    json!({"view": named.view(Some(&plan), true)})
}

/// A window, and what its requests hold.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
#[expect(
    dead_code,
    reason = "what is part of the estimate, or set aside for it, is named to be no unknown word"
)]
pub(super) struct Budget {
    #[serde(default = "window")]
    max_input_tokens: u64,
    soft_threshold_percent: Option<f64>,
    blocking_threshold_percent: Option<f64>,
    pub(super) current_estimate: Option<u64>,
    system_prompt_tokens: Option<IgnoredAny>,
    tool_schema_tokens: Option<IgnoredAny>,
    formatting_overhead_tokens: Option<IgnoredAny>,
    safety_buffer_tokens: Option<IgnoredAny>,
    rehydration_reserve_tokens: Option<IgnoredAny>,
    max_rehydration_artifacts: Option<IgnoredAny>,
}

/// The window of a budget that names none.
fn window() -> u64 {
    128_000
}

impl Budget {
    pub(super) fn policy(&self) -> CompactionPolicy {
        let mut policy = CompactionPolicy::ladder(self.max_input_tokens);
        let share = |share: f64| format!("{:.0}", share * 1_000.0).parse::<u64>().ok();
        let soft = self.soft_threshold_percent.and_then(share);
        let blocking = self.blocking_threshold_percent.and_then(share);
        policy.trigger = soft.map_or(policy.trigger, Trigger::Share);
        policy.hard_stop = blocking.map_or(policy.hard_stop, HardStop::Share);
        policy
    }
}

pub(super) fn pressure(budget: &Budget) -> Value {
    let policy = budget.policy();
    let estimate = budget.current_estimate.unwrap_or(0);
    json!({
        "soft_threshold": policy.trigger(),
        "blocking_threshold": policy.ceiling(),
        "is_under_pressure": policy.is_due(estimate),
        "is_blocking": policy.is_too_long(estimate),
        "tokens_over": estimate.saturating_sub(policy.trigger()),
        "tokens_to_free": policy.excess(estimate),
    })
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct Reply {
    reply: String,
    preserve_facts: Option<Vec<String>>,
}

pub(super) fn summary_parse(Reply { reply, preserve_facts }: &Reply) -> Value {
    let preserve = preserve_facts.as_deref().unwrap_or_default();
    let summary = SpanReference::new(["m1".into(), "m2".into()], 0, 1)
        .and_then(|span| StructuredSummary::parse(reply, span, preserve));
    match summary {
        Ok(summary) => json!(summary),
        Err(error) => json!({"error": error.kind()}),
    }
}

pub(super) fn summary_render(summary: &Known<StructuredSummary>) -> Value {
    json!({"text": summary.0.render()})
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct Counted {
    texts: Option<Vec<String>>,
    messages: Option<Vec<MessageWords>>,
}

pub(super) fn token_count(counted: Counted) -> Done<Value> {
    match counted {
        Counted { texts: Some(texts), messages: None } => {
            let counts: Vec<u64> = texts.iter().map(|text| RoundedCharacters.count(text)).collect();
            Ok(json!({"counts": counts}))
        }
        Counted { texts: None, messages: Some(messages) } => {
            let each = Named::of(messages).tokens_of_each(&RoundedCharacters);
            Ok(json!({"total": each.iter().sum::<u64>(), "each": each}))
        }
        Counted { .. } => Err("either texts are counted, or messages".to_owned()),
    }
}
