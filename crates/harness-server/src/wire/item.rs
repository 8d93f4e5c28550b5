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
}

/// Message or block; a later item replaces the one with the same id.
#[derive(Serialize, JsonSchema)]
pub(crate) struct ItemBody<'a> {
    /// Id of the item in the thread.
    id: &'a str,
    /// Number of the event.
    seq: u64,
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
        let (mut frames, mut started) = (Vec::new(), 0);
        for item in self.items.take(event) {
            let id = self.names.remove(&item.id).unwrap_or_else(|| {
                started += 1;
                format!("{seq}.{}", started - 1)
            });
            let (message, block, coming) = match &item.content {
                ItemContent::Message(message) => (Some(message), None, None),
                ItemContent::Block(block) => (None, Some(block), None),
                ItemContent::Coming(coming) => (None, None, Some(coming.into())),
                _ => (None, None, None),
            };
            let told = ItemBody { id: &id, seq, complete: item.complete, message, block, coming };
            frames.push(Frame::new(Some(seq), "item", &told));
            if !item.complete {
                self.names.insert(item.id, id);
            }
        }
        frames
    }
}
