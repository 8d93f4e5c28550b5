//! Messages and blocks of answers in progress.

use std::collections::HashMap;
use std::sync::Arc;

use harness::core::message::{Block, Message};
use harness::runtime::{ItemContent, Items, ThreadEvent};
use schemars::JsonSchema;
use serde::Serialize;

use super::event::Frame;
use super::thread::Coming;

/// Converts items to frames. Their ids contain the number of their first event, so they are equal
/// in all streams that start at or before the item.
#[derive(Debug, Default)]
pub(crate) struct ItemFrames {
    items: Items,
    /// Ids of incomplete items.
    names: HashMap<u64, String>,
    /// Items that started at events without a number, since the event with a number before them.
    transient: usize,
}

/// Message or block; a later item replaces the one with the same id.
#[derive(Serialize, JsonSchema)]
pub(crate) struct ItemBody<'a> {
    /// Id of the item in the thread.
    id: &'a str,
    /// Number of the event; absent where no log keeps deltas: on a durable engine.
    #[serde(skip_serializing_if = "Option::is_none")]
    seq: Option<u64>,
    /// Whether no later item replaces it.
    complete: bool,
    /// Complete message.
    #[serde(skip_serializing_if = "Option::is_none")]
    message: Option<&'a Arc<Message>>,
    /// Complete block.
    #[serde(skip_serializing_if = "Option::is_none")]
    block: Option<&'a Block>,
    /// Block in progress.
    #[serde(skip_serializing_if = "Option::is_none")]
    coming: Option<Coming>,
}

impl ItemFrames {
    /// Frames of an event.
    pub(crate) fn take(&mut self, seq: u64, event: &ThreadEvent) -> Vec<Frame> {
        if matches!(event, ThreadEvent::RunStarted { .. }) {
            self.names.clear();
        }
        self.transient = 0;
        self.frames(seq, Some(seq), 0, event).0
    }

    /// Frames of an event without a number, before the event with number `next`.
    pub(crate) fn take_transient(&mut self, next: u64, event: &ThreadEvent) -> Vec<Frame> {
        let (frames, started) = self.frames(next, None, self.transient, event);
        self.transient = started;
        frames
    }

    /// Frames of an event, and how many items have started at `place`.
    fn frames(
        &mut self,
        place: u64,
        seq: Option<u64>,
        mut started: usize,
        event: &ThreadEvent,
    ) -> (Vec<Frame>, usize) {
        let mut frames = Vec::new();
        for item in self.items.take(event) {
            let id = self.names.remove(&item.id).unwrap_or_else(|| {
                started += 1;
                format!("{place}.{}", started - 1)
            });
            let (message, block, coming) = match &item.content {
                ItemContent::Message(message) => (Some(message), None, None),
                ItemContent::Block(block) => (None, Some(block), None),
                ItemContent::Coming(coming) => (None, None, Some(coming.into())),
                _ => (None, None, None),
            };
            let told = ItemBody { id: &id, seq, complete: item.complete, message, block, coming };
            frames.push(Frame::new(seq, "item", &told));
            if !item.complete {
                self.names.insert(item.id, id);
            }
        }
        (frames, started)
    }
}
