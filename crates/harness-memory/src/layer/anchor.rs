//! Keeping the bytes before the history the same from view to view, so that a provider can cache them.

use std::collections::BTreeMap;
use std::sync::Arc;

use harness_core::Json;
use harness_core::message::{Message, Usage};
use serde::{Deserialize, Serialize};

use super::def::{LayerId, Placement};
use super::flow::Output;
use super::supersede::UpdateAction;

/// Supersede messages of this many tokens never force a new anchor.
const FREE_DELTA_TOKENS: f64 = 256.0;
/// Misses in a row after which the provider is assumed to cache nothing.
const MISSES_TO_BLINDNESS: u32 = 3;

/// How the anchor is kept.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", default)]
#[non_exhaustive]
pub struct CacheConfig {
    /// Without it all layers are shown before the history, fresh each time. Default true.
    pub enabled: bool,
    /// Cached tokens that count as a hit. Default 100.
    pub min_cached_tokens: u64,
    /// Views of an epoch before its hits are judged. Default 2.
    pub min_epoch_assemblies: u32,
    /// Views after which a new anchor is made. Default 50.
    pub max_epoch_assemblies: u32,
    /// A supersede message above this part of the anchor forces a new anchor. Default 0.15.
    pub delta_budget_fraction: f64,
    /// A layer of placement `auto` that changes at least this often is shown after the history. Default 0.5.
    pub auto_demote_churn: f64,
    /// One that changes at most this often is shown before it. Default 0.2.
    pub auto_promote_churn: f64,
    /// Views that this judgement needs. Default 3.
    pub min_churn_samples: u32,
    /// Weight of earlier views in that judgement after each new anchor. Default 0.5.
    pub churn_decay: f64,
}

impl Default for CacheConfig {
    fn default() -> Self {
        Self {
            enabled: true,
            min_cached_tokens: 100,
            min_epoch_assemblies: 2,
            max_epoch_assemblies: 50,
            delta_budget_fraction: 0.15,
            auto_demote_churn: 0.5,
            auto_promote_churn: 0.2,
            min_churn_samples: 3,
            churn_decay: 0.5,
        }
    }
}

impl CacheConfig {
    /// No anchor: everything is shown fresh.
    pub fn disabled() -> Self {
        Self { enabled: false, ..Self::default() }
    }
}

/// Reason for a new anchor.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
#[non_exhaustive]
pub enum ReanchorReason {
    /// There was none.
    ColdStart,
    /// The instructions before it changed.
    InstructionsChanged,
    /// The provider did not find it in its cache.
    CacheMiss,
    /// It served long enough.
    MaxAge,
    /// A change that has no words.
    DeltaOverflow,
    /// The changes became too long.
    DeltaPressure,
}

/// A block of the anchor, as it was when the anchor was made.
#[derive(Clone, Debug)]
pub(crate) struct Pin {
    pub(crate) output: Output,
    /// The layer's state at that time.
    pub(crate) state: Option<Json>,
}

/// A layer whose anchored block is out of date.
#[derive(Clone, Debug)]
pub(crate) struct Stale {
    pub(crate) layer: LayerId,
    pub(crate) at: usize,
    pub(crate) action: UpdateAction,
    /// The block in the anchor, with the state at that time.
    pub(crate) prev: Option<Pin>,
    /// Current content.
    pub(crate) next: Option<Arc<[Arc<Message>]>>,
}

/// How outputs are spread over the bands.
#[derive(Clone, Debug, Default)]
pub(crate) struct Spread {
    pub(crate) anchor: Vec<Output>,
    pub(crate) live: Vec<Output>,
    pub(crate) stale: Vec<Stale>,
    /// Whether the anchor was made for this view.
    pub(crate) is_fresh: bool,
}

/// How often a layer changes.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Churn {
    pub(crate) observed: f64,
    pub(crate) changed: f64,
    /// Tokens that changes would have billed again without the anchor.
    pub(crate) rebill_tokens: u64,
}

impl Churn {
    /// Changes per view; 0 before the first.
    pub(crate) fn rate(&self) -> f64 {
        if self.observed > 0.0 { self.changed / self.observed } else { 0.0 }
    }
}

#[derive(Clone, Debug)]
struct Epoch {
    generation: u64,
    pins: Vec<Pin>,
    instructions: Arc<str>,
    assemblies: u32,
    reason: ReanchorReason,
}

/// The anchor of one conversation over its epochs.
#[derive(Clone, Debug)]
pub(crate) struct Lineage {
    key: Arc<str>,
    epoch: Option<Epoch>,
    /// Where layers of placement `auto` are shown in this epoch; the anchor when absent.
    is_live: BTreeMap<LayerId, bool>,
    churn: BTreeMap<LayerId, Churn>,
    /// Last content of live layers of placement `auto`.
    shown: BTreeMap<LayerId, Arc<[Arc<Message>]>>,
    pending: Option<ReanchorReason>,
    is_blind: bool,
    misses: u32,
    awaits_usage: bool,
}

impl Lineage {
    pub(crate) fn new(key: Arc<str>) -> Self {
        Self {
            key,
            epoch: None,
            is_live: BTreeMap::new(),
            churn: BTreeMap::new(),
            shown: BTreeMap::new(),
            pending: None,
            is_blind: false,
            misses: 0,
            awaits_usage: false,
        }
    }

    /// Begins a view: makes a new anchor when it is time to.
    pub(crate) fn begin(&mut self, config: &CacheConfig, instructions: &Arc<str>) {
        let reason = match &self.epoch {
            None => Some(ReanchorReason::ColdStart),
            Some(epoch) if epoch.instructions != *instructions => Some(ReanchorReason::InstructionsChanged),
            Some(epoch) => self.pending.or_else(|| {
                (epoch.assemblies >= config.max_epoch_assemblies).then_some(ReanchorReason::MaxAge)
            }),
        };
        if let Some(reason) = reason {
            self.open(config, reason, instructions);
        }
        self.awaits_usage = true;
    }

    /// Opens an epoch without pins.
    pub(crate) fn open(&mut self, config: &CacheConfig, reason: ReanchorReason, instructions: &Arc<str>) {
        let generation = self.epoch.as_ref().map_or(0, |epoch| epoch.generation + 1);
        self.pending = None;
        for (layer, churn) in &mut self.churn {
            if churn.observed >= f64::from(config.min_churn_samples) {
                if churn.rate() >= config.auto_demote_churn {
                    self.is_live.insert(layer.clone(), true);
                } else if churn.rate() <= config.auto_promote_churn {
                    self.is_live.insert(layer.clone(), false);
                }
            }
            churn.observed *= config.churn_decay;
            churn.changed *= config.churn_decay;
        }
        let instructions = Arc::clone(instructions);
        self.epoch = Some(Epoch { generation, pins: Vec::new(), instructions, assemblies: 0, reason });
    }

    /// Spreads what the layers recalled, given by slot with their placement and state, over the bands.
    pub(crate) fn spread(&mut self, recalled: &[(Output, Placement, Option<Json>)]) -> Spread {
        let Some(epoch) = &mut self.epoch else { return Spread::default() };
        epoch.assemblies = epoch.assemblies.saturating_add(1);
        let is_fresh = epoch.assemblies == 1;
        let is_live = &self.is_live;
        let goes_live = |output: &Output, placement: Placement| {
            let auto = || is_live.get(&output.layer).copied().unwrap_or(false);
            output.mutated || placement == Placement::Live || (placement == Placement::Auto && auto())
        };
        let (live, anchored): (Vec<_>, Vec<_>) =
            recalled.iter().partition(|(output, placement, _)| goes_live(output, *placement));
        if is_fresh {
            let pin = |(output, _, state): &&(Output, Placement, Option<Json>)| Pin {
                output: Output { mutated: false, ..output.clone() },
                state: state.clone(),
            };
            epoch.pins = anchored.iter().map(pin).collect();
        }
        let anchor = epoch.pins.iter().map(|pin| pin.output.clone()).collect();
        let mut spread = Spread { anchor, live: Vec::new(), stale: Vec::new(), is_fresh };
        if !is_fresh {
            spread.stale = self.compare(&anchored);
        }
        self.observe_live(&live, is_fresh);
        spread.live = live.into_iter().map(|(output, ..)| output.clone()).collect();
        spread
    }

    /// Outdated blocks of the anchor: pinned layers in the order of the anchor, then new ones.
    fn compare(&mut self, anchored: &[&(Output, Placement, Option<Json>)]) -> Vec<Stale> {
        let Some(epoch) = &self.epoch else { return Vec::new() };
        let now = |layer: &LayerId| anchored.iter().map(|(o, ..)| o).find(|output| output.layer == *layer);
        let mut stale = Vec::new();
        for pin in &epoch.pins {
            let layer = &pin.output.layer;
            let (action, next) = match now(layer) {
                None => (UpdateAction::Retract, None),
                Some(output) => {
                    let is_same = same_content(&output.items, &pin.output.items);
                    observe(&mut self.churn, layer, !is_same, pin.output.tokens);
                    if is_same {
                        continue;
                    }
                    (UpdateAction::Replace, Some(Arc::clone(&output.items)))
                }
            };
            let prev = Some(pin.clone());
            stale.push(Stale { layer: layer.clone(), at: pin.output.at, action, prev, next });
        }
        let is_pinned = |output: &Output| epoch.pins.iter().any(|pin| pin.output.layer == output.layer);
        for (output, ..) in anchored.iter().filter(|(output, ..)| !is_pinned(output)) {
            observe(&mut self.churn, &output.layer, true, output.tokens);
            let (layer, next) = (output.layer.clone(), Some(Arc::clone(&output.items)));
            stale.push(Stale { layer, at: output.at, action: UpdateAction::Add, prev: None, next });
        }
        stale
    }

    /// Layers of placement `auto` that are shown live can earn their way back into the anchor.
    fn observe_live(&mut self, live: &[&(Output, Placement, Option<Json>)], is_fresh: bool) {
        for (output, placement, _) in live {
            if *placement != Placement::Auto || !self.is_live.get(&output.layer).copied().unwrap_or(false) {
                continue;
            }
            let before = self.shown.insert(output.layer.clone(), Arc::clone(&output.items));
            if let Some(before) = before.filter(|_| !is_fresh) {
                let is_same = same_content(&before, &output.items);
                observe(&mut self.churn, &output.layer, !is_same, output.tokens);
            }
        }
    }

    /// Judges by the usage of the first answer after a view whether the provider cached the anchor.
    pub(crate) fn judge(&mut self, config: &CacheConfig, usage: Option<&Usage>, system_tokens: u64) {
        if !std::mem::take(&mut self.awaits_usage) || self.is_blind {
            return;
        }
        let Some(epoch) = &self.epoch else { return };
        let Some(cached) = usage.and_then(|usage| usage.cache_read) else {
            self.is_blind = true;
            return;
        };
        let written = usage.and_then(|usage| usage.cache_write).unwrap_or(0);
        if (cached == 0 && written > 0) || epoch.assemblies < config.min_epoch_assemblies {
            return;
        }
        let expected = system_tokens.saturating_add(self.anchor_tokens());
        if cached >= config.min_cached_tokens.min(expected.div_ceil(2)) {
            self.misses = 0;
            return;
        }
        self.misses += 1;
        if self.misses >= MISSES_TO_BLINDNESS {
            self.is_blind = true;
        } else {
            self.pending = Some(ReanchorReason::CacheMiss);
        }
    }

    /// Whether a supersede message of so many tokens is worth a new anchor.
    pub(crate) fn is_pressed(&self, config: &CacheConfig, delta_tokens: u64) -> bool {
        let part = config.delta_budget_fraction * as_float(self.anchor_tokens());
        as_float(delta_tokens) > part.max(FREE_DELTA_TOKENS)
    }

    /// Tokens of the anchor.
    pub(crate) fn anchor_tokens(&self) -> u64 {
        self.epoch.iter().flat_map(|epoch| &epoch.pins).map(|pin| pin.output.tokens).sum()
    }

    /// The epoch's id, `LINEAGE#GENERATION`.
    pub(crate) fn epoch_id(&self) -> String {
        format!("{}#{}", self.key, self.epoch.as_ref().map_or(0, |epoch| epoch.generation))
    }

    /// Views of this epoch, and the reason for it while it is new.
    pub(crate) fn age(&self) -> (u32, Option<ReanchorReason>) {
        let Some(epoch) = &self.epoch else { return (0, None) };
        (epoch.assemblies, (epoch.assemblies <= 1).then_some(epoch.reason))
    }

    /// How often a layer changed.
    pub(crate) fn churn(&self, layer: &LayerId) -> Churn {
        self.churn.get(layer).copied().unwrap_or_default()
    }
}

fn observe(churn: &mut BTreeMap<LayerId, Churn>, layer: &LayerId, changed: bool, tokens: u64) {
    let churn = churn.entry(layer.clone()).or_default();
    churn.observed += 1.0;
    if changed {
        churn.changed += 1.0;
        churn.rebill_tokens = churn.rebill_tokens.saturating_add(tokens);
    }
}

#[expect(clippy::cast_precision_loss, reason = "tokens of a view are far below 2^53")]
fn as_float(tokens: u64) -> f64 {
    tokens as f64
}

/// Whether two outputs say the same: ids and status do not count, nor does the order of keys.
pub(crate) fn same_content(a: &[Arc<Message>], b: &[Arc<Message>]) -> bool {
    a.len() == b.len() && a.iter().zip(b).all(|(a, b)| Arc::ptr_eq(a, b) || a == b || same_words(a, b))
}

fn same_words(a: &Message, b: &Message) -> bool {
    let plain = |message: &Message| {
        let mut value = serde_json::to_value(message).ok()?;
        if let Some(fields) = value.as_object_mut() {
            fields.remove("id");
            fields.remove("status");
        }
        Some(value)
    };
    plain(a).is_some_and(|a| plain(b).is_some_and(|b| a == b))
}
