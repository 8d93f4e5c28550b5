//! Child executions: what they start with, and what their parent learns from them.

use std::sync::Arc;

use harness_core::message::Message;
use harness_core::port::ViewCx;
use harness_core::transcript::Prefix;

use super::ask::{ReturnAsk, Spawned, Update};
use super::def::Hook;
use super::run::LayerRun;
use crate::MemoryError;

impl LayerRun {
    /// Begins a child: layers say by slot what it starts with; those without a say are initialised like those
    /// of a root.
    ///
    /// # Errors
    /// The failing `init` of a layer that may not be left out.
    pub(crate) async fn spawn(&self, run: &LayerRun, cx: &ViewCx) -> Result<(), MemoryError> {
        let child = run.execution();
        let base = self.cx(cx);
        let mut items = Vec::new();
        for (at, layer) in self.stack.with_hook(Hook::Spawn) {
            if self.is_skipped(at) {
                run.states.disable(at);
                continue;
            }
            let own = self.cx_of(at, &base);
            match self.ask(at, Hook::Spawn, layer.spawn_boxed(child, &own)).await.and_then(|s| self.known(s))
            {
                Ok(Some(spawned)) => {
                    run.states.begin(at, Update::Set(spawned.state));
                    items.extend(spawned.items);
                }
                Ok(None) => run.without_state(at),
                Err(fault) => {
                    self.stack.report(at, Hook::Spawn, fault);
                    run.without_state(at);
                }
            }
        }
        *run.begins_with.lock() = items;
        run.init(cx).await
    }

    /// First messages of the transcript, once.
    pub(crate) fn take_items(&self) -> Vec<Arc<Message>> {
        std::mem::take(&mut *self.begins_with.lock())
    }

    /// Checks that the first messages are known items.
    fn known(&self, spawned: Option<Spawned>) -> Result<Option<Spawned>, MemoryError> {
        let mut items = spawned.iter().flat_map(|spawned| &spawned.items);
        items.try_for_each(|item| self.stack.items.check_message(item))?;
        Ok(spawned)
    }

    /// A layer that has no state in this execution by its own choice: it is asked nothing when it needs one.
    fn without_state(&self, at: usize) {
        let needs_init = self.stack.layers.get(at).is_some_and(|layer| layer.layer_def().has(Hook::Init));
        if needs_init {
            self.states.disable(at);
        }
    }

    /// A child succeeded: layers that have a state in the child learn from it by slot. `cx` is the parent's.
    pub(crate) async fn learn_from(
        &self,
        child: &LayerRun,
        child_log: &Prefix,
        result: Option<String>,
        cx: &ViewCx,
    ) {
        let base = self.cx(cx);
        for (at, layer) in self.stack.with_hook(Hook::Return) {
            let Some(child_state) = child.states.get(at).filter(|_| !self.states.is_disabled(at)) else {
                continue;
            };
            let own = self.cx_of(at, &base);
            let (child, child_log) = (Arc::clone(&child.execution), child_log.clone());
            let ask = ReturnAsk { child, child_state, child_log, result: result.clone() };
            match self.ask(at, Hook::Return, layer.on_return_boxed(ask, &own)).await {
                Ok(update) => self.apply(at, update),
                Err(fault) => self.stack.report(at, Hook::Return, fault),
            }
        }
        self.flush().await;
    }

    /// Charges the usage of a child to its parent, whatever its outcome.
    pub(crate) fn charge(&self, child: &LayerRun) {
        let used = child.lock_progress().usage.clone();
        self.lock_progress().usage.merge(&used);
        let spent = child.spent();
        self.spent.lock().merge(&spent);
    }
}
