//! A list of choices that opens while a command, a model or a file is typed.

use std::ops::Range;

use super::buffer::Buffer;
use super::completion::word;
use super::{Complete, Item};
use crate::render::line::{Line, Look, Text, width};
use crate::render::{BOLD, DIM, NOTE};

/// Maximum number of choices.
const MOST: usize = 200;

/// Maximum columns of the choices before their descriptions.
const WIDEST: usize = 32;

/// An open menu.
#[derive(Debug)]
pub(super) struct Menu {
    /// The typed word, which the choice replaces.
    pub(super) word: Range<usize>,
    /// Choices; never empty.
    items: Vec<Item>,
    chosen: Option<usize>,
}

impl Menu {
    /// Choices for the word before the cursor; `None` if there are none besides the word itself.
    pub(super) fn of(buffer: &Buffer, complete: &dyn Complete) -> Option<Self> {
        let (start, word) = word(buffer)?;
        let mut items = complete.menu(word);
        items.truncate(MOST);
        let typed = buffer.before().get(start..).unwrap_or_default();
        let is_whole = matches!(items.as_slice(), [only] if only.text == typed);
        (!items.is_empty() && !is_whole).then(|| Self { word: start..buffer.cursor(), items, chosen: None })
    }

    /// Highlights the next or the previous choice.
    pub(super) fn turn(&mut self, forward: bool) {
        let last = self.items.len().saturating_sub(1);
        self.chosen = Some(match (self.chosen, forward) {
            (None, true) => 0,
            (None | Some(0), false) => last,
            (Some(at), true) if at >= last => 0,
            (Some(at), true) => at + 1,
            (Some(at), false) => at - 1,
        });
    }

    /// The highlighted choice.
    pub(super) fn chosen(&self) -> Option<&Item> {
        self.items.get(self.chosen?)
    }

    /// The highlighted choice, or else the first one.
    pub(super) fn best(&self) -> Option<&Item> {
        self.items.get(self.chosen.unwrap_or(0))
    }

    /// Rows around the highlighted choice.
    pub(super) fn rows(&self, columns: usize, most: usize) -> Vec<Line> {
        let most = most.max(1);
        let first = self.chosen.map_or(0, |at| (at + 1).saturating_sub(most));
        let shown = || self.items.iter().enumerate().skip(first).take(most);
        let wide = shown().map(|(_, item)| width(&item.text)).max().unwrap_or(0).min(WIDEST);
        let mut rows: Vec<Line> = Vec::new();
        for (number, item) in shown() {
            let is_chosen = self.chosen == Some(number);
            let mut text = Text::default();
            text.push(if is_chosen { "› " } else { "  " }, &Look::of(NOTE));
            text.push(&item.text, &if is_chosen { Look::of(BOLD) } else { Look::default() });
            if !item.note.is_empty() {
                let gap = wide.saturating_sub(width(&item.text)) + 2;
                text.push(&" ".repeat(gap), &Look::default());
                text.push(&item.note, &Look::of(DIM));
            }
            rows.extend(text.chop(columns).into_iter().next());
        }
        let more = self.items.len().saturating_sub(first + rows.len());
        if more > 0
            && let Some(last) = rows.last_mut()
        {
            let note = format!("  … {more} more");
            if last.width() + width(&note) <= columns {
                last.push(&note, &Look::of(DIM));
            }
        }
        rows
    }
}
