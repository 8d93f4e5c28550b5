//! Vectors of kind `compaction-plan`: the rungs of a ladder.

use std::collections::BTreeMap;
use std::ops::Range;
use std::sync::Arc;

use harness_core::message::{Block, Message};
use harness_core::transcript::{Plan, Transcript};
use harness_core::{ArtifactId, SessionId, Time};
use harness_host::{ArtifactMeta, ArtifactPart, ArtifactStore, StorageError};
use harness_memory::compact::durability::DurabilityPolicies;
use harness_memory::compact::summary::{SpanReference, StructuredSummary};
use harness_memory::compact::{
    CompactionPolicy, ContextCompactor, Recency, Rehydration, Rung, Summarizer, Summary, SummaryAsk,
    SummaryFault, Target, Trigger,
};
use parking_lot::Mutex;
use serde::Deserialize;
use serde_json::{Map, Value, json};

use super::convert::{MessageWords, shown};
use super::messages::{Named, compact};
use super::parts::{Budget, Overrides, overridden};
use crate::Done;
use crate::counters::RoundedCharacters;
use crate::known::Known;

/// A ladder, and what it climbs.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct Input {
    messages: Vec<MessageWords>,
    strategies: Vec<StrategyWords>,
    tokens_to_free: Option<u64>,
    budget: Option<Budget>,
    summarizer: Option<Fixed>,
    max_proposals: Option<u32>,
    /// Whether a stored content was read back in the turn.
    #[serde(default)]
    rehydrated: bool,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct StrategyWords {
    name: RungWord,
    preserve_recent_messages: Option<usize>,
    #[serde(default)]
    overrides: Overrides,
}

#[derive(Clone, Copy, Deserialize)]
#[serde(rename_all = "lowercase")]
enum RungWord {
    Clear,
    Externalize,
    Summarize,
    Drop,
}

pub(super) fn run(mut input: Input) -> Done<Value> {
    let named = Named::of(std::mem::take(&mut input.messages));
    let before = named.tokens(&RoundedCharacters, None);
    let to_free = match (input.tokens_to_free, &input.budget) {
        (Some(tokens), None) => tokens,
        (None, Some(budget)) => budget.policy().excess(budget.current_estimate.unwrap_or(before)),
        (Some(_), Some(_)) | (None, None) => {
            return Err("either tokens are to be freed, or a budget is".to_owned());
        }
    };

    let store = Arc::new(Shelf::default());
    let rehydrated = input.rehydrated;
    let compactor = compactor(input, before.saturating_sub(to_free), &store)?;
    if rehydrated {
        read_back(&compactor)?;
    }
    let made = named.compact(&compactor, None)?;
    let plan = made.plan.as_ref();
    let applied = made.note.iter().flat_map(|note| &note.actions).map(|(action, _)| json!(action));
    Ok(json!({
        "tokens_to_free": to_free,
        "tokens_before": before,
        "tokens_after": named.tokens(&RoundedCharacters, plan),
        "strategies_applied": applied.collect::<Vec<_>>(),
        "actions": actions(&named, plan),
        "view": named.view(plan, true),
        "artifacts": *store.0.lock(),
    }))
}

fn compactor(input: Input, target: u64, store: &Arc<Shelf>) -> Done<ContextCompactor> {
    let mut policy = CompactionPolicy::ladder(0);
    // The one message that names what is read back is no reason to compact.
    policy.trigger = if input.rehydrated { Trigger::Messages(1) } else { Trigger::Always };
    (policy.target, policy.min_gain, policy.max_changes) =
        (Target::Tokens(target), Some(0), input.max_proposals);
    let mut durability = DurabilityPolicies::built_in();
    let mut kept: Vec<usize> =
        input.strategies.iter().filter_map(|one| one.preserve_recent_messages).collect();
    kept.dedup();
    policy.recency = match *kept.as_slice() {
        [] => Recency::new(policy.recency.messages, 0),
        [messages] => Recency::new(messages, 0),
        _ => return Err("all rungs of a ladder keep the same messages".to_owned()),
    };
    policy.ladder.clear();
    for strategy in input.strategies {
        policy.ladder.push(match strategy.name {
            RungWord::Clear => Rung::Clear,
            RungWord::Externalize => Rung::Externalize,
            RungWord::Summarize => Rung::Summarize,
            RungWord::Drop => Rung::Drop,
        });
        durability = overridden(durability, strategy.overrides);
    }
    policy.ladder.sort();
    let compactor = ContextCompactor::new(policy)
        .with_counter(Arc::new(RoundedCharacters))
        .with_durability(durability)
        .with_artifacts(Arc::<Shelf>::clone(store))
        .with_rehydration(Rehydration::default());
    Ok(match input.summarizer {
        Some(summarizer) => compactor.with_summarizer(summarizer),
        None => compactor,
    })
}

/// Has a stored content shown by an earlier request of the turn.
fn read_back(compactor: &ContextCompactor) -> Done<()> {
    let name = format!("sha256:{}", "0".repeat(64));
    let log: Transcript = [Arc::new(Message::user(format!("What does {name} say?")))].into_iter().collect();
    let shown = compact(compactor, &log, None)?;
    shown.plan.map(drop).ok_or_else(|| "what is named is not read back".to_owned())
}

/// Treatment of each message that is not displayed unchanged.
fn actions(named: &Named, plan: Option<&Plan>) -> Value {
    let view = named.shown(plan);
    let form = |message: &Message| -> Option<String> {
        let Some(Block::Extension(block)) = message.content().last() else { return None };
        let entries = block.data.entries().ok().filter(|_| block.name == "compacted")?;
        entries.into_iter().find(|(key, _)| key == "form")?.1.to().ok()
    };
    let is_summarized = view.iter().any(|message| form(message).as_deref() == Some("summary"));
    let forms: BTreeMap<&str, Option<String>> =
        view.iter().filter_map(|message| Some((named.id_of(message)?, form(message)))).collect();
    let mut actions = Map::new();
    for id in named.ids() {
        let action = match forms.get(id).map(Option::as_deref) {
            Some(Some("cleared")) => "clear",
            Some(Some("stored")) => "externalize",
            Some(_) => continue,
            None if is_summarized => "summarize",
            None => "drop",
        };
        actions.insert(id.to_owned(), json!(action));
    }
    Value::Object(actions)
}

/// A summarizer that always says the same, or fails.
#[derive(Deserialize)]
#[serde(try_from = "Value")]
enum Fixed {
    Says(String),
    Fails,
}

impl TryFrom<Value> for Fixed {
    type Error = String;

    fn try_from(words: Value) -> Done<Self> {
        if words == json!("fails") {
            return Ok(Self::Fails);
        }
        let reply = words.to_string();
        serde_json::from_value::<Known<StructuredSummary>>(words).map_err(|e| e.to_string())?;
        Ok(Self::Says(reply))
    }
}

impl Summarizer for Fixed {
    async fn summarize(&self, _: SummaryAsk) -> Result<Summary, SummaryFault> {
        let Self::Says(reply) = self else { return Err(SummaryFault::new("the scripted summary fails")) };
        let span = SpanReference::new([Arc::from("1")], 0, 0);
        let summary = span.and_then(|span| StructuredSummary::parse(reply, span, &[]));
        summary
            .map(|summary| Summary::new(summary.render()))
            .map_err(|error| SummaryFault::new(error.to_string()))
    }
}

/// A store that numbers what it holds.
#[derive(Default)]
struct Shelf(Mutex<BTreeMap<String, String>>);

impl ArtifactStore for Shelf {
    async fn put(&self, content: &[u8], _: ArtifactMeta) -> Result<ArtifactId, StorageError> {
        let mut held = self.0.lock();
        let id = format!("artifact-{:08}", held.len() + 1);
        held.insert(id.clone(), shown(&String::from_utf8_lossy(content)));
        Ok(ArtifactId::from(id))
    }

    async fn read(
        &self,
        _: &ArtifactId,
        _: Range<u64>,
        _: Option<&SessionId>,
        _: Time,
    ) -> Result<Option<ArtifactPart>, StorageError> {
        let mut meta = ArtifactMeta::default();
        "text/plain".clone_into(&mut meta.media_type);
        Ok(Some(ArtifactPart::new(Arc::from(*b"stored before"), 0, meta)))
    }

    async fn delete(&self, _: &ArtifactId) -> Result<bool, StorageError> {
        Ok(false)
    }
}
