//! Layers before a model call: appended messages, recalls and the choice of history.

use std::sync::Arc;

use harness_core::message::Message;
use harness_core::port::{AppendSource, ViewCx};
use serde::{Deserialize, Serialize};

use super::ask::{AppendAsk, Content, RecallAsk, Recalled, Rerender, RerenderScope, developer};
use super::cx::LayerCx;
use super::def::{Budget, Hook, LayerId, RerenderTiming};
use super::history::History;
use super::hook::DynLayer;
use super::run::LayerRun;
use super::tokens::message_tokens;
use crate::MemoryError;

/// Last result of an eventual layer.
#[derive(Clone, Debug)]
pub(crate) struct Kept {
    /// Shown content; `None` is nothing.
    output: Option<Output>,
    /// Whether its state changed since.
    pub(crate) is_stale: bool,
}

/// A layer's wish for more recalls.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[non_exhaustive]
pub struct RerenderRequest {
    /// The layer that asks.
    pub layer: LayerId,
    /// Position of the layer.
    pub slot: i32,
    /// Requested time.
    pub timing: RerenderTiming,
    /// Of which layers.
    pub scope: RerenderScope,
}

impl RerenderRequest {
    /// A request of `layer` at `slot`, with the default time.
    pub fn new(layer: impl Into<LayerId>, slot: i32, scope: RerenderScope) -> Self {
        Self { layer: layer.into(), slot, timing: RerenderTiming::default(), scope }
    }

    fn selects(&self, layer: &LayerId, slot: i32) -> bool {
        match self.scope {
            RerenderScope::Own => self.layer == *layer,
            RerenderScope::SlotAfter => slot >= self.slot,
            RerenderScope::All => true,
        }
    }
}

/// Result of the append pipeline.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub struct AppendFlow {
    /// The messages that enter the transcript.
    pub items: Vec<Arc<Message>>,
    /// Wishes for more recalls; the next view fulfils them.
    pub requests: Vec<RerenderRequest>,
}

/// Content of a layer in a view.
#[derive(Clone, Debug, PartialEq)]
#[non_exhaustive]
pub struct Output {
    /// Layer that shows it.
    pub layer: LayerId,
    /// Its position in the declaration.
    pub(crate) at: usize,
    /// Position of the layer.
    pub slot: i32,
    /// Messages in order.
    pub items: Arc<[Arc<Message>]>,
    /// Tokens of the messages.
    pub tokens: u64,
    /// Whether recalling it changed its state.
    pub mutated: bool,
}

/// Content of all layers in a view.
#[derive(Clone, Debug, Default)]
#[non_exhaustive]
pub struct RecallFlow {
    /// The first recall, by slot.
    pub base: Vec<Output>,
    /// Further recalls that layers requested, by slot.
    pub rerendered: Vec<Output>,
    /// The first with the second put in, by slot.
    pub merged: Vec<Output>,
}

impl LayerRun {
    /// Messages go through the layers before they enter the transcript. A list that a layer empties goes no
    /// further.
    pub async fn append(&self, source: AppendSource, messages: Vec<Arc<Message>>, cx: &ViewCx) -> AppendFlow {
        let base = self.cx(cx);
        let mut flow = AppendFlow { items: messages, requests: Vec::new() };
        for (at, layer) in self.asked(Hook::Append) {
            if flow.items.is_empty() {
                break;
            }
            let cx = self.cx_of(at, &base);
            let ask = AppendAsk { source, items: flow.items.clone() };
            let answer = self.ask(at, Hook::Append, layer.on_append_boxed(ask, &cx)).await;
            let checked = answer.and_then(|answer| {
                self.check_new(&flow.items, &answer.items)?;
                Ok(answer)
            });
            match checked {
                Ok(answer) => {
                    flow.items = answer.items;
                    self.apply(at, answer.state);
                    flow.requests.extend(answer.rerender.map(|wish| request(layer, wish)));
                }
                Err(fault) => self.stack.report(at, Hook::Append, fault),
            }
        }
        let mut requests = self.requests.lock();
        for request in &flow.requests {
            if !requests.contains(request) {
                requests.push(request.clone());
            }
        }
        drop(requests);
        flow
    }

    /// Items that a layer made must be known; those that it was given pass.
    fn check_new(&self, given: &[Arc<Message>], made: &[Arc<Message>]) -> Result<(), MemoryError> {
        let is_given = |item: &Arc<Message>| given.iter().any(|other| Arc::ptr_eq(other, item));
        made.iter().filter(|item| !is_given(item)).try_for_each(|item| self.stack.items.check_message(item))
    }

    /// Recalls the layers of one iteration: [atomic](Self::recall_atomic) layers, [eventual](Self::recall_eventual) ones, and once
    /// more those that hooks [requested](Self::rerender). `budgets` has the tokens of each layer, by position in the pipeline.
    pub async fn recall(&self, budgets: &[u64], cx: &ViewCx) -> RecallFlow {
        self.step();
        let mut base = self.recall_atomic(budgets, cx).await;
        base.extend(self.recall_eventual(budgets, cx).await);
        base.sort_by_key(|output| output.slot);
        let requests = std::mem::take(&mut *self.requests.lock());
        let rerendered = self.rerender(&requests, budgets, cx).await;
        let merged = merge(&base, &rerendered);
        RecallFlow { base, rerendered, merged }
    }

    /// Recalls the atomic layers, by slot. A layer that fails shows nothing and is reported.
    ///
    /// This is one part of [`recall`](Self::recall), for programs that drive the hooks themselves; it does not count an
    /// iteration.
    pub async fn recall_atomic(&self, budgets: &[u64], cx: &ViewCx) -> Vec<Output> {
        let (cx, query) = (self.cx(cx), self.query(cx));
        let mut outputs = Vec::new();
        for (at, layer) in self.asked(Hook::Recall).filter(|(at, _)| self.eventual_key(*at).is_none()) {
            let ask = recall_ask(&query, budgets, at);
            outputs.extend(self.recall_fresh(at, layer, ask, &cx).await.ok().flatten());
        }
        outputs
    }

    /// Shows the last result of each eventual layer, by slot. Without one, or after a change of its state, it recalls the
    /// layer; if that fails, the last result is shown and the layer is asked again next time.
    ///
    /// Like [`recall_atomic`](Self::recall_atomic), one part of [`recall`](Self::recall).
    pub async fn recall_eventual(&self, budgets: &[u64], cx: &ViewCx) -> Vec<Output> {
        let (cx, query) = (self.cx(cx), self.query(cx));
        let mut outputs = Vec::new();
        for (at, layer) in self.asked(Hook::Recall) {
            if let Some(key) = self.eventual_key(at) {
                let ask = recall_ask(&query, budgets, at);
                outputs.extend(self.recall_kept(at, layer, key, ask, &cx).await);
            }
        }
        outputs
    }

    /// Recalls the layers that `requests` select, by slot, each once and whatever its [`RecallMode`](super::RecallMode).
    /// [`AppendFlow::requests`] has the requests of a step; [`recall`](Self::recall) fulfils them by itself.
    pub async fn rerender(&self, requests: &[RerenderRequest], budgets: &[u64], cx: &ViewCx) -> Vec<Output> {
        if requests.is_empty() {
            return Vec::new();
        }
        let (cx, query) = (self.cx(cx), self.query(cx));
        let mut outputs = Vec::new();
        for (at, layer) in self.asked(Hook::Recall) {
            let def = layer.layer_def();
            if requests.iter().any(|request| request.selects(&def.id, def.slot)) {
                let ask = recall_ask(&query, budgets, at);
                outputs.extend(self.recall_fresh(at, layer, ask, &cx).await.ok().flatten());
            }
        }
        outputs
    }

    /// Asks a layer; a failure is reported.
    async fn recall_fresh(
        &self,
        at: usize,
        layer: &Arc<dyn DynLayer>,
        ask: RecallAsk,
        base: &LayerCx,
    ) -> Result<Option<Output>, MemoryError> {
        let cx = self.cx_of(at, base);
        let answer = self.ask(at, Hook::Recall, layer.recall_boxed(ask, &cx)).await;
        let output = answer.and_then(|answer| self.output(at, layer, answer));
        if let Err(fault) = &output {
            self.stack.report(at, Hook::Recall, fault.clone());
        }
        output
    }

    /// The last result of an eventual layer, or a new one.
    async fn recall_kept(
        &self,
        at: usize,
        layer: &Arc<dyn DynLayer>,
        key: (Arc<str>, LayerId),
        ask: RecallAsk,
        base: &LayerCx,
    ) -> Option<Output> {
        let kept = self.stack.eventual.lock().get(&key).cloned();
        if let Some(kept) = kept.as_ref().filter(|kept| !kept.is_stale) {
            return kept.output.clone();
        }
        match self.recall_fresh(at, layer, ask, base).await {
            Ok(output) => {
                let served = output.clone().map(|output| Output { mutated: false, ..output });
                self.stack.eventual.lock().put(key, Kept { output: served, is_stale: false });
                output
            }
            Err(_) => kept?.output,
        }
    }

    /// Counts and checks the content of a layer, and applies its change of state.
    fn output(
        &self,
        at: usize,
        layer: &Arc<dyn DynLayer>,
        answer: Recalled,
    ) -> Result<Option<Output>, MemoryError> {
        let counter = &*self.stack.counter;
        let (items, tokens): (Arc<[_]>, u64) = match answer.content {
            Content::Nothing => (Arc::from([]), 0),
            Content::Text(text) if text.is_empty() => (Arc::from([]), 0),
            Content::Text(text) => {
                let tokens = counter.count(&text);
                (Arc::from([developer(text)]), tokens)
            }
            Content::Items(items) => {
                self.check_new(&[], &items)?;
                let tokens = items.iter().map(|item| message_tokens(counter, item)).sum();
                let output = self.taken(at, layer, answer.state, items.into(), tokens);
                self.compare(at, answer.tokens, tokens);
                return Ok(Some(output));
            }
        };
        self.compare(at, answer.tokens, tokens);
        let output = self.taken(at, layer, answer.state, items, tokens);
        Ok(Some(output).filter(|output| !output.items.is_empty()))
    }

    fn taken(
        &self,
        at: usize,
        layer: &Arc<dyn DynLayer>,
        state: super::ask::Update,
        items: Arc<[Arc<Message>]>,
        tokens: u64,
    ) -> Output {
        let def = layer.layer_def();
        let mutated = self.states.apply(at, state);
        Output { layer: def.id.clone(), at, slot: def.slot, items, tokens, mutated }
    }

    /// Reports a layer whose own count is off by more than a tenth.
    fn compare(&self, at: usize, reported: Option<u64>, counted: u64) {
        let Some(reported) = reported else { return };
        if reported.abs_diff(counted).saturating_mul(10) > counted {
            let fault = MemoryError::failed(format!("it counts {reported} tokens of {counted}"));
            self.stack.report(at, Hook::Recall, fault);
        }
    }

    /// The history that the layers choose.
    pub async fn project(&self, history: History, cx: &ViewCx) -> History {
        let mut asked = self.asked(Hook::ProjectHistory).peekable();
        if asked.peek().is_none() {
            return history;
        }
        let base = self.cx(cx);
        let mut history = history;
        for (at, layer) in asked {
            let cx = self.cx_of(at, &base);
            let answer = layer.project_history_boxed(history.clone(), &cx);
            match self.ask(at, Hook::ProjectHistory, answer).await {
                Ok(projected) => history = projected,
                Err(fault) => self.stack.report(at, Hook::ProjectHistory, fault),
            }
        }
        history
    }

    /// The text of the newest user message. What was looked through is not looked through again.
    fn query(&self, cx: &ViewCx) -> Arc<str> {
        let mut progress = self.lock_progress();
        let seen = progress.query.0.min(cx.log.len());
        let newest = cx.log.range(seen..cx.log.len()).rev().find(|message| is_asked(message));
        if let Some(message) = newest {
            progress.query.1 = Arc::from(message.joined_text());
        }
        progress.query.0 = cx.log.len();
        Arc::clone(&progress.query.1)
    }

    /// The budgets of the layers that recall, in the order of their positions, and these positions.
    pub(crate) fn recall_budgets(&self) -> (Vec<usize>, Vec<Budget>) {
        self.asked(Hook::Recall).map(|(at, layer)| (at, layer.layer_def().budget)).unzip()
    }
}

/// Request to a layer: the query, and its budget by its position.
fn recall_ask(query: &Arc<str>, budgets: &[u64], at: usize) -> RecallAsk {
    RecallAsk { query: Arc::clone(query), budget: budgets.get(at).copied().unwrap_or(0) }
}

/// Whether a user wrote the message; gates and summaries also write in the user's role.
fn is_asked(message: &Message) -> bool {
    let Message::User(user) = message else { return false };
    !matches!(user.origin.as_deref(), Some("hook" | "summary"))
}

fn request(layer: &Arc<dyn DynLayer>, wish: Rerender) -> RerenderRequest {
    let def = layer.layer_def();
    let timing = wish.timing.unwrap_or(def.rerender_timing);
    RerenderRequest { layer: def.id.clone(), slot: def.slot, timing, scope: wish.scope }
}

/// The first recall with what was recalled once more put in its place. A layer that shows nothing now keeps
/// what it showed first.
fn merge(base: &[Output], rerendered: &[Output]) -> Vec<Output> {
    let again = |layer: &LayerId| rerendered.iter().find(|output| output.layer == *layer);
    let mut merged: Vec<Output> =
        base.iter().map(|output| again(&output.layer).unwrap_or(output).clone()).collect();
    let is_new = |output: &&Output| !base.iter().any(|first| first.layer == output.layer);
    merged.extend(rerendered.iter().filter(is_new).cloned());
    merged.sort_by_key(|output| output.slot);
    merged
}
