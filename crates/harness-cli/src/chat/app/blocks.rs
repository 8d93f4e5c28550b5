//! The last blocks of the conversation, to lay them out again when the width of the terminal changes.

use std::collections::VecDeque;

use super::talk::Kind;
use crate::render::line::Line;

/// Rows of the conversation that are laid out again: more than a terminal shows.
const MOST_ROWS: usize = 400;

/// Makes the lines of a block for a number of columns.
type Layout = Box<dyn Fn(usize) -> Vec<Line> + Send>;

/// A block that was shown.
struct Block {
    kind: Kind,
    rows: usize,
    layout: Layout,
}

/// The last blocks of the conversation.
#[derive(Default)]
pub(super) struct Blocks {
    blocks: VecDeque<Block>,
    rows: usize,
}

impl Blocks {
    /// Keeps a block that has `rows` rows in the current width.
    pub(super) fn keep(
        &mut self,
        kind: Kind,
        rows: usize,
        layout: impl Fn(usize) -> Vec<Line> + Send + 'static,
    ) {
        self.rows += rows + 1;
        self.blocks.push_back(Block { kind, rows: rows + 1, layout: Box::new(layout) });
        while let Some(first) = self.blocks.pop_front_if(|first| self.rows - first.rows >= MOST_ROWS) {
            self.rows -= first.rows;
        }
    }

    /// Drops all blocks: they are no longer directly above the live area.
    pub(super) fn clear(&mut self) {
        *self = Self::default();
    }

    /// The lines of all blocks for a number of columns.
    pub(super) fn lines(&self, width: usize) -> Vec<(Kind, Vec<Line>)> {
        self.blocks.iter().map(|block| (block.kind, (block.layout)(width))).collect()
    }
}
