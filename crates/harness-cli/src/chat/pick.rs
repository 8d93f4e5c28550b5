//! A list with a filter from which the user selects one row.

use super::composer::{Code, Key};
use crate::render::line::{Line, Look, Text};
use crate::render::screen::Frame;
use crate::render::{BOLD, DIM, NOTE};

/// Maximum length of the filter in bytes.
const LONGEST: usize = 200;

/// Result of a selection.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Picked {
    /// Index of the selected row, from 0.
    One(usize),
    /// The selection was cancelled.
    None,
}

/// A selection list with a filter.
#[derive(Debug)]
pub(super) struct Pick {
    title: &'static str,
    rows: Vec<String>,
    /// More text of each row that the filter searches, in lower case.
    texts: Vec<String>,
    /// The filter text.
    filter: String,
    /// Indexes of the rows that contain each of its words.
    left: Vec<usize>,
    /// Position in `left` of the highlighted row.
    at: usize,
}

impl Pick {
    pub(super) fn new(title: &'static str, rows: Vec<String>) -> Self {
        let left = (0..rows.len()).collect();
        Self { title, rows, texts: Vec::new(), filter: String::new(), left, at: 0 }
    }

    /// Searches these texts, too: one for each row, in lower case. Rows beyond them have no more text.
    pub(super) fn searching(mut self, texts: Vec<String>) -> Self {
        self.texts = texts;
        self
    }

    /// Handles a key; `None` while the selection is open.
    pub(super) fn key(&mut self, key: &Key) -> Option<Picked> {
        let last = self.left.len().saturating_sub(1);
        let leaves = key.ctrl && matches!(key.code, Code::Char('c' | 'd'));
        if leaves || key.code == Code::Esc {
            return Some(Picked::None);
        }
        self.at = match &key.code {
            Code::Enter => return self.left.get(self.at).map(|row| Picked::One(*row)),
            Code::Up | Code::BackTab => self.at.saturating_sub(1),
            Code::Down | Code::Tab => (self.at + 1).min(last),
            Code::PageUp => self.at.saturating_sub(10),
            Code::PageDown => (self.at + 10).min(last),
            Code::Home => 0,
            Code::End => last,
            Code::Char('u') if key.ctrl => self.look_for(String::new()),
            Code::Char(c) if !key.ctrl && !key.alt => self.look_for(format!("{}{c}", self.filter)),
            Code::Paste(text) => self.look_for(format!("{}{text}", self.filter)),
            Code::Backspace => {
                let mut filter = self.filter.clone();
                filter.pop();
                self.look_for(filter)
            }
            Code::Char(_) | Code::Delete | Code::Left | Code::Right | Code::Esc => self.at,
        };
        None
    }

    /// Filters the rows and keeps the highlighted row if it still matches.
    fn look_for(&mut self, filter: String) -> usize {
        let chosen = self.left.get(self.at).copied();
        self.filter = filter.chars().filter(|c| !c.is_control()).collect();
        self.filter.truncate(self.filter.floor_char_boundary(LONGEST));
        let folded = self.filter.to_lowercase();
        let holds = |number: usize, row: &str| {
            let (row, text) = (row.to_lowercase(), self.texts.get(number).map_or("", String::as_str));
            folded.split_whitespace().all(|word| row.contains(word) || text.contains(word))
        };
        let rows = self.rows.iter().enumerate();
        self.left = rows.filter(|(number, row)| holds(*number, row)).map(|(number, _)| number).collect();
        self.left.iter().position(|row| Some(*row) == chosen).unwrap_or(0)
    }

    /// Rows that fit, including the highlighted one.
    pub(super) fn view(&self, columns: usize, rows: usize) -> Frame {
        let (width, room) = (columns.saturating_sub(1).max(1), rows.saturating_sub(3).max(1));
        let first = self.at.saturating_sub(room / 2).min(self.left.len().saturating_sub(room));
        let title = if self.filter.is_empty() {
            self.title.to_owned()
        } else {
            format!("{} {} ({} of {})", self.title, self.filter, self.left.len(), self.rows.len())
        };
        let mut lines = vec![one(&title, &Look::of(BOLD), width)];
        for (place, number) in self.left.iter().enumerate().skip(first).take(room) {
            let Some(row) = self.rows.get(*number) else { continue };
            let (mark, look) =
                if place == self.at { ("› ", Look::of(NOTE)) } else { ("  ", Look::default()) };
            lines.push(one(&format!("{mark}{row}"), &look, width));
        }
        lines.push(one("↑ ↓ select · type to filter · Enter confirms · Esc cancels", &Look::of(DIM), width));
        Frame { rows: lines, cursor: (1 + self.at - first, 0) }
    }
}

fn one(text: &str, look: &Look, width: usize) -> Line {
    let mut line = Text::default();
    line.push(text, look);
    line.chop(width).into_iter().next().unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[track_caller]
    fn check(keys: &[Code], expected: Option<Picked>) {
        let mut pick = Pick::new("which?", vec!["one".to_owned(), "two".to_owned(), "three".to_owned()]);
        let picked = keys.iter().find_map(|code| pick.key(&Key::of(code.clone())));
        assert_eq!(picked, expected, "{keys:?}");
    }

    #[test]
    fn a_person_takes_one_or_none() {
        check(&[Code::Enter], Some(Picked::One(0)));
        check(&[Code::Down, Code::Down, Code::Down, Code::Up, Code::Enter], Some(Picked::One(1)));
        check(&[Code::End, Code::Enter], Some(Picked::One(2)));
        check(&[Code::Up, Code::Char('x')], None);
        check(&[Code::Down, Code::Esc], Some(Picked::None));
    }

    #[test]
    fn typing_makes_the_list_shorter() {
        let typed = |text: &str| text.chars().map(Code::Char).collect::<Vec<_>>();
        check(&[typed("HR e"), vec![Code::Enter]].concat(), Some(Picked::One(2)));
        check(&[typed("four"), vec![Code::Enter]].concat(), None);
        check(&[typed("t"), vec![Code::Down, Code::Backspace, Code::Enter]].concat(), Some(Picked::One(2)));
        let mut pick = Pick::new("which?", vec!["one".to_owned(), "two".to_owned()]);
        pick.key(&Key::of(Code::Paste("TW\u{1b}".to_owned())));
        let rows: Vec<String> = pick.view(60, 6).rows.iter().map(Line::plain).collect();
        assert_eq!(rows[..2], ["which? TW (1 of 2)", "› two"]);
    }

    #[test]
    fn filter_searches_the_text_behind_a_row() {
        let check = |filter: &str, expected: Option<Picked>| {
            let rows = vec!["Monday".to_owned(), "Tuesday".to_owned()];
            let mut pick =
                Pick::new("which?", rows).searching(vec!["the tent".to_owned(), "the stove".to_owned()]);
            pick.key(&Key::of(Code::Paste(filter.to_owned())));
            assert_eq!(pick.key(&Key::of(Code::Enter)), expected, "{filter}");
        };
        check("Stove", Some(Picked::One(1)));
        check("tuesday the", Some(Picked::One(1)));
        check("monday stove", None);
    }

    #[test]
    fn the_one_that_is_chosen_is_in_sight() {
        let mut pick = Pick::new("which?", (1..=9).map(|number| format!("number {number}")).collect());
        pick.key(&Key::of(Code::End));
        let rows: Vec<String> = pick.view(20, 6).rows.iter().map(Line::plain).collect();
        assert_eq!(rows, ["which?", "  number 7", "  number 8", "› number 9", "↑ ↓ select · type t"]);
    }
}
