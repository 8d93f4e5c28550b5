//! The editor below the conversation: text of several lines, history, search, completion. It knows keys and
//! lines, but no terminal.

mod complete;
mod key;

use super::line::Line;

pub(crate) use complete::{Complete, NoCandidates, Word};
pub(crate) use key::{Code, Edit, Key};

/// What the editor looks like.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct View {
    /// The rows around the cursor, as many as there is room for; never none.
    pub(crate) rows: Vec<Line>,
    /// The row of `rows` and the column where the cursor stands.
    pub(crate) cursor: (usize, usize),
    /// What is told below: a search, candidates of a completion; often nothing.
    pub(crate) below: Vec<Line>,
}

/// A text of several lines that is being written.
pub(crate) struct Composer {
    text: String,
    complete: Box<dyn Complete>,
    history: Vec<String>,
}

impl Composer {
    /// An empty text over a history, oldest first, of which the newest 1,000 entries are kept.
    pub(crate) fn new(history: Vec<String>, complete: Box<dyn Complete>) -> Self {
        Self { text: String::new(), complete, history }
    }

    /// What is written.
    pub(crate) fn text(&self) -> &str {
        &self.text
    }

    /// Writes something else; what was there comes back with undo.
    pub(crate) fn set_text(&mut self, text: &str) -> Edit {
        text.clone_into(&mut self.text);
        Edit::Changed
    }

    /// Takes a key.
    pub(crate) fn key(&mut self, key: Key) -> Edit {
        match key.code {
            Code::Char(c) if !key.ctrl && !key.alt => {
                self.text.push(c);
                Edit::Changed
            }
            Code::Enter if !self.text.is_empty() => {
                let text = std::mem::take(&mut self.text);
                self.history.push(text.clone());
                Edit::Submit(text)
            }
            Code::Tab => {
                let found = self.complete.candidates(Word::Path(&self.text)).into_iter().next();
                found.map_or(Edit::None, |found| self.set_text(&found))
            }
            Code::Char(_) | Code::Enter | Code::BackTab | Code::Backspace | Code::Delete | Code::Left => {
                Edit::None
            }
            Code::Right | Code::Up | Code::Down | Code::Home | Code::End | Code::PageUp => Edit::None,
            Code::PageDown | Code::Esc | Code::Paste(_) => Edit::None,
        }
    }

    /// What it looks like in `width` columns and at most `most_rows` rows, the rows below not counted.
    pub(crate) fn view(&self, width: usize, most_rows: usize) -> View {
        let mut row = Line::new();
        row.push_plain(self.text.get(..width.min(self.text.len())).unwrap_or(&self.text));
        let column = row.width();
        View { rows: vec![row; most_rows.min(1)], cursor: (0, column), below: Vec::new() }
    }
}
