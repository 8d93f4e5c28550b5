//! What a strategy would do, and what it hopes to gain.

use super::ladder::{Clear, Drop, Externalize, Strategy, Summarize};
use super::record::Action;
use super::scene::{Scene, Unit, is_spent, is_stand_in};
use crate::compact::durability::{ToolDurability, ToolResultEnvelope};
use crate::compact::group::{Group, GroupKind};
use crate::compact::item::Item;
use crate::compact::key_data::KeyFields;
use crate::compact::pressure::share;
use crate::compact::summary::SpanReference;

/// Tokens of the placeholder of a cleared message, as estimated.
const PLACEHOLDER_TOKENS: u64 = 20;
/// Tokens of a pointer to a stored content, as estimated: a fifth of the content and at most so many for the
/// summary, and the rest for the pointer itself.
const POINTER_SUMMARY_TOKENS: u64 = 200;
const POINTER_TOKENS: u64 = 50;

/// One thing that could be done.
#[derive(Clone, Debug, PartialEq)]
#[non_exhaustive]
pub struct CompactionProposal {
    /// What would be done.
    pub action: Action,
    /// With which messages.
    pub span: SpanReference,
    /// What it would free, as estimated.
    pub estimated_tokens_freed: u64,
    /// Tokens of what it would take away.
    pub tokens: u64,
    /// Why.
    pub reason: String,
    /// Lower comes first.
    pub priority: u64,
    /// What would outlive what is cleared.
    pub preserved_fields: KeyFields,
    /// The messages of the wire that it is about.
    pub(super) units: Vec<usize>,
}

/// What a strategy would do, in the order of the transcript.
pub(super) fn propose(strategy: &Strategy, scene: &Scene<'_>) -> Vec<CompactionProposal> {
    match strategy {
        Strategy::Clear(clear) => to_clear(clear, scene),
        Strategy::Externalize(externalize) => to_externalize(externalize, scene),
        Strategy::Summarize(summarize) => to_summarize(summarize, scene).into_iter().collect(),
        Strategy::Drop(drop) => to_drop(*drop, scene),
    }
}

fn old<'s>(scene: &'s Scene<'_>, preserve: usize) -> impl Iterator<Item = (usize, &'s Unit)> {
    scene.units.iter().enumerate().take(scene.border(preserve)).filter(|(_, unit)| !unit.is_protected)
}

fn to_clear(clear: &Clear, scene: &Scene<'_>) -> Vec<CompactionProposal> {
    let candidate = |(at, unit): (usize, &Unit)| {
        let results = scene.results(unit);
        if results.is_empty()
            || unit.tokens < clear.min_tokens_to_clear
            || scene.parts(unit).iter().any(|item| is_stand_in(&item.message))
        {
            return None;
        }
        let envelopes: Vec<_> = results.iter().map(|result| scene.envelope(result)).collect();
        let durability = |envelope: &ToolResultEnvelope| envelope.durability_now(scene.policies());
        if envelopes.iter().any(|envelope| durability(envelope) == ToolDurability::NonReplayable) {
            return None;
        }
        let ephemeral = envelopes.iter().all(|envelope| durability(envelope) == ToolDurability::Ephemeral);
        let mut preserved_fields = KeyFields::new();
        for (envelope, result) in envelopes.iter().zip(&results) {
            let attached = ToolResultEnvelope::attached(result).is_some();
            if attached || !envelope.key_fields.is_empty() {
                preserved_fields.extend(envelope.preserved());
            }
        }
        Some(CompactionProposal {
            action: Action::Clear,
            span: scene.span(&[at], at, at)?,
            estimated_tokens_freed: unit.tokens.saturating_sub(PLACEHOLDER_TOKENS),
            tokens: unit.tokens,
            reason: format!("an old tool result of {} tokens", unit.tokens),
            priority: if ephemeral { 1 } else { 2 },
            preserved_fields,
            units: vec![at],
        })
    };
    old(scene, clear.preserve_recent_messages).filter_map(candidate).collect()
}

fn to_externalize(externalize: &Externalize, scene: &Scene<'_>) -> Vec<CompactionProposal> {
    let candidate = |(at, unit): (usize, &Unit)| {
        let envelopes: Vec<_> =
            scene.results(unit).into_iter().map(|result| scene.envelope(result)).collect();
        let of_policy = envelopes
            .iter()
            .filter_map(|envelope| {
                scene.policies().policy_of(&envelope.tool_name).externalize_threshold_tokens
            })
            .min();
        let threshold = externalize.externalize_threshold_tokens;
        if unit.tokens < of_policy.map_or(threshold, |tokens| tokens.min(threshold))
            || !is_movable(scene, unit)
        {
            return None;
        }
        let is_irreplaceable = |envelope: &ToolResultEnvelope| {
            envelope.durability_now(scene.policies()) == ToolDurability::NonReplayable
        };
        let pointer = POINTER_SUMMARY_TOKENS.min(unit.tokens / 5) + POINTER_TOKENS;
        Some(CompactionProposal {
            action: Action::Externalize,
            span: scene.span(&[at], at, at)?,
            estimated_tokens_freed: unit.tokens.saturating_sub(pointer),
            tokens: unit.tokens,
            reason: format!("a message of {} tokens", unit.tokens),
            priority: u64::from(!envelopes.iter().any(is_irreplaceable)),
            preserved_fields: KeyFields::new(),
            units: vec![at],
        })
    };
    old(scene, externalize.preserve_recent_messages).filter_map(candidate).collect()
}

/// Whether a pointer may stand for a unit: calls stay where they are, and what stands for something else
/// is not moved once more.
fn is_movable(scene: &Scene<'_>, unit: &Unit) -> bool {
    let has_calls =
        |item: &Item| item.message.as_assistant().is_some_and(|answer| answer.tool_calls().next().is_some());
    let has_text = |item: &Item| item.message.content().iter().any(|block| block.as_text().is_some());
    let parts = scene.parts(unit);
    parts.iter().all(|item| has_text(item) && !is_stand_in(&item.message) && !has_calls(item))
}

fn to_summarize(summarize: &Summarize, scene: &Scene<'_>) -> Option<CompactionProposal> {
    let border = scene.border(summarize.preserve_recent_messages);
    let task = scene.first_user_unit();
    let is_old = |unit: &Unit| {
        scene.groups_of(unit).all(|group| {
            group.kind != GroupKind::Unsent && !group.is_protected() && scene.is_before(group, border)
        })
    };
    let units: Vec<usize> = old(scene, summarize.preserve_recent_messages)
        .filter(|(at, unit)| Some(*at) != task && is_old(unit))
        .map(|(at, _)| at)
        .collect();
    let tokens: u64 = units.iter().filter_map(|at| scene.units.get(*at)).map(|unit| unit.tokens).sum();
    if border < 2 || units.len() < summarize.min_span_messages || tokens < summarize.min_span_tokens {
        return None;
    }
    Some(CompactionProposal {
        action: Action::Summarize,
        span: scene.span(&units, 0, border - 1)?,
        estimated_tokens_freed: tokens.saturating_sub(share(tokens, summarize.target_ratio)),
        tokens,
        reason: format!("{} old messages of {tokens} tokens", units.len()),
        priority: 0,
        preserved_fields: KeyFields::new(),
        units,
    })
}

fn to_drop(drop: Drop, scene: &Scene<'_>) -> Vec<CompactionProposal> {
    let border = scene.border(drop.preserve_recent_messages);
    let candidate = |group: &Group| {
        if group.is_protected() || !scene.is_before(group, border) || !is_spent(group, scene.items) {
            return None;
        }
        let units = scene.units_of(group);
        let (first, last) = (units.first().copied()?, units.last().copied()?);
        let tokens = units.iter().filter_map(|at| scene.units.get(*at)).map(|unit| unit.tokens).sum();
        Some(CompactionProposal {
            action: Action::Drop,
            span: scene.span(&units, first, last)?,
            estimated_tokens_freed: tokens,
            tokens,
            reason: "cleared before".to_owned(),
            priority: first as u64,
            preserved_fields: KeyFields::new(),
            units,
        })
    };
    scene.groups.iter().filter_map(candidate).collect()
}
