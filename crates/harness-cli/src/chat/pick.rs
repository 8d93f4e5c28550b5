//! A list of which a person takes one.

use super::composer::{Code, Key};
use super::line::{Line, Look, Text};
use super::screen::Frame;
use crate::render::{BOLD, DIM, NOTE};

/// What a person did with a list.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Picked {
    /// Took the one of this number, from 0.
    One(usize),
    /// None of them.
    None,
}

/// A list.
#[derive(Debug)]
pub(super) struct Pick {
    title: &'static str,
    rows: Vec<String>,
    at: usize,
}

impl Pick {
    pub(super) fn new(title: &'static str, rows: Vec<String>) -> Self {
        Self { title, rows, at: 0 }
    }

    /// A key; `None` while the person is still looking.
    pub(super) fn key(&mut self, key: &Key) -> Option<Picked> {
        let last = self.rows.len().saturating_sub(1);
        let leaves = key.ctrl && matches!(key.code, Code::Char('c' | 'd'));
        if leaves || matches!(key.code, Code::Esc | Code::Char('q')) {
            return Some(Picked::None);
        }
        self.at = match key.code {
            Code::Enter => return Some(Picked::One(self.at)),
            Code::Up | Code::Char('k') => self.at.saturating_sub(1),
            Code::Down | Code::Char('j') => (self.at + 1).min(last),
            Code::PageUp => self.at.saturating_sub(10),
            Code::PageDown => (self.at + 10).min(last),
            Code::Home => 0,
            Code::End => last,
            Code::Char(_)
            | Code::Tab
            | Code::BackTab
            | Code::Backspace
            | Code::Delete
            | Code::Left
            | Code::Right
            | Code::Esc
            | Code::Paste(_) => self.at,
        };
        None
    }

    /// As many rows as there is room for, the one that Enter takes among them.
    pub(super) fn view(&self, columns: usize, rows: usize) -> Frame {
        let (width, room) = (columns.saturating_sub(1).max(1), rows.saturating_sub(3).max(1));
        let first = self.at.saturating_sub(room / 2).min(self.rows.len().saturating_sub(room));
        let mut lines = vec![one(self.title, &Look::of(BOLD), width)];
        for (number, row) in self.rows.iter().enumerate().skip(first).take(room) {
            let (mark, look) =
                if number == self.at { ("› ", Look::of(NOTE)) } else { ("  ", Look::default()) };
            lines.push(one(&format!("{mark}{row}"), &look, width));
        }
        lines.push(one("↑ ↓ choose · Enter takes it · Esc leaves", &Look::of(DIM), width));
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
    fn the_one_that_is_chosen_is_in_sight() {
        let mut pick = Pick::new("which?", (1..=9).map(|number| format!("number {number}")).collect());
        pick.key(&Key::of(Code::End));
        let rows: Vec<String> = pick.view(20, 6).rows.iter().map(Line::plain).collect();
        assert_eq!(rows, ["which?", "  number 7", "  number 8", "› number 9", "↑ ↓ choose · Enter "]);
    }
}
