//! Which layers are shown before the history and which after it, and what brings the anchor up to date.

use std::collections::BTreeMap;
use std::sync::Arc;

use harness_core::message::Message;
use harness_core::port::ViewCx;
use parking_lot::Mutex;

use super::anchor::{Churn, Lineage, ReanchorReason, Spread, Stale};
use super::ask::DeltaAsk;
use super::cx::LayerCx;
use super::def::{Hook, LayerId, Placement};
use super::flow::Output;
use super::run::LayerRun;
use super::supersede::{LayerUpdate, Supersede, UpdateAction};
use super::tokens::message_tokens;
use super::usage::EpochFigures;

/// Content of the layers by band.
#[derive(Clone, Debug, Default)]
#[non_exhaustive]
pub struct Banded {
    /// Before the history.
    pub anchor: Vec<Output>,
    /// After the history.
    pub live: Vec<Output>,
    /// Message that brings the anchor up to date.
    pub updates: Option<Supersede>,
    /// The anchor, where one is kept.
    pub epoch: Option<EpochFigures>,
    /// The message of `updates` and its tokens.
    pub(crate) supersede: Option<(Arc<Message>, u64)>,
    /// Whether the anchor was made for an earlier view.
    pub(crate) is_pinned: bool,
    /// Layers whose block in the anchor is out of date.
    pub(crate) stale: Vec<LayerId>,
    pub(crate) churn: BTreeMap<LayerId, Churn>,
}

impl LayerRun {
    /// Spreads what the layers recalled over the bands.
    pub async fn band(&self, outputs: Vec<Output>, cx: &ViewCx) -> Banded {
        let config = &self.stack.cache;
        if !config.enabled {
            return Banded { anchor: outputs, ..Banded::default() };
        }
        let instructions =
            cx.prepared.as_ref().map_or_else(|| Arc::from(""), |prepared| Arc::clone(&prepared.instructions));
        let lineage = self.lineage();
        let placed: Vec<_> = outputs
            .into_iter()
            .map(|output| {
                let layer = self.stack.layers.get(output.at);
                let placement = layer.map_or(Placement::Auto, |layer| layer.layer_def().placement);
                let state = self.states.get(output.at);
                (output, placement, state)
            })
            .collect();
        let mut spread = {
            let mut lineage = lineage.lock();
            lineage.begin(config, &instructions);
            lineage.spread(&placed)
        };
        let described = self.describe(&spread, cx).await;

        let mut lineage = lineage.lock();
        let supersede = described.map(|updates| {
            let supersede = Supersede { epoch: lineage.epoch_id(), updates };
            let message = supersede.message();
            let tokens = message_tokens(&*self.stack.counter, &message);
            (supersede, message, tokens)
        });
        let (updates, supersede) = match supersede {
            Some((supersede, ..)) if supersede.updates.is_empty() => (None, None),
            Some((supersede, message, tokens)) if !lineage.is_pressed(config, tokens) => {
                (Some(supersede), Some((message, tokens)))
            }
            pressed => {
                let reason = match pressed {
                    Some(_) => ReanchorReason::DeltaPressure,
                    None => ReanchorReason::DeltaOverflow,
                };
                lineage.open(config, reason, &instructions);
                spread = lineage.spread(&placed);
                (None, None)
            }
        };
        figures(&lineage, spread, updates, supersede)
    }

    /// Updates of outdated blocks; `None` when one of them has no text.
    async fn describe(&self, spread: &Spread, cx: &ViewCx) -> Option<Vec<LayerUpdate>> {
        let mut updates = Vec::with_capacity(spread.stale.len());
        if spread.stale.is_empty() {
            return Some(updates);
        }
        let base = self.cx(cx);
        for stale in &spread.stale {
            let text = match &stale.next {
                None => None,
                Some(next) if next.is_empty() => None,
                Some(next) => Some(match self.delta(stale, next, &base).await {
                    Some(delta) => delta,
                    None => texts(next)?,
                }),
            };
            updates.push(LayerUpdate { layer: stale.layer.clone(), action: stale.action, text });
        }
        Some(updates)
    }

    /// The layer's own words for a change.
    async fn delta(&self, stale: &Stale, next: &[Arc<Message>], base: &LayerCx) -> Option<String> {
        let layer = self.stack.layers.get(stale.at)?;
        let prev = stale.prev.as_ref().filter(|_| stale.action == UpdateAction::Replace)?;
        if !layer.layer_def().has(Hook::RenderDelta) || self.is_skipped(stale.at) {
            return None;
        }
        let cx = self.cx_of(stale.at, base);
        let ask =
            DeltaAsk::new(prev.output.items.to_vec(), next.to_vec(), prev.state.clone(), prev.output.tokens);
        match self.ask(stale.at, Hook::RenderDelta, layer.render_delta_boxed(ask, &cx)).await {
            Ok(delta) => delta.filter(|text| !text.is_empty()),
            Err(fault) => {
                self.stack.report(stale.at, Hook::RenderDelta, fault);
                None
            }
        }
    }

    /// The anchor of the conversation; a child has its own.
    pub(crate) fn lineage(&self) -> Arc<Mutex<Lineage>> {
        let key = self.lineage_key();
        let new = || Arc::new(Mutex::new(Lineage::new(Arc::clone(&key))));
        Arc::clone(self.stack.lineages.lock().get_or_insert(Arc::clone(&key), new))
    }

    /// `t:THREAD` at the root, `x:EXECUTION` below it and where there is no thread.
    pub(crate) fn lineage_key(&self) -> Arc<str> {
        let execution = &self.execution;
        match &execution.thread {
            Some(thread) if execution.depth == 0 => Arc::from(format!("t:{thread}")),
            _ => Arc::from(format!("x:{}", execution.id)),
        }
    }
}

fn figures(
    lineage: &Lineage,
    spread: Spread,
    updates: Option<Supersede>,
    supersede: Option<(Arc<Message>, u64)>,
) -> Banded {
    let (age, reanchor_reason) = lineage.age();
    let tokens = |outputs: &[Output]| outputs.iter().map(|output| output.tokens).sum();
    let epoch = EpochFigures {
        id: lineage.epoch_id(),
        age,
        anchor_tokens: lineage.anchor_tokens(),
        live_tokens: tokens(&spread.live),
        delta_tokens: supersede.as_ref().map_or(0, |(_, tokens)| *tokens),
        reanchor_reason,
    };
    let layers = spread.anchor.iter().chain(&spread.live).map(|output| &output.layer);
    let churn = layers.map(|layer| (layer.clone(), lineage.churn(layer))).collect();
    Banded {
        stale: spread.stale.iter().map(|stale| stale.layer.clone()).collect(),
        anchor: spread.anchor,
        live: spread.live,
        updates,
        epoch: Some(epoch),
        supersede,
        is_pinned: !spread.is_fresh,
        churn,
    }
}

/// The text blocks of messages, one after another; `None` when there is none.
fn texts(messages: &[Arc<Message>]) -> Option<String> {
    let blocks = messages.iter().flat_map(|message| message.content());
    let texts: Vec<&str> = blocks.filter_map(harness_core::message::Block::as_text).collect();
    (!texts.is_empty()).then(|| texts.join("\n"))
}
