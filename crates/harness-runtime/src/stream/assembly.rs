//! An answer while it comes.

use harness_core::port::DeltaPart;
use harness_core::{CallId, ToolName};

/// A block of an answer that is still coming.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum PartialBlock {
    /// Text so far.
    Text(String),
    /// Reasoning so far.
    Thinking(String),
    /// A call so far.
    Call {
        /// Its number among the calls of the answer, from 0.
        index: u32,
        /// The call's id, when the provider has given one.
        id: Option<CallId>,
        /// Name of the tool.
        name: ToolName,
        /// The text of its arguments so far.
        arguments: String,
    },
}

/// Received part of an answer, as blocks in order.
#[derive(Clone, Debug, Default)]
pub(crate) struct Assembly {
    blocks: Vec<PartialBlock>,
    /// Memory for the first text.
    room: String,
}

/// Effect of a delta on an answer.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Grown {
    /// The block that it belongs to.
    pub(crate) at: usize,
    /// Whether the delta started the block.
    pub(crate) began: bool,
}

impl Assembly {
    pub(crate) fn blocks(&self) -> &[PartialBlock] {
        &self.blocks
    }

    pub(crate) fn clear(&mut self) {
        self.blocks.clear();
    }

    /// An answer begins. Memory is taken before its first delta, and not while readers wait for one.
    pub(crate) fn start(&mut self) {
        self.blocks.clear();
        self.blocks.reserve(1);
        self.room.reserve(ROOM);
    }

    /// Applies a delta; `None` for one without a block.
    pub(crate) fn take(&mut self, part: &DeltaPart) -> Option<Grown> {
        let last = self.blocks.len().checked_sub(1);
        match part {
            DeltaPart::Text(more) => {
                if let (Some(at), Some(PartialBlock::Text(text))) = (last, self.blocks.last_mut()) {
                    text.push_str(more);
                    return Some(Grown { at, began: false });
                }
                let text = self.text(more);
                Some(self.begin(PartialBlock::Text(text)))
            }
            DeltaPart::Thinking(more) => {
                if let (Some(at), Some(PartialBlock::Thinking(text))) = (last, self.blocks.last_mut()) {
                    text.push_str(more);
                    return Some(Grown { at, began: false });
                }
                let text = self.text(more);
                Some(self.begin(PartialBlock::Thinking(text)))
            }
            DeltaPart::CallStarted { index, id, name } => {
                let (index, id, name, arguments) = (*index, id.clone(), name.clone(), String::new());
                Some(self.begin(PartialBlock::Call { index, id, name, arguments }))
            }
            DeltaPart::CallArguments { index: of, text } => {
                let calls = self.blocks.iter_mut().enumerate().rev();
                calls.into_iter().find_map(|(at, block)| match block {
                    PartialBlock::Call { index, arguments, .. } if index == of => {
                        arguments.push_str(text);
                        Some(Grown { at, began: false })
                    }
                    PartialBlock::Call { .. } | PartialBlock::Text(_) | PartialBlock::Thinking(_) => None,
                })
            }
            DeltaPart::BackendToolStarted { .. }
            | DeltaPart::BackendToolFinished { .. }
            | DeltaPart::Note(_)
            | _ => None,
        }
    }

    /// A text that more will be added to.
    fn text(&mut self, first: &str) -> String {
        let mut text = std::mem::take(&mut self.room);
        text.push_str(first);
        text
    }

    fn begin(&mut self, block: PartialBlock) -> Grown {
        self.blocks.push(block);
        Grown { at: self.blocks.len() - 1, began: true }
    }
}

/// Bytes of an answer for which there is room at its start.
const ROOM: usize = 256;
