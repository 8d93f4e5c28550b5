//! Learning of layers: after each accepted answer, at the end of an execution, from children.

use std::sync::Arc;

use futures_util::future::join_all;
use harness_core::message::Message;
use harness_core::port::ViewCx;

use super::ask::{Ending, StoreAsk};
use super::def::Hook;
use super::run::LayerRun;

impl LayerRun {
    /// An answer was accepted and is in the transcript. All layers are asked at once, each with its own
    /// snapshot of its state; then the states are written.
    pub async fn store(&self, answer: &Arc<Message>, cx: &ViewCx) {
        let new_items: Vec<Arc<Message>> = {
            let mut progress = self.lock_progress();
            let from = progress.stored.replace(cx.log.len()).unwrap_or(0);
            cx.log.range(from..cx.log.len()).cloned().collect()
        };
        let base = self.cx(cx);
        let asked = self.asked(Hook::Store).map(|(at, layer)| {
            let ask = StoreAsk { answer: Arc::clone(answer), new_items: new_items.clone() };
            let cx = self.cx_of(at, &base);
            async move { (at, self.ask(at, Hook::Store, layer.store_boxed(ask, &cx)).await) }
        });
        for (at, learned) in join_all(asked).await {
            match learned {
                Ok(update) => self.apply(at, update),
                Err(fault) => self.stack.report(at, Hook::Store, fault),
            }
        }
        self.flush().await;
    }

    /// Ends the execution: calls each layer in the order of declaration, then writes the states.
    pub async fn complete(&self, ending: Ending, cx: &ViewCx) {
        let base = self.cx(cx);
        for (at, layer) in self.stack.layers.iter().enumerate() {
            if !layer.layer_def().has(Hook::Complete) || self.is_skipped(at) {
                continue;
            }
            let cx = self.cx_of(at, &base);
            match self.ask(at, Hook::Complete, layer.complete_boxed(ending, &cx)).await {
                Ok(update) => self.apply(at, update),
                Err(fault) => self.stack.report(at, Hook::Complete, fault),
            }
        }
        self.flush().await;
    }

    /// Releases resources of the execution, in the reverse order of declaration.
    pub async fn dispose(&self, cx: &ViewCx) {
        let base = self.cx(cx);
        for (at, layer) in self.stack.layers.iter().enumerate().rev() {
            if !layer.layer_def().has(Hook::Dispose) || self.is_skipped(at) {
                continue;
            }
            let cx = self.cx_of(at, &base);
            if let Err(fault) = self.ask(at, Hook::Dispose, layer.dispose_boxed(&cx)).await {
                self.stack.report(at, Hook::Dispose, fault);
            }
        }
        self.flush().await;
    }
}
