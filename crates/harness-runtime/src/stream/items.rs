//! Snapshots of messages and of the blocks of answers, as they grow.

use std::collections::VecDeque;
use std::sync::Arc;

use harness_core::event::EventKind;
use harness_core::message::{Block, Message};
use harness_core::port::DeltaPart;

use super::assembly::{Assembly, PartialBlock};
use super::event_log::ThreadEvent;
use super::reader::{Stream, StreamItem};

/// Content of an item. A snapshot never changes.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum ItemContent {
    /// A message that no model wrote: a prompt, steering, a tool's result.
    Message(Arc<Message>),
    /// A block of an answer that is still coming.
    Coming(PartialBlock),
    /// A block of an answer, as stored in the transcript.
    Block(Block),
}

/// Snapshot of an item: a user interface replaces the one with the same id.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct Item {
    /// Names the item within its stream.
    pub id: u64,
    /// Content of the item.
    pub content: ItemContent,
    /// Whether it stays as it is.
    pub complete: bool,
}

/// The messages and the blocks of answers of a thread, as snapshots that grow: each block of an answer begins
/// empty, grows, and is emitted once more when it is complete. Blocks of an incomplete answer are emitted
/// complete with what the transcript keeps of it.
#[derive(Debug)]
pub struct ItemStream {
    stream: Stream,
    ready: VecDeque<Item>,
    items: Items,
}

impl ItemStream {
    pub(crate) fn new(stream: Stream) -> Self {
        Self { stream, ready: VecDeque::new(), items: Items::default() }
    }

    /// The next snapshot; `None` when nothing follows.
    ///
    /// Cancel safe.
    pub async fn next(&mut self) -> Option<Item> {
        loop {
            if let Some(item) = self.ready.pop_front() {
                return Some(item);
            }
            let item = self.stream.next().await?;
            self.take(&item);
        }
    }

    /// The next snapshot that is available without waiting.
    pub fn try_next(&mut self) -> Option<Item> {
        loop {
            if let Some(item) = self.ready.pop_front() {
                return Some(item);
            }
            let item = self.stream.try_next()?;
            self.take(&item);
        }
    }

    fn take(&mut self, item: &StreamItem) {
        if let StreamItem::Event { event, .. } = item {
            self.ready.extend(self.items.take(event));
        }
    }
}

/// Makes the snapshots of an [`ItemStream`] of events that the caller reads.
#[derive(Debug, Default)]
pub struct Items {
    ready: Vec<Item>,
    answer: Assembly,
    /// The ids of the blocks of the answer that is coming.
    ids: Vec<u64>,
    next_id: u64,
}

impl Items {
    /// Snapshots of an event, in order; none for most events.
    pub fn take(&mut self, event: &ThreadEvent) -> Vec<Item> {
        if let ThreadEvent::Delta(part) = event {
            self.grow(part);
        } else if let ThreadEvent::AnswerRestarted = event {
            // Its blocks replace those so far.
            self.answer.clear();
        } else if let ThreadEvent::Event(event) = event {
            if let EventKind::ModelStepStarted { .. } = &event.kind {
                self.begin_answer();
            } else if let EventKind::MessageAppended { message, .. } = &event.kind {
                self.complete(message);
            }
        }
        std::mem::take(&mut self.ready)
    }

    fn begin_answer(&mut self) {
        self.answer.clear();
        self.ids.clear();
    }

    fn new_id(&mut self) -> u64 {
        self.next_id += 1;
        self.next_id - 1
    }

    /// Id of a block of the answer that is coming.
    fn id_of(&mut self, at: usize) -> u64 {
        while self.ids.len() <= at {
            let id = self.new_id();
            self.ids.push(id);
        }
        self.ids.get(at).copied().unwrap_or_default()
    }

    fn grow(&mut self, part: &DeltaPart) {
        let Some(grown) = self.answer.take(part) else { return };
        let Some(block) = self.answer.blocks().get(grown.at).cloned() else { return };
        if grown.began {
            let id = self.id_of(grown.at);
            let empty = emptied(&block);
            let begins_empty = empty == block;
            self.ready.push(Item { id, content: ItemContent::Coming(empty), complete: false });
            if begins_empty {
                return;
            }
        }
        let id = self.id_of(grown.at);
        self.ready.push(Item { id, content: ItemContent::Coming(block), complete: false });
    }

    fn complete(&mut self, message: &Arc<Message>) {
        let Some(answer) = message.as_assistant() else {
            let id = self.new_id();
            let content = ItemContent::Message(Arc::clone(message));
            self.ready.push(Item { id, content, complete: true });
            return;
        };
        let mut coming: Vec<Option<u64>> = self.ids.iter().copied().map(Some).collect();
        for block in &answer.content {
            let at = self
                .answer
                .blocks()
                .iter()
                .zip(&coming)
                .position(|(partial, id)| id.is_some() && is_of(partial, block));
            let known = at.and_then(|at| coming.get_mut(at)).and_then(Option::take);
            let id = known.unwrap_or_else(|| self.new_id());
            self.ready.push(Item { id, content: ItemContent::Block(block.clone()), complete: true });
        }
        self.begin_answer();
    }
}

/// The block without content.
fn emptied(block: &PartialBlock) -> PartialBlock {
    match block {
        PartialBlock::Text(_) => PartialBlock::Text(String::new()),
        PartialBlock::Thinking(_) => PartialBlock::Thinking(String::new()),
        PartialBlock::Call { index, id, name, .. } => {
            let (index, id, name) = (*index, id.clone(), name.clone());
            PartialBlock::Call { index, id, name, arguments: String::new() }
        }
    }
}

/// Whether a block of the transcript can be what came.
fn is_of(partial: &PartialBlock, block: &Block) -> bool {
    match partial {
        PartialBlock::Text(_) => matches!(block, Block::Text(_)),
        PartialBlock::Thinking(_) => matches!(block, Block::Thinking(_)),
        PartialBlock::Call { .. } => matches!(block, Block::ToolCall(_)),
    }
}
