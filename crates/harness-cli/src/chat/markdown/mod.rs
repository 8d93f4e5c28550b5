//! Markdown for a terminal, shown while it arrives.

use super::line::{Look, Text};

pub(crate) use super::line::{Line, Styling};

/// The narrowest terminal that text is laid out for.
const LEAST_WIDTH: usize = 20;

/// Markdown that arrives in pieces of any length. What is final is handed out once; what may still change can
/// be looked at again and again. However the text is cut into pieces, the final lines are the same.
#[derive(Clone, Debug)]
pub(crate) struct MarkdownStream {
    width: usize,
    styling: Styling,
    open: String,
}

impl MarkdownStream {
    /// Lines of at most `width` columns, and of 20 where the terminal has fewer.
    pub(crate) fn new(width: usize, styling: Styling) -> Self {
        Self { width: width.max(LEAST_WIDTH), styling, open: String::new() }
    }

    /// Takes more of the text; gives the lines that will not change any more.
    pub(crate) fn push(&mut self, text: &str) -> Vec<Line> {
        self.open.push_str(text);
        let Some(end) = self.open.rfind('\n') else { return Vec::new() };
        let rest = self.open.split_off(end + 1);
        let done = std::mem::replace(&mut self.open, rest);
        self.lines(done.trim_end_matches('\n'))
    }

    /// The lines of what may still change, as they would be if the text ended here.
    pub(crate) fn partial(&self) -> Vec<Line> {
        self.clone().finish()
    }

    /// The last lines.
    pub(crate) fn finish(self) -> Vec<Line> {
        if self.open.is_empty() { Vec::new() } else { self.lines(&self.open) }
    }

    /// Another width for the lines that are not final yet.
    pub(crate) fn set_width(&mut self, width: usize) {
        self.width = width.max(LEAST_WIDTH);
    }

    fn lines(&self, text: &str) -> Vec<Line> {
        let wrap = |line: &str| {
            let mut text = Text::default();
            text.push(line, &Look::default());
            text.wrap(self.width)
        };
        text.split('\n').flat_map(wrap).collect()
    }
}
