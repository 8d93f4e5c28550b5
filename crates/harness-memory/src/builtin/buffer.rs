//! Texts that wait until there is enough to learn from.

use std::sync::Arc;

use harness_core::message::Message;
use serde::{Deserialize, Serialize};

use super::text::{input_of, output_of};
use crate::layer::LayerCx;

/// Size of a buffer in thresholds. If nothing empties it, the oldest texts are dropped beyond.
const MAX_THRESHOLDS: u64 = 16;

/// The texts that wait.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub(crate) struct Buffer {
    /// The texts, the oldest first.
    pub(crate) buffer: Vec<String>,
    /// Their tokens.
    pub(crate) buffer_tokens: u64,
}

impl Buffer {
    /// Adds what messages that came in say; whether there was anything.
    pub(crate) fn take_in(&mut self, messages: &[Arc<Message>], threshold: u64, cx: &LayerCx) -> bool {
        let before = self.buffer.len();
        let texts = messages.iter().filter_map(|message| input_of(message));
        texts.for_each(|text| self.push(text, threshold, cx));
        self.buffer.len() != before
    }

    /// Adds what a model said; whether it said anything.
    pub(crate) fn take_answer(&mut self, answer: &Message, threshold: u64, cx: &LayerCx) -> bool {
        let Some(text) = output_of(answer) else { return false };
        self.push(text, threshold, cx);
        true
    }

    fn push(&mut self, text: String, threshold: u64, cx: &LayerCx) {
        self.buffer_tokens = self.buffer_tokens.saturating_add(cx.tokenize(&text));
        self.buffer.push(text);
        let most = threshold.max(1).saturating_mul(MAX_THRESHOLDS);
        while self.buffer_tokens > most && self.buffer.len() > 1 {
            let oldest = self.buffer.remove(0);
            self.buffer_tokens = self.buffer_tokens.saturating_sub(cx.tokenize(&oldest));
        }
    }

    /// Empties it.
    pub(crate) fn clear(&mut self) {
        *self = Self::default();
    }
}
