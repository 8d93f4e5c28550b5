//! Vectors of kind `compaction-plan`: the rungs of a ladder.

use std::collections::BTreeMap;
use std::ops::Range;
use std::sync::{Arc, Mutex, PoisonError};

use harness_core::message::{Block, Message};
use harness_core::transcript::Plan;
use harness_core::{ArtifactId, SessionId, Time};
use harness_host::{ArtifactMeta, ArtifactPart, ArtifactStore, StorageError};
use harness_memory::compact::durability::DurabilityPolicies;
use harness_memory::compact::summary::{SpanReference, StructuredSummary};
use harness_memory::compact::tokens::RoundedCharacters;
use harness_memory::compact::{
    CompactionPolicy, ContextCompactor, Recency, Rung, Summarizer, Summary, SummaryAsk, SummaryFault, Target,
    Trigger,
};
use serde_json::{Map, Value, json};

use super::convert::{Done, shown};
use super::messages::Named;
use super::parts::{budget, overrides};
use crate::turn::convert::{at, list, text};

pub(super) fn run(input: &Value) -> Done<Value> {
    if input.get("max_proposals").is_some() || at(input, "rehydrated") == true {
        return Err("a ladder has no cap, and knows no turn in which something was read back".to_owned());
    }
    let named = Named::of(input)?;
    let before = named.tokens(&RoundedCharacters, None);
    let to_free = at(input, "tokens_to_free").as_u64().unwrap_or_else(|| {
        let wire = at(input, "budget");
        let estimate = at(wire, "current_estimate").as_u64().unwrap_or(before);
        budget(wire).excess(estimate)
    });

    let store = Arc::new(Shelf::default());
    let compactor = compactor(input, before.saturating_sub(to_free), &store)?;
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
        "artifacts": *store.contents(),
    }))
}

fn compactor(input: &Value, target: u64, store: &Arc<Shelf>) -> Done<ContextCompactor> {
    let mut policy = CompactionPolicy::ladder(0);
    (policy.trigger, policy.target, policy.min_gain) = (Trigger::Always, Target::Tokens(target), Some(0));
    let mut durability = DurabilityPolicies::built_in();
    let mut keep = policy.recency.messages;
    policy.ladder.clear();
    for strategy in list(input, "strategies") {
        policy.ladder.push(rung(text(strategy, "name"))?);
        let preserve = at(strategy, "preserve_recent_messages").as_u64();
        keep = preserve.and_then(|preserve| usize::try_from(preserve).ok()).unwrap_or(keep);
        durability = overrides(durability, at(strategy, "overrides"))?;
    }
    policy.ladder.sort();
    policy.recency = Recency::new(keep, 0);
    let compactor = ContextCompactor::new(policy)
        .with_counter(Arc::new(RoundedCharacters))
        .with_durability(durability)
        .with_artifacts(Arc::<Shelf>::clone(store));
    let summarizer = at(input, "summarizer");
    Ok(if summarizer.is_null() { compactor } else { compactor.with_summarizer(Fixed(summarizer.clone())) })
}

fn rung(name: &str) -> Done<Rung> {
    Ok(match name {
        "clear" => Rung::Clear,
        "externalize" => Rung::Externalize,
        "summarize" => Rung::Summarize,
        "drop" => Rung::Drop,
        other => return Err(format!("`{other}` is no strategy")),
    })
}

/// What became of each message that is not shown as it is.
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
struct Fixed(Value);

impl Summarizer for Fixed {
    async fn summarize(&self, _: SummaryAsk) -> Result<Summary, SummaryFault> {
        let fault = |error: &dyn std::fmt::Display| SummaryFault::new(error.to_string());
        if !self.0.is_object() {
            return Err(fault(&"the scripted summary fails"));
        }
        let span = SpanReference::new([Arc::from("1")], 0, 0).map_err(|error| fault(&error))?;
        let summary =
            StructuredSummary::parse(&self.0.to_string(), span, &[]).map_err(|error| fault(&error))?;
        Ok(Summary::new(summary.render()))
    }
}

/// A store that numbers what it holds.
#[derive(Default)]
struct Shelf(Mutex<BTreeMap<String, String>>);

impl Shelf {
    fn contents(&self) -> std::sync::MutexGuard<'_, BTreeMap<String, String>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl ArtifactStore for Shelf {
    async fn put(&self, content: &[u8], _: ArtifactMeta) -> Result<ArtifactId, StorageError> {
        let mut held = self.contents();
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
        Ok(None)
    }

    async fn delete(&self, _: &ArtifactId) -> Result<bool, StorageError> {
        Ok(false)
    }
}
