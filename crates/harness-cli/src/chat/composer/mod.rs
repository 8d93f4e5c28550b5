//! The editor below the conversation: multi-line text, history, search and completion. It knows keys and lines, but
//! not the terminal.

mod buffer;
mod complete;
mod completion;
mod history;
mod key;
mod menu;
mod search;
#[cfg(test)]
mod tests;
mod view;

use crate::render::line::Line;
use buffer::Buffer;
use completion::Completion;
use history::History;
use menu::Menu;
use search::{Search, Searched};

#[cfg(test)]
pub(crate) use complete::NoCandidates;
pub(crate) use complete::{Complete, Item, Word};
pub(crate) use key::{Code, Edit, Key};

/// View of the editor.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct View {
    /// Rows around the cursor, as many as fit; never empty.
    pub(crate) rows: Vec<Line>,
    /// Row in `rows` and column of the cursor.
    pub(crate) cursor: (usize, usize),
    /// Rows below the text, such as a search, candidates or a menu.
    pub(crate) below: Vec<Line>,
}

/// A multi-line text, at most 1 MiB.
pub(crate) struct Composer {
    buffer: Buffer,
    history: History,
    search: Option<Search>,
    completion: Option<Completion>,
    menu: Option<Menu>,
    /// Start of the word whose menu was closed.
    dismissed: Option<usize>,
    complete: Box<dyn Complete>,
    /// Text that was cut last.
    killed: String,
}

impl Composer {
    /// Creates an empty text over a history, oldest first, of which the newest 1,000 entries are kept.
    pub(crate) fn new(history: Vec<String>, complete: Box<dyn Complete>) -> Self {
        Self {
            buffer: Buffer::default(),
            history: History::new(history),
            search: None,
            completion: None,
            menu: None,
            dismissed: None,
            complete,
            killed: String::new(),
        }
    }

    /// Current text.
    pub(crate) fn text(&self) -> &str {
        self.buffer.text()
    }

    /// Replaces the text; undo restores it.
    pub(crate) fn set_text(&mut self, text: &str) -> Edit {
        self.search = None;
        self.completion = None;
        self.menu = None;
        let all = 0..self.buffer.text().len();
        edited(self.buffer.replace(all, &typed(text)))
    }

    /// Handles a key.
    pub(crate) fn key(&mut self, key: Key) -> Edit {
        let Some(search) = &mut self.search else { return self.edit_key(key) };
        match search.key(key, &self.history) {
            Searched::On => {}
            Searched::Cancel => self.search = None,
            Searched::Accept => self.accept(),
            Searched::AcceptAnd(key) => {
                self.accept();
                return match self.edit_key(key) {
                    Edit::None => Edit::Changed,
                    edit @ (Edit::Changed | Edit::Submit(_) | Edit::Cut { .. }) => edit,
                };
            }
        }
        Edit::Changed
    }

    /// Whether a menu is open.
    pub(crate) fn has_menu(&self) -> bool {
        self.menu.is_some() && self.search.is_none()
    }

    /// Whether a search is open, so that the view does not show the text.
    pub(crate) fn has_search(&self) -> bool {
        self.search.is_some()
    }

    /// Whether the cursor is before the text.
    pub(crate) fn is_at_start(&self) -> bool {
        self.buffer.cursor() == 0
    }

    /// Returns the view in `columns` columns (at least 2) and at most `most_rows` rows, not counting the rows below; a menu
    /// has at most `menu_rows`. The first `hidden` bytes of the text are not in it.
    pub(crate) fn view(&self, columns: usize, (most_rows, menu_rows): (usize, usize), hidden: usize) -> View {
        if let Some(search) = &self.search {
            let found = search.found.and_then(|at| self.history.entry(at));
            let text = found.unwrap_or(self.buffer.text());
            let cursor = found.map_or(self.buffer.cursor(), |found| found.find(&search.query).unwrap_or(0));
            let mut view = view::view(text, cursor, columns, most_rows);
            view.below = vec![view::searching(&search.query, search.failed, columns)];
            return view;
        }
        let text = self.buffer.text().get(hidden..).unwrap_or_default();
        let mut view = view::view(text, self.buffer.cursor().saturating_sub(hidden), columns, most_rows);
        if let Some(completion) = &self.completion {
            view.below = view::candidates(&completion.candidates, completion.chosen, columns.max(4));
        } else if let Some(menu) = &self.menu {
            view.below = menu.rows(columns.max(4), menu_rows);
        }
        view
    }

    /// Takes the search result as the text.
    fn accept(&mut self) {
        let found = self.search.take().and_then(|search| search.found);
        if let Some(text) = found.and_then(|at| self.history.entry(at)) {
            let all = 0..self.buffer.text().len();
            self.buffer.replace(all, text);
        }
    }

    fn edit_key(&mut self, key: Key) -> Edit {
        if let Some(edit) = self.menu_key(&key) {
            return edit;
        }
        let types = matches!(key.code, Code::Char(_) | Code::Backspace | Code::Delete | Code::Paste(_));
        let edit = self.plain_key(key);
        if types && edit == Edit::Changed && self.completion.is_none() {
            self.open_menu();
        }
        edit
    }

    /// Opens the menu of the word before the cursor, if it has one that the user did not close.
    fn open_menu(&mut self) {
        self.menu = Menu::of(&self.buffer, self.complete.as_ref());
        let start = self.menu.as_ref().map(|menu| menu.word.start);
        if start.is_none() || start != self.dismissed {
            self.dismissed = None;
        } else {
            self.menu = None;
        }
    }

    /// Handles a key of the menu; `None` if it is not one. Other keys close the menu, and typing opens it again.
    fn menu_key(&mut self, key: &Key) -> Option<Edit> {
        let mut menu = self.menu.take()?;
        if key.ctrl || key.alt || key.shift && key.code != Code::BackTab {
            return None;
        }
        let item = match key.code {
            Code::Up | Code::Down => {
                menu.turn(key.code == Code::Down);
                self.menu = Some(menu);
                return Some(Edit::Changed);
            }
            Code::Esc => {
                self.dismissed = Some(menu.word.start);
                return Some(Edit::Changed);
            }
            Code::Tab => menu.best()?,
            Code::Enter => menu.chosen()?,
            Code::Char(_) | Code::BackTab | Code::Backspace | Code::Delete | Code::Left | Code::Right => {
                return None;
            }
            Code::Home | Code::End | Code::PageUp | Code::PageDown | Code::Paste(_) => return None,
        };
        let sends = key.code == Code::Enter && item.is_sent;
        let spaced = item.text.ends_with('/') || self.buffer.after().starts_with(char::is_whitespace);
        let text = if spaced || sends { item.text.clone() } else { item.text.clone() + " " };
        let edit = self.complete_with(menu.word, &text);
        if text.ends_with('/') {
            // The files of a directory are chosen next.
            self.open_menu();
        }
        Some(if sends { self.enter() } else { edit })
    }

    fn plain_key(&mut self, key: Key) -> Edit {
        if matches!(key.code, Code::Tab | Code::BackTab) {
            return self.tab(key.code == Code::Tab && !key.shift);
        }
        let had_list = self.completion.take().is_some();
        if had_list && key.code == Code::Esc {
            return Edit::Changed;
        }
        let edit = self.text_key(key);
        if had_list && edit == Edit::None { Edit::Changed } else { edit }
    }

    fn text_key(&mut self, key: Key) -> Edit {
        match key.code {
            Code::Char(c) if key.ctrl && !key.alt => self.ctrl(c),
            Code::Char(c) if key.alt && !key.ctrl => self.alt(c),
            Code::Char(c) if c.is_control() => Edit::None,
            Code::Char(c) => edited(self.buffer.type_char(c)),
            Code::Paste(text) => edited(self.buffer.insert(&typed(&text))),
            Code::Enter if key.alt || key.shift || key.ctrl => edited(self.buffer.insert("\n")),
            Code::Enter => self.enter(),
            Code::Backspace if key.alt || key.ctrl => self.remove(self.buffer.word_left(), true),
            Code::Backspace => self.remove(self.buffer.left(), false),
            Code::Delete if key.alt || key.ctrl => self.remove(self.buffer.word_right(), true),
            Code::Delete => self.remove(self.buffer.right(), false),
            Code::Left if key.alt || key.ctrl => self.go(self.buffer.word_left()),
            Code::Left => self.go(self.buffer.left()),
            Code::Right if key.alt || key.ctrl => self.go(self.buffer.word_right()),
            Code::Right => self.go(self.buffer.right()),
            Code::Home if key.ctrl => self.go(0),
            Code::Home => self.go(self.buffer.line_start()),
            Code::End if key.ctrl => self.go(self.text().len()),
            Code::End => self.go(self.buffer.line_end()),
            Code::Up if !key.alt && !key.ctrl => self.up(),
            Code::Down if !key.alt && !key.ctrl => self.down(),
            Code::Up | Code::Down | Code::Tab | Code::BackTab => Edit::None,
            Code::PageUp | Code::PageDown | Code::Esc => Edit::None,
        }
    }

    fn ctrl(&mut self, c: char) -> Edit {
        match c {
            'a' => self.go(self.buffer.line_start()),
            'e' => self.go(self.buffer.line_end()),
            'b' => self.go(self.buffer.left()),
            'f' => self.go(self.buffer.right()),
            'p' => self.up(),
            'n' => self.down(),
            'h' => self.remove(self.buffer.left(), false),
            'd' => self.remove(self.buffer.right(), false),
            'w' => self.remove(self.buffer.space_left(), true),
            'u' => self.remove(self.buffer.line_start(), true),
            'k' if self.buffer.after().starts_with('\n') => self.remove(self.buffer.right(), true),
            'k' => self.remove(self.buffer.line_end(), true),
            'y' if self.killed.is_empty() => Edit::None,
            'y' => edited(self.buffer.insert(&self.killed)),
            'j' => edited(self.buffer.insert("\n")),
            'r' => {
                self.search = Some(Search::default());
                Edit::Changed
            }
            // Terminals send the same for all of these.
            '_' | '/' | '7' => changed(self.buffer.undo()),
            _ => Edit::None,
        }
    }

    fn alt(&mut self, c: char) -> Edit {
        match c {
            'b' => self.go(self.buffer.word_left()),
            'f' => self.go(self.buffer.word_right()),
            'd' => self.remove(self.buffer.word_right(), true),
            '<' => self.go(0),
            '>' => self.go(self.text().len()),
            '\r' | '\n' => edited(self.buffer.insert("\n")),
            _ => Edit::None,
        }
    }

    fn go(&mut self, to: usize) -> Edit {
        changed(self.buffer.set_cursor(to))
    }

    /// Cuts the text between the cursor and a position.
    fn remove(&mut self, to: usize, keep: bool) -> Edit {
        let at = self.buffer.cursor();
        let range = at.min(to)..at.max(to);
        if range.is_empty() {
            return Edit::None;
        }
        if keep && let Some(text) = self.text().get(range.clone()) {
            self.killed = text.to_owned();
        }
        edited(self.buffer.replace(range, ""))
    }

    /// Sends the text, or inserts a line break after a backslash before the cursor.
    fn enter(&mut self) -> Edit {
        if self.buffer.before().ends_with('\\') {
            let at = self.buffer.cursor();
            return edited(self.buffer.replace(at - 1..at, "\n"));
        }
        if self.text().trim().is_empty() {
            return Edit::None;
        }
        let text = self.buffer.take();
        self.history.add(&text);
        Edit::Submit(text)
    }

    fn up(&mut self) -> Edit {
        if self.buffer.up() {
            return Edit::Changed;
        }
        let older = self.history.older(self.buffer.text());
        self.show(older)
    }

    fn down(&mut self) -> Edit {
        if self.buffer.down() {
            return Edit::Changed;
        }
        let newer = self.history.newer(self.buffer.text());
        self.show(newer)
    }

    fn show(&mut self, entry: Option<String>) -> Edit {
        let Some(entry) = entry else { return Edit::None };
        let all = 0..self.buffer.text().len();
        self.buffer.replace(all, &entry);
        Edit::Changed
    }

    /// Completes the word before the cursor as far as it is unambiguous, lists the candidates, and cycles through
    /// them when the list is open.
    fn tab(&mut self, forward: bool) -> Edit {
        if let Some(completion) = &mut self.completion {
            let word = completion.word.clone();
            let chosen = completion.turn(forward).to_owned();
            completion.word.end = word.start + chosen.len();
            return self.complete_with(word, &chosen);
        }
        if !forward {
            return Edit::None;
        }
        let Some(completion) = Completion::of(&self.buffer, self.complete.as_ref()) else {
            return Edit::None;
        };
        let common = completion.common().to_owned();
        let word = completion.word.clone();
        if completion.candidates.len() == 1 {
            let spaced = common.ends_with('/') || self.buffer.after().starts_with(char::is_whitespace);
            return self.complete_with(word, &if spaced { common } else { common + " " });
        }
        self.completion = Some(Completion { word: word.start..word.start + common.len(), ..completion });
        self.complete_with(word, &common)
    }

    fn complete_with(&mut self, word: std::ops::Range<usize>, text: &str) -> Edit {
        match self.buffer.replace(word, text) {
            0 => Edit::Changed,
            bytes => {
                self.completion = None;
                Edit::Cut { bytes }
            }
        }
    }
}

/// Normalizes a text: one kind of line end, tabs, and no other control characters.
fn typed(text: &str) -> String {
    let text = text.replace("\r\n", "\n").replace('\r', "\n");
    text.chars().filter(|c| !c.is_control() || matches!(c, '\n' | '\t')).collect()
}

fn edited(left_out: usize) -> Edit {
    if left_out == 0 { Edit::Changed } else { Edit::Cut { bytes: left_out } }
}

fn changed(is_changed: bool) -> Edit {
    if is_changed { Edit::Changed } else { Edit::None }
}
