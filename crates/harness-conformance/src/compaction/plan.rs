//! Vectors of kind `compaction-plan`: the ladder of rungs.

use std::collections::BTreeMap;

use harness_core::{ArtifactId, Fault, FaultSource};
use harness_memory::compact::CompactError;
use harness_memory::compact::plan::{
    Action, Clear, Coordinator, Done as Answer, Drop, Externalize, Strategy, Summarize, Work, total_tokens,
};
use harness_memory::compact::summary::{SpanReference, StructuredSummary};
use harness_memory::compact::tokens::RoundedCharacters;
use serde_json::{Map, Value, json};

use super::convert::{Done, items, shown, view};
use super::parts::budget;
use crate::turn::convert::{at, list, text};

pub(super) fn run(input: &Value) -> Done<Value> {
    let items = items(input)?;
    let before = total_tokens(&RoundedCharacters, &items);
    let target = input.get("tokens_to_free").and_then(Value::as_u64);
    let target = target.unwrap_or_else(|| {
        let budget = budget(at(input, "budget"));
        if budget.current_estimate > 0 { budget.tokens_to_free() } else { budget.tokens_to_free_of(before) }
    });

    let summarizer = Summarizer(at(input, "summarizer"));
    let strategies = list(input, "strategies").iter().map(strategy).collect::<Done<Vec<_>>>()?;
    let usable = |strategy: &Strategy| match strategy.action() {
        Action::Externalize | Action::Summarize => !summarizer.0.is_null(),
        Action::Include | Action::Clear | Action::Drop => true,
    };
    let mut coordinator = Coordinator::new(strategies.into_iter().filter(usable));
    coordinator.max_proposals =
        input.get("max_proposals").and_then(Value::as_u64).and_then(|max| usize::try_from(max).ok());
    coordinator.has_rehydrated = input.get("rehydrated").and_then(Value::as_bool).unwrap_or(false);

    let mut artifacts = BTreeMap::new();
    let mut coordination = coordinator.begin(&items, &RoundedCharacters, target);
    while let Some(work) = coordination.next() {
        coordination.answer(summarizer.answer(work, &mut artifacts));
    }
    let done = coordination.finish();
    let view_items = done.plan.render(&items);
    let actions: Map<String, Value> =
        done.plan.actions().into_iter().map(|(id, action)| (id, json!(action))).collect();
    let preserved: Map<String, Value> = done
        .plan
        .clearings
        .iter()
        .filter(|record| !record.preserved_fields.is_empty())
        .flat_map(|record| {
            record.span.message_ids.iter().map(|id| (id.to_string(), json!(record.preserved_fields)))
        })
        .collect();
    Ok(json!({
        "tokens_to_free": target,
        "tokens_before": before,
        "tokens_after": total_tokens(&RoundedCharacters, &view_items),
        "estimated_freed": done.estimated_tokens_freed,
        "proposals_generated": done.proposals_generated,
        "proposals_applied": done.proposals_applied,
        "strategies_applied": done.actions_applied,
        "actions": actions,
        "preserved_fields": preserved,
        "warnings": done.plan.warnings().iter().map(ToString::to_string).collect::<Vec<_>>(),
        "view": view(&view_items),
        "artifacts": artifacts,
    }))
}

fn strategy(wire: &Value) -> Done<Strategy> {
    let number = |key: &str| wire.get(key).and_then(Value::as_u64);
    let preserve = number("preserve_recent_messages").and_then(|n| usize::try_from(n).ok());
    let preserve_recent_messages = preserve.unwrap_or(Clear::default().preserve_recent_messages);
    Ok(match text(wire, "name") {
        "clear" => {
            let default = Clear::default().min_tokens_to_clear;
            let min_tokens_to_clear = number("min_tokens_to_clear").unwrap_or(default);
            Clear { preserve_recent_messages, min_tokens_to_clear }.into()
        }
        "externalize" => {
            let default = Externalize::default().externalize_threshold_tokens;
            let threshold = number("externalize_threshold_tokens").or_else(|| number("threshold_tokens"));
            let externalize_threshold_tokens = threshold.unwrap_or(default);
            Externalize { preserve_recent_messages, externalize_threshold_tokens }.into()
        }
        "summarize" => {
            let default = Summarize::default();
            let ratio = ["target_ratio", "summary_target_ratio", "summarize_target_ratio", "ratio"];
            let ratio = ratio.iter().find_map(|key| wire.get(*key).and_then(Value::as_f64));
            let messages = number("min_span_messages").and_then(|n| usize::try_from(n).ok());
            Summarize {
                preserve_recent_messages,
                target_ratio: ratio.unwrap_or(default.target_ratio),
                min_span_tokens: number("min_span_tokens").unwrap_or(default.min_span_tokens),
                min_span_messages: messages.unwrap_or(default.min_span_messages),
            }
            .into()
        }
        "drop" => Drop { preserve_recent_messages }.into(),
        other => return Err(format!("`{other}` is no strategy")),
    })
}

/// A summarizer that always says the same, or fails; and a store beside it.
struct Summarizer<'a>(&'a Value);

impl Summarizer<'_> {
    fn answer(&self, work: Work, artifacts: &mut BTreeMap<String, String>) -> Result<Answer, CompactError> {
        match work {
            Work::Summarize { span, .. } => self.summary(span).map(Answer::Summary),
            Work::Store { content, span, .. } => {
                let summary = self.summary(span)?;
                let id = format!("artifact-{:08}", artifacts.len() + 1);
                artifacts.insert(id.clone(), shown(&content));
                Ok(Answer::Stored(ArtifactId::from(id), summary))
            }
            other => Err(failed(&format!("nobody does {other:?}"))),
        }
    }

    fn summary(&self, span: SpanReference) -> Result<StructuredSummary, CompactError> {
        if !self.0.is_object() {
            return Err(failed("the summarizer fails"));
        }
        StructuredSummary::parse(&self.0.to_string(), span, &[])
    }
}

fn failed(message: &str) -> CompactError {
    CompactError::Failed(Fault::new(FaultSource::Compactor, "vector.failed", message))
}
